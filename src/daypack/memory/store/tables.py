"""The tables of store.sqlite and the types of their rows.

    users      names, quotas (NULL: no limit) and usage, updated in the transaction that writes
    memories   title, type, time of deletion; `newest` and `documents` only grow, so no number is reused
    entries    the columns that filters use, in order; the text is in
    texts      raw as exact UTF-8 bytes; summary NULL: the same as raw; crc: CRC-32 of raw, then summary
    documents  every version of every context document
    tags, keys entries by tag, entries by client key
    tokens     SHA-256 of secrets
    erasing    has a row during an erasure: only then can entries, texts and documents be deleted

Times are milliseconds since 1970. `moment` is an entry's `at` if that is an ISO time, else the time it was stored.
"""

from typing import Any
from zlib import crc32

from daypack.errors import Damaged
from daypack.files.database import Format
from daypack.memory.store.port import Token, join_id
from daypack.memory.times import format_time
from daypack.types.memory import About, ContextDocument, Entry, Memory, Quotas, Stats, Usage, User

APPLICATION = 0x64706D31  # "dpm1"
VERSION = 1
_CACHE_KIB = 8_000
_JOURNAL_BYTES = 16_000_000

_SCHEMA = """
CREATE TABLE store(id TEXT NOT NULL, unclean INT NOT NULL DEFAULT 0);
INSERT INTO store(id) VALUES (lower(hex(randomblob(8))));
CREATE TABLE users(
    number INTEGER PRIMARY KEY, user TEXT NOT NULL UNIQUE, name TEXT NOT NULL, email TEXT NOT NULL DEFAULT '',
    max_memories INT, max_entries INT, max_bytes INT,
    memories INT NOT NULL DEFAULT 0, entries INT NOT NULL DEFAULT 0, bytes INT NOT NULL DEFAULT 0
);
CREATE TABLE memories(
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner INT NOT NULL, title TEXT NOT NULL,
    type TEXT NOT NULL, description TEXT NOT NULL, created INT NOT NULL, deleted INT,
    newest INT NOT NULL DEFAULT 0, documents INT NOT NULL DEFAULT 0, latest INT NOT NULL DEFAULT 0,
    entries INT NOT NULL DEFAULT 0, bytes INT NOT NULL DEFAULT 0
);
CREATE INDEX memories_of ON memories(owner);
CREATE TABLE entries(
    memory INT NOT NULL, seq INT NOT NULL, text INT NOT NULL, stem BLOB NOT NULL, created INT NOT NULL,
    moment INT NOT NULL, session TEXT, role TEXT, author TEXT, at TEXT, source TEXT, tags TEXT,
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
    created TEXT NOT NULL, expires TEXT
) WITHOUT ROWID;
CREATE TABLE erasing(memory INT);
"""
_GUARD = """
CREATE TRIGGER {0}_unchanged BEFORE UPDATE ON {0} BEGIN SELECT RAISE(ABORT, '{0} are never changed'); END;
CREATE TRIGGER {0}_kept BEFORE DELETE ON {0} WHEN NOT EXISTS (SELECT 1 FROM erasing)
BEGIN SELECT RAISE(ABORT, '{0} are only erased'); END;
"""
GUARDED = ("entries", "texts", "documents")

FORMAT = Format(
    "memory store",
    APPLICATION,
    VERSION,
    _SCHEMA + "".join(map(_GUARD.format, GUARDED)),
    "the file was not changed; restore it from a backup",
    kept=True,
    pragmas=(
        f"cache_size=-{_CACHE_KIB}",
        f"journal_size_limit={_JOURNAL_BYTES}",
        "secure_delete=ON",
        "trusted_schema=OFF",
    ),
)

ENTRY = (
    "SELECT e.seq, e.stem, e.created, e.session, e.role, e.author, e.at, e.source, e.tags, t.raw, t.summary, t.crc"
    " FROM entries e JOIN texts t ON t.number = e.text WHERE e.memory = ?"
)
DOCUMENT = "SELECT version, stem, created, content, crc FROM documents WHERE memory = ?"
MEMORY = (
    "SELECT m.id, m.title, m.type, m.description, m.created, m.deleted, m.entries, m.documents, m.bytes"
    " FROM memories m JOIN users u ON u.number = m.owner"
)
USER = "SELECT user, name, email, max_memories, max_entries, max_bytes, memories, entries, bytes FROM users"
TOKEN = "SELECT id, user, name, scope, created, expires FROM tokens"  # noqa: S105 — a statement

Row = tuple[Any, ...]


def entry_of(row: Row, memory_id: str) -> Entry:
    """Return the entry of an ENTRY row; raise Damaged if its checksum does not match."""
    seq, stem, created, session, role, author, at, source, tags, raw, summary, crc = row
    entry_id = join_id(stem, seq)
    if text_crc(raw, summary) != crc:
        raise _damage("entry", entry_id, memory_id)
    text = raw.decode()
    return Entry(
        entry_id=entry_id,
        memory_id=memory_id,
        seq=seq,
        created_at=format_time(created),
        raw_entry=text,
        summary=text if summary is None else summary,
        session=session,
        role=role,
        author=author,
        at=at,
        tags=split_tags(tags),
        source=source,
    )


def document_of(row: Row, memory_id: str) -> ContextDocument:
    """Return the document of a DOCUMENT row."""
    version, stem, created, content, crc = row
    document_id = join_id(stem, version)
    if crc32(content.encode()) != crc:
        raise _damage("document", document_id, memory_id)
    return ContextDocument(
        document_id=document_id,
        memory_id=memory_id,
        version=version,
        created_at=format_time(created),
        content=content,
    )


def memory_of(row: Row) -> Memory:
    """Return the memory of a MEMORY row."""
    memory_id, title, memory_type, description, created, deleted, entries, documents, size = row
    return Memory(
        memory_id=memory_id,
        title=title,
        memory_type=memory_type,
        created_at=format_time(created),
        description=description,
        stats=Stats(entries, documents, size),
        deleted_at=None if deleted is None else format_time(deleted),
    )


def user_of(row: Row) -> User:
    """Return the profile of a USER row."""
    user, name, email, max_memories, max_entries, max_bytes, memories, entries, size = row
    quotas = Quotas(max_memories, max_entries, max_bytes, Usage(memories, entries, size))
    return User(user_id=user, name=name, email=email, quotas=quotas)


def token_of(row: Row) -> Token:
    """Return the token of a TOKEN row."""
    token_id, user, name, scope, created, expires = row
    return Token(token_id=token_id, user=user, name=name, scope=scope, created_at=created, expires_at=expires)


def text_crc(raw: bytes, summary: str | None) -> int:
    """Return the checksum of an entry's raw text and summary."""
    crc = crc32(raw)
    return crc if summary is None else crc32(summary.encode(), crc)


def join_tags(tags: tuple[str, ...]) -> str | None:
    """Return tags as one column; a tag has no control characters."""
    return "\n".join(tags) or None


def split_tags(tags: str | None) -> tuple[str, ...]:
    """Return the tags of a column."""
    return tuple(tags.split("\n")) if tags else ()


def size_of(raw: bytes, summary: str | None, about: About) -> int:
    """Return the bytes an entry counts for: its texts and the fields beside them."""
    words = (summary, about.session, about.role, about.author, about.at, about.source, *about.tags)
    return len(raw) + len("".join(filter(None, words)).encode())


def _damage(what: str, id_: str, memory_id: str) -> Damaged:
    hint = "restore store.sqlite from a backup, or erase the entry"
    problem = f"{what} {id_} has a checksum mismatch"
    return Damaged(problem, operation="read memory", place=memory_id, hint=hint)
