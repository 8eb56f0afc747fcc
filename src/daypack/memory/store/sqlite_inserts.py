"""Inserts entries and documents into store.sqlite, within the caller's transaction."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daypack.memory.store.checksums import checksum
from daypack.memory.store.inserts import (
    DocumentBatch,
    DocumentRow,
    EntryBatch,
    MemoryRow,
    check_quota,
    memory_row,
    new_memory_id,
    new_record,
)
from daypack.memory.store.port import NewDocument, NewEntry, NewMemory, StoredEntry
from daypack.memory.store.rows import Owner, damage_of, entry_of, join_tags
from daypack.memory.store.sqlite_accounts import user_number
from daypack.memory.store.tables import ENTRY
from daypack.types.memory import DamagedRecord, Entry

if TYPE_CHECKING:
    from sqlite3 import Connection

_MEMORY_ROW = (
    "SELECT u.user, m.id, m.title, m.type, m.description, m.created, m.deleted, m.crc,"
    " u.user, u.name, u.email, u.max_memories, u.max_entries, u.max_bytes, u.crc,"
    " m.number, m.newest, m.documents, m.latest, u.entries, u.bytes"
    " FROM memories m JOIN users u ON u.number = m.owner WHERE m.id = ? AND u.user = ? AND m.deleted IS NULL"
)


def find_memory_row(connection: "Connection", user: str, memory_id: str) -> MemoryRow | None:
    """Return a memory of this user; None if there is none or it is deleted; raise Damaged if it is damaged."""
    row = connection.execute(_MEMORY_ROW, (memory_id, user)).fetchone()
    return memory_row(row, Owner(user, memory_id)) if row else None


class _Existing:
    """What a memory in the file has already."""

    def __init__(self, connection: "Connection", memory: MemoryRow) -> None:
        self._connection = connection
        self._memory = memory

    def keyed(self, client_key: str) -> Entry | None:
        return find_keyed(self._connection, self._memory, client_key)

    def entry(self, seq: int) -> tuple[bytes, int] | None:
        query = "SELECT stem, created FROM entries WHERE memory = ? AND seq = ?"
        return self._connection.execute(query, (self._memory.number, seq)).fetchone()

    def document(self, version: int) -> bytes | None:
        query = "SELECT stem FROM documents WHERE memory = ? AND version = ?"
        row = self._connection.execute(query, (self._memory.number, version)).fetchone()
        return row[0] if row else None


def make_memory(connection: "Connection", user: str, new: NewMemory) -> str:
    """Create a memory, and its user if there is none; return its id, which is another one if the given is taken."""
    owner = user_number(connection, user)
    count, quota = connection.execute("SELECT memories, max_memories FROM users WHERE number = ?", (owner,)).fetchone()
    check_quota("memories", count + 1, quota)
    memory_id = new.memory_id
    if memory_id is None or connection.execute("SELECT 1 FROM memories WHERE id = ?", (memory_id,)).fetchone():
        memory_id = new_memory_id()
    record = new_record(user, new, memory_id)
    query = "INSERT INTO memories(owner, id, title, type, description, created, crc) VALUES (?, ?, ?, ?, ?, ?, ?)"
    connection.execute(query, (owner, *record[1:-1], checksum(record)))
    connection.execute("UPDATE users SET memories = memories + 1 WHERE number = ?", (owner,))
    return memory_id


def add_entries(connection: "Connection", memory: MemoryRow, entries: Sequence[NewEntry]) -> list[StoredEntry]:
    """Store entries within the owner's quotas; those that are stored already are skipped."""
    batch = EntryBatch(memory, _Existing(connection, memory))
    stored = [batch.add(entry) for entry in entries]
    if batch.rows:
        batch.check()
        _write_entries(connection, memory, batch)
    return stored


def _write_entries(connection: "Connection", memory: MemoryRow, batch: EntryBatch) -> None:
    number, many = memory.number, connection.executemany
    text: int = connection.execute("SELECT coalesce(max(number), 0) FROM texts").fetchone()[0] + 1
    rows = list(enumerate(batch.rows, text))
    many(
        "INSERT INTO texts VALUES (?, ?, ?, ?)",
        [(text, row.raw, row.record.summary, row.crc) for text, row in rows],
    )
    many(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (number, row.seq, text, row.stem, row.record.created, row.record.moment, row.record.session,
             row.record.role, row.record.author, row.record.at, row.record.source, join_tags(row.record.tags),
             row.record.client_key)
            for text, row in rows
        ],
    )  # fmt: skip
    many("INSERT INTO tags VALUES (?, ?, ?)", [(number, tag, row.seq) for row in batch.rows for tag in row.record.tags])
    keys = [(number, row.record.client_key, row.seq) for row in batch.rows if row.record.client_key is not None]
    many("INSERT INTO keys VALUES (?, ?, ?)", keys)
    connection.execute(
        "UPDATE memories SET newest = ?, latest = ?, entries = entries + ?, bytes = bytes + ? WHERE number = ?",
        (batch.newest, batch.latest, len(rows), batch.size, number),
    )
    connection.execute(
        "UPDATE users SET entries = entries + ?, bytes = bytes + ? WHERE user = ?",
        (len(rows), batch.size, memory.owner_id.user),
    )


def add_documents(connection: "Connection", memory: MemoryRow, documents: Sequence[NewDocument]) -> list[DocumentRow]:
    """Store versions of the document, within the quota; skip those of an archive that exist."""
    batch = DocumentBatch(memory, _Existing(connection, memory), documents)
    connection.executemany(
        "INSERT INTO documents(memory, version, stem, created, content, crc) VALUES (?, ?, ?, ?, ?, ?)",
        [(memory.number, row.version, row.stem, row.record.created, row.record.content, row.crc) for row in batch.rows],
    )
    query = "UPDATE memories SET documents = ?, latest = ?, bytes = bytes + ? WHERE number = ?"
    connection.execute(query, (batch.version, batch.latest, batch.size, memory.number))
    connection.execute("UPDATE users SET bytes = bytes + ? WHERE user = ?", (batch.size, memory.owner_id.user))
    return batch.rows


def find_keyed(connection: "Connection", memory: MemoryRow, client_key: str) -> Entry | None:
    """Return the entry stored with a client key; raise Damaged if it is damaged."""
    query = f"{ENTRY} AND e.seq = (SELECT seq FROM keys WHERE memory = ? AND key = ?)"  # noqa: S608
    row = connection.execute(query, (memory.number, memory.number, client_key)).fetchone()
    entry = entry_of(row, memory.owner_id) if row else None
    if isinstance(entry, DamagedRecord):
        raise damage_of(entry, "find entry")
    return entry
