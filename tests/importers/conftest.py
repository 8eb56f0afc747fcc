"""Files to import, and sessions to look at afterwards."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.importers.import_file import Destination, import_file
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows as JSONL, or a text as it is, and return the path."""

    def write(name: str, rows: Sequence[Any] | str | bytes) -> str:
        path = tmp_path / "from" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(rows, str | bytes):
            rows = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        path.write_bytes(rows.encode() if isinstance(rows, str) else rows)
        return str(path)

    return write


@pytest.fixture
def bring(home: str, monkeypatch: pytest.MonkeyPatch) -> Bring:
    """Import a file and return the report of its first transcript."""
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")

    def bring(kind: str, path: str, session: str | None = None) -> ImportReport:
        return import_file(kind, path, Destination(home, session=session))[0]

    return bring


@pytest.fixture
def opened(home: str) -> Iterator[Opened]:
    """Open a session that was imported."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(daypack.open_session(name, home=home, create=False))
