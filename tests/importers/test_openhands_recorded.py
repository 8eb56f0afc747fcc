"""Conversations that OpenHands wrote: recorded with openhands-sdk 1.58.2 and 1.2.0, and the event stream of 0.59.

The recordings name each file of a conversation; long texts and definitions of tools are cut.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daypack.derived.children import read_children
from daypack.importers.import_file import Destination, import_file, take_in
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.session.opening import open_session

RECORDED = Path(__file__).parent / "recorded"
NAME = "11111111-2222-4333-8444-555555555555"
EARLY = "8f14e45fceea4e7a9c1b2d3e4f5a6b7c"
HELPER = "1b221a7b2cb14c86b94970c57b64b2d6"


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the clock of the machine be the one that the recordings were made with."""
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def unpack(name: str, folder: Path) -> list[Path]:
    """Write the files of a recorded conversation and return their paths, events in the order of their numbers."""
    paths: list[Path] = []
    for line in (RECORDED / name).read_text().splitlines():
        recorded = json.loads(line)
        path = folder / recorded["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(recorded["content"]))
        paths.append(path)
    return paths


def reports(home: str, path: Path) -> list[ImportReport]:
    return import_file(None, str(path), Destination(home, "openhands"))


def opened(home: str, name: str = NAME) -> Session:
    return open_session(name, agent="openhands", home=home, create=False)


def facts(session: Session, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in session.events() if event.type == kind]


def test_a_conversation_of_the_newest_version_is_read(home: str, tmp_path: Path) -> None:
    unpack("openhands.jsonl", tmp_path)
    main, helper = reports(home, tmp_path / "base_state.json")
    assert (main.new, main.tool_calls, main.problems, helper.new) == (28, 9, [], 3)
    with opened(home) as session:
        messages = list(session.messages())
    assert [message.role for message in messages[:7]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert [call.name for call in messages[2].tool_calls] == ["terminal", "file_editor"]
    assert messages[2].text.endswith("Let me look.")
    assert [type(part).__name__ for part in messages[2].content] == ["Thinking", "Text"]
    assert messages[1].ts == "2026-11-18T04:33:25.411Z"


def test_failed_calls_are_marked(home: str, tmp_path: Path) -> None:
    unpack("openhands.jsonl", tmp_path)
    reports(home, tmp_path / "base_state.json")
    with opened(home) as session:
        failed = [message.text for message in session.messages() if (message.meta or {}).get("is_error")]
    assert [text.split()[0] for text in failed] == ["Tool", "Invalid"]


def test_a_condensation_and_a_branch_say_what_left_the_window(home: str, tmp_path: Path) -> None:
    unpack("openhands.jsonl", tmp_path)
    reports(home, tmp_path / "base_state.json")
    with opened(home) as session:
        (compaction,) = facts(session, "import.compacted")
        (taken_back,) = facts(session, "import.rolled_back")
        kept = [session.messages(seq, seq)[0].text for seq in compaction["kept"]]
        after = session.messages(23, 23)[0].text
    assert kept[1] == "Which port does the service use?"
    assert "Change it to 9090." not in kept
    assert taken_back["messages"] == "messages:3-22"
    assert after == "No, tell me the host instead."


def test_a_sub_agent_is_a_child(home: str, tmp_path: Path) -> None:
    unpack("openhands.jsonl", tmp_path)
    main, helper = reports(home, tmp_path / "base_state.json")
    assert (main.children, helper.parent) == ([HELPER], NAME)
    with opened(home) as session:
        (child,) = read_children(session.history)
    assert (child.name, child.handoff, child.result) == (HELPER, "Find the host name.", "The host is localhost.")


def test_the_file_of_a_sub_agent_or_an_event_brings_its_conversation(home: str, tmp_path: Path) -> None:
    paths = unpack("openhands.jsonl", tmp_path)
    for path in (paths[3], tmp_path / "subagents" / HELPER / "base_state.json"):
        first = take_in(str(path), Destination(home, "openhands"))[0]
        assert (first.session, first.messages) == (NAME, 28)


def test_a_conversation_of_version_1_2_is_read(home: str, tmp_path: Path) -> None:
    unpack("openhands-1.2.jsonl", tmp_path)
    (report,) = reports(home, tmp_path / "base_state.json")
    assert (report.new, report.tool_calls, report.problems) == (24, 7, [])
    with opened(home) as session:
        assert session.tail(1)[0].text == "A last question, paused."


def test_every_moment_of_a_conversation_continues_to_the_same_session(home: str, tmp_path: Path) -> None:
    """Files are written one by one, in order; an import after each adds what is new and nothing twice."""
    whole = tmp_path / "whole"
    paths = unpack("openhands.jsonl", whole)
    growing = tmp_path / "growing"
    order = [path for path in paths if "subagents" not in path.parts]
    for path in order:
        place = growing / path.relative_to(whole)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
        if (growing / "events").is_dir():
            reports(home, growing / "base_state.json")
    with opened(home) as session:
        messages = list(session.messages())
        calls = [call.id for message in messages for call in message.tool_calls]
        compactions, branches = facts(session, "import.compacted"), facts(session, "import.rolled_back")
    assert len(calls) == len(set(calls)) == 9
    results = [message.tool_call_id for message in messages if message.role == "tool"]
    assert sorted(filter(None, results)) == sorted(calls)
    assert (len(compactions), len(branches)) == (1, 1)


def test_a_second_import_opens_only_the_new_events(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack("openhands.jsonl", tmp_path)
    state = tmp_path / "base_state.json"
    last = sorted((tmp_path / "events").iterdir())[-1]
    data = last.read_bytes()
    last.unlink()
    reports(home, state)
    last.write_bytes(data)
    read: list[str] = []

    def note(path: str) -> Any:
        read.append(os.path.basename(path))
        return open(path, "rb")

    monkeypatch.setattr("daypack.importers.readers.openhands.event_files.open_plain", note)
    main = reports(home, state)[0]
    assert main.new_rows == 1
    assert {name[:11] for name in read if "subagents" not in name} <= {"event-00033", "event-00034", "event-00002"}


def test_a_session_before_version_1_is_read(home: str, tmp_path: Path) -> None:
    unpack("openhands-0.59.jsonl", tmp_path / EARLY)
    first = tmp_path / EARLY / "events" / "0.json"
    (report,) = reports(home, first)
    assert (report.session, report.problems) == (EARLY, [])
    with opened(home, EARLY) as session:
        messages = list(session.messages())
        (compaction,) = facts(session, "import.compacted")
    assert [(message.role, message.text[:20]) for message in messages] == [
        ("system", "You are OpenHands ag"),
        ("user", "Which port does the "),
        ("assistant", "Let me look."),
        ("tool", "port = 8080"),
        ("assistant", ""),
        ("tool", "File not found: /wor"),
        ("assistant", "It is port 8080."),
        ("user", "Change it to 9090."),
        ("assistant", "Editing."),
        ("tool", ""),
        ("assistant", "The port is 9090 now"),
    ]
    call = messages[2].tool_calls[0]
    assert (call.id, call.name) == (messages[3].tool_call_id, "terminal")
    assert messages[8].tool_calls[0].name == "run"
    assert messages[8].tool_calls[0].id == messages[9].tool_call_id
    assert compaction["kept"] == [1, 2, 7, 8, 9, 10]
    assert reports(home, first)[0].new == 0


def test_an_exported_trajectory_has_the_same_messages_as_its_session(home: str, tmp_path: Path) -> None:
    unpack("openhands-0.59.jsonl", tmp_path / EARLY)
    reports(home, tmp_path / EARLY / "events" / "0.json")
    exported = tmp_path / "exported.json"
    exported.write_bytes((RECORDED / "openhands-0.59-trajectory.json").read_bytes())
    reports(home, exported)
    with opened(home, EARLY) as one, opened(home, "exported") as other:
        assert [message.text for message in one.messages()] == [message.text for message in other.messages()]


def test_copies_of_events_are_no_second_session(home: str, tmp_path: Path) -> None:
    events = [json.loads(path.read_text()) for path in unpack("openhands-0.59.jsonl", tmp_path / EARLY)]
    copy = tmp_path / EARLY / "event_cache" / "0-25.json"
    copy.parent.mkdir()
    copy.write_text(json.dumps(events))
    first = take_in(str(copy), Destination(home, "openhands"))[0]
    assert first.session == EARLY
