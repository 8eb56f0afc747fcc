"""Copies the memories of a user between two stores: entries and documents keep their ids, numbers and times.

What the target has of a memory must be its beginning. Damaged records cannot be copied and are counted. Tokens of a
server are not copied: they are access to a server, not content.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from daypack.errors import BadInput, Damaged, MemoryMissing
from daypack.files import read_only
from daypack.files.database import BUSY_SECONDS
from daypack.memory.store.port import NewDocument, NewEntry, NewMemory, Profile, Store, next_after
from daypack.memory.times import parse_time
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope
from daypack.types.memory import About, ContextDocument, DamagedRecord, Entry, Memory

State = Literal["new", "continued", "same", "newer", "conflict"]
_OPERATION = "copy"
_BATCH = 500
_ABOUT = ("session", "role", "author", "at", "tags", "source")
_FILE_KEYS = (
    "SELECT e.seq, e.client_key FROM entries e JOIN memories m ON m.number = e.memory"
    " WHERE m.id = ? AND e.client_key IS NOT NULL AND e.seq >= ? AND e.seq <= ?"
)
_DATABASE_KEYS = (
    "SELECT e.seq, e.client_key FROM entries e JOIN memories m ON m.tenant = e.tenant AND m.number = e.memory"
    " WHERE m.tenant = %s AND m.id = %s AND e.client_key IS NOT NULL AND e.seq >= %s AND e.seq <= %s"
)


class PlannedMemory(Struct, frozen=True):
    """What a copy does with one memory; `damaged` records of the source are left out."""

    memory_id: str
    title: str
    state: State
    entries: int = 0  # to copy
    documents: int = 0
    damaged: int = 0
    problem: str = ""

    @property
    def is_copied(self) -> bool:
        """True if a copy writes something."""
        return self.state in ("new", "continued")


class CopiedMemory(Struct, frozen=True):
    """A memory that was copied, with the digest of its records, which both stores have in common."""

    memory_id: str
    title: str
    entries: int
    documents: int
    digest: str
    damaged: int = 0


class MemorySide(NamedTuple):
    """The memories of one user in one store."""

    store: Store
    user: str
    place: str
    path: str = ""  # of the file, if it is one
    database: Database | None = None

    def memories(self) -> tuple[Memory, ...]:
        """Return the memories that are not deleted."""
        if self.path and not os.path.lexists(self.path):
            return ()
        return self.store.memories(self.user)

    def deleted(self) -> int:
        """Return how many memories are deleted and could be restored; they are not copied."""
        if self.path and not os.path.lexists(self.path):
            return 0
        return len(self.store.memories(self.user, deleted=True))

    def find(self, memory_id: str) -> Memory | None:
        """Return a memory; None if the user has none with this id."""
        if self.path and not os.path.lexists(self.path):
            return None
        try:
            return self.store.memory(self.user, memory_id)
        except MemoryMissing:
            return None

    def entries(self, memory_id: str, after: int = 0) -> Iterator[Entry | DamagedRecord]:
        """Yield the entries after a number, oldest first."""
        while batch := self.store.after(self.user, memory_id, after, _BATCH):
            yield from batch
            after = next_after(batch, after)

    def documents(self, memory_id: str, after: int = 0) -> Iterator[ContextDocument | DamagedRecord]:
        """Yield the versions of the document after a number, oldest first."""
        while batch := self.store.documents(self.user, memory_id, after, _BATCH):
            yield from batch
            after = next_after(batch, after)

    def client_keys(self, memory_id: str, first: int, last: int) -> dict[int, str]:
        """Return the client keys of the entries in a range."""
        if self.path:
            with closing(read_only.connect(self.path, seconds=BUSY_SECONDS)) as file:
                return {int(seq): str(key) for seq, key in file.execute(_FILE_KEYS, (memory_id, first, last))}
        if self.database is None:
            return {}
        values = (self.user, memory_id, first, last)
        rows = self.database.run(
            "read keys", lambda at: at.rows(_DATABASE_KEYS, values), Scope(self.user, reading=True)
        )
        return {seq: bytes(key).decode("utf-8", "surrogateescape") for seq, key in rows}


def plan_memory(source: MemorySide, target: MemorySide, memory: Memory) -> PlannedMemory:
    """Return what copying a memory would do."""
    there = target.find(memory.memory_id)
    ours = _records(source, memory.memory_id)
    if there is None:
        entries, documents, damaged = _count(ours)
        return PlannedMemory(memory.memory_id, memory.title, "new", entries, documents, damaged)
    return _plan_existing(target, memory, ours)


def _plan_existing(target: MemorySide, memory: Memory, ours: Iterator["_Record"]) -> PlannedMemory:
    theirs = _records(target, memory.memory_id)
    other = next(theirs, None)
    missing = {"document": 0, "entry": 0}
    damaged = 0
    for record in ours:
        if not record.digest:
            damaged += 1
            continue
        while other is not None and not other.digest:
            other = next(theirs, None)
        if other is not None and other.place == record.place:
            if other.digest != record.digest or missing[record.kind]:
                problem = f"{record.kind} {record.number} differs"
                return PlannedMemory(memory.memory_id, memory.title, "conflict", problem=problem)
            other = next(theirs, None)
        elif other is None or other.kind != record.kind:
            missing[record.kind] += 1
        else:
            problem = f"it has {other.kind} {other.number}, and the source has {record.kind} {record.number}"
            return PlannedMemory(memory.memory_id, memory.title, "conflict", problem=problem)
    state: State = "continued" if any(missing.values()) else "newer" if other is not None else "same"
    if other is not None and any(missing.values()) and other.kind == "entry":
        problem = "both sides have entries that the other does not have"
        return PlannedMemory(memory.memory_id, memory.title, "conflict", problem=problem)
    return PlannedMemory(memory.memory_id, memory.title, state, missing["entry"], missing["document"], damaged)


class _Record(NamedTuple):
    kind: Literal["document", "entry"]
    number: int
    digest: bytes  # empty: damaged

    @property
    def place(self) -> tuple[str, int]:
        return self.kind, self.number  # documents come first, in the alphabet too


def _records(side: MemorySide, memory_id: str) -> Iterator[_Record]:
    """Yield the documents, then the entries of a memory, each with the digest of everything it has."""
    for document in side.documents(memory_id):
        if isinstance(document, DamagedRecord):
            yield _Record("document", document.number, b"")
        else:
            fields = (document.document_id, document.created_at, document.content)
            yield _Record("document", document.version, sha256(msgspec.json.encode(fields)).digest())
    for batch in _batches(side.entries(memory_id)):
        numbers = [entry.seq for entry in batch]
        keys = side.client_keys(memory_id, min(numbers), max(numbers))
        for entry in batch:
            if isinstance(entry, DamagedRecord):
                yield _Record("entry", entry.number, b"")
            else:
                data = msgspec.json.encode((entry, keys.get(entry.seq)))
                yield _Record("entry", entry.seq, sha256(data).digest())


def _count(records: Iterable[_Record]) -> tuple[int, int, int]:
    """Return how many entries and documents are intact, and how many records are damaged."""
    counts = {"entry": 0, "document": 0, "": 0}
    for record in records:
        counts[record.kind if record.digest else ""] += 1
    return counts["entry"], counts["document"], counts[""]


def _batches(entries: Iterable[Entry | DamagedRecord]) -> Iterator[list[Entry | DamagedRecord]]:
    batch: list[Entry | DamagedRecord] = []
    for entry in entries:
        batch.append(entry)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def copy_profile(source: MemorySide, target: MemorySide) -> None:
    """Copy the user's name, address and quotas, if the target does not know the user."""
    if source.path and not os.path.lexists(source.path):
        return
    user = source.store.accounts.find(source.user)
    known = None if target.path and not os.path.lexists(target.path) else target.store.accounts.find(target.user)
    if user is None or known is not None:
        return
    limits = {name: getattr(user.quotas, name) for name in ("memories", "entries", "bytes")}
    target.store.accounts.put(target.user, Profile(name=user.name, email=user.email, quotas=limits))


def copy_memory(source: MemorySide, target: MemorySide, memory: Memory) -> CopiedMemory:
    """Copy what the target lacks of a memory, in batches of one transaction each, and compare all of it."""
    new = NewMemory(
        title=memory.title,
        memory_type=memory.memory_type,
        description=memory.description,
        memory_id=memory.memory_id,
        created_at=parse_time(memory.created_at),
    )
    documents = [
        NewDocument(document.content, document.document_id, parse_time(document.created_at))
        for document in source.documents(memory.memory_id)
        if isinstance(document, ContextDocument)
    ]
    _load(target, new, documents, ())
    for batch in _batches(source.entries(memory.memory_id)):
        numbers = [entry.seq for entry in batch]
        keys = source.client_keys(memory.memory_id, min(numbers), max(numbers))
        entries = [_new_entry(entry, keys) for entry in batch if isinstance(entry, Entry)]
        _load(target, new, (), entries)
    return _verify(source, target, memory)


def _new_entry(entry: Entry, keys: dict[int, str]) -> NewEntry:
    return NewEntry(
        raw=entry.raw_entry,
        summary=entry.summary,
        about=About(**{name: getattr(entry, name) for name in _ABOUT}),
        client_key=keys.get(entry.seq),
        entry_id=entry.entry_id,
        created_at=parse_time(entry.created_at),
    )


def _load(target: MemorySide, new: NewMemory, documents: Sequence[NewDocument], entries: Sequence[NewEntry]) -> None:
    loaded = target.store.load(target.user, new, documents, entries)
    if loaded.memory_id != new.memory_id:
        target.store.erase(target.user, loaded.memory_id)
        hint = "copy it as that user, or leave memories out with --sessions-only"
        problem = f"another user of the target has the memory {new.memory_id}"
        raise BadInput(problem, operation=_OPERATION, place=target.place, hint=hint)


def _verify(source: MemorySide, target: MemorySide, memory: Memory) -> CopiedMemory:
    theirs = _records(target, memory.memory_id)
    other: _Record | None = None
    total, counts, damaged = sha256(), {"entry": 0, "document": 0}, 0
    for record in _records(source, memory.memory_id):
        if not record.digest:
            damaged += 1
            continue
        while other is None or other.place < record.place:
            other = next(theirs, None)
            if other is None:
                break
        if other is None or (other.place, other.digest) != (record.place, record.digest):
            hint = "the copy cannot be used: erase that memory there, then copy again"
            problem = f"{record.kind} {record.number} of memory {memory.memory_id} differs in the copy"
            raise Damaged(problem, operation=_OPERATION, place=target.place, hint=hint)
        total.update(record.digest)
        counts[record.kind] += 1
    return CopiedMemory(
        memory_id=memory.memory_id,
        title=memory.title,
        entries=counts["entry"],
        documents=counts["document"],
        digest=total.hexdigest(),
        damaged=damaged,
    )
