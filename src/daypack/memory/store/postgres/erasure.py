"""Erasure in a PostgreSQL store: rows are deleted or rewritten in one transaction, with their index and their jobs.

PostgreSQL keeps deleted rows in its files until they are vacuumed, and their bytes in free space until it is used
again. So the tables concerned are written anew (VACUUM FULL), which locks each of them meanwhile; those over
`MAX_REWRITTEN_BYTES`, or in use, are only vacuumed: their bytes are overwritten later.

What no statement removes: the write-ahead log until it is recycled, archived log, backups, and replicas that have not
replayed the erasure. Row versions that an open transaction still sees stay until the vacuum after it.
"""

# ruff: noqa: S608 — the parts of statements are constants

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from daypack.errors import DaypackError
from daypack.memory.store.checksums import UNVERIFIABLE, MemoryRecord, checksum, is_intact
from daypack.memory.store.erasure import KEY, Rewriter
from daypack.memory.store.port import Rewritten, entry_missing, is_id, memory_missing, split_id
from daypack.memory.store.postgres.index_rows import erase_vectors, erase_words, list_partitions
from daypack.memory.store.postgres.inserts import found_memory, lock_memory
from daypack.memory.store.postgres.jobs import INSERT as INSERT_JOB
from daypack.memory.store.postgres.statements import (
    DOCUMENT,
    ENTRY,
    as_bytes,
    counted_bytes,
    document_row,
    entry_row,
    memory_texts,
)
from daypack.memory.store.rows import Owner, Row, split_tags
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

if TYPE_CHECKING:
    from psycopg import Cursor

MAX_REWRITTEN_BYTES = 256 << 20  # of a table: about a second
_LOCK_SECONDS = 5
_BATCH = 1_000
_KINDS = (0, 1)  # of the indexes of words: of entries, of documents
_RECORDS = ("entries", "documents", "tags", "jobs")
_NUMBER = 15  # the column of a locked row
_TABLES = (
    "SELECT format('%%I.%%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
    " WHERE c.oid IN (SELECT tableoid FROM gone)"
)
_COUNT = (
    "WITH gone AS (DELETE FROM memories WHERE tenant = %s AND number = %s RETURNING entries, bytes)"
    " UPDATE users u SET memories = u.memories - 1, entries = u.entries - gone.entries, bytes = u.bytes - gone.bytes"
    " FROM gone WHERE u.tenant = %s"
)
_RECOUNT = (
    "UPDATE memories SET entries = entries - %s, bytes = bytes - %s WHERE tenant = %s AND number = %s"
    " RETURNING newest, documents"
)
_RECOUNT_USER = "UPDATE users SET entries = entries - %s, bytes = bytes - %s WHERE tenant = %s"
_MEMORIES = (
    "SELECT tenant, number, id, title, description FROM memories"
    ' WHERE %s::text[] IS NULL OR id = ANY(%s::text[]) ORDER BY tenant COLLATE "C", number'
)
_RENAME = "UPDATE memories SET title = %s, description = %s, crc = %s WHERE tenant = %s AND number = %s"
_CHANGE_ENTRY = (
    "UPDATE entries SET session = %s, role = %s, author = %s, at = %s, source = %s, tags = %s, client_key = %s,"
    " raw = %s, summary = %s, crc = %s WHERE tenant = %s AND memory = %s AND seq = %s"
)
_CHANGE_DOCUMENT = "UPDATE documents SET content = %s, crc = %s WHERE tenant = %s AND memory = %s AND version = %s"
_KEYS = "SELECT client_key FROM entries WHERE tenant = %s AND memory = %s AND client_key = ANY(%s::bytea[])"
_TAGS = "INSERT INTO tags(tenant, memory, tag, seq) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"


class Erasure:
    """One erasure and its attempts; `tables` are those that have bytes of what was erased."""

    def __init__(self) -> None:
        self.tables: set[str] = set()

    def erase_memory(self, transaction: Transaction, memory_id: str) -> None:
        """Delete all rows of a memory, deleted or not."""
        row = lock_memory(transaction, memory_id, erasing=True).fetchone()
        if row is None:
            if transaction.attempt:
                return  # the former attempt was committed
            raise memory_missing(memory_id, "erase memory")
        number = row[_NUMBER]
        self._delete(transaction, number, _RECORDS)
        self._delete_index(transaction, number)
        transaction.execute("DELETE FROM indexes WHERE tenant = %s AND memory = %s", (transaction.tenant, number))
        transaction.execute(_COUNT, (transaction.tenant, number, transaction.tenant))
        self.tables |= {"daypack.memories"}

    def erase_entry(self, transaction: Transaction, memory_id: str, entry_id: str) -> None:
        """Delete the rows of an entry, and the index of its memory; its seq is not reused."""
        owner = Owner(transaction.tenant, memory_id)
        memory = found_memory(lock_memory(transaction, memory_id, erasing=True).fetchone(), owner, "erase entry")
        stem, seq = split_id(entry_id) if is_id(entry_id) else (b"", 0)
        place = (transaction.tenant, memory.number)
        row = transaction.execute(f"{ENTRY} AND seq = %s AND stem = %s", (*place, seq, stem)).fetchone()
        if row is None:
            if transaction.attempt:
                return
            raise entry_missing(entry_id)
        self._delete(transaction, memory.number, ("entries", "tags"), seq)
        self._delete_index(transaction, memory.number)
        _recount(transaction, memory.number, 1, counted_bytes(row))

    def _delete(self, transaction: Transaction, number: int, tables: tuple[str, ...], seq: int | None = None) -> None:
        """Delete the rows of a memory, or of one entry of it, and note which tables had some."""
        condition, values = ("", ()) if seq is None else (" AND seq = %s", (seq,))
        cursors: list[Cursor[Any]] = []
        for table in tables:
            rows = f"DELETE FROM {table} WHERE tenant = %s AND memory = %s{condition} RETURNING tableoid"
            query = f"WITH gone AS ({rows}) {_TABLES}"
            cursors.append(transaction.execute(query.encode(), (transaction.tenant, number, *values)))
        self.tables |= {name for cursor in cursors for (name,) in cursor.fetchall()}

    def _delete_index(self, transaction: Transaction, number: int) -> None:
        """Delete the index of a memory; note all tables that may have bytes of it, as it may be deleted already."""
        erase_words(transaction, number, _KINDS)
        self.tables |= {*erase_vectors(transaction, number), *list_partitions(transaction)}

    def rewrite(
        self, transaction: Transaction, change: Callable[[str], str], memory_ids: Collection[str] | None
    ) -> list[Rewritten]:
        """Replace the texts of entries, documents and memories by what `change` makes of them; ids and numbers stay.

        The transaction begins as the operator, and becomes the eraser of each user whose memories change.
        """
        done: list[Rewritten] = []
        for row in _list_memories(transaction, memory_ids):
            found = _Rewriting(transaction, change, row)
            found.read()
            if not found.changes:
                continue
            transaction.become(row[0], "daypack_eraser")
            done.append(self._rewrite(transaction, change, row))
            transaction.become("", "daypack_operator")
        return done

    def _rewrite(self, transaction: Transaction, change: Callable[[str], str], row: Row) -> Rewritten:
        locked = lock_memory(transaction, row[2], erasing=True)
        rewriting = _Rewriting(transaction, change, row)
        rewriting.read(writing=True)
        rewriting.rename(locked.fetchone())
        self._delete_index(transaction, row[1])
        _recount(transaction, row[1], 0, rewriting.freed)
        for table in ("entries", "documents", "tags"):
            some = f"SELECT tableoid FROM {table} WHERE tenant = %s AND memory = %s LIMIT 1"
            names = transaction.rows(f"WITH gone AS ({some}) {_TABLES}", row[:2])
            self.tables |= {name for (name,) in names}
        self.tables |= {"daypack.memories"}
        return rewriting.counts


def find_rewritten(
    transaction: Transaction, change: Callable[[str], str], memory_ids: Collection[str] | None
) -> list[Rewritten]:
    """Return the memories whose texts `change` changes, of all users; None: among all memories."""
    found = [_Rewriting(transaction, change, row) for row in _list_memories(transaction, memory_ids)]
    for memory in found:
        memory.read()
    return [memory.counts for memory in found if memory.changes]


def _list_memories(transaction: Transaction, memory_ids: Collection[str] | None) -> list[Row]:
    chosen = None if memory_ids is None else [memory_id for memory_id in memory_ids if is_id(memory_id)]
    return transaction.rows(_MEMORIES, (chosen, chosen))


class _Rewriting:
    """The rows of one memory that change; they are read in batches, and changed as they are read."""

    def __init__(self, transaction: Transaction, change: Callable[[str], str], row: Row) -> None:
        self._transaction = transaction
        tenant, self._number, memory_id, title, description = row
        self._place = (tenant, self._number)
        self._rewriter = Rewriter(change, Owner(tenant, memory_id))
        self._names = self._rewriter.value(title), self._rewriter.value(description)
        self._renamed = self._names != (title, description)
        self._memory_id = memory_id
        self._entries = self._documents = self._keys = 0
        self.freed = 0  # bytes that the memory counts less

    @property
    def changes(self) -> bool:
        """True if anything of the memory changes."""
        return self.counts[2:] != (0, 0, 0)

    @property
    def counts(self) -> Rewritten:
        """How much changes."""
        title = self._names[0].decode("utf-8", "replace")
        return Rewritten(self._memory_id, title, self._entries, self._documents, self._keys + self._renamed)

    def read(self, *, writing: bool = False) -> None:
        """Read all entries and documents; `writing`: change them."""
        for batch in self._batches(ENTRY, "seq"):
            rows = [(entry_row(row), self._rewriter.entry(entry_row(row))) for row in batch]
            changed = [(row, new) for row, new in rows if new is not None]
            self._entries += len(changed)
            self._keys += sum(self._rewriter.value(row[KEY]) != row[KEY] for row, _ in changed)
            if writing and changed:
                self._change_entries(changed)
        for batch in self._batches(DOCUMENT, "version"):
            for row in map(document_row, batch):
                if new := self._rewriter.document(row):
                    self._documents += 1
                    if writing:
                        content = as_bytes(new[3])
                        self.freed += len(as_bytes(row[3])) - len(content)
                        self._transaction.execute(_CHANGE_DOCUMENT, (content, new[4], *self._place, row[0]))

    def _batches(self, query: str, column: str) -> Iterator[list[Row]]:
        text, last = f"{query} AND {column} > %s ORDER BY {column} LIMIT {_BATCH}", -1
        while rows := self._transaction.execute(text.encode(), (*self._place, last), binary=True).fetchall():
            yield rows
            last = rows[-1][0]

    def _change_entries(self, changed: list[tuple[Row, Row]]) -> None:
        execute, place = self._transaction.execute, self._place
        taken = self._taken_keys(changed)
        for row, new in changed:
            if new[KEY] != row[KEY] and new[KEY] is not None:
                if new[KEY] in taken:  # two keys differed only in what is erased: the first entry keeps its key
                    new = self._rewriter.sealed_entry(row, (*new[:KEY], None, *new[KEY + 1 : -1]))  # noqa: PLW2901
                else:
                    taken.add(new[KEY])
            stored = [value if isinstance(value, bytes | int) or value is None else as_bytes(value) for value in new]
            self.freed += counted_bytes(row) - counted_bytes(new)
            execute(_CHANGE_ENTRY, (*stored[4:], *place, row[0]))
            if new[9] != row[9]:
                execute("DELETE FROM tags WHERE tenant = %s AND memory = %s AND seq = %s", (*place, row[0]))
                for tag in split_tags(new[9]):
                    execute(_TAGS, (*place, as_bytes(tag), row[0]))

    def _taken_keys(self, changed: list[tuple[Row, Row]]) -> set[str]:
        wanted = [as_bytes(new[KEY]) for row, new in changed if new[KEY] != row[KEY] and new[KEY] is not None]
        if not wanted:
            return set()
        rows = self._transaction.rows(_KEYS, (*self._place, wanted))
        return {key.decode("utf-8", "surrogateescape") for (key,) in rows}

    def rename(self, locked: Row | None) -> None:
        """Change title and description; `locked` is the row of the memory."""
        if self._renamed and locked is not None:
            *fields, crc = memory_texts(locked[:8])
            record = MemoryRecord(*fields)
            title, description = (name.decode("utf-8", "surrogateescape") for name in self._names)
            new = record._replace(title=title, description=description)
            sealed = checksum(new) if is_intact(record, crc) else UNVERIFIABLE
            self._transaction.execute(_RENAME, (*self._names, sealed, *self._place))


def _recount(transaction: Transaction, number: int, entries: int, size: int) -> None:
    """Take entries and bytes off the counts of a memory and its user, and have the memory indexed again."""
    row = transaction.row(_RECOUNT, (entries, size, transaction.tenant, number))
    transaction.execute(_RECOUNT_USER, (entries, size, transaction.tenant))
    if row:
        transaction.execute(INSERT_JOB, (transaction.tenant, number, *row))


def clean(database: Database, tables: Collection[str]) -> None:
    """Remove the bytes of deleted rows from the files of tables, as far as that is possible now."""
    if not tables:
        return
    query = "SELECT name, pg_total_relation_size(to_regclass(name)) FROM unnest(%s::text[]) name ORDER BY name"
    found: list[Row] = []
    with suppress(DaypackError):  # what is erased is erased; the server vacuums the tables later
        found = database.run("erase", lambda at: at.rows(query, (list(tables),)), Scope(reading=True))
    for table, size in found:
        if size is None:
            continue  # dropped meanwhile
        with suppress(DaypackError):
            try:
                database.run_as_owner(
                    "erase",
                    f"SET lock_timeout = '{_LOCK_SECONDS}s'",
                    f"VACUUM {'(FULL) ' if size <= MAX_REWRITTEN_BYTES else ''}{table}",
                )
            except DaypackError:
                database.run_as_owner("erase", f"VACUUM {table}")
