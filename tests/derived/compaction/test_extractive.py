"""The compactor without a model: what goes where."""

import pytest
from derived.compaction.conversations import picked, planning, raw

from daypack.derived.artifacts.observations import Artifacts, ErrorSeen
from daypack.derived.compaction.extractive import extract, finished
from daypack.types.history import Message, ToolCall
from daypack.types.records import Todo

# Task


def test_the_newest_request_of_substance_is_the_task() -> None:
    history = raw(
        ("user", "Please write a parser for the invoices in data/invoices."),
        ("assistant", "The parser is in src/invoices.py."),
        ("user", "Now migrate the billing tables to PostgreSQL 15."),
        ("assistant", "The migration is in migrations/0007_billing.sql."),
    )
    assert picked(history, "task") == ["Now migrate the billing tables to PostgreSQL 15."]


@pytest.mark.parametrize(
    "follow_up",
    [
        "ok",
        "continue",
        "yes, thanks!",
        "did you push?",
        "/compact",
        "[Request interrupted by user]",
        "<system-reminder>Please implement a todo list for the whole project.</system-reminder>",
        "<local-command-stdout>Please reconnect to the server of the other project.</local-command-stdout>",
        "<command-name>/mcp</command-name>\n<command-message>mcp</command-message>\n<command-args></command-args>",
        "<task-notification>\n<summary>Background command finished, please read it</summary>\n</task-notification>",
        "<ide_opened_file>The user opened /a/b.py, please look at this file.</ide_opened_file>",
    ],
)
def test_a_small_remark_or_an_injected_text_does_not_change_the_task(follow_up: str) -> None:
    history = raw(
        ("user", "Please write a parser for the invoices in data/invoices."),
        ("assistant", "The parser is in src/invoices.py."),
        ("user", follow_up),
    )
    assert picked(history, "task") == ["Please write a parser for the invoices in data/invoices."]


def test_what_was_given_to_a_command_is_a_request() -> None:
    history = raw(
        ("user", "<command-name>/plan</command-name>\n<command-args>set up credo and dialyzer</command-args>"),
    )
    assert picked(history, "task") == ["set up credo and dialyzer"]


def test_output_that_an_agent_hands_over_as_the_users_words_is_no_task() -> None:
    history = raw(
        ("user", "Fix the rounding in src/fields.py, please.\n\n(Current directory: /repo)\nbash-$"),
        ("assistant", "Let me look at it."),
        ("user", "Please see the long manual of this command for more.\n(Current directory: /repo)\nbash-$"),
    )
    assert picked(history, "task") == ["Fix the rounding in src/fields.py, please."]


def test_the_title_below_a_lead_in_is_the_task() -> None:
    text = "We're solving the following issue.\nISSUE:\n\nPixel data should be optional\n\nThe handler wants it always."
    assert picked(raw(("user", text)), "task") == ["Pixel data should be optional"]


def test_without_a_word_of_the_user_there_is_no_task() -> None:
    assert picked(raw(("assistant", "The port is 8081.")), "task") == []


# Decisions


@pytest.mark.parametrize(
    "text",
    [
        "Let's use SQLite instead of Postgres for the index.",
        "We decided to keep the old endpoint until June.",
        "Never commit directly to the main branch.",
        "From now on all dates are written as ISO 8601.",
        "I chose vanilla JS for faster deployment.",
        "Do not touch the migrations folder.",
    ],
)
def test_what_the_user_lays_down_is_a_decision(text: str) -> None:
    assert picked(raw(("user", f"Please build the report page. {text}")), "decisions") == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Should we use SQLite instead of Postgres?",
        "We could use SQLite instead of Postgres.",
        "Maybe we could switch to SQLite.",
        "Can you tell me which one you prefer?",
    ],
)
def test_questions_and_suppositions_are_no_decisions(text: str) -> None:
    assert picked(raw(("user", text), ("assistant", text)), "decisions") == []


def test_the_users_word_weighs_more_than_the_assistants() -> None:
    said = "We decided to keep the parser in src/parse.py."
    found = [extract(raw(("user", "Hello."), (role, said)), Artifacts()) for role in ("user", "assistant")]
    weights = [one.weight for bullets in found for one in bullets if one.section == "decisions"]
    assert len(weights) == 2
    assert weights[0] > weights[1]


def test_an_imperative_of_the_assistant_is_advice() -> None:
    assert picked(raw(("user", "How do I store dates?"), ("assistant", "Always use ISO 8601.")), "decisions") == []


def test_a_not_stays_with_its_sentence() -> None:
    history = raw(
        ("user", "We will use the cache in src/cache.py. We will not use the cache in src/cache.py for writes.")
    )
    assert set(picked(history, "decisions")) == {
        "We will use the cache in src/cache.py.",
        "We will not use the cache in src/cache.py for writes.",
    }


def test_an_answer_chosen_in_a_dialogue_is_a_decision() -> None:
    told = 'User has answered your questions: "Which database?"="SQLite". You can now continue.'
    history = raw(("user", "Set up the database, please."), Message(role="tool", content=told, tool_call_id="c1"))
    assert picked(history, "decisions") == ['"Which database?"="SQLite"']


# Facts


def test_causes_and_places_are_facts_and_narration_is_not() -> None:
    history = raw(
        ("user", "Why does the export fail?"),
        Message(role="assistant", content="Let me look.", tool_calls=(ToolCall("c1", "Bash", "{}"),)),
        Message(role="tool", content="x" * 9000, tool_call_id="c1"),
        ("assistant", "Good. The root cause is the timeout of 30s in src/export.py:12. Now let me fix `run_export`."),
    )
    assert picked(history, "facts") == ["The root cause is the timeout of 30s in src/export.py:12."]


@pytest.mark.parametrize(
    "text",
    [
        "I live in Turin with my two daughters.",
        "My budget for the trip is 1,200 euros.",
        "I'm using Flask 2.3.1 and SQLAlchemy 2.0.19.",
        "I'm allergic to peanuts.",
    ],
)
def test_what_users_tell_of_themselves_is_a_fact(text: str) -> None:
    assert text in picked(raw(("user", f"Hi there! {text} What should I do next?")), "facts")


@pytest.mark.parametrize(
    "text",
    [
        "Let me use `run_export` in src/app.py:12 instead of the old one.",
        "I should use port 8081 because the root cause is in src/app.py.",
        "I'll read src/app.py and src/export.py first.",
        "Now let me write the 12 tests.",
        "Here is a summary of the 4 changes in src/app.py.",
        "I hope this helps!",
    ],
)
def test_an_assistants_talk_about_itself_is_no_bullet(text: str) -> None:
    assert extract(raw(("user", "ok"), ("assistant", text)), Artifacts()) == ()


def test_code_logs_and_tool_output_are_no_source_of_sentences() -> None:
    code = "```\nThe root cause is in a fence.\n```\n\n| the cause is in it |\n\n2026-01-01 10:00 the cause is in it"
    history = raw(
        ("user", f"Look at this:\n\n{code}"),
        Message(role="tool", content="The root cause is in the tool's output.", tool_call_id="c1"),
    )
    assert not any("cause is in" in one.text for one in extract(history, Artifacts()))


def test_an_old_count_of_tests_gives_way_to_the_newer_ones() -> None:
    counts = [("assistant", f"All {count} tests pass.") for count in (15, 84, 397, 410)]
    told = picked(raw(("user", "Please run the tests after each step."), *counts), "facts")
    assert "All 410 tests pass." in told
    assert "All 15 tests pass." not in told


def test_sentences_that_differ_in_a_literal_are_both_kept_and_repetitions_are_not() -> None:
    history = raw(
        ("user", "Set up the staging server, please."),
        ("user", "The staging server listens on port 8081. The staging server listens on port 8082."),
        ("assistant", "Noted."),
        ("user", "The staging server listens on port 8081."),
    )
    told = picked(history, "facts")
    assert sorted(told) == ["The staging server listens on port 8081.", "The staging server listens on port 8082."]


# Pending


@pytest.mark.parametrize("tool", ["TodoWrite", "update_plan"])
def test_the_newest_plan_says_what_is_open(tool: str) -> None:
    history = raw(
        ("user", "Ship the release, please."),
        planning(("Write the notes", "in_progress"), ("Old step", "pending"), tool=tool),
        planning(
            ("Write the notes", "completed"), ("Tag 1.4.0", "in_progress"), ("Upload the wheel", "pending"), tool=tool
        ),
    )
    assert picked(history, "pending") == ["Tag 1.4.0", "Upload the wheel"]


def test_open_work_is_pending_until_somebody_says_it_is_done() -> None:
    todo = ("assistant", "We still need to update the changelog for 1.4.0.")
    other = ("assistant", "TODO: write the migration for invoices.")
    asked = ("user", "Prepare the release of the billing package.")
    assert len(picked(raw(asked, todo, other), "pending")) == 2
    done = ("assistant", "The changelog for 1.4.0 is updated.")
    assert picked(raw(asked, todo, other, done), "pending") == ["TODO: write the migration for invoices."]


def test_items_below_next_steps_and_open_boxes_are_pending() -> None:
    steps = "Next steps:\n\n- Deploy to staging\n- Tell the billing team"
    told = f"{steps}\n\nDone so far:\n\n- [x] Write the parser\n- [ ] Review the schema"
    history = raw(("user", "Build the billing page, please."), ("assistant", told))
    assert set(picked(history, "pending")) == {"Deploy to staging", "Tell the billing team", "Review the schema"}


def test_todos_that_messages_report_as_done_are_finished() -> None:
    todos = [
        Todo("t1", "We still need to update the changelog for 1.4.0.", "messages:1"),
        Todo("t2", "Write the migration for invoices", "messages:2"),
        Todo("t3", "Tell the billing team", "messages:3"),
    ]
    history = raw(
        ("assistant", "The changelog for 1.4.0 is updated. The billing team is not told yet."),
        planning(("Write the migration for invoices", "completed")),
    )
    assert finished(todos, history) == {"t1", "t2"}


# Errors


def test_errors_come_from_the_artifacts_with_the_open_ones_first() -> None:
    seen = Artifacts(
        errors=(
            ErrorSeen("TypeError: x", 3, "Bash", resolved_by=9, resolution="pytest tests"),
            ErrorSeen("No such file: a.py", 5, "Read"),
        )
    )
    told = [one for one in extract(raw(("user", "Fix the build, please.")), seen) if one.section == "errors"]
    assert [(one.text, one.source, one.resolution) for one in told] == [
        ("No such file: a.py", "messages:5", None),
        ("TypeError: x", "messages:3", "pytest tests"),
    ]
