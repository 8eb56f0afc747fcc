"""Erasure in a memory store: rows are deleted in one transaction, their bytes removed from the files right after it.

SQLite keeps deleted bytes in free pages and in the journal. So the file is rewritten (VACUUM) and the journal
truncated. Until then the store is marked unclean, and the next process that opens it does the rest.
"""

from typing import TYPE_CHECKING

from daypack.errors import EntryMissing, StorageFailed
from daypack.memory.store.inserts import MemoryRow
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
    """Delete all rows of a memory, deleted or not."""
    query = f"{_ERASED} WHERE m.id = ? AND u.user = ?"
    row = connection.execute(query, (memory_id, user)).fetchone() if is_id(memory_id) else None
    if not row:
        raise memory_missing(memory_id, "erase memory")
    number, owner, entries, size = row
    _begin(connection, number)
    connection.execute("DELETE FROM texts WHERE number IN (SELECT text FROM entries WHERE memory = ?)", (number,))
    for table in ("entries", "tags", "keys", "documents"):
        connection.execute(f"DELETE FROM {table} WHERE memory = ?", (number,))  # noqa: S608 — a constant
    connection.execute("DELETE FROM memories WHERE number = ?", (number,))
    _end(connection, owner, (1, entries, size))


def erase_entry(connection: "Connection", memory: MemoryRow, entry_id: str) -> None:
    """Delete the rows of an entry; its seq is not reused."""
    seq = find_seq(connection, memory, entry_id)
    number, raw, summary, *known, tags = connection.execute(_ENTRY, (memory.number, seq)).fetchone()
    _begin(connection, memory.number)
    connection.execute("DELETE FROM texts WHERE number = ?", (number,))
    for table in ("entries", "tags", "keys"):
        connection.execute(f"DELETE FROM {table} WHERE memory = ? AND seq = ?", (memory.number, seq))  # noqa: S608
    words = (*known, *(tags or "").split("\n"))
    size = size_of(raw, summary, About(tags=tuple(word for word in words if word)))
    query = "UPDATE memories SET entries = entries - 1, bytes = bytes - ? WHERE number = ?"
    connection.execute(query, (size, memory.number))
    _end(connection, memory.owner, (0, 1, size))


def find_seq(connection: "Connection", memory: MemoryRow, entry_id: str) -> int:
    """Return the seq of an entry, or raise EntryMissing."""
    if is_id(entry_id):
        stem, seq = split_id(entry_id)
        query = "SELECT 1 FROM entries WHERE memory = ? AND seq = ? AND stem = ?"
        if connection.execute(query, (memory.number, seq, stem)).fetchone():
            return seq
    place = str(entry_id)[:ID_CHARS].encode("utf-8", "replace").decode()
    hint = "call list_entries without before and after to get the newest entries"
    raise EntryMissing("there is no such entry in this memory", operation="find entry", place=place, hint=hint)


def _begin(connection: "Connection", number: int) -> None:
    connection.execute("INSERT INTO erasing VALUES (?)", (number,))
    connection.execute("UPDATE store SET unclean = unclean + 1")


def _end(connection: "Connection", owner: int, counts: tuple[int, int, int]) -> None:
    connection.execute("DELETE FROM erasing")
    query = "UPDATE users SET memories = memories - ?, entries = entries - ?, bytes = bytes - ? WHERE number = ?"
    connection.execute(query, (*counts, owner))


def clean(connection: "Connection") -> None:
    """Remove the bytes of deleted rows from the files; must run outside a transaction."""
    unclean = connection.execute("SELECT unclean FROM store").fetchone()[0]
    connection.execute("VACUUM")
    busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        problem = "the rows are erased, but another process is reading, so their bytes are still in the journal"
        raise StorageFailed(
            problem, operation="erase", hint="they are removed when the store is opened next, or by the next erasure"
        )
    # Another process may have erased in the meantime; then the store stays unclean.
    connection.execute("UPDATE store SET unclean = 0 WHERE unclean = ?", (unclean,))
