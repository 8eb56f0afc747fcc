"""Conversations of OpenHands: a folder of events, or a list of them, after the types of openhands-sdk 1.58."""

import json
from pathlib import Path
from typing import Any

import pytest

from daypack.errors import BadInput
from daypack.importers.import_file import Destination, import_file
from daypack.session import Session
from daypack.session.opening import open_session

NAME = "3fa85f64-5717-4562-b3fc-2c963f66afa6"


def event(number: int, kind: str, source: str, **fields: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "id": f"{number:08d}-aaaa-bbbb-cccc-000000000000",
        "timestamp": f"2026-05-01T10:00:{number % 60:02d}.123456+00:00",
        "source": source,
        **fields,
    }


def text(words: str) -> list[dict[str, Any]]:
    return [{"cache_prompt": False, "type": "text", "text": words}]


def said(number: int, role: str, words: str) -> dict[str, Any]:
    message = {"role": role, "content": text(words), "tool_calls": None}
    return event(number, "MessageEvent", "user" if role == "user" else "agent", llm_message=message)


def action(number: int, call: str, reply: str, command: str) -> dict[str, Any]:
    fields = {
        "thought": text("Looking.") if call.endswith("1") else [],
        "reasoning_content": "Which file?" if call.endswith("1") else None,
        "action": {"kind": "TerminalAction", "command": command},
        "tool_name": "terminal",
        "tool_call_id": call,
        "tool_call": {
            "id": call,
            "name": "terminal",
            "arguments": json.dumps({"command": command}),
            "origin": "completion",
        },
        "llm_response_id": reply,
    }
    return event(number, "ActionEvent", "agent", **fields)


def observed(number: int, call: str, words: str) -> dict[str, Any]:
    observation = {"kind": "TerminalObservation", "content": text(words), "is_error": False, "exit_code": 0}
    fields = {"tool_name": "terminal", "tool_call_id": call, "observation": observation, "action_id": "x"}
    return event(number, "ObservationEvent", "environment", **fields)


EVENTS = [
    event(0, "SystemPromptEvent", "agent", system_prompt=text("You are OpenHands.")[0], tools=[]),
    said(1, "user", "Which port?"),
    action(2, "call-1", "r1", "cat a.py"),
    action(3, "call-2", "r1", "cat b.py"),
    observed(4, "call-1", "port = 8080"),
    event(5, "AgentErrorEvent", "agent", tool_name="terminal", tool_call_id="call-2", error="No such file: b.py"),
    said(6, "assistant", "It is 8080."),
    event(
        7,
        "Condensation",
        "environment",
        forgotten_event_ids=[f"{n:08d}-aaaa-bbbb-cccc-000000000000" for n in (1, 2, 3, 4, 5)],
        summary="The port is 8080.",
        llm_response_id="r9",
    ),
    said(8, "user", "And the host?"),
]


def put(folder: Path, events: list[dict[str, Any]], first: int = 0) -> Path:
    """Write a conversation as OpenHands does and return its state."""
    folder = folder / "conversations" / NAME.replace("-", "")
    (folder / "events").mkdir(parents=True, exist_ok=True)
    state = {
        "id": NAME,
        "agent": {"kind": "Agent", "llm": {"model": "gpt-5"}},
        "workspace": {"working_dir": "/src/app"},
    }
    (folder / "base_state.json").write_text(json.dumps(state))
    for number, each in enumerate(events, first):
        (folder / "events" / f"event-{number:05d}-{each['id']}.json").write_text(json.dumps(each))
    return folder / "base_state.json"


def imported(home: str, path: Path) -> int:
    return sum(report.new for report in import_file(None, str(path), Destination(home, "openhands")))


def opened(home: str, name: str = NAME) -> Session:
    return open_session(name, agent="openhands", home=home, create=False)


def test_a_conversation_has_its_prompts_calls_results_and_errors(home: str, tmp_path: Path) -> None:
    assert imported(home, put(tmp_path, EVENTS)) == 7
    with opened(home) as session:
        messages = list(session.messages())
    assert [message.role for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert [call.id for call in messages[2].tool_calls] == ["call-1", "call-2"]
    assert messages[2].text == "Looking."
    assert [message.text for message in messages[3:5]] == ["port = 8080", "No such file: b.py"]
    assert messages[1].ts == "2026-05-01T10:00:01.123Z"


def test_a_condensation_is_a_compaction_that_names_what_stayed(home: str, tmp_path: Path) -> None:
    imported(home, put(tmp_path, EVENTS))
    with opened(home) as session:
        (compaction,) = [each.data for each in session.events() if each.type == "import.compacted"]
    assert (compaction["through"], compaction["kept"]) == (6, [1, 6])


def test_importing_again_adds_only_what_is_new(home: str, tmp_path: Path) -> None:
    path = put(tmp_path, EVENTS)
    imported(home, path)
    assert imported(home, path) == 0
    put(tmp_path, [said(9, "assistant", "localhost.")], first=9)
    assert imported(home, path) == 1
    with opened(home) as session:
        assert session.tail(1)[0].text == "localhost."


def test_calls_at_the_end_wait_for_the_rest_of_their_reply(home: str, tmp_path: Path) -> None:
    path = put(tmp_path, EVENTS[:3])
    assert imported(home, path) == 2
    put(tmp_path, EVENTS[3:], first=3)
    assert imported(home, path) == 5
    with opened(home) as session:
        assert [len(message.tool_calls) for message in session.messages() if message.tool_calls] == [2]


def test_a_missing_event_holds_back_those_after_it(home: str, tmp_path: Path) -> None:
    path = put(tmp_path, EVENTS)
    lost = path.parent / "events" / f"event-00006-{EVENTS[6]['id']}.json"
    data = lost.read_bytes()
    lost.unlink()
    assert imported(home, path) == 5
    lost.write_bytes(data)
    assert imported(home, path) == 2


def test_an_exported_list_of_events_is_read(home: str, tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(EVENTS, indent=1))
    assert imported(home, path) == 7
    with opened(home, "trajectory") as session:
        assert session.tail(1)[0].text == "And the host?"


def test_damaged_and_foreign_events_are_kept_as_rows(home: str, tmp_path: Path) -> None:
    odd: list[dict[str, Any]] = [
        event(0, "MessageEvent", "user", llm_message=None),
        event(1, "ObservationEvent", "environment", tool_call_id=7, observation=[]),
        event(2, "PauseEvent", "user"),
        event(3, "Condensation", "environment", forgotten_event_ids="all"),
        said(4, "user", "Hello"),
    ]
    path = put(tmp_path, odd)
    (path.parent / "events" / "event-00005-deadbeef.json").write_text('{"kind": "MessageEv')
    (path.parent / "events" / "notes.txt").write_text("x")
    assert imported(home, path) == 1
    with opened(home) as session:
        assert len([each for each in session.events() if each.type == "import.row"]) >= 4


def test_a_state_without_events_is_no_transcript(home: str, tmp_path: Path) -> None:
    path = tmp_path / "base_state.json"
    path.write_text('{"id": "x", "agent": {}}')
    with pytest.raises(BadInput):
        imported(home, path)
