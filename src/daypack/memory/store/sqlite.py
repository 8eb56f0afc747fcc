"""Memories in one SQLite file, shared by threads and processes. What has returned is on disk (WAL, synchronous FULL).

Reads have a connection of their own, so they wait neither for a sync nor for an import.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from daypack.errors import Damaged, StorageFailed
from daypack.files.database import Database
from daypack.files.sharing import Sharing
from daypack.memory.store.additions import (
    Additions,
    Place,
    add_documents,
    check_quota,
    find_keyed,
    find_place,
)
from daypack.memory.store.erasure import clean, erase_entry, erase_memory, find_seq
from daypack.memory.store.port import (
    Draft,
    Kept,
    NewDocument,
    Newest,
    NewMemory,
    Span,
    is_id,
    memory_missing,
)
from daypack.memory.store.sqlite_accounts import SqliteAccounts, user_number
from daypack.memory.store.tables import (
    DOCUMENT,
    ENTRY,
    FORMAT,
    MEMORY,
    document_of,
    entry_of,
    memory_of,
)
from daypack.memory.times import end_of, moment_of, now_ms
from daypack.types.memory import ContextDocument, Entry, Memory, Where

if TYPE_CHECKING:
    from sqlite3 import Connection

_Answer = TypeVar("_Answer")
_Work = Callable[["Connection"], _Answer]
_PlaceWork = Callable[["Connection", Place], _Answer]


class SqliteStore:
    """The store in the file at `path`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._writer = Database(path, FORMAT)
        self._reader = Database(path, FORMAT)
        self._sharing = Sharing(self._writer)
        self.accounts = SqliteAccounts(self._read, self._write)
        self._id = ""

    @property
    def store_id(self) -> str:
        """The store's own random id."""
        self._prepare()
        return self._id

    # Memories

    def load(self, user: str, new: NewMemory, documents: Sequence[NewDocument], drafts: Sequence[Draft]) -> Memory:
        """Make a memory with documents and entries, all or none; add to one of this id that the user has."""

        def work(connection: "Connection") -> Memory:
            place = find_place(connection, user, new.memory_id) if new.memory_id else None
            if place is None:
                place = _make_memory(connection, user, new)
            add_documents(connection, place, documents)
            place = find_place(connection, user, place.memory_id) or place
            additions = Additions(connection, place)
            for draft in drafts:
                additions.take(draft)
            additions.finish()
            return memory_of(connection.execute(f"{MEMORY} WHERE m.number = ?", (place.number,)).fetchone())

        return self._write("create_memory", work)

    def memory(self, user: str, memory_id: str) -> Memory:
        """Return what is known about a memory."""
        query = f"{MEMORY} WHERE m.id = ? AND u.user = ? AND m.deleted IS NULL"

        def work(connection: "Connection") -> Memory:
            row = connection.execute(query, (memory_id, user)).fetchone() if is_id(memory_id) else None
            if not row:
                raise memory_missing(memory_id, "get_memory")
            return memory_of(row)

        return self._read("get_memory", work)

    def memories(self, user: str, *, deleted: bool = False) -> tuple[Memory, ...]:
        """Return the user's memories, oldest first; or those that were deleted."""
        query = f"{MEMORY} WHERE u.user = ? AND (m.deleted IS NOT NULL) = ? ORDER BY m.number"
        rows = self._read("list memories", lambda connection: connection.execute(query, (user, deleted)).fetchall())
        return tuple(map(memory_of, rows))

    def delete(self, user: str, memory_id: str) -> None:
        """Hide a memory from everybody until it is restored."""
        self._mark("delete memory", "deleted IS NULL", (now_ms(), memory_id, user))

    def restore(self, user: str, memory_id: str) -> None:
        """Bring a deleted memory back."""
        self._mark("restore memory", "deleted IS NOT NULL", (None, memory_id, user))

    def _mark(self, operation: str, condition: str, values: tuple[int | None, str, str]) -> None:
        owner = "(SELECT number FROM users WHERE user = ?)"
        query = f"UPDATE memories SET deleted = ? WHERE id = ? AND owner = {owner} AND {condition}"  # noqa: S608
        if not is_id(values[1]) or not self._write(operation, lambda file: file.execute(query, values).rowcount):
            raise memory_missing(values[1], operation)

    def erase(self, user: str, memory_id: str) -> None:
        """Remove a memory, deleted or not, so that no byte of it is left in the store's files."""
        self._write("erase memory", lambda connection: erase_memory(connection, user, memory_id))
        self._clean()

    # Entries

    def add(self, user: str, memory_id: str, drafts: Sequence[Draft]) -> list[Kept]:
        """Store entries, all or none."""

        def work(connection: "Connection", place: Place) -> list[Kept]:
            additions = Additions(connection, place)
            kept = [additions.take(draft) for draft in drafts]
            additions.finish()
            return kept

        return self._write_to("add_entry", user, memory_id, work)

    def find_key(self, user: str, memory_id: str, client_key: str) -> Entry | None:
        """Return the entry that was stored with a client key."""
        return self._look("add_entry", user, memory_id, lambda file, place: find_keyed(file, place, client_key))

    def seq_of(self, user: str, memory_id: str, entry_id: str) -> int:
        """Return the seq of an entry, or raise EntryMissing."""
        return self._look("find entry", user, memory_id, lambda file, place: find_seq(file, place, entry_id))

    def page(self, user: str, memory_id: str, span: Span) -> list[Entry]:
        """Return entries, newest first."""
        conditions = {
            "e.seq < ?": span.before_seq,
            "e.seq > ?": span.after_seq,
            "e.created < ?": span.before_time,
            "e.created > ?": span.after_time,
        }
        given = {condition: value for condition, value in conditions.items() if value is not None}
        order = "ASC" if span.forward else "DESC"
        query = " AND ".join((ENTRY, *given)) + f" ORDER BY e.seq {order} LIMIT ?"
        found = self._entries("list_entries", user, memory_id, query, (*given.values(), span.limit))
        return found[::-1] if span.forward else found

    def after(self, user: str, memory_id: str, seq: int, limit: int) -> list[Entry]:
        """Return the entries that follow a seq, oldest first."""
        query = f"{ENTRY} AND e.seq > ? ORDER BY e.seq LIMIT ?"
        return self._entries("read entries", user, memory_id, query, (seq, limit))

    def pick(self, user: str, memory_id: str, seqs: Collection[int]) -> dict[int, Entry]:
        """Return the entries of these seqs, as far as they are there."""
        query = f"{ENTRY} AND e.seq IN ({','.join('?' * len(seqs))})"
        return {one.seq: one for one in self._entries("read entries", user, memory_id, query, tuple(seqs))}

    def find(self, user: str, memory_id: str, where: Where) -> frozenset[int]:
        """Return the seqs of the entries for which all of `where` holds."""
        until = None if where.until is None else end_of(where.until)
        conditions = {
            "moment >= ?": moment_of(where.since),
            "moment <= ?": until,
            "role = ?": where.role,
            "author = ?": where.author,
            "session = ?": where.session,
        }
        given = {condition: value for condition, value in conditions.items() if value is not None}
        tagged = "seq IN (SELECT seq FROM tags WHERE memory = ? AND tag = ?)"
        query = " AND ".join(("SELECT seq FROM entries WHERE memory = ?", *given, *(tagged for _ in where.tags)))

        def work(connection: "Connection", place: Place) -> frozenset[int]:
            tags = [value for tag in where.tags for value in (place.number, tag)]
            return frozenset(chain.from_iterable(connection.execute(query, (place.number, *given.values(), *tags))))

        return self._look("search_memories", user, memory_id, work)

    def erase_entry(self, user: str, memory_id: str, entry_id: str) -> None:
        """Remove an entry so that no byte of it is left in the store's files; its seq is not given again."""
        self._write_to("erase entry", user, memory_id, lambda file, place: erase_entry(file, place, entry_id))
        self._clean()

    # Documents

    def put_document(self, user: str, memory_id: str, content: str) -> ContextDocument:
        """Store a new version of the document."""

        def work(connection: "Connection", place: Place) -> ContextDocument:
            ((version, _),) = add_documents(connection, place, (NewDocument(content),))
            return _document(connection, place, version)

        return self._write_to("put_context", user, memory_id, work)

    def document(self, user: str, memory_id: str, version: int | None = None) -> ContextDocument:
        """Return a version of the document, by default the current one."""

        def work(connection: "Connection", place: Place) -> ContextDocument:
            return _document(connection, place, place.documents if version is None else version)

        return self._look("get_context", user, memory_id, work)

    def documents(self, user: str, memory_id: str, after: int, limit: int) -> list[ContextDocument]:
        """Return the versions that follow one, oldest first."""
        query = f"{DOCUMENT} AND version > ? ORDER BY version LIMIT ?"

        def work(connection: "Connection", place: Place) -> list[ContextDocument]:
            rows = connection.execute(query, (place.number, after, limit)).fetchall()
            return [document_of(row, place.memory_id) for row in rows]

        return self._look("read documents", user, memory_id, work)

    def newest(self, user: str, memory_id: str) -> Newest:
        """Return how far a memory has got, read afresh."""
        query = "SELECT coalesce(max(seq), 0) FROM entries WHERE memory = ?"

        def work(connection: "Connection", place: Place) -> Newest:
            there = connection.execute(query, (place.number,)).fetchone()[0]
            return Newest(there, place.documents, place.newest)

        return self._look("await_consistency", user, memory_id, work)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._reader.close()
        self._writer.close()

    # Connections

    def _prepare(self) -> None:
        if self._id:
            return
        query = "SELECT id, unclean FROM store"
        found, unclean = self._reader.run("open memory", lambda connection: connection.execute(query).fetchone())
        if unclean:
            with suppress(StorageFailed):  # no space for it now: the next one tries again
                self._clean()  # whoever erased was stopped before the bytes were gone
        self._id = found

    def _read(self, operation: str, work: _Work[_Answer]) -> _Answer:
        self._prepare()
        return self._reader.run(operation, work)

    def _write(self, operation: str, work: _Work[_Answer]) -> _Answer:
        self._prepare()
        return self._sharing.write(operation, work)

    def _look(self, operation: str, user: str, memory_id: str, work: _PlaceWork[_Answer]) -> _Answer:
        return self._read(
            operation, lambda connection: work(connection, _place(connection, user, memory_id, operation))
        )

    def _write_to(self, operation: str, user: str, memory_id: str, work: _PlaceWork[_Answer]) -> _Answer:
        return self._write(
            operation, lambda connection: work(connection, _place(connection, user, memory_id, operation))
        )

    def _clean(self) -> None:
        self._reader.close()  # whose snapshot would keep the journal
        self._writer.alone("erase", clean)

    def _entries(self, operation: str, user: str, memory_id: str, query: str, values: tuple[int, ...]) -> list[Entry]:
        def work(connection: "Connection", place: Place) -> list[Entry]:
            rows = connection.execute(query, (place.number, *values)).fetchall()
            return [entry_of(row, place.memory_id) for row in rows]

        return self._look(operation, user, memory_id, work)


def _place(connection: "Connection", user: str, memory_id: str, operation: str) -> Place:
    place = find_place(connection, user, memory_id) if is_id(memory_id) else None
    if place is None:
        raise memory_missing(memory_id, operation)
    return place


def _make_memory(connection: "Connection", user: str, new: NewMemory) -> Place:
    owner = user_number(connection, user)
    held, most = connection.execute("SELECT memories, max_memories FROM users WHERE number = ?", (owner,)).fetchone()
    check_quota("memories", held + 1, most)
    memory_id = new.memory_id
    if memory_id is None or connection.execute("SELECT 1 FROM memories WHERE id = ?", (memory_id,)).fetchone():
        import uuid  # noqa: PLC0415 — 4 ms that only a new memory needs

        memory_id = uuid.uuid4().hex
    created = now_ms() if new.created_at is None else new.created_at
    query = "INSERT INTO memories(id, owner, title, type, description, created) VALUES (?, ?, ?, ?, ?, ?)"
    connection.execute(query, (memory_id, owner, new.title, new.memory_type, new.description, created))
    connection.execute("UPDATE users SET memories = memories + 1 WHERE number = ?", (owner,))
    return _place(connection, user, memory_id, "create_memory")


def _document(connection: "Connection", place: Place, version: int) -> ContextDocument:
    row = connection.execute(f"{DOCUMENT} AND version = ?", (place.number, version)).fetchone()
    if not row:
        raise Damaged(f"document {version} is not there", operation="get_context", place=place.memory_id)
    return document_of(row, place.memory_id)
