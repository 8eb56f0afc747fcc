"""The statements that read rows of a PostgreSQL store, and their rows as `memory/store/rows.py` takes them.

Texts of callers are bytea, because a text of PostgreSQL cannot contain NUL. Bytes that are no UTF-8 become text that no
checksum matches. The tenant is in every condition, so that one partition is read; row-level security adds the same
condition.
"""

# ruff: noqa: S608 — the parts of statements are constants

from daypack.memory.store.rows import Row

# The values of each: tenant, number of the memory.
_ENTRY_COLUMNS = "seq, stem, created, moment, session, role, author, at, source, tags, client_key, raw, summary, crc"
ENTRY = f"SELECT {_ENTRY_COLUMNS} FROM entries WHERE tenant = %s AND memory = %s"
_DOCUMENT_COLUMNS = "version, stem, created, content, crc"
DOCUMENT = f"SELECT {_DOCUMENT_COLUMNS} FROM documents WHERE tenant = %s AND memory = %s"
# The values of each: tenant, tenant, id of the memory. The number is found in the same statement.
NUMBER = "(SELECT number FROM memories WHERE tenant = %s AND id = %s)"
ENTRIES_OF = f"SELECT {_ENTRY_COLUMNS} FROM entries WHERE tenant = %s AND memory = {NUMBER}"
SEQS_OF = f"SELECT seq FROM entries WHERE tenant = %s AND memory = {NUMBER}"
DOCUMENTS_OF = f"SELECT {_DOCUMENT_COLUMNS} FROM documents WHERE tenant = %s AND memory = {NUMBER}"
TAGGED = f" AND seq IN (SELECT seq FROM tags WHERE tenant = %s AND memory = {NUMBER} AND tag = %s)"

MEMORY_COLUMNS = "tenant, id, title, type, description, created, deleted, crc, entries, documents, bytes"
MEMORY = f"SELECT {MEMORY_COLUMNS} FROM memories WHERE tenant = %s"
USER_COLUMNS = "tenant, name, email, max_memories, max_entries, max_bytes, crc, memories, entries, bytes"
USER = f"SELECT {USER_COLUMNS} FROM users WHERE tenant = %s"
USERS = f'SELECT {USER_COLUMNS} FROM users ORDER BY tenant COLLATE "C"'
TOKEN = "SELECT id, digest, tenant, name, scope, created, expires, crc FROM tokens"  # noqa: S105 — a statement

_ROW = (
    "SELECT m.tenant, m.id, m.title, m.type, m.description, m.created, m.deleted, m.crc,"
    " u.tenant, u.name, u.email, u.max_memories, u.max_entries, u.max_bytes, u.crc,"
    " m.number, m.newest, m.documents, m.latest, u.entries, u.bytes"
)
# The values of each: tenant, id of the memory. Memories that are deleted are found too.
MEMORY_ROW = f"{_ROW} FROM users u JOIN memories m USING (tenant) WHERE u.tenant = %s AND m.id = %s"
# Everything that locks both locks the user before the memory, so that no two transactions wait for each other. What was
# committed while a lock was waited for is read.
LOCKED_ROW = (
    f"WITH owner AS MATERIALIZED (SELECT * FROM users WHERE tenant = %s FOR NO KEY UPDATE) {_ROW}"
    " FROM owner u, LATERAL (SELECT * FROM memories WHERE tenant = u.tenant AND id = %s FOR NO KEY UPDATE) m"
)
# Those who write an index hold a memory FOR KEY SHARE: an erasure waits for them, other writes do not.
ERASED_ROW = LOCKED_ROW.replace("NO KEY UPDATE", "UPDATE")
DELETED = 6  # the column of both that has the time


def entry_row(row: Row) -> Row:
    """Return an ENTRY row with its texts; raw stays bytes."""
    seq, stem, created, moment, session, role, author, at, source, tags, key, raw, summary, crc = row
    words = (_text(session), _text(role), _text(author), _text(at), _text(source), _text(tags), _text(key))
    return (seq, stem, created, moment, *words, raw, _text(summary), crc)


def document_row(row: Row) -> Row:
    """Return a DOCUMENT row with its text."""
    version, stem, created, content, crc = row
    return (version, stem, created, _text(content), crc)


def memory_texts(row: Row) -> Row:
    """Return a row that begins with the fields of a memory with their texts."""
    user, memory_id, title, kind, description, *rest = row
    return (user, memory_id, _text(title), _text(kind), _text(description), *rest)


def user_texts(row: Row) -> Row:
    """Return a row that begins with the fields of a user with their texts."""
    user, name, email, *rest = row
    return (user, _text(name), _text(email), *rest)


def both_texts(row: Row) -> Row:
    """Return a row of a memory and its user with their texts."""
    return memory_texts(row[:8]) + user_texts(row[8:])


def token_texts(row: Row) -> Row:
    """Return a TOKEN row with its texts."""
    token_id, digest, user, name, *rest = row
    return (token_id, digest, user, _text(name), *rest)


def counted_bytes(row: Row) -> int:
    """Return the bytes that an ENTRY row counts for, as `size_of` does."""
    *words, tags, _, raw, summary = row[4:-1]
    texts = [as_bytes(value) for value in (*words, raw, summary) if value is not None]
    return sum(map(len, texts)) + (len(as_bytes(tags).replace(b"\n", b"")) if tags is not None else 0)


def as_bytes(value: str | bytes) -> bytes:
    """Return a text as it is stored."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "surrogateescape")
