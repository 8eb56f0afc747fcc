"""Erasing in a memory store: rows go in one transaction, their bytes leave the files right after it.

SQLite keeps deleted bytes in free places of its pages and in the journal. So the file is written anew (VACUUM) and the
journal cut. Until that is done the store counts as unclean, and whoever opens it next does it.
"""

from typing import TYPE_CHECKING

from daypack.errors import EntryMissing, StorageFailed
from daypack.memory.store.additions import Place
from daypack.memory.store.port import ID_CHARS, is_id, memory_missing, split_id
from daypack.memory.store.tables import size_of
from daypack.types.memory import About

if TYPE_CHECKING:
    from sqlite3 import Connection

_ERASED = "SELECT m.number, m.owner, m.entries, m.bytes FROM memories m JOIN users u ON u.number = m.owner"
_ENTRY = (
    "SELECT t.number, t.raw, t.summary, e.session, e.role, e.author, e.at, e.source, e.tags"
    " FROM entries e JOIN texts t ON t.number = e.text WHERE e.memory = ? AND e.seq = ?"
)


def erase_memory(connection: "Connection", user: str, memory_id: str) -> None:
    """Remove all rows of a memory, deleted or not."""
    query = f"{_ERASED} WHERE m.id = ? AND u.user = ?"
    row = connection.execute(query, (memory_id, user)).fetchone() if is_id(memory_id) else None
    if not row:
        raise memory_missing(memory_id, "erase memory")
    number, owner, entries, size = row
    _begin(connection, number)
    connection.execute("DELETE FROM texts WHERE number IN (SELECT text FROM entries WHERE memory = ?)", (number,))
    for table in ("entries", "tags", "keys", "documents"):
        connection.execute(f"DELETE FROM {table} WHERE memory = ?", (number,))  # noqa: S608 — a name of ours
    connection.execute("DELETE FROM memories WHERE number = ?", (number,))
    _end(connection, owner, (1, entries, size))


def erase_entry(connection: "Connection", place: Place, entry_id: str) -> None:
    """Remove the rows of an entry; its seq is not given again."""
    seq = find_seq(connection, place, entry_id)
    number, raw, summary, *known, tags = connection.execute(_ENTRY, (place.number, seq)).fetchone()
    _begin(connection, place.number)
    connection.execute("DELETE FROM texts WHERE number = ?", (number,))
    for table in ("entries", "tags", "keys"):
        connection.execute(f"DELETE FROM {table} WHERE memory = ? AND seq = ?", (place.number, seq))  # noqa: S608
    words = (*known, *(tags or "").split("\n"))
    size = size_of(raw, summary, About(tags=tuple(word for word in words if word)))
    query = "UPDATE memories SET entries = entries - 1, bytes = bytes - ? WHERE number = ?"
    connection.execute(query, (size, place.number))
    _end(connection, place.owner, (0, 1, size))


def find_seq(connection: "Connection", place: Place, entry_id: str) -> int:
    """Return the seq of an entry, or raise EntryMissing."""
    if is_id(entry_id):
        stem, seq = split_id(entry_id)
        query = "SELECT 1 FROM entries WHERE memory = ? AND seq = ? AND stem = ?"
        if connection.execute(query, (place.number, seq, stem)).fetchone():
            return seq
    asked = str(entry_id)[:ID_CHARS].encode("utf-8", "replace").decode()
    hint = "list_entries without a cursor begins at the newest"
    raise EntryMissing("no such entry in this memory", operation="find entry", place=asked, hint=hint)


def _begin(connection: "Connection", number: int) -> None:
    connection.execute("INSERT INTO erasing VALUES (?)", (number,))
    connection.execute("UPDATE store SET unclean = unclean + 1")


def _end(connection: "Connection", owner: int, counts: tuple[int, int, int]) -> None:
    connection.execute("DELETE FROM erasing")
    query = "UPDATE users SET memories = memories - ?, entries = entries - ?, bytes = bytes - ? WHERE number = ?"
    connection.execute(query, (*counts, owner))


def clean(connection: "Connection") -> None:
    """Outside of a transaction: let the bytes of what was erased leave the files."""
    seen = connection.execute("SELECT unclean FROM store").fetchone()[0]
    connection.execute("VACUUM")
    busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        problem = "the rows are erased, but somebody reads, so their bytes are still in the journal"
        raise StorageFailed(
            problem, operation="erase", hint="they go when the store is opened next, or with an erasure"
        )
    # Another process may have erased since: its bytes are not gone.
    connection.execute("UPDATE store SET unclean = 0 WHERE unclean = ?", (seen,))
