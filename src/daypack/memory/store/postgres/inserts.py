"""Inserts entries and documents into PostgreSQL, within the caller's transaction.

A write waits for the server twice: for the locked rows of the user and the memory, with what it must compare itself
with; then for everything it writes, which travels together with the commit.

The outcome of a commit whose answer was lost is unknown. So a write remembers what each of its attempts would have
stored: the random bytes of a record's id show whether it is there. The next attempt waits for the locks of the former
one, so it sees the outcome.
"""

# ruff: noqa: S608 — the parts of statements are constants

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from daypack.memory.store.checksums import UserRecord, checksum, is_intact
from daypack.memory.store.inserts import (
    DocumentBatch,
    EntryBatch,
    EntryRow,
    MemoryRow,
    check_quota,
    memory_row,
    new_memory_id,
    new_record,
)
from daypack.memory.store.port import NewDocument, NewEntry, NewMemory, memory_missing, split_id
from daypack.memory.store.postgres.jobs import INSERT as INSERT_JOB
from daypack.memory.store.postgres.statements import (
    DELETED,
    ENTRIES_OF,
    ERASED_ROW,
    LOCKED_ROW,
    MEMORY_COLUMNS,
    NUMBER,
    USER,
    both_texts,
    entry_row,
    user_texts,
)
from daypack.memory.store.rows import Owner, Row, damage_of, entry_of, join_tags
from daypack.postgres.transaction import Transaction
from daypack.types.memory import DamagedRecord, Entry

if TYPE_CHECKING:
    from psycopg import Cursor

_Answer = TypeVar("_Answer")
_FEW = 16  # entries that are inserted faster one by one, in the same round trip, than from arrays
_FOUND = {
    "entry": "SELECT 1 FROM entries WHERE tenant = %s AND memory = %s AND seq = %s AND stem = %s",
    "document": "SELECT 1 FROM documents WHERE tenant = %s AND memory = %s AND version = %s AND stem = %s",
    "memory": "SELECT 1 FROM memories WHERE tenant = %s AND number = %s AND %s = 0 AND %s = ''::bytea",
}
_KEYED = f"{ENTRIES_OF} AND client_key = ANY(%s::bytea[])"
_STEMS = f"SELECT seq, stem, created FROM entries WHERE tenant = %s AND memory = {NUMBER} AND seq = ANY(%s::bigint[])"
_VERSIONS = (
    f"SELECT version, stem FROM documents WHERE tenant = %s AND memory = {NUMBER} AND version = ANY(%s::bigint[])"
)
_INSERT_ENTRY = (
    "INSERT INTO entries(tenant, memory, seq, stem, created, moment, session, role, author, at, source, tags,"
    " client_key, raw, summary, crc) "
)
_INSERT_ONE = f"{_INSERT_ENTRY} VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
_INSERT_MANY = (  # binary: half the time of text
    f"{_INSERT_ENTRY} SELECT %s, %s, * FROM unnest(%b::bigint[], %b::bytea[], %b::bigint[], %b::bigint[], %b::bytea[],"
    " %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[],"
    " %b::bigint[])"
)
_INSERT_TAGS = "INSERT INTO tags(tenant, memory, tag, seq) SELECT %s, %s, * FROM unnest(%s::bytea[], %s::bigint[])"
_INSERT_DOCUMENT = (
    "INSERT INTO documents(tenant, memory, version, stem, created, content, crc) VALUES (%s, %s, %s, %s, %s, %s, %s)"
)
_INSERT_USER = "INSERT INTO users(tenant, name, crc) VALUES (%s, %s, %s) ON CONFLICT (tenant) DO NOTHING"
# A user sees no memory of another one, but ids are unique in the whole database.
_INSERT_MEMORY = (
    "INSERT INTO memories(tenant, id, title, type, description, created, crc) VALUES (%s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (id) DO NOTHING RETURNING number"
)
# One statement: three take longer. Its values are those of the user, of the job, and of the memory.
_FINISH = f"""
WITH usage AS (
    UPDATE users SET entries = entries + %s, bytes = bytes + %s, memories = memories + %s WHERE tenant = %s
), job AS ({INSERT_JOB})
UPDATE memories SET newest = %s, documents = %s, latest = %s, entries = entries + %s, bytes = bytes + %s
WHERE tenant = %s AND number = %s RETURNING {MEMORY_COLUMNS}
"""


class _Mark(NamedTuple):
    """A record with random bytes of its own: it is there if, and only if, an attempt was committed."""

    kind: str
    memory: int
    number: int
    stem: bytes


class Attempts(Generic[_Answer]):
    """What the attempts of one write would have stored, and what each would have returned."""

    def __init__(self) -> None:
        self._made: list[tuple[_Mark, _Answer]] = []

    def find(self, transaction: Transaction) -> _Answer | None:
        """Return the answer of the attempt that was committed; None if none was. The locks are held."""
        found = [
            (transaction.execute(_FOUND[mark.kind].encode(), (transaction.tenant, *mark[1:])), answer)
            for mark, answer in self._made
        ]
        return next((answer for cursor, answer in found if cursor.fetchone()), None)

    def remember(self, mark: _Mark | None, answer: _Answer) -> _Answer:
        """Remember what an attempt is about to commit; None: it stores nothing."""
        if mark is not None:
            self._made.append((mark, answer))
        return answer


class Existing:
    """What a memory has already of the keys and ids of one write, looked up at once; without an id, nothing.

    The statements are sent when it is made, after those that lock the memory, and answered with them.
    """

    def __init__(
        self,
        transaction: Transaction,
        memory_id: str | None,
        entries: Sequence[NewEntry],
        documents: Sequence[NewDocument] = (),
    ) -> None:
        keys = [entry.client_key.encode() for entry in entries if entry.client_key is not None]
        seqs = [split_id(entry.entry_id)[1] for entry in entries if entry.entry_id is not None]
        versions = [split_id(document.document_id)[1] for document in documents if document.document_id is not None]
        self._owner = Owner(transaction.tenant, memory_id or "")
        self._keyed, self._stems, self._versions = (
            transaction.execute(query.encode(), (transaction.tenant, *self._owner, wanted), binary=True)
            if wanted and memory_id is not None
            else None
            for query, wanted in ((_KEYED, keys), (_STEMS, seqs), (_VERSIONS, versions))
        )

    @cached_property
    def _entries(self) -> dict[str, Entry | DamagedRecord]:
        rows = map(entry_row, self._keyed.fetchall() if self._keyed else ())
        return {row[10]: entry_of(row, self._owner) for row in rows}

    @cached_property
    def _stem_by_seq(self) -> dict[int, tuple[bytes, int]]:
        return {seq: (stem, created) for seq, stem, created in (self._stems.fetchall() if self._stems else ())}

    @cached_property
    def _stem_by_version(self) -> dict[int, bytes]:
        return dict(self._versions.fetchall() if self._versions else ())

    def keyed(self, client_key: str) -> Entry | None:
        """Return the entry stored with a client key; raise Damaged if it is damaged."""
        entry = self._entries.get(client_key)
        if isinstance(entry, DamagedRecord):
            raise damage_of(entry, "find entry")
        return entry

    def entry(self, seq: int) -> tuple[bytes, int] | None:
        """Return the random bytes and the time of an entry."""
        return self._stem_by_seq.get(seq)

    def document(self, version: int) -> bytes | None:
        """Return the random bytes of a version of the document."""
        return self._stem_by_version.get(version)


def lock_memory(transaction: Transaction, memory_id: str, *, erasing: bool = False) -> "Cursor[Row]":
    """Lock a memory and its user until the end of the transaction; `erasing`: wait for those who write its index."""
    return transaction.execute((ERASED_ROW if erasing else LOCKED_ROW).encode(), (transaction.tenant, memory_id))


def found_memory(row: Row | None, owner: Owner, operation: str) -> MemoryRow:
    """Return the memory of a row; raise MemoryMissing if there is none or it is deleted."""
    if row is None or row[DELETED] is not None:
        raise memory_missing(owner.memory_id, operation)
    return memory_row(both_texts(row), owner)


def lock_user(transaction: Transaction) -> "Cursor[Row]":
    """Lock the user of a transaction, created if there is none, and return the row."""
    user = transaction.tenant
    record = UserRecord(user, user, "", None, None, None)
    transaction.execute(_INSERT_USER, (user, user.encode(), checksum(record)))
    return transaction.execute(f"{USER} FOR NO KEY UPDATE", (user,))


class Write:
    """The rows of one transaction in one memory: collected, then sent with the counts and a job."""

    def __init__(self, transaction: Transaction, memory: MemoryRow, existing: Existing) -> None:
        self._transaction = transaction
        self._existing = existing
        self._place = (memory.owner_id.user, memory.number)
        self.memory = memory
        self.mark: _Mark | None = None
        self._changed = False
        self._entries = 0
        self._size = 0

    def add_documents(self, documents: Sequence[NewDocument]) -> DocumentBatch:
        """Insert versions of the document; those of an archive that exist are skipped."""
        batch = DocumentBatch(self.memory, self._existing, documents)
        for row in batch.rows:
            fields = (row.version, row.stem, row.record.created, row.content, row.crc)
            self._transaction.execute(_INSERT_DOCUMENT, (*self._place, *fields))
        if batch.rows:
            given = {document.document_id for document in documents}
            self._set_mark("document", [row[:2] for row in batch.rows if row.record.document_id not in given])
        self._size += batch.size
        self.memory = self.memory._replace(
            documents=batch.version, latest=batch.latest, user_bytes=self.memory.user_bytes + batch.size
        )
        return batch

    def add_entries(self, entries: Sequence[NewEntry]) -> list[Any]:
        """Insert entries within the owner's quotas; those that are stored already are skipped."""
        batch = EntryBatch(self.memory, self._existing)
        stored = [batch.add(entry) for entry in entries]
        if batch.rows:
            batch.check()
            self._insert(batch.rows)
            given = {entry.entry_id for entry in entries}
            self._set_mark("entry", [row[:2] for row in batch.rows if row.record.entry_id not in given])
        self._entries += len(batch.rows)
        self._size += batch.size
        self.memory = self.memory._replace(newest=batch.newest, latest=batch.latest)
        return stored

    def _set_mark(self, kind: str, made: list[tuple[int, bytes]]) -> None:
        # What comes with its id may be stored by others too, and storing it again changes nothing.
        self._changed = True
        if made and self.mark is None:
            self.mark = _Mark(kind, self.memory.number, *made[0])

    def _insert(self, rows: list[EntryRow]) -> None:
        fields = [_fields(row) for row in rows]
        if len(rows) <= _FEW:
            for values in fields:
                self._transaction.execute(_INSERT_ONE, (*self._place, *values))
        else:
            columns = [list(column) for column in zip(*fields, strict=True)]
            self._transaction.execute(_INSERT_MANY, (*self._place, *columns))
        tags = [(tag.encode(), row.seq) for row in rows for tag in dict.fromkeys(row.record.tags)]
        if tags:
            names, seqs = zip(*tags, strict=True)
            self._transaction.execute(_INSERT_TAGS, (*self._place, list(names), list(seqs)))

    def finish(self, *, created: bool = False) -> "Cursor[Row] | None":
        """Count what was inserted and make a job for the index; return the row of the memory, None if it is as before.

        `created`: the memory itself is new.
        """
        if not self._changed and not created:
            return None
        if created:
            self.mark = _Mark("memory", self.memory.number, 0, b"")
        memory, (user, number) = self.memory, self._place
        usage = (self._entries, self._size, int(created), user)
        job = (user, number, memory.newest, memory.documents)
        counts = (memory.newest, memory.documents, memory.latest, self._entries, self._size, user, number)
        return self._transaction.execute(_FINISH, (*usage, *job, *counts))


def _fields(row: EntryRow) -> tuple[Any, ...]:
    """Return the columns of an entry after those of its memory, in the order of the table."""
    record = row.record
    words = (record.session, record.role, record.author, record.at, record.source, join_tags(record.tags))
    texts = [None if word is None else word.encode() for word in (*words, record.client_key)]
    summary = None if record.summary is None else record.summary.encode()
    return (row.seq, row.stem, record.created, record.moment, *texts, row.raw, summary, row.crc)


def open_memory(transaction: Transaction, new: NewMemory, owner: "Cursor[Row]") -> tuple[MemoryRow, bool]:
    """Lock the memory to load into, or create it; return True for a new one. Its user is locked and a row of `owner`.

    If the id is taken by another user, the memory gets another one.
    """
    user, wanted = transaction.tenant, new.memory_id or new_memory_id()
    row = transaction.row(LOCKED_ROW, (user, wanted)) if new.memory_id else None
    if row is not None and row[DELETED] is None:
        return memory_row(both_texts(row), Owner(user, wanted)), False
    *fields, crc, memories, entries, size = user_texts(owner.fetchone() or ())
    record = UserRecord(*fields)
    check_quota("memories", memories + 1, record.max_memories)
    number = None if row is not None else _insert_memory(transaction, new, wanted)
    while number is None:
        wanted = new_memory_id()
        number = _insert_memory(transaction, new, wanted)
    quotas = record if is_intact(record, crc) else None
    return MemoryRow(Owner(user, wanted), quotas, number, 0, 0, 0, entries, size), True


def _insert_memory(transaction: Transaction, new: NewMemory, memory_id: str) -> int | None:
    record = new_record(transaction.tenant, new, memory_id)
    texts = (record.title.encode(), record.memory_type.encode(), record.description.encode())
    row = transaction.row(_INSERT_MEMORY, (transaction.tenant, memory_id, *texts, record.created, checksum(record)))
    return row[0] if row else None
