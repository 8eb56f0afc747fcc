"""Trajectories of SWE-agent."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from daypack.errors import BadInput
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]

HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "SETTING", "agent": "main", "message_type": "system_prompt"},
    {"role": "user", "content": [{"type": "text", "text": "ISSUE"}], "agent": "main", "is_demo": True},
    {
        "role": "assistant",
        "content": "I look.",
        "thought": "I look.",
        "action": "ls -F",
        "agent": "main",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}],
    },
    {"role": "tool", "content": "a.py", "agent": "main", "tool_call_ids": ["c1"]},
    {"role": "assistant", "content": "Then\n```\nsubmit\n```", "thought": "Then", "action": "submit", "agent": "main"},
]
STEP = {
    "action": "ls -F",
    "observation": "a.py",
    "response": "I look.",
    "state": {"open": "n/a"},
    "execution_time": 0.1,
}


def run_of(history: list[dict[str, Any]], steps: list[dict[str, Any]], **info: Any) -> str:
    return json.dumps({"environment": "main", "trajectory": steps, "history": history, "info": info}, indent=1)


def kept_in(session: Session) -> list[Any]:
    return [event.data["row"] for event in session.events() if event.type == "import.row"]


def test_the_history_becomes_messages_and_the_rest_events(write: Write, bring: Bring, opened: Opened) -> None:
    sent = {**STEP, "messages": [*HISTORY[:2], {"role": "user", "content": "elided"}]}
    path = write("run-1.traj", run_of(HISTORY, [sent], exit_status="submitted"))
    report = bring("swe-agent", path)
    session = opened(report.session)
    system, issue, called, answered, last = session.messages()
    assert [message.text for message in session.messages()] == [
        "SETTING",
        "ISSUE",
        "I look.",
        "a.py",
        "Then\n```\nsubmit\n```",
    ]
    assert [message.role for message in session.messages()] == ["system", "user", "assistant", "tool", "assistant"]
    assert (system.meta or {})["message_type"] == "system_prompt"
    assert (issue.meta or {})["is_demo"] is True
    assert "thought" not in (called.meta or {})
    assert [(call.id, call.name, call.arguments) for call in called.tool_calls] == [("c1", "bash", '{"command":"ls"}')]
    assert answered.tool_call_id == "c1"
    assert (last.meta or {})["action"] == "submit"
    assert kept_in(session) == [
        {"trajectory": {**STEP, "messages": [0, 1, {"role": "user", "content": "elided"}]}},
        {"environment": "main", "info": {"exit_status": "submitted"}},
    ]
    assert (report.messages, report.tool_calls, report.rows) == (5, 1, 2)
    again = bring("swe-agent", path)
    assert (again.new, again.new_rows) == (0, 0)


def test_a_run_that_went_on_adds_the_rest(write: Write, bring: Bring, opened: Opened) -> None:
    bring("swe-agent", write("run-1.traj", run_of(HISTORY[:3], [STEP])))
    report = bring("swe-agent", write("run-1.traj", run_of(HISTORY, [STEP, {**STEP, "action": "submit"}], done=True)))
    assert (report.new, report.new_rows) == (2, 2)
    assert len(opened(report.session).messages()) == 5


def test_each_run_of_an_instance_is_a_session_and_a_copy_of_its_file_adds_nothing(
    write: Write, bring: Bring, opened: Opened
) -> None:
    one = run_of(HISTORY, [STEP])
    other = [*HISTORY[:2], {"role": "assistant", "content": "Otherwise", "agent": "main"}, *HISTORY[3:]]
    first = bring("swe-agent", write("one/run-1.traj", one))
    second = bring("swe-agent", write("two/run-1.traj", run_of(other, [STEP])))
    slower = bring("swe-agent", write("three/run-1.traj", run_of(HISTORY, [{**STEP, "execution_time": 0.2}])))
    assert len({first.session, second.session, slower.session}) == 3
    assert [message.text for message in opened(second.session).messages()][2] == "Otherwise"
    copy = bring("swe-agent", write("copy/run-1.traj", one))
    assert (copy.session, copy.new, copy.new_rows) == (first.session, 0, 0)


def test_a_run_that_is_imported_before_its_first_step_is_continued(write: Write, bring: Bring, opened: Opened) -> None:
    first = bring("swe-agent", write("run-1.traj", run_of(HISTORY[:2], [])))
    report = bring("swe-agent", write("run-1.traj", run_of(HISTORY, [STEP])))
    assert (report.session, report.new) == (first.session, 3)


def test_a_run_in_a_session_named_after_its_file_is_continued_and_another_run_is_not_mixed_with_it(
    write: Write, bring: Bring, opened: Opened
) -> None:
    """Earlier versions named the session of a run after its file."""
    bring("swe-agent", write("run-1.traj", run_of(HISTORY[:3], [STEP])), "run-1")
    grown = bring("swe-agent", write("run-1.traj", run_of(HISTORY, [STEP, {**STEP, "action": "submit"}])))
    assert (grown.session, grown.new) == ("run-1", 2)
    other = [*HISTORY[:2], {"role": "assistant", "content": "Otherwise", "agent": "main"}, *HISTORY[3:]]
    assert bring("swe-agent", write("two/run-1.traj", run_of(other, [STEP]))).session != "run-1"
    assert len(opened("run-1").messages()) == 5


def test_a_run_whose_stored_part_changed_is_refused(write: Write, bring: Bring) -> None:
    bring("swe-agent", write("run-1.traj", run_of(HISTORY, [STEP])))
    with pytest.raises(BadInput, match="changed since the last import"):
        bring("swe-agent", write("run-1.traj", run_of([*HISTORY[:3], {"role": "user", "content": "x"}], [STEP])))


def test_a_run_without_history_is_read_off_its_steps(write: Write, bring: Bring, opened: Opened) -> None:
    steps = [STEP, {"thought": "End", "action": "submit", "observation": None}]
    report = bring("swe-agent", write("bare.traj", json.dumps({"trajectory": steps})))
    stored = list(opened(report.session).messages())
    assert [(one.role, one.text) for one in stored] == [
        ("assistant", "I look."),
        ("user", "a.py"),
        ("assistant", "End\nsubmit"),
    ]


def test_what_is_no_message_is_kept(write: Write, bring: Bring, opened: Opened) -> None:
    odd = {"role": "narrator", "content": "…"}
    alone = {"role": "tool", "content": "no call"}
    bring("swe-agent", write("odd.traj", run_of([HISTORY[0], odd, alone], [])))
    assert [(message.role, message.text) for message in opened("odd").messages()] == [
        ("system", "SETTING"),
        ("user", "no call"),
    ]
    assert kept_in(opened("odd"))[0] == odd
