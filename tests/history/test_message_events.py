"""Every message with tool calls, every result and every broken reply has one event, also after a crash."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.errors import StorageFailed
from daypack.history.draft import draft_message
from daypack.history.session import History
from daypack.session import Session

CALL: dict[str, Any] = {"id": "c1", "name": "run", "arguments": '{"command":"ls"}'}


def described(session: Session) -> list[tuple[str, str]]:
    types = ("tool.called", "tool.returned", "provider.error")
    return [(event.type, event.data["message"]) for event in session.events() if event.type in types]


def call(session: Session, call_id: str = "c1") -> None:
    session.append("assistant", "", tool_calls=[{**CALL, "id": call_id}])
    session.append("tool", "done", tool_call_id=call_id)


def without_events(session: Session, kept: int) -> None:
    """Leave the first events only, as a crash does whose events had not reached the disk."""
    path = session.path / "events.jsonl"
    session.close()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))


@pytest.mark.requirement("S4-F2")
@pytest.mark.parametrize("kept", [0, 1, 2, 3])
@pytest.mark.parametrize("how", ["message", "event", "call", "pin"])
def test_the_next_append_of_a_process_writes_the_missing_events_once(home: str, kept: int, how: str) -> None:
    session = daypack.open_session("work", home=home)
    call(session)
    call(session, "c2")
    without_events(session, kept)
    for _ in range(2):
        with daypack.open_session("work", home=home) as again:
            if how == "message":
                again.append("user", "Go on.")
            elif how == "event":
                again.append_event("mine")
            elif how == "pin":
                again.pin("note", "x")
            else:
                again.append("assistant", "", tool_calls=[CALL])
            events = described(again)
            calling = [("tool.called", message.id) for message in again.messages() if message.tool_calls]
            assert [event for event in events if event[0] == "tool.called"] == calling
            assert events[:4] == [
                ("tool.called", "msg-1"),
                ("tool.returned", "msg-2"),
                ("tool.called", "msg-3"),
                ("tool.returned", "msg-4"),
            ]
            assert [event for event in events if event[0] == "tool.returned"] == [events[1], events[3]]


def test_a_reply_that_broke_off_among_its_calls_has_both_events_after_any_crash(home: str) -> None:
    session = daypack.open_session("work", home=home)
    meta = {"incomplete": "APIConnectionError"}
    session.append("assistant", "I run", tool_calls=[CALL], meta=meta)
    assert described(session) == [("tool.called", "msg-1"), ("provider.error", "msg-1")]
    without_events(session, 1)
    with daypack.open_session("work", home=home) as again:
        again.append("user", "Go on.")
        assert described(again) == [("tool.called", "msg-1"), ("provider.error", "msg-1")]
        again.append("assistant", "half", meta=meta)
        assert described(again)[2:] == [("provider.error", "msg-3")]
        again.append("assistant", "half", meta={"incomplete": "abandoned"})
        assert len(described(again)) == 3


def test_looking_writes_nothing(home: str) -> None:
    session = daypack.open_session("work", home=home)
    session.append("user", "List the files.")
    call(session)
    without_events(session, 0)
    with daypack.open_session("work", home=home) as again:
        again.prepare(budget=8000, dry_run=True)
        assert len(again.messages()) == 3
        assert list(again.events()) == []
        again.recall("msg-3")
        assert list(again.events()) == []
        again.prepare(budget=8000)
        assert [event.type for event in again.events()] == ["tool.called", "tool.returned", "context.turn"]


def test_lines_written_by_hand_and_by_older_versions_get_their_events(home: str) -> None:
    with daypack.open_session("work", home=home) as session:
        session.append("user", "Hello.")
        line = '{"role":"assistant","tool_calls":[{"id":"c7","name":"ls"}]}\n{"role":"tool","content":"x"}\n'
        with open(session.history.layout.messages, "a", encoding="utf-8") as log:
            log.write(line)
        session.append_many([{"role": "user", "content": str(number)} for number in range(3000)])
        session.append("assistant", "", tool_calls=[CALL])
        assert described(session) == [("tool.called", "msg-2"), ("tool.returned", "msg-3"), ("tool.called", "msg-3004")]


def test_threads_and_processes_write_each_event_once_and_in_order(home: str) -> None:
    code = (
        "import sys, daypack\n"
        "session = daypack.open_session('work', home=sys.argv[1], durability='os')\n"
        "for number in range(40):\n"
        "    session.append('assistant', '', tool_calls=[{'id': f'c{number}', 'name': 'ls'}])\n"
        "    session.append('user', 'and')\n"
    )
    session = daypack.open_session("work", home=home)
    children = [subprocess.Popen([sys.executable, "-c", code, home]) for _ in range(2)]
    threads = [threading.Thread(target=lambda: [call_alone(session) for _ in range(20)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [child.wait(timeout=300) for child in children] == [0, 0]
    session.append("user", "last")
    session.append("assistant", "", tool_calls=[CALL])
    events = [message for _, message in described(session)]
    assert events == [message.id for message in session.messages() if message.tool_calls]
    assert len(events) == 121


def call_alone(session: Session) -> None:
    session.append("assistant", "", tool_calls=[CALL])


def test_a_message_is_stored_when_its_event_cannot_be(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StorageFailed("no space", operation="append", place="events.jsonl", hint="free some")

    session.append("user", "Hello.")
    with monkeypatch.context() as patch:
        patch.setattr(session.history.events, "append", fail)
        session.append("assistant", "", tool_calls=[CALL])
        assert described(session) == []
    session.append("user", "Go on.")
    assert described(session) == [("tool.called", "msg-2")]


def test_an_event_of_another_program_about_a_later_message_hides_nothing(session: Session) -> None:
    session.append_event("tool.called", {"message": "msg-99", "calls": []})
    session.append("assistant", "", tool_calls=[CALL])
    assert described(session)[1:] == [("tool.called", "msg-1")]


def test_no_append_syncs_a_second_time(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = daypack.open_session("work", home=home, durability="sync")
    session.append("user", "Hello.")
    synced: list[int] = []
    real = os.fdatasync

    def sync(fd: int) -> None:
        synced.append(fd)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", sync)
    for number in range(5):
        call(session, f"c{number}")
    assert len(synced) == 10
    assert len(described(session)) == 10


def test_a_history_without_a_description_leaves_the_events_to_the_session(home: str) -> None:
    with daypack.open_session("work", home=home) as session:
        session.append("user", "Hello.")
        layout, config = session.layout, session.history.config
    history = History(layout, config)
    history.append((draft_message("assistant", "", {"tool_calls": [CALL]}),))
    history.close()
    with daypack.open_session("work", home=home) as session:
        assert described(session) == []
        session.append("user", "Go on.")
        assert described(session) == [("tool.called", "msg-2")]


def test_the_sidecar_of_events_can_be_deleted_at_any_time(home: str) -> None:
    with daypack.open_session("work", home=home) as session:
        call(session)
        Path(session.layout.index("events")).unlink()
        call(session, "c2")
    Path(session.layout.index("events")).unlink(missing_ok=True)
    with daypack.open_session("work", home=home) as session:
        call(session, "c3")
        assert [message for _, message in described(session)] == [f"msg-{number}" for number in range(1, 7)]
