"""Tool calls, results and broken replies as events: references and digests, never their texts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.derived.children import ChildUpdate
from daypack.errors import BadInput, EmptyReply
from daypack.importers.import_file import Destination, import_file
from daypack.session import Session
from daypack.types.digest import digest_text
from daypack.types.history import Event

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789abcdefgh"
ARGUMENTS = json.dumps({"command": f"deploy --token {SECRET}"})


def events(session: Session, *types: str) -> list[Event]:
    return [event for event in session.events() if event.type in types]


def call(session: Session, name: str, arguments: str, result: str, **fields: Any) -> dict[str, Any]:
    """Append a call with its result and return the data of the result's event."""
    session.append("assistant", "", tool_calls=[{"id": "c1", "name": name, "arguments": arguments}])
    session.append("tool", result, tool_call_id="c1", **fields)
    return events(session, "tool.returned")[-1].data


@pytest.mark.requirement("S4-F2")
def test_calls_are_recorded_by_name_id_and_digest_and_never_by_their_arguments(session: Session) -> None:
    calls = [{"id": "c1", "name": "bash", "arguments": ARGUMENTS}, {"id": "c2", "name": "read_file", "arguments": "{}"}]
    session.append("user", "Deploy.")
    message = session.append("assistant", f"I use {SECRET}.", tool_calls=calls)
    session.append("tool", f"Exit code: 0\n{SECRET}", tool_call_id="c1")
    (event,) = events(session, "tool.called")
    assert event.data == {
        "message": message.id,
        "calls": [
            {"id": "c1", "name": "bash", "arguments": digest_text(ARGUMENTS)},
            {"id": "c2", "name": "read_file", "arguments": digest_text("{}")},
        ],
    }
    assert SECRET not in (session.path / "events.jsonl").read_text()


@pytest.mark.requirement("S4-F2")
@pytest.mark.parametrize(
    ("name", "arguments", "result", "facts"),
    [
        ("bash", '{"command":"ls"}', "Exit code: 0\na.py", {"outcome": "ok", "exit": 0}),
        (
            "bash",
            '{"command":"python a.py"}',
            "Exit code: 1\nTraceback (most recent call last)\n  File 'a.py'\nModuleNotFoundError: No module named 'x'",
            {"outcome": "error", "exit": 1, "error": "ModuleNotFoundError"},
        ),
        ("bash", '{"command":"grep x a.py"}', "Exit code: 1\n", {"outcome": "ok", "exit": 1}),
        ("bash", '{"command":"sleep 9"}', "[Request interrupted by user", {"outcome": "cancelled"}),
        ("bash", '{"command":"serve"}', "Command running in background with ID: b1", {"outcome": "running"}),
        ("bash", '{"command":"ls"}', "a.py", {"outcome": "unknown"}),
        ("read_file", '{"path":"a.py"}', "Error: File does not exist", {"outcome": "error"}),
        ("read_file", '{"path":"a.py"}', "x = 1", {"outcome": "ok"}),
        ("weather", "not JSON", '{"degrees": 4}', {"outcome": "ok"}),
    ],
)
def test_a_result_is_recorded_with_its_outcome(
    session: Session, name: str, arguments: str, result: str, facts: dict[str, Any]
) -> None:
    data = call(session, name, arguments, result)
    assert data.pop("duration_ms") >= 0
    assert data == {"message": "msg-2", "call": "c1", "name": name, "called_by": "msg-1", **facts}


@pytest.mark.requirement("S4-F2")
def test_a_duration_is_as_stated_or_the_time_between_call_and_result(session: Session) -> None:
    assert call(session, "run", "{}", "x", meta={"duration_ms": 41.6})["duration_ms"] == 42
    assert call(session, "run", "{}", "x", meta={"result": {"durationSeconds": 1.5}})["duration_ms"] == 1500
    calls = [{"id": "c9", "name": "run"}]
    session.append("assistant", "", tool_calls=calls, ts="2026-11-15T10:00:00Z")
    session.append("tool", "x", tool_call_id="c9", ts="2026-11-15T10:00:02.5Z")
    assert events(session, "tool.returned")[-1].data["duration_ms"] == 2500
    session.append("assistant", "", tool_calls=calls, ts="2026-11-15T10:00:00Z")
    session.append("tool", "x", tool_call_id="c9", ts="2026-11-15T09:00:00Z")
    assert "duration_ms" not in events(session, "tool.returned")[-1].data


def test_a_late_result_names_its_call_and_one_without_a_call_names_none(session: Session) -> None:
    first = session.append("assistant", "", tool_calls=[{"id": "c1", "name": "build"}])
    session.append_many([{"role": "user", "content": "Meanwhile."}] * 600)
    session.append("tool", "x", tool_call_id="c1")
    assert events(session, "tool.returned")[-1].data["called_by"] == first.id
    session.append_many([{"role": "user", "content": "a"}, {"role": "tool", "content": "b", "tool_call_id": "lost"}])
    assert "called_by" not in events(session, "tool.returned")[-1].data


def test_results_without_ids_answer_the_calls_of_their_batch_in_order(session: Session) -> None:
    calls = [{"id": "c1", "name": "one"}, {"id": "c2", "name": "two"}]
    results = [{"role": "tool", "content": "x"}, {"role": "tool", "content": "y"}]
    session.append_many([{"role": "assistant", "tool_calls": calls}, *results])
    returned = [event.data for event in events(session, "tool.returned")]
    assert [(data["call"], data["name"]) for data in returned] == [("c1", "one"), ("c2", "two")]


def test_very_many_calls_and_very_long_names_stay_short(session: Session) -> None:
    session.append("assistant", "", tool_calls=[{"id": f"c{n}", "name": "x" * 5000} for n in range(1005)])
    (event,) = events(session, "tool.called")
    assert len(event.data["calls"]) == 1000
    assert event.data["more"] == 5
    assert len(event.data["calls"][0]["name"]) == 256


@pytest.mark.requirement("S4-F2")
def test_an_import_gives_the_events_that_the_same_messages_give(home: str, tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "List the files."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": ARGUMENTS}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Exit code: 2\nValueError: no"},
        {"role": "assistant", "content": "It failed."},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages))
    for _ in range(2):
        import_file("openai", str(path), Destination(home, session="imported"))
    with daypack.open_session("imported", home=home) as imported, daypack.open_session("live", home=home) as live:
        live.append_many(messages)
        told = [
            [(event.type, {**event.data, "duration_ms": 0}) for event in events(one, "tool.called", "tool.returned")]
            for one in (imported, live)
        ]
    assert told[0] == told[1]
    assert [kind for kind, _ in told[0]] == ["tool.called", "tool.returned"]
    assert told[0][1][1]["error"] == "ValueError"


@pytest.mark.requirement("S4-F2")
def test_a_stream_that_breaks_off_is_recorded_with_its_class_and_without_its_words(session: Session) -> None:
    def broken(text: str) -> Iterator[str]:
        if text:
            yield text
        raise ConnectionResetError(SECRET)

    session.append("user", "Hello.")
    turn = session.prepare(budget=8000)
    for text in ("Half", ""):
        with pytest.raises(ConnectionResetError):
            list(session.stream(broken(text)))
    recorded = [event.data for event in events(session, "provider.error")]
    assert recorded == [
        {"message": "msg-2", "error": "ConnectionResetError"},
        {"error": "ConnectionResetError", "turn": turn.event_id},
    ]
    assert SECRET not in (session.path / "events.jsonl").read_text()


@pytest.mark.requirement("S4-F2")
def test_replies_that_are_errors_are_recorded_and_still_refused(session: Session) -> None:
    class RateLimitError(Exception):
        status_code = 429

    session.append("user", "Hello.")
    replies: list[tuple[object, type[Exception]]] = [
        ({"error": {"type": "overloaded_error", "message": SECRET}}, BadInput),
        ({"object": "response", "output": [], "status": "failed"}, BadInput),
        (RateLimitError(SECRET), BadInput),
        ({"role": "assistant", "content": ""}, EmptyReply),
        (iter(()), EmptyReply),
    ]
    for reply, refusal in replies:
        with pytest.raises(refusal):
            session.accept(reply)
    with pytest.raises(BadInput):
        session.accept(3)  # no reply at all
    recorded = [event.data for event in events(session, "provider.error")]
    assert recorded == [
        {"error": "overloaded_error"},
        {"error": "failed"},
        {"error": "RateLimitError", "status": 429},
        {"error": "EmptyReply"},
        {"error": "EmptyReply"},
    ]
    assert len(session.messages()) == 1


def test_a_stream_that_the_caller_leaves_is_no_error_of_the_provider(session: Session) -> None:
    session.append("user", "Hello.")
    stream = session.stream(iter(["a", "b"]))
    next(iter(stream))
    stream.close()
    assert stream.message is not None
    session.append("user", "Again.")
    assert events(session, "provider.error") == []


@pytest.mark.requirement("S4-F2")
def test_a_recovery_from_overflow_names_the_turn_and_the_compaction(session: Session) -> None:
    for number in range(40):
        session.append(
            "user", f"Question {number}: where is the file src/module_{number}.py and what does it do? " * 20
        )
        session.append("assistant", f"It is the module {number}; it reads the table of numbers. " * 20)
    session.append("user", "Go on.")
    turn = session.prepare(budget=60_000)
    done = session.compact_on_overflow()
    assert done.changed
    (event,) = events(session, "provider.overflow")
    assert event.data == {"turn": turn.event_id, "compaction": done.id}


@pytest.mark.requirement("S4-F2")
def test_a_child_is_recorded_when_it_starts_and_when_it_ends(session: Session) -> None:
    session.put_child("rev", handoff="Review it.")
    session.put_child("rev", ChildUpdate(status="active"))
    session.put_child("rev", result="Fine.")
    session.put_child("rev", handoff="Once more.")
    session.put_child("rev", ChildUpdate(status="cancelled"))
    session.put_child("old", handoff="Look.", result="Seen.")
    changes = [event.data.get("changes") for event in events(session, "child.updated")]
    assert changes == [["started"], None, ["ended"], ["started"], ["ended"], ["started", "ended"]]


def test_events_leave_rebuild_and_replay_as_they_were(session: Session) -> None:
    session.append("user", "List the files.")
    call(session, "bash", '{"command":"ls"}', "Exit code: 0\na.py")
    turn = session.prepare(budget=8000)
    call(session, "bash", '{"command":"ls"}', "Exit code: 0\nb.py")
    assert session.replay(turn.event_id or "").request("openai") == turn.request("openai")
