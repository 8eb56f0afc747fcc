"""The tables of store.sqlite, the statements that read their rows, and what differs from them in a file.

    users      names, quotas (NULL: no limit) and usage, updated in the transaction that writes
    memories   title, type, time of deletion; `newest` and `documents` only grow, so no number is reused
    entries    the columns that filters use, in order; the text is in
    texts      raw as exact UTF-8 bytes; summary NULL: the same as raw
    documents  every version of every context document
    tags, keys entries by tag, entries by client key; both follow from `entries`
    tokens     SHA-256 of secrets
    erasing    has a row during an erasure: only then can entries, texts and documents be deleted
    quarantine the columns of damaged records that `doctor --repair` moved here, one row each, as they were

`crc` is the checksum of the whole record (see `checksums`); that of an entry is beside its text.
Times are milliseconds since 1970. `moment` is an entry's `at` if that is an ISO time, else the time it was stored.
"""

from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection

Difference = Literal["missing", "unknown", "different"]
_TABLES = """
CREATE TABLE store(id TEXT NOT NULL, unclean INT NOT NULL DEFAULT 0);
INSERT INTO store(id) VALUES (lower(hex(randomblob(8))));
CREATE TABLE users(
    number INTEGER PRIMARY KEY, user TEXT NOT NULL UNIQUE, name TEXT NOT NULL, email TEXT NOT NULL DEFAULT '',
    max_memories INT, max_entries INT, max_bytes INT,
    memories INT NOT NULL DEFAULT 0, entries INT NOT NULL DEFAULT 0, bytes INT NOT NULL DEFAULT 0,
    crc INT NOT NULL DEFAULT -1
);
CREATE TABLE memories(
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner INT NOT NULL, title TEXT NOT NULL,
    type TEXT NOT NULL, description TEXT NOT NULL, created INT NOT NULL, deleted INT,
    newest INT NOT NULL DEFAULT 0, documents INT NOT NULL DEFAULT 0, latest INT NOT NULL DEFAULT 0,
    entries INT NOT NULL DEFAULT 0, bytes INT NOT NULL DEFAULT 0, crc INT NOT NULL DEFAULT -1
);
CREATE INDEX memories_of ON memories(owner);
CREATE TABLE entries(
    memory INT NOT NULL, seq INT NOT NULL, text INT NOT NULL, stem BLOB NOT NULL, created INT NOT NULL,
    moment INT NOT NULL, session TEXT, role TEXT, author TEXT, at TEXT, source TEXT, tags TEXT, client_key TEXT,
    PRIMARY KEY(memory, seq)
) WITHOUT ROWID;
CREATE TABLE texts(number INTEGER PRIMARY KEY, raw BLOB NOT NULL, summary TEXT, crc INT NOT NULL);
CREATE TABLE documents(
    number INTEGER PRIMARY KEY, memory INT NOT NULL, version INT NOT NULL, stem BLOB NOT NULL, created INT NOT NULL,
    content TEXT NOT NULL, crc INT NOT NULL
);
CREATE UNIQUE INDEX documents_of ON documents(memory, version);
CREATE TABLE tags(memory INT, tag TEXT, seq INT, PRIMARY KEY(memory, tag, seq)) WITHOUT ROWID;
CREATE TABLE keys(memory INT, key TEXT, seq INT, PRIMARY KEY(memory, key)) WITHOUT ROWID;
CREATE TABLE tokens(
    id TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE, user TEXT NOT NULL, name TEXT NOT NULL, scope TEXT NOT NULL,
    created TEXT NOT NULL, expires TEXT, crc INT NOT NULL DEFAULT -1
) WITHOUT ROWID;
CREATE TABLE erasing(memory INT);
"""
QUARANTINE = """
CREATE TABLE quarantine(
    record INT NOT NULL, moved INT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, memory TEXT NOT NULL,
    problem TEXT NOT NULL, field TEXT NOT NULL, value, PRIMARY KEY(record, field)
) WITHOUT ROWID
"""
GUARDED = ("entries", "texts", "documents")
RECORDS = ("users", "memories", *GUARDED)  # nothing else states what is in these
_GUARD = (
    "CREATE TRIGGER {0}_unchanged BEFORE UPDATE ON {0} BEGIN SELECT RAISE(ABORT, '{0} are never changed'); END",
    (
        "CREATE TRIGGER {0}_kept BEFORE DELETE ON {0} WHEN NOT EXISTS (SELECT 1 FROM erasing) "
        "BEGIN SELECT RAISE(ABORT, '{0} are only erased'); END"
    ),
)
GUARDS = tuple(guard.format(table) for table in GUARDED for guard in _GUARD)
SCHEMA = ";".join((_TABLES, QUARANTINE, *GUARDS))

# LEFT JOIN: an entry without its text is damage, not an entry that does not exist.
ENTRY = (
    "SELECT e.seq, e.stem, e.created, e.moment, e.session, e.role, e.author, e.at, e.source, e.tags, e.client_key,"
    " t.raw, t.summary, t.crc FROM entries e LEFT JOIN texts t ON t.number = e.text WHERE e.memory = ?"
)
DOCUMENT = "SELECT version, stem, created, content, crc FROM documents WHERE memory = ?"
MEMORY = (
    "SELECT u.user, m.id, m.title, m.type, m.description, m.created, m.deleted, m.crc, m.entries, m.documents, m.bytes"
    " FROM memories m JOIN users u ON u.number = m.owner"
)
USER = "SELECT user, name, email, max_memories, max_entries, max_bytes, crc, memories, entries, bytes FROM users"
TOKEN = "SELECT id, digest, user, name, scope, created, expires, crc FROM tokens"  # noqa: S105 — a statement
_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"


class SchemaProblem(NamedTuple):
    """An object that is missing or different, or a trigger that daypack did not make."""

    type: str
    name: str
    difference: Difference

    @property
    def made(self) -> bool:
        """True if it can be made again; a new table of records would be empty."""
        return self.type != "table" or (self.difference == "missing" and self.name not in RECORDS)


def compare_schema(connection: "Connection") -> list[SchemaProblem]:
    """Return what differs; tables, indexes and views that daypack does not know are left alone."""
    expected = _expected()
    found = {(kind, name): sql for kind, name, sql in connection.execute(_OBJECTS)}
    problems = [SchemaProblem(*key, "missing") for key in expected if key not in found]
    for (kind, name), sql in found.items():
        if kind == "trigger" and sql != expected.get((kind, name)):
            known = (kind, name) in expected
            problems.append(SchemaProblem(kind, name, "different" if known else "unknown"))
        elif kind == "table" and (kind, name) in expected and columns_of(connection, name) != expected_columns(name):
            problems.append(SchemaProblem(kind, name, "different"))
    return problems


def make_again(connection: "Connection", type_: str, name: str) -> None:
    """Create a missing object, replace a trigger, or remove one that daypack did not make."""
    if type_ == "trigger":
        quoted = name.replace('"', '""')
        connection.execute(f'DROP TRIGGER IF EXISTS "{quoted}"')
    if sql := _expected().get((type_, name)):
        connection.execute(sql)


def columns_of(connection: "Connection", table: str) -> list[tuple[str, str]]:
    """Return the columns of a table with their types."""
    return connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()


@cache
def _expected() -> dict[tuple[str, str], str]:
    with closing(_empty()) as connection:
        return {(kind, name): sql for kind, name, sql in connection.execute(_OBJECTS)}


@cache
def expected_columns(table: str) -> list[tuple[str, str]]:
    """Return the columns that a table of the format has."""
    with closing(_empty()) as connection:
        return columns_of(connection, table)


def _empty() -> "Connection":
    import sqlite3  # noqa: PLC0415 — 5 ms

    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    return connection
