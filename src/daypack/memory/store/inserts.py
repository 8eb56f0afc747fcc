"""The rules of a write, the same in every store: client keys, ids, numbers, times, sizes and quotas.

A batch collects the rows of one transaction; the store looks up what exists and writes the rows.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from daypack.errors import BadInput, KeyConflict, QuotaExceeded
from daypack.memory.store.checksums import DocumentRecord, EntryRecord, MemoryRecord, UserRecord, checksum, is_intact
from daypack.memory.store.port import NewDocument, NewEntry, NewMemory, StoredEntry, join_id, split_id
from daypack.memory.store.rows import Owner, Row, damage_of, size_of
from daypack.memory.times import now_ms, parse_time
from daypack.types.memory import DamagedRecord, Entry

_IMPORT_AS_NEW = "give a title to import it as a new memory"
_STEM_BYTES = 12
_MAX_NUMBER = (1 << 32) - 1
_MEMORY_FIELDS, _USER_FIELDS = 7, 6
_NUMBERED = slice(1, 3)  # the newest entry and document


class MemoryRow(NamedTuple):
    """A memory and its owner as a read or write needs them; `quotas` None: the owner's record is damaged."""

    owner_id: Owner
    quotas: UserRecord | None
    number: int
    newest: int
    documents: int
    latest: int
    user_entries: int
    user_bytes: int

    @property
    def memory_id(self) -> str:
        """The id of the memory."""
        return self.owner_id.memory_id

    def check_quotas(self, *, entries: int = 0, size: int = 0) -> None:
        """Raise QuotaExceeded if more entries or bytes would exceed the owner's quotas, Damaged if these are lost."""
        if self.quotas is None:
            raise damage_of(DamagedRecord(kind="user", id=self.owner_id.user), "write memory")
        check_quota("entries", self.user_entries + entries, self.quotas.max_entries)
        check_quota("bytes", self.user_bytes + size, self.quotas.max_bytes)


def memory_row(row: Row, owner: Owner) -> MemoryRow:
    """Return a memory from the fields and checksums of the memory and its user, then their numbers.

    Raises Damaged if the memory is damaged.
    """
    end = _MEMORY_FIELDS + 1 + _USER_FIELDS
    if not is_intact(MemoryRecord(*row[:_MEMORY_FIELDS]), row[_MEMORY_FIELDS]):
        raise damage_of(DamagedRecord(kind="memory", id=owner.memory_id), "read memory")
    quotas = UserRecord(*row[_MEMORY_FIELDS + 1 : end])
    numbers = row[end + 1 :]
    valid = all(isinstance(number, int) and number >= 0 for number in numbers)
    if not valid or max(numbers[_NUMBERED]) > _MAX_NUMBER:
        raise damage_of(DamagedRecord(kind="memory", id=owner.memory_id, problem="invalid counts"), "read memory")
    return MemoryRow(owner, quotas if is_intact(quotas, row[end]) else None, *numbers)


class Existing(Protocol):
    """What a memory has already, as far as a write must compare it."""

    def keyed(self, client_key: str) -> Entry | None:
        """Return the entry stored with a client key; raise Damaged if it is damaged."""
        ...

    def entry(self, seq: int) -> tuple[bytes, int] | None:
        """Return the random bytes and the time of an entry."""
        ...

    def document(self, version: int) -> bytes | None:
        """Return the random bytes of a version of the document."""
        ...


class EntryRow(NamedTuple):
    """A new entry to write."""

    seq: int
    stem: bytes
    raw: bytes
    record: EntryRecord
    crc: int


class EntryBatch:
    """The entries of one transaction: `add` checks and collects them, `check` compares them with the quotas."""

    def __init__(self, memory: MemoryRow, existing: Existing) -> None:
        self._memory = memory
        self._existing = existing
        self._now = max(now_ms(), memory.latest)  # times do not decrease, even if the clock was set back
        self.newest = memory.newest
        self.latest = memory.latest
        self.size = 0
        self.rows: list[EntryRow] = []
        self._added: dict[str, tuple[NewEntry, StoredEntry]] = {}  # by client key

    def add(self, new: NewEntry) -> StoredEntry:
        """Collect an entry, unless it is stored already."""
        stored = self._find_stored(new) if new.client_key is not None or new.entry_id is not None else None
        if stored:
            return stored
        if new.entry_id is None:
            stem, seq = os.urandom(_STEM_BYTES), self.newest + 1
        else:
            stem, seq = split_id(new.entry_id)
        if seq > _MAX_NUMBER:
            raise BadInput("the memory is full", operation="add_entry", hint="create a new memory with create_memory")
        self.newest = seq
        stored = self._collect(new, stem, seq)
        if new.client_key is not None:
            self._added[new.client_key] = new, stored
        return stored

    def _collect(self, new: NewEntry, stem: bytes, seq: int) -> StoredEntry:
        about = new.about
        created = self._now if new.created_at is None else new.created_at
        moment = parse_time(about.at)
        moment = created if moment is None else moment
        raw = new.raw.encode()
        summary = None if new.summary == new.raw else new.summary
        entry_id = join_id(stem, seq)
        words = (about.session, about.role, about.author, about.at, about.source)
        texts = (new.raw, summary, *words, about.tags, new.client_key)
        record = EntryRecord(*self._memory.owner_id, entry_id, created, moment, *texts)
        self.rows.append(EntryRow(seq, stem, raw, record, checksum(record)))
        self.size += size_of(raw, summary, about)
        self.latest = max(self.latest, min(created, self._now))  # the clock of an archive may be ahead
        return StoredEntry(entry_id, seq, created, new.summary)

    def _find_stored(self, new: NewEntry) -> StoredEntry | None:
        """Return the stored entry with the same client key or id; raise KeyConflict if it is a different entry."""
        if new.client_key is not None:
            if new.client_key in self._added:
                earlier, stored = self._added[new.client_key]
                same = (earlier.raw, earlier.about) == (new.raw, new.about)
                if not same or (new.summary_given and new.summary != earlier.summary):
                    raise _conflict(new.client_key)
                return stored._replace(replayed=True)
            entry = self._existing.keyed(new.client_key)
            return _replay(entry, new) if entry else None
        entry_id = new.entry_id or ""
        stem, seq = split_id(entry_id)
        if seq > self.newest:
            return None
        if seq > self._memory.newest or seq == 0:
            hint = "import the lines in the order they were exported"
            raise BadInput(
                "the entries are not in ascending order", operation="import memory", place=entry_id, hint=hint
            )
        found = self._existing.entry(seq)
        if found and found[0] != stem:
            problem, hint = "the memory has a different entry with this number", _IMPORT_AS_NEW
            raise KeyConflict(problem, operation="import memory", place=entry_id, hint=hint)
        return StoredEntry(entry_id, seq, found[1] if found else 0, new.summary, replayed=True)

    def check(self) -> None:
        """Raise QuotaExceeded if the collected entries exceed the owner's quotas."""
        self._memory.check_quotas(entries=len(self.rows), size=self.size)


class DocumentRow(NamedTuple):
    """A new version of the document to write."""

    version: int
    stem: bytes
    content: bytes
    record: DocumentRecord
    crc: int


class DocumentBatch:
    """New versions of a memory's document, within the quota; those of an archive that exist are skipped."""

    def __init__(self, memory: MemoryRow, existing: Existing, documents: Sequence[NewDocument]) -> None:
        self._memory = memory
        self._existing = existing
        self.version, self.latest, self.size = memory.documents, memory.latest, 0
        self.rows: list[DocumentRow] = []
        for document in documents:
            self._add(document)
        memory.check_quotas(size=self.size)

    def _add(self, new: NewDocument) -> None:
        stem = os.urandom(_STEM_BYTES)
        if new.document_id is not None:
            stem, number = split_id(new.document_id)
            if number <= self._memory.documents:
                self._check_same(new.document_id, stem, number)
                return
            if number != self.version + 1:
                hint = "import the whole export"
                raise BadInput(
                    "an earlier document is missing", operation="import memory", place=new.document_id, hint=hint
                )
        self.version += 1
        content = new.content.encode()
        now = max(now_ms(), self.latest)
        created = now if new.created_at is None else new.created_at
        self.latest = max(self.latest, min(created, now))
        self.size += len(content)
        record = DocumentRecord(*self._memory.owner_id, join_id(stem, self.version), created, new.content)
        self.rows.append(DocumentRow(self.version, stem, content, record, checksum(record)))

    def _check_same(self, document_id: str, stem: bytes, version: int) -> None:
        if self._existing.document(version) not in (None, stem):
            problem, hint = "the memory has a different document with this number", _IMPORT_AS_NEW
            raise KeyConflict(problem, operation="import memory", place=document_id, hint=hint)


def new_record(user: str, new: NewMemory, memory_id: str) -> MemoryRecord:
    """Return the fields of a memory to create."""
    created = now_ms() if new.created_at is None else new.created_at
    return MemoryRecord(user, memory_id, new.title, new.memory_type, new.description, created, None)


def new_memory_id() -> str:
    """Return a random id."""
    import uuid  # noqa: PLC0415 — 4 ms that only a new memory needs

    return uuid.uuid4().hex


def _replay(stored: Entry, new: NewEntry) -> StoredEntry:
    """Return the first result; raise KeyConflict for a different payload. A generated summary is not compared."""
    about = new.about
    same = stored.raw_entry == new.raw and all(getattr(stored, name) == getattr(about, name) for name in _ABOUT)
    if not same or (new.summary_given and new.summary != stored.summary):
        raise _conflict(new.client_key or "")
    return StoredEntry(stored.entry_id, stored.seq, parse_time(stored.created_at) or 0, stored.summary, replayed=True)


_ABOUT = ("session", "role", "author", "at", "tags", "source")


def _conflict(client_key: str) -> KeyConflict:
    problem = f"client_key {client_key!r} belongs to a different entry"
    return KeyConflict(problem, operation="add_entry", hint="use a new client_key for a new entry")


def check_quota(resource: str, wanted: int, allowed: int | None) -> None:
    """Raise QuotaExceeded if a write would exceed a quota."""
    if allowed is not None and wanted > allowed:
        problem = f"{resource}: {wanted:,} would exceed the quota of {allowed:,}"
        hint = "erase a memory, or raise the quota with `daypack user set`"
        raise QuotaExceeded(problem, operation="write memory", hint=hint)
