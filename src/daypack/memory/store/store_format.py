"""The format of store.sqlite, and the upgrade from format 1, whose checksums cover texts only.

An upgrade runs in the transaction that sets the new version: if it is interrupted, nothing has changed and the next
open starts it again.
"""

from typing import TYPE_CHECKING, Any
from zlib import crc32

from daypack.files.database import Format
from daypack.memory.store.checksums import UNVERIFIABLE, MemoryRecord, Record, TokenRecord, UserRecord, checksum
from daypack.memory.store.rows import WRONG_VALUES, Owner, document_record, entry_record
from daypack.memory.store.tables import DOCUMENT, ENTRY, GUARDED, GUARDS, QUARANTINE, SCHEMA

if TYPE_CHECKING:
    from sqlite3 import Connection

APPLICATION = 0x64706D31  # "dpm1"
VERSION = 2
_CACHE_KIB = 8_000
_JOURNAL_BYTES = 16_000_000


def seal_all(connection: "Connection") -> None:
    """Give every record a checksum over all its fields, and every entry its client key."""
    execute = connection.execute
    if any(row[1] == "client_key" for row in execute("PRAGMA table_info(entries)")):
        return  # its records have their checksums: only the number of its format was damaged
    for table in GUARDED:
        execute(f"DROP TRIGGER {table}_unchanged")
        execute(f"DROP TRIGGER {table}_kept")
    execute("ALTER TABLE entries ADD COLUMN client_key TEXT")
    for table in ("users", "memories", "tokens"):
        execute(f"ALTER TABLE {table} ADD COLUMN crc INT NOT NULL DEFAULT {UNVERIFIABLE}")
    execute(QUARANTINE)
    execute("UPDATE entries SET client_key = k.key FROM keys k WHERE k.memory = entries.memory AND k.seq = entries.seq")
    owners = execute("SELECT m.number, u.user, m.id FROM memories m JOIN users u ON u.number = m.owner").fetchall()
    for number, *owner in owners:
        _seal_texts(connection, number, Owner(*owner))
    _seal_rows(connection)
    for guard in GUARDS:
        execute(guard)


def _seal_texts(connection: "Connection", memory: int, owner: Owner) -> None:
    """Seal the entries and documents of a memory; one whose text was damaged before stays damaged."""
    texts = "SELECT e.seq, e.text FROM entries e WHERE e.memory = ?"
    numbers: dict[Any, Any] = dict(connection.execute(texts, (memory,)).fetchall())
    crcs: list[tuple[object, ...]] = []
    for row in connection.execute(ENTRY, (memory,)):
        *_, raw, summary, crc = row
        try:
            former = crc32(raw) if summary is None else crc32(summary.encode(), crc32(raw))
            sealed = checksum(entry_record(row, owner)) if former == crc else UNVERIFIABLE
        except WRONG_VALUES:
            sealed = UNVERIFIABLE
        crcs.append((sealed, numbers[row[0]]))
    connection.executemany("UPDATE texts SET crc = ? WHERE number = ?", crcs)
    crcs = []
    for row in connection.execute(DOCUMENT, (memory,)):
        version, _, _, content, crc = row
        try:
            sealed = checksum(document_record(row, owner)) if crc32(content.encode()) == crc else UNVERIFIABLE
        except WRONG_VALUES:
            sealed = UNVERIFIABLE
        crcs.append((sealed, memory, version))
    connection.executemany("UPDATE documents SET crc = ? WHERE memory = ? AND version = ?", crcs)


def _seal_rows(connection: "Connection") -> None:
    users = "SELECT user, name, email, max_memories, max_entries, max_bytes, number FROM users"
    memories = (
        "SELECT u.user, m.id, m.title, m.type, m.description, m.created, m.deleted, m.number"
        " FROM memories m JOIN users u ON u.number = m.owner"
    )
    tokens = "SELECT id, lower(hex(digest)), user, name, scope, created, expires, id FROM tokens"
    for table, query, kind, key in (
        ("users", users, UserRecord, "number"),
        ("memories", memories, MemoryRecord, "number"),
        ("tokens", tokens, TokenRecord, "id"),
    ):
        rows = connection.execute(query).fetchall()
        crcs = [(_sealed(kind(*fields)), number) for *fields, number in rows]
        connection.executemany(f"UPDATE {table} SET crc = ? WHERE {key} = ?", crcs)  # noqa: S608 — constants


def _sealed(record: Record) -> int:
    try:
        return checksum(record)
    except WRONG_VALUES:
        return UNVERIFIABLE


FORMAT = Format(
    "memory store",
    APPLICATION,
    VERSION,
    SCHEMA,
    "the file was not changed; run `daypack doctor --repair`, or restore it from a backup",
    kept=True,
    pragmas=(
        f"cache_size=-{_CACHE_KIB}",
        f"journal_size_limit={_JOURNAL_BYTES}",
        "secure_delete=ON",
        "trusted_schema=OFF",
    ),
    upgrades={1: seal_all},
)
