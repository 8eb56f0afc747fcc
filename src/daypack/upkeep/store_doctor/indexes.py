"""Examine the search indexes of memories: files that cannot be read, and rows whose entry does not exist. Read-only."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from daypack.files import read_only
from daypack.files.database import BUSY_SECONDS
from daypack.memory.search.skipped import NAME as SKIPPED
from daypack.memory.search.vectors import PREFIX
from daypack.search.fts_tables import VERSION
from daypack.search.index_file import APPLICATION
from daypack.search.vectors import NAME as VECTORS
from daypack.types.memory import DamagedRecord

if TYPE_CHECKING:
    from sqlite3 import Connection

_Numbers = Callable[[], set[int]]
_ADVICE = "nothing to do: the next search rebuilds it; `daypack doctor --repair` removes it now"
_HEADER_BYTES = 64
_DIMENSIONS = slice(8, 12)
_MOST_DIMENSIONS = 65_536


class StoredRecords:
    """The entries and documents of memories as the store has them when asked, intact or not."""

    def __init__(self, store: "Connection") -> None:
        self._store = store

    def memories(self) -> set[str]:
        """Return the ids of all memories."""
        return {str(row[0]) for row in self._store.execute("SELECT id FROM memories")}

    def entries(self, memory_id: str) -> set[int]:
        """Return the numbers of a memory's entries."""
        return self._numbers("SELECT e.seq FROM entries e JOIN memories m ON m.number = e.memory", memory_id)

    def documents(self, memory_id: str) -> set[int]:
        """Return the versions of a memory's document."""
        return self._numbers("SELECT d.version FROM documents d JOIN memories m ON m.number = d.memory", memory_id)

    def _numbers(self, query: str, memory_id: str) -> set[int]:
        return {row[0] for row in self._store.execute(f"{query} WHERE m.id = ?", (memory_id,))}


class IndexProblem(NamedTuple):
    """What is wrong with a file of an index."""

    folder: str
    path: str
    problem: str
    advice: str = _ADVICE


def examine_indexes(folder: str, stored: StoredRecords) -> Iterator[IndexProblem]:
    """Yield the problems of all indexes below a folder.

    Every file is read before the store, whose records other processes add and index meanwhile.
    """
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    memories = stored.memories()
    for name in names:
        path = os.path.join(folder, name)
        if name not in memories:
            yield IndexProblem(path, path, "an index of a memory that does not exist")
        else:
            entries, documents = partial(stored.entries, name), partial(stored.documents, name)
            yield from _examine_index(path, entries, documents)


def _examine_index(folder: str, entries: _Numbers, documents: _Numbers) -> Iterator[IndexProblem]:
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        problem = ""
        if name in ("words.sqlite", "documents.sqlite"):
            problem = _examine_words(path, entries if name == "words.sqlite" else documents)
        elif name.startswith(PREFIX):
            path = os.path.join(path, VECTORS)
            problem = _examine_vectors(path, entries)
        elif name == SKIPPED:
            problem = _examine_skipped(path, entries, documents)
        if problem:
            yield IndexProblem(folder, path, problem)


def _examine_words(path: str, known: _Numbers) -> str:
    import sqlite3  # noqa: PLC0415 — 5 ms

    try:
        with closing(read_only.connect(path, seconds=BUSY_SECONDS)) as file:
            marks = [file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
            if marks != [APPLICATION, VERSION]:
                return "it has another format"
            checked = file.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if checked != "ok":
                return f"it is damaged: {checked}"
            ids = {row[0] for row in file.execute("SELECT id FROM entries")}
    except sqlite3.Error as error:
        return f"it cannot be read: {error}"
    return _without_record(ids, known)


def _without_record(ids: set[int], known: _Numbers) -> str:
    missing = len(ids - known())
    return f"{missing:,} of its {len(ids):,} rows belong to no record of the store" if missing else ""


def _examine_vectors(path: str, known: _Numbers) -> str:
    try:
        from daypack.search.nearest import Codec  # noqa: PLC0415 — imports numpy

        with open(path, "rb") as file:
            data = file.read()
    except ImportError:
        return ""  # without numpy no search uses them
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    dimensions = int.from_bytes(data[_DIMENSIONS], "little")
    if len(data) < _HEADER_BYTES or not 0 < dimensions <= _MOST_DIMENSIONS:
        return "its header is damaged"
    codec = Codec(dimensions)
    count = (len(data) - _HEADER_BYTES) // codec.row_bytes
    rows = memoryview(data)[_HEADER_BYTES : _HEADER_BYTES + count * codec.row_bytes]
    checked = codec.check(rows, codec.empty) if count else codec.empty
    if not checked.intact:
        return f"damaged after {checked.total:,} of {count:,} vectors"
    return _without_record({int(number) for number in checked.ids[: checked.total]}, known)


def _examine_skipped(path: str, entries: _Numbers, documents: _Numbers) -> str:
    try:
        with open(path, "rb") as file:
            records = msgspec.json.decode(file.read(), type=tuple[DamagedRecord, ...])
    except (OSError, ValueError):
        return "it cannot be read"
    known = {"entry": entries(), "document": documents()}
    stale = [record for record in records if record.number not in known.get(record.kind, ())]
    return f"{len(stale):,} records that it lists are not in the store any more" if stale else ""
