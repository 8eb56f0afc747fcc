"""The compactor without a model: which sentences are left out, and which one is the task."""

import pytest
from derived.compaction.conversations import check, picked, raw

from daypack.derived.artifacts.artifacts import read_artifacts
from daypack.derived.artifacts.observations import Artifacts, ErrorSeen
from daypack.derived.compaction.extractive import extract
from daypack.derived.compaction.task import QUESTION_WEIGHT
from daypack.derived.template import MAX_BULLETS
from daypack.types.history import Message, ToolCall

ASKED = "Rename the setting `durability` to `safety` in src/config.py."


def working(text: str, name: str = "Read", arguments: str = '{"path": "a.py"}') -> tuple[Message, Message]:
    called = Message(role="assistant", content=text, tool_calls=(ToolCall("c1", name, arguments),))
    return called, Message(role="tool", content="x = 1", tool_call_id="c1")


# Task


@pytest.mark.parametrize(
    "said",
    [
        "What is the staging port, and which file must you not touch?",
        "Can you tell me which file holds the staging port of the billing service?",
        "How do I find the staging port of the billing service on lab29?",
        "The machine lab29 has the address 10.0.0.7 and runs the nightly jobs of the whole team.",
        "Remember: releases are cut from the branch `stable`, never from main.",
        "Use port 8443 for the staging server from now on, in every file.",
        "SyntaxError: invalid syntax",
    ],
)
@pytest.mark.parametrize("asked", [ASKED, "Fix the rounding in src/fields.py.", "Can you add a flag `--dry-run`?"])
def test_questions_rules_and_news_do_not_change_the_task(asked: str, said: str) -> None:
    history = raw(("user", asked), *working("Let me look."), ("assistant", "The name is in line 12."), ("user", said))
    assert picked(history, "task") == [asked]


def test_a_question_is_the_task_once_the_work_is_reported_as_done() -> None:
    question = "How do I find the staging port of the billing service on lab29?"
    done = "The setting `durability` is renamed to `safety` in src/config.py, all done and removed."
    assert picked(raw(("user", ASKED), ("assistant", done), ("user", question)), "task") == [question]
    assert picked(raw(("user", ASKED), ("assistant", "I am at it."), ("user", question)), "task") == [ASKED]


def test_where_nobody_asked_for_work_the_newest_question_is_the_task() -> None:
    history = raw(
        ("user", "How do I store dates in the table of invoices?"),
        ("assistant", "As ISO 8601."),
        ("user", "How do I sort the table of invoices by them?"),
    )
    assert picked(history, "task") == ["How do I sort the table of invoices by them?"]


def test_a_task_that_asks_for_work_weighs_more_than_a_question() -> None:
    asked = extract(raw(("user", ASKED)), Artifacts())[0]
    question = extract(raw(("user", "How do I find the port of src/config.py on lab29 and lab30?")), Artifacts())[0]
    assert asked.section == question.section == "task"
    assert asked.weight > QUESTION_WEIGHT >= question.weight


def test_the_task_is_not_a_fact_too() -> None:
    text = "Fix the export because the root cause is the timeout of 30s in src/export.py."
    assert picked(raw(("user", text)), "task") == [text]
    assert picked(raw(("user", text)), "facts") == []


# Facts


@pytest.mark.parametrize(
    "text",
    [
        "Is the port of the server in src/app.py because of the proxy?",
        "The only one from our code is `subagent_live.ex:25`.",
        "Then the server listens on port 8081.",
        "This is why the export fails.",
        "It was a stale lock because of the crash.",
        "Reading module 4.",
        "I added the missing handler because of the crash.",
        "The file is likely in src/marshmallow because of the import.",
        "It seems the root cause is in src/app.py.",
        "The root cause might be the port 8081.",
        "The handler in src/app.py needs to be merged because it is unused.",
        "The next step is to check the version in src/app.py.",
        "We should check whether the port is 8081.",
        "The config is missing `secret_key_base`. Let me add it.",
        "The aliases in src/app.py are unused. Now let me remove them:",
    ],
)
def test_what_does_not_stand_for_itself_is_no_fact(text: str) -> None:
    history = raw(("user", ASKED), *working(text), ("assistant", "The server listens on port 9999."))
    assert picked(history, "facts") == ["The server listens on port 9999."]


def test_a_deed_with_a_path_and_a_cause_that_is_mended_are_facts() -> None:
    deed = "I added the handler `close_all` in src/app.py, which is used by src/web.py."
    cause = "The root cause is the missing lock in src/lock.py. Let me add it."
    told = picked(raw(("user", ASKED), *working(deed), *working(cause)), "facts")
    assert set(told) == {deed, "The root cause is the missing lock in src/lock.py."}


def test_a_light_word_before_a_fact_is_left_off() -> None:
    history = raw(("user", f"{ASKED} Also, the database listens on port 5432."))
    check(history, extract(history, Artifacts()))
    assert picked(history, "facts") == ["the database listens on port 5432."]


def test_of_test_results_only_the_newest_stays() -> None:
    told = [*working("All 8 tests pass."), *working("Two of 12 tests failed."), ("assistant", "76 tests, 0 failures.")]
    assert picked(raw(("user", ASKED), *told), "facts") == ["76 tests, 0 failures."]


@pytest.mark.parametrize(
    ("former", "later"),
    [
        ("The staging port is 8443.", "Actually, the staging port is 9443."),
        ("The staging port is 8443.", "Correction: the staging port is 9443, everywhere."),
        ("The retry limit is 3.", "The retry limit is now 5."),
        ("The server listens on port 8081.", "The server listens on port 8082."),
    ],
)
def test_a_value_gives_way_to_a_later_one(former: str, later: str) -> None:
    other = "The database listens on port 5432."
    history = raw(("user", f"{ASKED} {former} {other}"), ("assistant", "Noted."), ("user", later))
    assert set(picked(history, "facts")) == {later, other}


def test_values_of_different_things_stay() -> None:
    one, two = "The port of lab29 is 8443.", "The port of lab30 is 9443."
    assert set(picked(raw(("user", f"{ASKED} {one}"), ("user", two)), "facts")) == {one, two}


def test_items_of_what_is_asked_for_are_no_facts() -> None:
    items = "- The `Billing` service - its API and what it returns\n- The port of lab29 is 8443."
    assert picked(raw(("user", f"{ASKED}\n\nI need to understand:\n{items}")), "facts") == [
        "The port of lab29 is 8443."
    ]


# Decisions

TIPS = (
    "INSTRUCTIONS:\nYour terminal session has started. Remember, YOU CAN ONLY ENTER ONE COMMAND AT A TIME. "
    "You should always wait for feedback after every command.\n\nIMPORTANT TIPS:\n"
    "1. Always start by trying to replicate the bug because it is required in main.py.\n" * 6
)


def test_what_a_harness_tells_every_agent_is_neither_decision_nor_fact() -> None:
    issue = (
        "We're solving an issue.\nISSUE:\nRound the value in src/fields.py\n\nThe output is `344` because of it.\n\n"
    )
    bullets = extract(raw(("user", issue + TIPS), ("assistant", "I am at it.")), Artifacts())
    assert {(one.section, one.text) for one in bullets} == {
        ("task", "Round the value in src/fields.py"),
        ("facts", "The output is `344` because of it."),
    }
    assert {one.section for one in extract(raw(("user", TIPS)), Artifacts())} <= {"task"}


def test_a_call_for_a_summary_is_not_heard() -> None:
    call = (
        "You MUST respond with ONLY the <summary> block. Your task is to create a detailed summary of the conversation."
    )
    assert [one.text for one in extract(raw(("user", ASKED), ("user", call)), Artifacts())] == [ASKED]


def test_a_long_text_that_comes_again_and_again_lays_nothing_down() -> None:
    form = "Never write to the folder `dist` on lab29. " * 20
    assert len(picked(raw(("user", ASKED), ("user", form)), "decisions")) == 1
    assert picked(raw(("user", ASKED), *[("user", form)] * 3), "decisions") == []


@pytest.mark.parametrize(
    "answer",
    [
        '"The build is red. Was it red before?"="main was clean; fix the issues"',
        '"Which rig? (This is a single app. Should I use \'spotter\'?)"="No rig"',
    ],
)
def test_an_answer_is_not_torn_from_its_question(answer: str) -> None:
    told = f"User has answered your questions: {answer}. You can now continue."
    assert picked(raw(("user", ASKED), Message(role="tool", content=told, tool_call_id="c1")), "decisions") == []


# Pending


def test_what_an_assistant_means_to_do_is_pending_until_it_begins() -> None:
    meant = ("assistant", "The handler is fixed. Then I need to add a regression test.")
    rest = [("user", "Thanks, go on."), *working("Good."), ("assistant", "The port is 8081."), ("user", "ok")] * 3
    assert picked(raw(("user", ASKED), meant, *rest), "pending") == ["Then I need to add a regression test."]
    begun = working("Now let me add the regression test.", "Write")
    assert picked(raw(("user", ASKED), meant, *rest, *begun), "pending") == []


def test_the_step_at_hand_is_not_pending() -> None:
    rest = [("assistant", f"The port of lab{at} is 8081.") for at in range(9)]
    assert picked(raw(("user", ASKED), *working("I need to add a regression test."), *rest), "pending") == []


# Errors


def test_few_resolved_errors_are_told_and_none_that_says_nothing() -> None:
    resolved = [ErrorSeen(f"TypeError: x{at}", at, "Bash", resolved_by=50, resolution="make") for at in range(1, 9)]
    vague = [ErrorSeen("File does not exist.", 20, "Read"), ErrorSeen("Pre-commit validation failed:", 21, "Bash")]
    open_one = ErrorSeen("No such file: a.py", 5, "Read")
    told = picked(raw(("user", ASKED)), "errors", Artifacts(errors=(*resolved, *vague, open_one)))
    assert told == ["No such file: a.py", "TypeError: x8", "TypeError: x7", "TypeError: x6"]


# How many


def test_a_caller_can_ask_for_more_and_for_fewer_bullets() -> None:
    history = raw(("user", ASKED), *[("user", f"The port of the machine lab{at} is {8000 + at}.") for at in range(30)])
    seen = read_artifacts(history)
    found = [[one for one in extract(history, seen, most) if one.section == "facts"] for most in (3, 10, 100)]
    assert [len(one) for one in found] == [3, MAX_BULLETS, 30]
    assert [one for one in extract(history, seen) if one.section == "facts"] == found[1]
