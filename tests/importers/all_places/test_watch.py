"""The watch, step by step: its clock and what happens between two scans are scripted."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from agents_home import AgentsHome, append, codex_row

import daypack
import daypack.importers.import_file
from daypack.errors import StorageFailed
from daypack.history.layout import Home
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.all_places.new_files import Done, NewFiles
from daypack.importers.all_places.scan import Found, PlacesScanner
from daypack.importers.all_places.watch import Gone, Watch
from daypack.importers.places import PLACES

ID = "01a1ec69-6358-7c01-b518-b5b523a473a9"
Step = Callable[[], object]


def nothing() -> None:
    """Let a scan pass."""


class Script:
    """Does one step in each wait, and stops after the last; a second passes with each, or as long as is waited."""

    def __init__(self, steps: Sequence[Step], cost: float = 0.0) -> None:
        self._steps = list(steps)
        self._cost = cost
        self._computed = 0.0
        self._now = 0.0
        self.waits: list[float] = []
        self.stopped = False

    def now(self) -> float:
        return self._now

    def cpu(self) -> float:
        self._computed += self._cost
        return self._computed

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._now += seconds
        if self._steps:
            self._steps.pop(0)()
        else:
            self.stopped = True

    def is_stopped(self) -> bool:
        return self.stopped


def watch(place: Home, script: Script) -> list[Done | Gone]:
    """Watch all places while a script runs; return the events."""
    events: list[Done | Gone] = []
    ledger = Ledger(place)

    def find_new(found: Sequence[Found]) -> NewFiles:
        return NewFiles(place, found, ledger, growing=True)

    Watch(PlacesScanner(list(PLACES), os.environ), find_new, events.append, script).run()
    return events


def imported(events: Sequence[Done | Gone]) -> list[int]:
    return [event.messages for event in events if isinstance(event, Done) and not event.failure]


def gone(events: Sequence[Done | Gone]) -> list[tuple[str, str]]:
    return [(os.path.basename(event.path), event.state) for event in events if isinstance(event, Gone)]


def failures(events: Sequence[Done | Gone]) -> list[str]:
    return [event.failure.problem for event in events if isinstance(event, Done) and event.failure]


def texts(place: Home, agent: str, session: str) -> list[str]:
    with daypack.open_session(session, agent=agent, home=place.root, create=False) as opened:
        return [message.text for message in opened.messages()]


def test_new_files_and_appended_lines_are_imported_when_they_have_settled(agents: AgentsHome, place: Home) -> None:
    agents.claude("a", "One?")
    events = watch(
        place,
        Script(
            [
                lambda: agents.claude("a", "Two.", first=2),
                nothing,
                lambda: agents.codex(ID, "In a folder that was not there."),
                nothing,
            ]
        ),
    )
    assert imported(events) == [1, 1, 1]
    assert texts(place, "claude-code", "a") == ["One?", "Two."]
    assert texts(place, "codex", ID) == ["In a folder that was not there."]


def test_a_file_that_is_written_without_a_pause_is_imported_now_and_then(agents: AgentsHome, place: Home) -> None:
    agents.claude("a", "One?")
    steps = [lambda number=number: agents.claude("a", f"Number {number}", first=number) for number in range(2, 16)]
    events = watch(place, Script([*steps, nothing]))
    assert len(imported(events)) == 3  # at the start, after ten seconds, at the end
    assert sum(imported(events)) == 15


def test_a_line_is_not_taken_before_it_is_complete(agents: AgentsHome, place: Home) -> None:
    path = agents.claude("a", "One?")
    whole = agents.claude("b", "Two?").read_bytes().replace(b'"b', b'"a').replace(b"a-1", b"a-2")
    (agents.folder / ".claude" / "projects" / "-work" / "b.jsonl").unlink()

    def write(data: bytes) -> Step:
        return lambda: path.write_bytes(path.read_bytes() + data)

    events = watch(place, Script([write(whole[:40]), nothing, nothing, write(whole[40:]), nothing, nothing]))
    assert imported(events) == [1, 0, 1]
    assert texts(place, "claude-code", "a") == ["One?", "Two?"]
    with daypack.open_session("a", agent="claude-code", home=place.root, create=False) as session:
        assert not [event for event in session.events() if event.type == "import.row"]


def test_a_rotated_file_continues_its_session_and_is_not_reported_as_deleted(agents: AgentsHome, place: Home) -> None:
    from backports import zstd

    path = agents.codex(ID, "One?")

    def compress() -> None:
        Path(f"{path}.zst").write_bytes(zstd.compress(path.read_bytes()))
        path.unlink()

    def unpack_and_continue() -> None:
        path.write_bytes(zstd.decompress(Path(f"{path}.zst").read_bytes()))
        append(path, [codex_row("Two?")])

    events = watch(place, Script([compress, nothing, unpack_and_continue, nothing]))
    assert imported(events) == [1, 0, 1]
    assert gone(events) == []
    assert texts(place, "codex", ID) == ["One?", "Two?"]


def test_a_new_file_under_the_name_of_a_renamed_one_is_a_session_of_its_own(agents: AgentsHome, place: Home) -> None:
    path = agents.claude("a", "One?")

    def rotate() -> None:
        os.rename(path, f"{path}.1")
        os.rename(agents.claude("b", "Another?"), path)

    events = watch(place, Script([rotate, nothing]))
    assert imported(events) == [1, 1]
    assert texts(place, "claude-code", "a") == ["One?"]
    assert texts(place, "claude-code", "b") == ["Another?"]


def test_a_deleted_file_is_reported_once_and_its_session_stays(agents: AgentsHome, place: Home) -> None:
    path = agents.claude("a", "One?")
    agents.claude("b", "One?")
    events = watch(place, Script([path.unlink, nothing, nothing]))
    assert gone(events) == [("a.jsonl", "deleted")]
    assert texts(place, "claude-code", "a") == ["One?"]


def test_a_home_that_is_deleted_meanwhile_is_filled_again(agents: AgentsHome, place: Home) -> None:
    path = agents.claude("a", "One?")

    def delete_home() -> None:
        shutil.rmtree(place.root)
        agents.claude("a", "One?", "Two?")
        os.utime(path, (4_000_000_000, 4_000_000_000))

    watch(place, Script([delete_home, nothing, nothing]))
    assert texts(place, "claude-code", "a") == ["One?", "Two?"]


def test_a_truncated_file_is_reported_and_its_session_stays(agents: AgentsHome, place: Home) -> None:
    path = agents.codex(ID, "One?", "Two?")
    other = agents.claude("a", "One?", "Two.")
    events = watch(
        place,
        Script([lambda: os.truncate(path, path.stat().st_size - 30), nothing, lambda: os.truncate(other, 0), nothing]),
    )
    assert gone(events) == [("a.jsonl", "emptied")]
    assert texts(place, "codex", ID) == ["One?", "Two?"]
    assert texts(place, "claude-code", "a") == ["One?", "Two."]


def test_a_failure_is_reported_once_for_each_state_of_a_file(
    agents: AgentsHome, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = agents.claude("a", "One?")
    real = daypack.importers.import_file.take_in
    calls: list[str] = []

    def fail(*arguments: object) -> object:
        calls.append("")
        if len(calls) < 4:
            raise StorageFailed("disk full")
        return real(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr("daypack.importers.import_file.take_in", fail)
    script = Script([nothing] * 12, cost=0.1)  # waits of 30 s: the state is tried again after five minutes
    events = watch(place, script)
    assert failures(events) == ["disk full"]
    assert len(calls) == 2
    path.touch()
    events = watch(place, Script([path.touch, nothing]))
    assert failures(events) == ["disk full"]
    assert imported(events) == [1]


def test_a_watch_that_finds_nothing_waits_in_proportion_to_its_scans(agents: AgentsHome, place: Home) -> None:
    agents.claude("a", "One?")
    for cost, expected in ((0.0001, 1.0), (0.01, 5.0), (10.0, 30.0)):
        script = Script([nothing] * 4, cost)
        watch(place, script)
        assert [round(seconds, 3) for seconds in script.waits[2:]] == [expected] * 3


def test_a_stopped_watch_ends_after_the_present_file(agents: AgentsHome, place: Home) -> None:
    for name in "abc":
        agents.claude(name, "One?")
    script = Script([])
    events: list[Done | Gone] = []

    def stop(event: Done | Gone) -> None:
        events.append(event)
        script.stopped = True

    ledger = Ledger(place)
    find_new: Callable[[Sequence[Found]], NewFiles] = lambda found: NewFiles(place, found, ledger)  # noqa: E731
    Watch(PlacesScanner(["claude"], os.environ), find_new, stop, script).run()
    assert len(events) == 1
    assert script.waits == []
    assert len(place.list("claude-code")) == 1


def openhands_event(folder: Path, number: int, text: str) -> None:
    """Write an event as OpenHands does, and leave the state of the conversation as it is."""
    name = f"{number:08d}-aaaa-4bbb-8ccc-000000000000"
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    event = {"kind": "MessageEvent", "id": name, "source": "user", "llm_message": message}
    (folder / "events").mkdir(parents=True, exist_ok=True)
    (folder / "part").write_text(json.dumps(event))
    (folder / "part").rename(folder / "events" / f"event-{number:05d}-{name}.json")


def test_events_of_openhands_are_imported_though_the_state_does_not_change(
    agents: AgentsHome, place: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "user" / ".openhands" / "conversations" / "abc"
    openhands_event(folder, 0, "Which port?")
    (folder / "base_state.json").write_text('{"id": "abc", "agent": {}}')
    steps = [lambda: openhands_event(folder, 1, "And the host?"), nothing, nothing]
    events = watch(place, Script(steps))
    assert imported(events) == [1, 1]
    assert texts(place, "openhands", "abc") == ["Which port?", "And the host?"]
