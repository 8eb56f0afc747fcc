"""Conversations of OpenHands: a folder of events, or a list of them, after the types of openhands-sdk 1.58."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from daypack.errors import BadInput
from daypack.importers.formats import find_files
from daypack.importers.import_file import Destination, import_file
from daypack.importers.places import PLACES
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


def test_a_call_at_the_end_is_imported_and_its_result_is_added_later(home: str, tmp_path: Path) -> None:
    path = put(tmp_path, EVENTS[:4])
    assert imported(home, path) == 3
    put(tmp_path, EVENTS[4:], first=4)
    assert imported(home, path) == 4
    with opened(home) as session:
        messages = list(session.messages())
    assert [[call.id for call in message.tool_calls] for message in messages if message.tool_calls] == [
        ["call-1", "call-2"]
    ]
    assert [message.tool_call_id for message in messages if message.role == "tool"] == ["call-1", "call-2"]


@pytest.mark.parametrize("verify", [False, True])
def test_a_reply_that_was_half_written_gets_the_rest_of_its_calls_once(home: str, tmp_path: Path, verify: bool) -> None:
    path = put(tmp_path, EVENTS[:3])
    assert imported(home, path) == 3
    put(tmp_path, EVENTS[3:], first=3)
    import_file(None, str(path), Destination(home, "openhands", verify=verify))
    with opened(home) as session:
        calls = [call.id for message in session.messages() for call in message.tool_calls]
    assert calls == ["call-1", "call-2"]


def test_an_event_that_is_being_written_is_read_when_it_is_whole(home: str, tmp_path: Path) -> None:
    path = put(tmp_path, EVENTS)
    last = path.parent / "events" / f"event-00008-{EVENTS[8]['id']}.json"
    data = last.read_bytes()
    last.write_bytes(data[: len(data) // 2])
    (report,) = import_file(None, str(path), Destination(home, "openhands", growing=True))
    assert (report.new, report.incomplete) == (6, True)
    last.write_bytes(data)
    assert imported(home, path) == 1


def test_what_an_earlier_condensation_forgot_stays_forgotten(home: str, tmp_path: Path) -> None:
    later = [
        said(9, "assistant", "localhost."),
        event(10, "Condensation", "environment", forgotten_event_ids=[EVENTS[8]["id"]], summary="The host."),
    ]
    path = put(tmp_path, EVENTS)
    imported(home, path)
    put(tmp_path, later, first=9)
    imported(home, path)
    with opened(home) as session:
        compactions = [each.data for each in session.events() if each.type == "import.compacted"]
    assert [compaction["kept"] for compaction in compactions] == [[1, 6], [1, 6, 8]]


def test_a_branch_begins_after_an_event_that_is_no_message(home: str, tmp_path: Path) -> None:
    def linked(each: dict[str, Any], parent: str) -> dict[str, Any]:
        return {**each, "parent_id": parent}

    first, pause = said(0, "user", "Which port?"), event(1, "PauseEvent", "user")
    events = [
        first,
        linked(pause, first["id"]),
        linked(said(2, "assistant", "8080."), pause["id"]),
        linked(said(3, "user", "And the host?"), pause["id"]),
    ]
    path = put(tmp_path, events[:3])
    imported(home, path)
    put(tmp_path, events[3:], first=3)
    imported(home, path)
    with opened(home) as session:
        taken_back = [each.data["messages"] for each in session.events() if each.type == "import.rolled_back"]
    assert taken_back == ["messages:2"]


def test_a_time_without_a_zone_is_that_of_the_machine(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        imported(home, put(tmp_path, [{**said(0, "user", "Hello"), "timestamp": "2026-05-01T10:00:00.5"}]))
    time.tzset()
    with opened(home) as session:
        assert session.messages()[0].ts == "2026-05-01T08:00:00.500Z"


def test_two_imports_at_once_store_every_event_once(home: str, tmp_path: Path) -> None:
    path = put(tmp_path, EVENTS)
    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(imported, [home, home], [path, path])) == 7
    with opened(home) as session:
        assert len(session.messages()) == 7


def test_the_place_notices_new_events_though_the_state_is_the_same(tmp_path: Path) -> None:
    path = put(tmp_path / ".openhands", EVENTS)
    (before,) = PLACES["openhands"].find_files({"HOME": str(tmp_path)})
    os.utime(path.parent / "events", ns=(before.modified + 1_000_000, before.modified + 1_000_000))
    (after,) = PLACES["openhands"].find_files({"HOME": str(tmp_path)})
    assert (before.path, after.modified) == (str(path), before.modified + 1_000_000)


@pytest.mark.parametrize("folder", [".openhands", ".openhands-state"])
def test_the_place_has_sessions_of_the_versions_before_1(tmp_path: Path, folder: str) -> None:
    first = tmp_path / folder / "sessions" / "abc" / "events" / "0.json"
    first.parent.mkdir(parents=True)
    first.write_text("{}")
    assert [file.path for file in PLACES["openhands"].find_files({"HOME": str(tmp_path)})] == [str(first)]


def test_a_folder_of_conversations_has_one_file_for_each(tmp_path: Path) -> None:
    path = put(tmp_path, EVENTS)
    assert find_files("openhands", str(tmp_path)) == [str(path)]


HOSTILE: list[Any] = [
    None,
    [],
    {"id": 3, "action": "condensation", "source": "agent", "args": {"forgotten_event_ids": {"a": 1}}},
    {"id": 10**15, "action": "run", "source": "agent", "args": {"thought": []}, "tool_call_metadata": [1]},
    {"id": 4, "observation": "run", "source": "agent", "extras": {}, "content": {}, "cause": True},
    {
        "id": 5,
        "action": "condensation",
        "source": "agent",
        "args": {"forgotten_events_start_id": 0, "forgotten_events_end_id": 10**18},
    },
    {"id": 6, "action": "message", "source": "user", "args": {"content": 5, "image_urls": [None, 3]}},
    {"id": 7, "action": "run", "source": "agent", "args": {}, "tool_call_metadata": {"model_response": {"choices": 1}}},
    {
        "kind": "ActionEvent",
        "id": "a" * 36,
        "source": "agent",
        "tool_call": {"id": "c", "arguments": [1]},
        "thought": 3,
    },
    {"kind": "MessageEvent", "id": "b" * 36, "source": "user", "parent_id": 5, "llm_message": {"role": "user"}},
    {"kind": "MessageEvent", "id": "c" * 36, "source": "user", "parent_id": "gone", "timestamp": "9999-99-99"},
    {"kind": "Condensation", "id": "d" * 36, "source": "environment", "forgotten_event_ids": [None, 1, {}]},
]


def test_hostile_events_of_both_versions_are_read_past(home: str, tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps([*HOSTILE, *EVENTS]))
    imported(home, path)
    with opened(home, "trajectory") as session:
        assert session.tail(1)[0].text == "And the host?"
        assert session.prepare()


def test_events_that_are_no_files_are_refused(home: str, tmp_path: Path) -> None:
    path = put(tmp_path, EVENTS[:2])
    os.mkfifo(path.parent / "events" / f"event-00002-{EVENTS[2]['id']}.json")
    with pytest.raises(BadInput, match="named pipe"):
        imported(home, path)


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
