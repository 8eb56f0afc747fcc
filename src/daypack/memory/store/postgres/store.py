"""A memory store in a PostgreSQL database, shared by threads, processes and machines.

When a write returns it is committed: on the disk of the server, and of its synchronous replicas if it has any. Users
are tenants: row-level security shows a transaction the rows of one user. A write is sent again if the connection is
lost, also during the commit: it then finds out whether it was stored (see `inserts`).
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from daypack.errors import StorageFailed, WriteFailed
from daypack.memory.store.checksums import MemoryRecord, checksum
from daypack.memory.store.inserts import MemoryRow
from daypack.memory.store.port import (
    EntryRange,
    NewDocument,
    NewEntry,
    Newest,
    NewMemory,
    Rewritten,
    StoredEntry,
    entry_missing,
    is_id,
    memory_missing,
    split_id,
)
from daypack.memory.store.postgres import reading
from daypack.memory.store.postgres.accounts import PostgresAccounts, check_user, is_user
from daypack.memory.store.postgres.erasure import Erasure, clean, find_rewritten
from daypack.memory.store.postgres.inserts import (
    Attempts,
    Existing,
    Write,
    found_memory,
    lock_memory,
    lock_user,
    open_memory,
)
from daypack.memory.store.postgres.statements import DELETED, MEMORY, MEMORY_ROW, memory_texts
from daypack.memory.store.rows import Owner, Row, document_of, intact, memory_of, missing_document, newest_intact
from daypack.memory.times import now_ms
from daypack.postgres.database import Database
from daypack.postgres.migrations import INCARNATION
from daypack.postgres.refusals import ON_REPLICA, USE_PRIMARY
from daypack.postgres.transaction import Role, Scope, Transaction
from daypack.types.memory import ContextDocument, DamagedRecord, Entry, Memory, Where

if TYPE_CHECKING:
    from psycopg import Cursor

_Answer = TypeVar("_Answer")
_VERSIONS_TRIED = 10_000  # of a document, newest first, until one is intact
_MARK = "UPDATE memories SET deleted = %s, crc = %s WHERE tenant = %s AND id = %s"
_STATE = "SELECT pg_is_in_recovery(), count(*) FROM store"
_IDENTITY = f"SELECT id, signing_key, {INCARNATION} FROM store"  # noqa: S608


class _Identity(NamedTuple):
    """What the tokens of a store have in common, as it was read in an incarnation of the database."""

    store_id: str
    signing_key: bytes
    incarnation: str


class PostgresStore:
    """The store in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.accounts = PostgresAccounts(database)
        self._identity = _Identity("", b"", "")

    @property
    def store_id(self) -> str:
        """The store's own random id."""
        return self._identify().store_id

    @property
    def signing_key(self) -> bytes:
        """The secret that signs consistency tokens, the same for all processes."""
        return self._identify().signing_key

    @property
    def last_position(self) -> int:
        """The position of the log after the last add, put_document or load of this thread; 0 before one."""
        return self.database.last_position

    # Memories

    def load(self, user: str, new: NewMemory, documents: Sequence[NewDocument], entries: Sequence[NewEntry]) -> Memory:
        """Create a memory with documents and entries, or add what is missing to the user's memory of this id."""
        check_user(user, "create_memory")
        attempts: Attempts[str] = Attempts()

        def work(transaction: Transaction) -> "Cursor[Row]":
            transaction.positioned = True
            owner = lock_user(transaction)
            if done := transaction.attempt and attempts.find(transaction):
                return transaction.execute(f"{MEMORY} AND id = %s", (user, done))
            memory, created = open_memory(transaction, new, owner)
            existing = Existing(transaction, None if created else memory.memory_id, entries, documents)
            write = Write(transaction, memory, existing)
            write.add_documents(documents)
            write.add_entries(entries)
            changed = write.finish(created=created)
            attempts.remember(write.mark, memory.memory_id)
            return changed or transaction.execute(f"{MEMORY} AND id = %s", (user, memory.memory_id))

        row = self.database.resolve("create_memory", work, Scope(user)).fetchone()
        return intact(memory_of(memory_texts(row or ())), "create_memory")

    def memory(self, user: str, memory_id: str) -> Memory:
        """Return a memory's title, type and size."""
        rows: list[Row] = []
        if is_id(memory_id) and is_user(user):
            query = f"{MEMORY} AND id = %s AND deleted IS NULL"
            rows = self._rows("get_memory", user, query, (user, memory_id))
        if not rows:
            raise memory_missing(memory_id, "get_memory")
        return intact(memory_of(memory_texts(rows[0])), "get_memory")

    def memories(self, user: str, *, deleted: bool | None = False) -> tuple[Memory, ...]:
        """Return the user's intact memories, oldest first; or the deleted ones; None: both."""
        found = [memory for memory in self._list(user) if isinstance(memory, Memory)]
        return tuple(memory for memory in found if deleted in (None, memory.deleted_at is not None))

    def damaged(self, user: str) -> tuple[DamagedRecord, ...]:
        """Return the user's memories that are damaged themselves."""
        return tuple(memory for memory in self._list(user) if isinstance(memory, DamagedRecord))

    def _list(self, user: str) -> list[Memory | DamagedRecord]:
        rows = self._rows("list memories", user, f"{MEMORY} ORDER BY number", (user,)) if is_user(user) else []
        return [memory_of(memory_texts(row)) for row in rows]

    def delete(self, user: str, memory_id: str) -> None:
        """Hide a memory until it is restored."""
        self._mark("delete memory", user, memory_id, now_ms())

    def restore(self, user: str, memory_id: str) -> None:
        """Restore a deleted memory."""
        self._mark("restore memory", user, memory_id, None)

    def _mark(self, operation: str, user: str, memory_id: str, when: int | None) -> None:
        def work(transaction: Transaction) -> None:
            row = lock_memory(transaction, memory_id).fetchone()
            if row is None or (row[DELETED] is None) is (when is None):
                if row is not None and transaction.attempt:
                    return  # the former attempt was committed
                raise memory_missing(memory_id, operation)
            *fields, crc = memory_texts(row[:8])
            record = MemoryRecord(*fields)
            intact(memory_of((*record, crc, 0, 0, 0)), operation)  # else what is damaged would get a right checksum
            transaction.execute(_MARK, (when, checksum(record._replace(deleted=when)), user, memory_id))

        self._write(operation, user, memory_id, work)

    def erase(self, user: str, memory_id: str) -> None:
        """Remove a memory, deleted or not, with its index and its jobs; see `erasure` for what the server keeps."""
        erasure = Erasure()
        self._write(
            "erase memory", user, memory_id, lambda transaction: erasure.erase_memory(transaction, memory_id),
            "daypack_eraser",
        )  # fmt: skip
        clean(self.database, erasure.tables)

    def rewrite(
        self, change: Callable[[str], str], memory_ids: Collection[str] | None, *, dry_run: bool = False
    ) -> list[Rewritten]:
        """Erase from the texts of memories, of all users: `change` returns a text without what is erased."""
        operator = Scope(role="daypack_operator")
        if dry_run:
            reading_all = operator._replace(reading=True, snapshot=True)
            return self.database.run(
                "erase", lambda transaction: find_rewritten(transaction, change, memory_ids), reading_all
            )
        erasure, done = Erasure(), list[Rewritten]()

        def work(transaction: Transaction) -> None:
            found = erasure.rewrite(transaction, change, memory_ids)
            if found or not transaction.attempt:  # else the former attempt was committed
                done[:] = found

        self.database.resolve("erase", work, operator)
        clean(self.database, erasure.tables)
        return done

    # Entries

    def add(self, user: str, memory_id: str, entries: Sequence[NewEntry]) -> list[StoredEntry]:
        """Store entries in one transaction."""
        attempts: Attempts[list[StoredEntry]] = Attempts()

        def work(transaction: Transaction) -> list[StoredEntry]:
            write, done = self._begin(transaction, memory_id, "add_entry", attempts, entries)
            if done is not None:
                return done
            stored = write.add_entries(entries)
            write.finish()
            return attempts.remember(write.mark, stored)

        return self._write("add_entry", user, memory_id, work)

    def find_key(self, user: str, memory_id: str, client_key: str) -> Entry | None:
        """Return the entry stored with a client key."""
        memory, rows = self._read_memory("add_entry", user, memory_id, reading.entry_keyed(client_key))
        found = reading.entries_of(rows, memory.owner_id)
        return intact(found[0], "find entry") if found else None

    def seq_of(self, user: str, memory_id: str, entry_id: str) -> int:
        """Return the seq of an entry, or raise EntryMissing."""
        stem, seq = split_id(entry_id) if is_id(entry_id) else (b"", 0)
        _, rows = self._read_memory("find entry", user, memory_id, reading.seq_of(seq, stem))
        if not rows:
            raise entry_missing(entry_id)
        return seq

    def page(self, user: str, memory_id: str, entry_range: EntryRange) -> list[Entry | DamagedRecord]:
        """Return the entries of a range, newest first."""
        memory, rows = self._read_memory("list_entries", user, memory_id, reading.entries_in(entry_range))
        entries = reading.entries_of(rows, memory.owner_id)
        return entries[::-1] if entry_range.forward else entries

    def after(self, user: str, memory_id: str, seq: int, limit: int) -> list[Entry | DamagedRecord]:
        """Return the entries after a seq, oldest first."""
        query = reading.entries_in(EntryRange(limit=limit, after_seq=seq))
        memory, rows = self._read_memory("read entries", user, memory_id, query)
        return reading.entries_of(rows, memory.owner_id)

    def pick(self, user: str, memory_id: str, seqs: Collection[int]) -> dict[int, Entry | DamagedRecord]:
        """Return the existing entries among these seqs."""
        memory, rows = self._read_memory("read entries", user, memory_id, reading.entries_at(list(seqs)))
        return {entry.seq: entry for entry in reading.entries_of(rows, memory.owner_id)}

    def find(self, user: str, memory_id: str, where: Where) -> frozenset[int]:
        """Return the seqs of the entries that match all filters."""
        query = reading.seqs_where(user, memory_id, where)
        _, rows = self._read_memory("search_memories", user, memory_id, query)
        return frozenset(seq for (seq,) in rows)

    def erase_entry(self, user: str, memory_id: str, entry_id: str) -> None:
        """Remove an entry and the index of its memory, which is made again; its seq is not reused."""
        erasure = Erasure()
        self._write(
            "erase entry", user, memory_id,
            lambda transaction: erasure.erase_entry(transaction, memory_id, entry_id), "daypack_eraser",
        )  # fmt: skip
        clean(self.database, erasure.tables)

    # Documents

    def put_document(self, user: str, memory_id: str, content: str) -> ContextDocument:
        """Store a new version of the document."""
        attempts: Attempts[ContextDocument] = Attempts()

        def work(transaction: Transaction) -> ContextDocument:
            write, done = self._begin(transaction, memory_id, "put_context", attempts)
            if done is not None:
                return done
            (row,) = write.add_documents((NewDocument(content),)).rows
            write.finish()
            stored = document_of((row.version, row.stem, row.record.created, content, row.crc), write.memory.owner_id)
            return attempts.remember(write.mark, intact(stored, "put_context"))

        return self._write("put_context", user, memory_id, work)

    def document(self, user: str, memory_id: str, version: int | None = None) -> ContextDocument:
        """Return a version of the document, by default the newest that is intact."""
        memory, found = self._documents("get_context", user, memory_id, reading.documents_until(version, 1))
        if version is not None:
            exact = [document for document in found if document.version == version]
            return intact(exact[0] if exact else missing_document(memory.owner_id, version), "get_context")
        if found and isinstance(found[0], DamagedRecord):
            _, found = self._documents("get_context", user, memory_id, reading.documents_until(None, _VERSIONS_TRIED))
        return newest_intact(found, memory.owner_id)

    def documents(self, user: str, memory_id: str, after: int, limit: int) -> list[ContextDocument | DamagedRecord]:
        """Return the versions after one, oldest first."""
        return self._documents("read documents", user, memory_id, reading.documents_after(after, limit))[1]

    def newest(self, user: str, memory_id: str) -> Newest:
        """Return the newest numbers of a memory."""
        memory, rows = self._read_memory("await_consistency", user, memory_id, reading.newest_seq(user, memory_id))
        return Newest(rows[0][0] if rows else 0, memory.documents, memory.newest)

    def check(self) -> None:
        """Raise if the database cannot be read, or takes no writes now."""
        row = self.database.check("check store", _STATE)
        standby, stores = row or (False, 0)
        if standby or stores != 1:
            problem, hint = ON_REPLICA, USE_PRIMARY
            if not standby:
                problem, hint = f"the database has {stores} ids of a store", "restore a backup"
            raise WriteFailed(problem, operation="check store", place=self.database.place, hint=hint)

    def close(self) -> None:
        """Close all connections; the next call opens them again."""
        self.database.close()

    # Transactions

    def _read(self, operation: str, user: str, work: Callable[[Transaction], _Answer]) -> _Answer:
        """Run `work` in a transaction that reads the rows of one user, all as of one moment."""
        return self.database.run(operation, work, Scope(user, reading=True, snapshot=True))

    def _rows(self, operation: str, user: str, query: str, values: tuple[Any, ...]) -> list[Row]:
        # Results are fetched after the commit: a read waits for the server once.
        return self._read(operation, user, lambda transaction: transaction.execute(query.encode(), values)).fetchall()

    def _read_memory(
        self, operation: str, user: str, memory_id: str, query: reading.Query
    ) -> tuple[MemoryRow, list[Row]]:
        """Return a memory and the rows of a query about it."""
        if not is_id(memory_id) or not is_user(user):
            raise memory_missing(memory_id, operation)

        def work(transaction: Transaction) -> "tuple[Cursor[Row], Cursor[Row]]":
            values = (user, user, memory_id, *query.values)
            return (
                transaction.execute(MEMORY_ROW, (user, memory_id)),
                transaction.execute(query.text.encode(), values, binary=True),
            )

        found, rows = self._read(operation, user, work)
        return found_memory(found.fetchone(), Owner(user, memory_id), operation), rows.fetchall()

    def _documents(
        self, operation: str, user: str, memory_id: str, query: reading.Query
    ) -> tuple[MemoryRow, list[ContextDocument | DamagedRecord]]:
        memory, rows = self._read_memory(operation, user, memory_id, query)
        return memory, reading.documents_of(rows, memory.owner_id)

    def _write(
        self, operation: str, user: str, memory_id: str, work: Callable[[Transaction], _Answer],
        role: Role = "daypack_app",
    ) -> _Answer:  # fmt: skip
        """Run `work` in a transaction on a memory of a user; it resolves what became of earlier attempts."""
        if not is_id(memory_id) or not is_user(user):
            raise memory_missing(memory_id, operation)
        return self.database.resolve(operation, work, Scope(user, role))

    def _begin(
        self, transaction: Transaction, memory_id: str, operation: str, attempts: Attempts[_Answer],
        entries: Sequence[NewEntry] = (),
    ) -> "tuple[Write, _Answer | None]":  # fmt: skip
        """Lock a memory and look up what a write compares itself with; also whether an earlier attempt was stored."""
        transaction.positioned = True
        locked = lock_memory(transaction, memory_id)
        existing = Existing(transaction, memory_id, entries)
        memory = found_memory(locked.fetchone(), Owner(transaction.tenant, memory_id), operation)
        done = attempts.find(transaction) if transaction.attempt else None
        return Write(transaction, memory, existing), done

    def _identify(self) -> "_Identity":
        found = self._identity
        if not found.store_id or found.incarnation != self.database.incarnation:
            row = self._read("open memory", "", lambda transaction: transaction.row(_IDENTITY))
            if row is None:
                raise StorageFailed("the database has no id", operation="open memory", place=self.database.place)
            found = self._identity = _Identity(row[0], bytes(row[1]), row[2])
            self.database.incarnation = found.incarnation
        return found
