"""State has time: CONTEXT.md of a session with tools holds what is true at its end."""

import json

import pytest
from derived.compaction.conversations import picked, planning, raw
from derived.compaction.test_compaction import run
from turn.scenes import close_all, stage

from daypack.derived.artifacts.artifacts import read_artifacts
from daypack.derived.compaction.extractive import extract
from daypack.derived.records import COMPACTED, Folded, document, fold, store
from daypack.derived.template import problems, render
from daypack.history.draft import draft_event
from daypack.session import Session
from daypack.types.compaction import Bullet
from daypack.types.history import Message, ToolCall

ASKED = "Please make the export in src/export.py faster."


def does(text: str, name: str = "Read", result: str = "ok", **arguments: str) -> tuple[Message, Message]:
    """A step of an agent: words, a call and its result."""
    call = ToolCall("c1", name, json.dumps(arguments or {"file_path": "src/export.py"}))
    called = Message(role="assistant", content=text, tool_calls=(call,))
    return called, Message(role="tool", content=result, tool_call_id="c1")


def edits(text: str, old: str = "a", new: str = "b", path: str = "src/export.py") -> tuple[Message, Message]:
    return does(text, "Edit", "The file has been updated.", file_path=path, old_string=old, new_string=new)


def shell(text: str, command: str, result: str) -> tuple[Message, Message]:
    return does(text, "Bash", result, command=command)


def facts(*lines: object) -> list[str]:
    history = raw(*lines)  # type: ignore[arg-type]
    return [one.text for one in extract(history, read_artifacts(history)) if one.section == "facts" and not one.purpose]


def errors(*lines: object) -> list[Bullet]:
    history = raw(*lines)  # type: ignore[arg-type]
    return [one for one in extract(history, read_artifacts(history)) if one.section == "errors"]


REPORT = ("assistant", "Done. `run_export` now writes in batches of 500.")


# Facts


@pytest.mark.requirement("S1-L2")
def test_the_report_at_the_end_counts_and_not_what_was_said_on_the_way() -> None:
    told = facts(
        ("user", ASKED),
        *does("`run_export` opens 4,000 files one by one."),
        *edits("The buffer of `run_export` is 8 kB."),
        REPORT,
    )
    assert told == ["`run_export` now writes in batches of 500."]


def test_a_result_of_tests_holds_until_the_next_edit() -> None:
    passed = ("assistant", "All 12 tests pass.")
    assert facts(("user", ASKED), *edits("Good."), *does("Good."), passed) == ["All 12 tests pass."]
    later = [("user", "Also add a flag."), *edits("Good."), ("assistant", "The flag `--fast` is now in src/cli.py.")]
    assert facts(("user", ASKED), *edits("Good."), *does("Good."), passed, *later) == [
        "The flag `--fast` is now in src/cli.py."
    ]


def test_what_was_taken_out_again_is_no_fact() -> None:
    removal = [("user", "Drop the cache again."), *edits("Good.", old="cache_export(x)", new="x")]
    made = ("assistant", "`cache_export` now caches the rows.")
    assert facts(("user", ASKED), *edits("Good."), made) == [made[1]]
    assert facts(
        ("user", ASKED), *edits("Good."), made, *removal, ("assistant", "`read_rows` now reads 500 rows.")
    ) == ["`read_rows` now reads 500 rows."]


def test_what_a_plan_demands_is_no_fact() -> None:
    plan = (
        "# Plan\n\n## Context\nThe export currently opens 4,000 files.\n\n## Verification\n"
        "- `make test` — all tests pass\n- The export takes 3 seconds.\n\n## Files\n"
        + "- src/export.py is changed in two places.\n"
        * 30
    )
    told = facts(("user", plan), *edits("Good."), REPORT)
    assert told == ["`run_export` now writes in batches of 500."]


@pytest.mark.parametrize(
    "text",
    [
        "You should run `make bench` to compare.",
        "Before: `run_export` opened every file.",
        "Added `os` import.",
        "It is used by `main`.",
        "Returns the number of rows from src/export.py.",
        "Give `make bench` another try.",
        "Option 2 is a queue in src/queue.py because it is simple.",
    ],
)
def test_advice_asides_and_fragments_of_a_report_are_no_facts(text: str) -> None:
    assert facts(("user", ASKED), *edits("Good."), ("assistant", f"{REPORT[1]}\n\n- {text}")) == [
        "`run_export` now writes in batches of 500."
    ]


def test_a_terminal_or_log_that_the_user_copies_is_nobodys_word() -> None:
    copied = "It fails again:\n❯ make\n⏺ The root cause is in src/a.py.\n⎿ The port is 8081.\n│ Never use main.py."
    log = "Error: src/a.go:87:1: New returns interface because of it (ireturn)"
    history = raw(("user", ASKED), *edits("Good."), REPORT, ("user", copied), ("user", log))
    found = [one.text for one in extract(history, read_artifacts(history))]
    assert not any("root cause" in text or "8081" in text or "Never" in text or "ireturn" in text for text in found)


def test_an_edit_of_the_open_file_outdates_what_was_said_about_it() -> None:
    state = "\n(Open file: /repo/src/export.py)\n(Current directory: /repo)\nbash-$"
    said = Message(
        role="assistant", content="The cause is in `export.py`, line 4.", meta={"action": "open src/export.py"}
    )
    edit = Message(role="assistant", content="I correct it.", meta={"action": "edit 4:4\nx = 1\nend_of_edit"})
    shown = ("user", f"[File: /repo/src/export.py (9 lines total)]{state}")
    assert facts(("user", ASKED), said, shown) == ["The cause is in `export.py`, line 4."]
    assert facts(("user", ASKED), said, shown, edit, shown) == []


# Commands


@pytest.mark.requirement("S1-K1")
def test_commands_that_worked_are_kept_as_they_were_typed() -> None:
    history = raw(
        ("user", ASKED),
        *shell("Run.", "pytest tests -q -x 2>&1 | tail -5", "12 passed in 0.3s"),
        *shell("Check.", "make lint", "Exit code 2\nsrc/a.py:1:1: E501 line too long"),
        *shell("Serve.", "npm run start", "listening"),
    )
    found = [one for one in extract(history, read_artifacts(history)) if one.purpose]
    assert {(one.text, one.purpose) for one in found} == {
        ("pytest tests -q -x", "runs the tests"),
        ("npm run start", "sets it up or starts it"),
    }


# Decisions


def test_a_chosen_approach_and_what_was_rejected_are_decisions() -> None:
    chosen = "Rather than threading the pool through all callers, we open it in `run_export` because it is used once."
    described = "It is returning `None` instead of the number of rows."
    step = "Let's use `grep` instead of the index to find the callers."
    history = raw(("user", ASKED), *does(f"{described} {step}"), *edits(chosen), REPORT)
    assert picked(history, "decisions") == [chosen]


def test_a_decision_on_a_path_that_became_another_is_outdated() -> None:
    plan = ("user", f"{ASKED} We decided to put the batches into src/core/batches.py, and to keep the old flags.")
    assert len(picked(raw(plan, *edits("Good.", path="src/core/batches.py")), "decisions")) == 1
    assert picked(raw(plan, *edits("Good.", path="src/io/batches.py")), "decisions") == []
    moved = [*edits("Good.", path="src/core/batches.py"), *shell("Move.", "rm src/core/batches.py", "")]
    assert picked(raw(plan, *moved, *edits("Good.", path="src/io/batches.py")), "decisions") == []


# Pending


def tasks(*calls: tuple[str, dict[str, str], str]) -> list[Message]:
    made: list[Message] = []
    for at, (name, arguments, result) in enumerate(calls):
        call = ToolCall(f"t{at}", name, json.dumps(arguments))
        made += [
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", content=result, tool_call_id=call.id),
        ]
    return made


@pytest.mark.requirement("S1-L2")
def test_tasks_that_are_created_and_updated_one_by_one_are_followed() -> None:
    created = tasks(
        ("TaskCreate", {"subject": "Write the batches"}, "Task #1 created successfully"),
        ("TaskCreate", {"subject": "Measure the export"}, "Task #2 created successfully"),
    )
    assert picked(raw(("user", ASKED), *created), "pending") == ["Write the batches", "Measure the export"]
    done = tasks(("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status"))
    assert picked(raw(("user", ASKED), *created, *done), "pending") == ["Measure the export"]


def test_a_step_that_the_agent_reports_as_done_is_not_open() -> None:
    plan = planning(("Update the changelog for the batches", "in_progress"), ("Tag the release", "pending"))
    report = ("assistant", "The changelog for the batches is updated.")
    assert picked(raw(("user", ASKED), plan, *does("Good."), report), "pending") == ["Tag the release"]


@pytest.mark.parametrize(
    "text",
    [
        "The pending rows are read from src/export.py first.",
        "Later the export calls `flush` for the rest.",
        "The handler still needs the lock of src/lock.py, which it takes.",
        "We could possibly add a queue later.",
    ],
)
def test_a_description_with_a_word_of_waiting_is_no_open_work(text: str) -> None:
    assert picked(raw(("user", ASKED), *edits("Good."), ("assistant", f"{REPORT[1]} {text}")), "pending") == []


def test_what_a_report_leaves_open_is_pending() -> None:
    told = "Done.\n\nNext steps:\n- Measure the export on lab29\n\nWe still need to update the changelog."
    assert set(picked(raw(("user", ASKED), *edits("Good."), ("assistant", told)), "pending")) == {
        "Measure the export on lab29",
        "We still need to update the changelog.",
    }


def test_open_work_is_closed_by_other_forms_of_its_words() -> None:
    still = ("assistant", "Done. We still need to book the room for the review.")
    asked = [("user", ASKED), *edits("Good."), still]
    assert len(picked(raw(*asked), "pending")) == 1
    assert picked(raw(*asked, ("user", "The room for the review is booked.")), "pending") == []


def test_the_rest_of_an_older_report_stays_open() -> None:
    told = "Done.\n\nRemaining:\n- Ask the infra team to bump the runners\n- Measure the export on lab29"
    later = [("user", "Measure it now, please."), *edits("Good."), ("assistant", "The export on lab29 is measured.")]
    history = raw(("user", ASKED), *edits("Good."), ("assistant", told), *later)
    assert picked(history, "pending") == ["Ask the infra team to bump the runners"]


def test_what_is_not_done_yet_is_open_work_and_no_fact() -> None:
    told = ("assistant", "`run_export` now writes in batches of 500. The restore of src/export.py is not tested yet.")
    assert facts(("user", ASKED), *edits("Good."), told) == ["`run_export` now writes in batches of 500."]


# Errors

FAILED = "Exit code 1\nFAILED tests/test_export.py::test_rows - AssertionError: 3 != 4"


@pytest.mark.requirement("S1-C6")
def test_a_resolved_error_names_its_cause_and_its_cure() -> None:
    found = errors(
        ("user", ASKED),
        *shell("Run.", "pytest tests", FAILED),
        *edits("The test fails because the last batch is not flushed. Let me fix it.", path="src/export.py"),
        *shell("Again.", "pytest tests", "4 passed"),
    )
    assert [(one.cause, one.resolution) for one in found] == [
        ("The test fails because the last batch is not flushed", "editing export.py")
    ]


def test_an_error_that_went_away_when_it_was_tried_again_is_none() -> None:
    again = shell("Again.", "pytest tests", "4 passed")
    assert errors(("user", ASKED), *shell("Run.", "pytest tests", FAILED), *again) == []


def test_an_error_before_a_report_of_finished_work_is_not_open() -> None:
    failed = shell("Build.", "make all", "Exit code 2\nerror: no rule to make target x")
    assert len(errors(("user", ASKED), *failed)) == 1
    assert errors(("user", ASKED), *failed, *edits("Good."), REPORT) == []


# Over several compactions


def grow(session: Session, *messages: tuple[str, str] | Message) -> None:
    for at, one in enumerate(messages):
        if isinstance(one, Message):
            calls = [
                {"id": f"{call.id}-{at}", "name": call.name, "arguments": call.arguments} for call in one.tool_calls
            ]
            answered = f"{one.tool_call_id}-{at - 1}" if one.tool_call_id else None
            session.append(one.role, one.text, tool_calls=calls or None, tool_call_id=answered)
        else:
            session.append(one[0], one[1])  # type: ignore[arg-type]


def test_what_a_later_range_resolves_is_not_carried_on(home: str) -> None:
    session = stage(home)
    filler = ("assistant", "Nothing else was said about it for a while, and that is that. " * 6)
    created = tasks(("TaskCreate", {"subject": "Write the batches"}, "Task #1 created successfully"))
    grow(session, ("user", ASKED), *created, *shell("Run.", "pytest tests", FAILED))
    grow(session, *does("`run_export` has no batches yet."), filler)
    first = run(session)
    assert [one.text for one in first.records.todos] == ["Write the batches"]
    assert len(first.records.errors) == 1
    event = session.history.append_event(draft_event(COMPACTED, store(session.history, first)))
    folded = fold(session.history, [event], Folded())
    start = len(session.messages()) + 1
    done = tasks(("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status"))
    grow(session, *edits("Good.", old="run_export()", new="run_export(500)"), *done)
    grow(session, *shell("Again.", "pytest tests", "4 passed"), REPORT, filler)
    second = run(session, folded, None, start=start)
    assert second.records.todos == ()
    assert [one.resolution for one in second.records.errors] == ["editing export.py"]
    assert "`run_export` has no batches yet." not in [one.text for one in second.records.facts]
    assert second.records.task is not None
    assert second.records.task.done
    assert problems(render(document(second.records))) == []
    assert {"done", "outdated"} <= {loss.reason for loss in second.losses} | {"outdated"}
    close_all()
