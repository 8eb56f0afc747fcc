"""A memory store in one SQLite file, shared by threads and processes. When a write returns it is on disk.

The file uses WAL with synchronous=FULL. Reads have their own connection: they wait neither for a sync nor for an
import.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from daypack.errors import StorageFailed
from daypack.files.database import Database, is_damage
from daypack.files.group_writer import GroupWriter
from daypack.memory.store.erasure import (
    clean,
    erase_entry,
    erase_memory,
    find_rewritten,
    find_seq,
    rewrite_texts,
)
from daypack.memory.store.inserts import MemoryRow
from daypack.memory.store.port import (
    EntryRange,
    NewDocument,
    NewEntry,
    Newest,
    NewMemory,
    Rewritten,
    StoredEntry,
    is_id,
    is_store_id,
    memory_missing,
)
from daypack.memory.store.reading import find_seqs, pick_entries, read_document, read_documents, read_entries
from daypack.memory.store.rows import intact, memory_of, missing_document, newest_intact, seal_memory, where_conditions
from daypack.memory.store.sqlite_accounts import SqliteAccounts
from daypack.memory.store.sqlite_inserts import add_documents, add_entries, find_keyed, find_memory_row, make_memory
from daypack.memory.store.store_format import FORMAT
from daypack.memory.store.tables import MEMORY
from daypack.memory.times import now_ms
from daypack.types.memory import ContextDocument, DamagedRecord, Entry, Memory, Where

if TYPE_CHECKING:
    from sqlite3 import Connection

_NO_STORE_ID = "0" * 16
_VERSIONS_TRIED = 10_000  # of a document, newest first, until one is intact
_Answer = TypeVar("_Answer")
_Work = Callable[["Connection"], _Answer]
_RowWork = Callable[["Connection", MemoryRow], _Answer]


class SqliteStore:
    """The store in the file at `path`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._writer = Database(path, FORMAT)
        self._reader = Database(path, FORMAT)
        self._group = GroupWriter(self._writer)
        self.accounts = SqliteAccounts(self._read, self._write)
        self._id = ""

    @property
    def store_id(self) -> str:
        """The store's own random id."""
        self._prepare()
        return self._id

    # Memories

    def load(self, user: str, new: NewMemory, documents: Sequence[NewDocument], entries: Sequence[NewEntry]) -> Memory:
        """Create a memory with documents and entries, or add what is missing to the user's memory of this id."""

        def work(connection: "Connection") -> Memory:
            memory = find_memory_row(connection, user, new.memory_id) if new.memory_id else None
            if memory is None:
                memory = _memory_row(connection, user, make_memory(connection, user, new), "create_memory")
            add_documents(connection, memory, documents)
            memory = find_memory_row(connection, user, memory.memory_id) or memory
            add_entries(connection, memory, entries)
            row = connection.execute(f"{MEMORY} WHERE m.number = ?", (memory.number,)).fetchone()
            return intact(memory_of(row), "create_memory")

        return self._write("create_memory", work)

    def memory(self, user: str, memory_id: str) -> Memory:
        """Return a memory's title, type and size."""
        query = f"{MEMORY} WHERE m.id = ? AND u.user = ? AND m.deleted IS NULL"

        def work(connection: "Connection") -> Memory:
            row = connection.execute(query, (memory_id, user)).fetchone() if is_id(memory_id) else None
            if not row:
                raise memory_missing(memory_id, "get_memory")
            return intact(memory_of(row), "get_memory")

        return self._read("get_memory", work)

    def memories(self, user: str, *, deleted: bool | None = False) -> tuple[Memory, ...]:
        """Return the user's intact memories, oldest first; or the deleted ones; None: both."""
        found = [memory for memory in self._list(user) if isinstance(memory, Memory)]
        return tuple(memory for memory in found if deleted in (None, memory.deleted_at is not None))

    def damaged(self, user: str) -> tuple[DamagedRecord, ...]:
        """Return the user's memories that are damaged themselves."""
        return tuple(memory for memory in self._list(user) if isinstance(memory, DamagedRecord))

    def _list(self, user: str) -> list[Memory | DamagedRecord]:
        query = f"{MEMORY} WHERE u.user = ? ORDER BY m.number"
        return [
            memory_of(row) for row in self._read("list memories", lambda file: file.execute(query, (user,)).fetchall())
        ]

    def delete(self, user: str, memory_id: str) -> None:
        """Hide a memory until it is restored."""
        self._mark("delete memory", "deleted IS NULL", (now_ms(), memory_id, user))

    def restore(self, user: str, memory_id: str) -> None:
        """Restore a deleted memory."""
        self._mark("restore memory", "deleted IS NOT NULL", (None, memory_id, user))

    def _mark(self, operation: str, condition: str, values: tuple[int | None, str, str]) -> None:
        when, memory_id, user = values
        query = f"{MEMORY} WHERE m.id = ? AND u.user = ? AND m.{condition}"

        def work(connection: "Connection") -> None:
            row = connection.execute(query, (memory_id, user)).fetchone() if is_id(memory_id) else None
            if not row:
                raise memory_missing(memory_id, operation)
            intact(memory_of(row), operation)  # else what is damaged would get a right checksum
            update = "UPDATE memories SET deleted = ? WHERE id = ? RETURNING number"
            seal_memory(connection, connection.execute(update, (when, memory_id)).fetchone()[0])

        self._write(operation, work)

    def erase(self, user: str, memory_id: str) -> None:
        """Remove a memory, deleted or not, and all its bytes from the store's files."""
        self._write("erase memory", lambda connection: erase_memory(connection, user, memory_id))
        self._clean()

    def rewrite(
        self, change: Callable[[str], str], memory_ids: Collection[str] | None, *, dry_run: bool = False
    ) -> list[Rewritten]:
        """Erase from the texts of memories, of all users: `change` returns a text without what is erased."""
        if dry_run:
            return self._read("erase", lambda connection: find_rewritten(connection, change, memory_ids))
        done = self._write("erase", lambda connection: rewrite_texts(connection, change, memory_ids))
        self._clean()
        return done

    # Entries

    def add(self, user: str, memory_id: str, entries: Sequence[NewEntry]) -> list[StoredEntry]:
        """Store entries in one transaction."""
        return self._write_memory("add_entry", user, memory_id, lambda file, memory: add_entries(file, memory, entries))

    def find_key(self, user: str, memory_id: str, client_key: str) -> Entry | None:
        """Return the entry stored with a client key."""
        return self._read_memory(
            "add_entry", user, memory_id, lambda file, memory: find_keyed(file, memory, client_key)
        )

    def seq_of(self, user: str, memory_id: str, entry_id: str) -> int:
        """Return the seq of an entry, or raise EntryMissing."""
        return self._read_memory("find entry", user, memory_id, lambda file, memory: find_seq(file, memory, entry_id))

    def page(self, user: str, memory_id: str, entry_range: EntryRange) -> list[Entry | DamagedRecord]:
        """Return the entries of a range, newest first."""
        entries = self._read_memory(
            "list_entries", user, memory_id, lambda file, memory: read_entries(file, memory, entry_range)
        )
        return entries[::-1] if entry_range.forward else entries

    def after(self, user: str, memory_id: str, seq: int, limit: int) -> list[Entry | DamagedRecord]:
        """Return the entries after a seq, oldest first."""
        wanted = EntryRange(limit=limit, after_seq=seq)
        return self._read_memory(
            "read entries", user, memory_id, lambda file, memory: read_entries(file, memory, wanted)
        )

    def pick(self, user: str, memory_id: str, seqs: Collection[int]) -> dict[int, Entry | DamagedRecord]:
        """Return the existing entries among these seqs."""
        found = self._read_memory(
            "read entries", user, memory_id, lambda file, memory: pick_entries(file, memory, seqs)
        )
        return {entry.seq: entry for entry in found}

    def find(self, user: str, memory_id: str, where: Where) -> frozenset[int]:
        """Return the seqs of the entries that match all filters."""
        applied = where_conditions(where)
        return self._read_memory(
            "search_memories", user, memory_id, lambda file, memory: find_seqs(file, memory, applied, where.tags)
        )

    def erase_entry(self, user: str, memory_id: str, entry_id: str) -> None:
        """Remove an entry and all its bytes from the store's files; its seq is not reused."""
        self._write_memory("erase entry", user, memory_id, lambda file, memory: erase_entry(file, memory, entry_id))
        self._clean()

    # Documents

    def put_document(self, user: str, memory_id: str, content: str) -> ContextDocument:
        """Store a new version of the document."""

        def work(connection: "Connection", memory: MemoryRow) -> ContextDocument:
            (row,) = add_documents(connection, memory, (NewDocument(content),))
            return _document(connection, memory, row.version, "put_context")

        return self._write_memory("put_context", user, memory_id, work)

    def document(self, user: str, memory_id: str, version: int | None = None) -> ContextDocument:
        """Return a version of the document, by default the newest that is intact."""

        def work(connection: "Connection", memory: MemoryRow) -> ContextDocument:
            if version is not None:
                return _document(connection, memory, version, "get_context")
            return _newest_document(connection, memory)

        return self._read_memory("get_context", user, memory_id, work)

    def documents(self, user: str, memory_id: str, after: int, limit: int) -> list[ContextDocument | DamagedRecord]:
        """Return the versions after one, oldest first."""
        return self._read_memory(
            "read documents", user, memory_id, lambda file, memory: read_documents(file, memory, after, limit)
        )

    def newest(self, user: str, memory_id: str) -> Newest:
        """Return the newest numbers of a memory, read from the file."""
        # A damaged entry may have any seq; none was assigned beyond the memory's newest.
        query = "SELECT coalesce(max(seq), 0) FROM entries WHERE memory = ? AND seq <= ?"

        def work(connection: "Connection", memory: MemoryRow) -> Newest:
            newest = memory.newest
            try:
                newest = connection.execute(query, (memory.number, newest)).fetchone()[0]
            except Exception as error:
                if not is_damage(error):
                    raise
            return Newest(newest, memory.documents, memory.newest)

        return self._read_memory("await_consistency", user, memory_id, work)

    def check(self) -> None:
        """Raise if the file cannot be read, or no write could begin now; nothing is written."""
        self._read("check store", lambda connection: connection.execute("SELECT id FROM store").fetchone())
        self._writer.check_writable("check store")
        self._write("check store", lambda _: None)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._reader.close()
        self._writer.close()

    # Connections

    def _prepare(self) -> None:
        if self._id:
            return
        query = "SELECT id, unclean FROM store"
        row = self._reader.run("open memory", lambda connection: connection.execute(query).fetchone())
        stored, unclean = row or (None, 0)
        # Only tokens of earlier writes need a damaged id; `doctor` reports it.
        store_id = stored if is_store_id(stored) else _NO_STORE_ID
        if unclean:
            # An erasure was interrupted before the bytes were gone. If there is no space now, the next open retries.
            with suppress(StorageFailed):
                self._clean()
        self._id = store_id

    def _read(self, operation: str, work: _Work[_Answer]) -> _Answer:
        self._prepare()
        return self._reader.run(operation, work)

    def _write(self, operation: str, work: _Work[_Answer]) -> _Answer:
        self._prepare()
        return self._group.write(operation, work)

    def _read_memory(self, operation: str, user: str, memory_id: str, work: _RowWork[_Answer]) -> _Answer:
        return self._read(
            operation, lambda connection: work(connection, _memory_row(connection, user, memory_id, operation))
        )

    def _write_memory(self, operation: str, user: str, memory_id: str, work: _RowWork[_Answer]) -> _Answer:
        return self._write(
            operation, lambda connection: work(connection, _memory_row(connection, user, memory_id, operation))
        )

    def _clean(self) -> None:
        self._reader.close()  # its snapshot would keep the journal
        self._writer.alone("erase", clean)


def _memory_row(connection: "Connection", user: str, memory_id: str, operation: str) -> MemoryRow:
    memory = find_memory_row(connection, user, memory_id) if is_id(memory_id) else None
    if memory is None:
        raise memory_missing(memory_id, operation)
    return memory


def _document(connection: "Connection", memory: MemoryRow, version: int, operation: str) -> ContextDocument:
    document = read_document(connection, memory, version)
    if document is None:
        document = missing_document(memory.owner_id, version)
    return intact(document, operation)


def _newest_document(connection: "Connection", memory: MemoryRow) -> ContextDocument:
    versions = range(memory.documents, max(0, memory.documents - _VERSIONS_TRIED), -1)
    return newest_intact((read_document(connection, memory, version) for version in versions), memory.owner_id)
