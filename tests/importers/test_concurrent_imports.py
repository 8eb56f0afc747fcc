"""Several processes import the same transcript at once: nothing twice, nothing lost, no error."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.derived.children import read_children
from daypack.errors import LockUnavailable
from daypack.files.lock import held_without_waiting
from daypack.importers import import_transcript
from daypack.importers.import_file import Destination, take_in
from daypack.session import Session

Write = Callable[..., str]
Opened = Callable[[str], Session]
NAME = "aaaaaaaa-0000-0000-0000-000000000000"
FILE = f"{NAME}.jsonl"
_PROGRAM = """
import sys
from daypack.importers.import_file import Destination, take_in
home, *paths = sys.argv[1:]
print("ready", flush=True)
for path in paths:
    sys.stdin.readline()
    reports = take_in(path, Destination(home))
    print(sum(report.new for report in reports), flush=True)
"""


class Importer:
    """A process that imports files, each when it is told to."""

    def __init__(self, home: str, paths: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, home, *paths],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        assert self.answer() == "ready"

    def go(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("\n")

    def answer(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        assert self._process.communicate(timeout=60)[1] == ""
        assert self._process.returncode == 0


def rows(prefix: str, turns: int, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for turn in range(turns):
        common = {"sessionId": NAME, **fields}
        key = f"{prefix}{turn}"
        found += [
            {"type": "user", "uuid": f"u{key}", "message": {"role": "user", "content": f"ask {key}"}, **common},
            {"type": "progress", "uuid": f"p{key}", **common},
            {
                "type": "assistant",
                "uuid": f"a{key}",
                "message": {"id": f"m{key}", "content": [{"type": "text", "text": f"say {key}"}]},
                **common,
            },
        ]
    return found


def test_processes_that_import_a_transcript_at_once_store_everything_once(
    write: Write, home: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    path = write(FILE, rows("m", 700))
    agents = [
        write(f"{NAME}/subagents/agent-{name}.jsonl", rows(name, 20, isSidechain=True, agentId=name)) for name in "xy"
    ]
    write(f"{NAME}/tool-results/one.txt", "one")
    importers = [Importer(home, [first]) for first in (path, path, agents[0], agents[1])]
    for importer in importers:
        importer.go()
    assert sum(int(importer.answer()) for importer in importers) == 1400 + 2 * 40
    for importer in importers:
        importer.end()
    session = opened(NAME)
    texts = [f"{word} m{turn}" for turn in range(700) for word in ("ask", "say")]
    assert [message.text for message in session.messages()] == texts
    kinds = Counter(event.type for event in session.events() if event.type.startswith(("import.", "child.")))
    progress = kinds.pop("import.progress")
    assert kinds == {"import.begun": 1, "import.row": 700, "import.file": 1, "child.updated": 2}
    assert progress <= 3  # one for each batch
    assert [child.result for child in read_children(session.history)] == ["say x19", "say y19"]
    assert [len(opened(f"{NAME}--{name}").messages()) for name in "xy"] == [40, 40]


def test_a_transcript_may_grow_while_processes_import_it(
    write: Write, home: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    whole = b"".join(json.dumps(row).encode() + b"\n" for row in rows("m", 300))
    cuts = range(0, len(whole), 7999)
    path = write(FILE, whole[: cuts[1]])
    importers = [Importer(home, [path] * len(cuts)) for _ in range(2)]
    new = 0
    with open(path, "ab", buffering=0) as file:
        for start in cuts:
            for importer in importers:
                importer.go()
            if start:
                for at in range(start, min(start + 7999, len(whole)), 100):
                    file.write(whole[at : min(at + 100, start + 7999)])
            new += sum(int(importer.answer()) for importer in importers)
    for importer in importers:
        importer.end()
    assert new + take_in(path, Destination(home))[0].new == 600
    session = opened(NAME)
    assert [message.text for message in session.messages()] == [
        f"{word} m{turn}" for turn in range(300) for word in ("ask", "say")
    ]
    whole_rows = [event for event in session.events() if event.type == "import.row" and "row" in event.data]
    assert len(whole_rows) == 300


def test_an_import_waits_for_another_with_a_bound(write: Write, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_transcript, "_WAIT_SECONDS", 0.05)
    path = write(FILE, rows("m", 1))
    with daypack.open_session(NAME, home=home) as session:
        lock = Path(session.path) / "context" / "offsets" / "importing"
    with held_without_waiting(str(lock)) as held:
        assert held
        with pytest.raises(LockUnavailable, match=f"another import into session {NAME} is still running"):
            take_in(path, Destination(home))
    assert take_in(path, Destination(home))[0].new == 2
