"""`daypack import --watch` as a process: what it prints, one watch at a time, how it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents_home import AgentsHome

Start = Callable[..., "Watcher"]


class Watcher:
    """A running watch."""

    def __init__(self, home: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "daypack", "import", "--watch", "--json", "--home", home, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr
        self.begun = self.process.stderr.readline()

    def line(self) -> dict[str, Any]:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def end(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """Return the exit code, and the rest of its errors: `communicate` would miss those read with the first line."""
        assert self.process.stderr
        errors = self.process.stderr.read()
        return self.process.wait(timeout=60), errors


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentsHome:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    return AgentsHome(tmp_path / "user", monkeypatch)


@pytest.fixture
def start(home: str) -> Iterator[Start]:
    running: list[Watcher] = []

    def begin(*arguments: str) -> Watcher:
        running.append(Watcher(home, *arguments))
        return running[-1]

    yield begin
    for watcher in running:
        watcher.process.kill()
        watcher.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_a_line_for_each_import_and_ends_cleanly(
    agents: AgentsHome, start: Start, number: signal.Signals
) -> None:
    path = agents.claude("a", "One?")
    watcher = start()
    assert "watching Claude Code, Codex" in watcher.begun
    first = watcher.line()
    assert first == {
        "event": "imported",
        "path": str(path),
        "sessions": [{"agent": "claude-code", "session": "a", "new": 1}],
        "new": 1,
        "entries": 0,
    }
    agents.claude("a", "Two.", first=2)
    assert watcher.line()["new"] == 1
    path.unlink()
    assert watcher.line() == {"event": "deleted", "path": str(path)}
    assert watcher.end(number) == (0, "")


def test_a_second_watch_of_a_home_is_refused(agents: AgentsHome, start: Start) -> None:
    agents.claude("a", "One?")
    first = start()
    first.line()
    second = start()
    assert f"another watch of this home is running (process {first.process.pid})" in second.begun
    code, errors = second.wait()
    assert code != 0
    assert "kill" in errors
    assert first.end(signal.SIGTERM)[0] == 0
    third = start()  # a watch that has ended holds nothing up
    assert "watching" in third.begun


def test_named_folders_are_watched_without_other_files_in_them(
    agents: AgentsHome, start: Start, tmp_path: Path, home: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.jsonl").write_text('{"note": 1}\n')
    os.rename(agents.claude("a", "One?"), folder / "a.jsonl")
    watcher = start(str(folder))
    assert watcher.line()["path"] == str(folder / "a.jsonl")
    os.rename(agents.claude("b", "One?"), folder / "b.jsonl")
    assert watcher.line()["path"] == str(folder / "b.jsonl")
    assert watcher.end(signal.SIGTERM) == (0, "")
    assert not list(Path(home).glob("home/*/past.json"))
