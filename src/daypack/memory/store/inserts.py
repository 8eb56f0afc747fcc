"""Inserts entries and documents into a memory, within the caller's transaction: client keys, counts and quotas."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from daypack.errors import BadInput, KeyConflict, QuotaExceeded
from daypack.memory.store.checksums import DocumentRecord, EntryRecord, MemoryRecord, UserRecord, checksum, is_intact
from daypack.memory.store.port import NewDocument, NewEntry, StoredEntry, join_id, split_id
from daypack.memory.store.rows import Owner, damage_of, entry_of, join_tags, size_of
from daypack.memory.store.tables import ENTRY
from daypack.memory.times import now_ms, parse_time
from daypack.types.memory import DamagedRecord, Entry

if TYPE_CHECKING:
    from sqlite3 import Connection

_IMPORT_AS_NEW = "give a title to import it as a new memory"
_STEM_BYTES = 12
_MAX_NUMBER = (1 << 32) - 1
_MEMORY_ROW = (
    "SELECT u.user, m.id, m.title, m.type, m.description, m.created, m.deleted, m.crc,"
    " u.user, u.name, u.email, u.max_memories, u.max_entries, u.max_bytes, u.crc,"
    " m.number, m.owner, m.newest, m.documents, m.latest, u.entries, u.bytes"
    " FROM memories m JOIN users u ON u.number = m.owner WHERE m.id = ? AND u.user = ? AND m.deleted IS NULL"
)
_MEMORY_FIELDS, _USER_FIELDS = 7, 6
_NUMBERED = slice(2, 4)  # the newest entry and document


class MemoryRow(NamedTuple):
    """A memory and its owner as a read or write needs them; `quotas` None: the owner's record is damaged."""

    owner_id: Owner
    quotas: UserRecord | None
    number: int
    owner: int
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


def find_memory_row(connection: "Connection", user: str, memory_id: str) -> MemoryRow | None:
    """Return a memory of this user; None if there is none or it is deleted; raise Damaged if it is damaged."""
    row = connection.execute(_MEMORY_ROW, (memory_id, user)).fetchone()
    if not row:
        return None
    end = _MEMORY_FIELDS + 1 + _USER_FIELDS
    if not is_intact(MemoryRecord(*row[:_MEMORY_FIELDS]), row[_MEMORY_FIELDS]):
        raise damage_of(DamagedRecord(kind="memory", id=memory_id), "read memory")
    quotas = UserRecord(*row[_MEMORY_FIELDS + 1 : end])
    numbers = row[end + 1 :]
    valid = all(isinstance(number, int) and number >= 0 for number in numbers)
    if not valid or max(numbers[_NUMBERED]) > _MAX_NUMBER:
        raise damage_of(DamagedRecord(kind="memory", id=memory_id, problem="invalid counts"), "read memory")
    return MemoryRow(Owner(user, memory_id), quotas if is_intact(quotas, row[end]) else None, *numbers)


class EntryInserts:
    """The entries of one transaction: `add` checks and collects them, `execute` writes them."""

    def __init__(self, connection: "Connection", memory: MemoryRow) -> None:
        self._connection = connection
        self._memory = memory
        self._now = max(now_ms(), memory.latest)  # times do not decrease, even if the clock was set back
        self._seq = memory.newest
        self._latest = memory.latest
        self._bytes = 0
        self._number: int = connection.execute("SELECT coalesce(max(number), 0) FROM texts").fetchone()[0]
        self._added: dict[str, tuple[NewEntry, StoredEntry]] = {}  # by client key
        self._entries: list[tuple[object, ...]] = []
        self._texts: list[tuple[object, ...]] = []
        self._tags: list[tuple[object, ...]] = []
        self._keys: list[tuple[object, ...]] = []

    def add(self, new: NewEntry) -> StoredEntry:
        """Collect an entry, unless it is stored already."""
        stored = self._find_stored(new) if new.client_key is not None or new.entry_id is not None else None
        if stored:
            return stored
        if new.entry_id is None:
            stem, seq = os.urandom(_STEM_BYTES), self._seq + 1
        else:
            stem, seq = split_id(new.entry_id)
        if seq > _MAX_NUMBER:
            raise BadInput("the memory is full", operation="add_entry", hint="create a new memory with create_memory")
        self._seq = seq
        stored = self._insert(new, stem, seq)
        if new.client_key is not None:
            self._keys.append((self._memory.number, new.client_key, seq))
            self._added[new.client_key] = new, stored
        return stored

    def _insert(self, new: NewEntry, stem: bytes, seq: int) -> StoredEntry:
        about, memory = new.about, self._memory.number
        created = self._now if new.created_at is None else new.created_at
        moment = parse_time(about.at)
        moment = created if moment is None else moment
        raw = new.raw.encode()
        summary = None if new.summary == new.raw else new.summary
        entry_id = join_id(stem, seq)
        words = (about.session, about.role, about.author, about.at, about.source)
        texts = (new.raw, summary, *words, about.tags, new.client_key)
        record = EntryRecord(*self._memory.owner_id, entry_id, created, moment, *texts)
        self._number += 1
        self._texts.append((self._number, raw, summary, checksum(record)))
        place = (memory, seq, self._number, stem, created, moment)
        self._entries.append((*place, *words, join_tags(about.tags), new.client_key))
        if about.tags:
            self._tags.extend((memory, tag, seq) for tag in about.tags)
        self._bytes += size_of(raw, summary, about)
        self._latest = max(self._latest, min(created, self._now))  # the clock of an archive may be ahead
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
            entry = find_keyed(self._connection, self._memory, new.client_key)
            return _replay(entry, new) if entry else None
        entry_id = new.entry_id or ""
        stem, seq = split_id(entry_id)
        if seq > self._seq:
            return None
        if seq > self._memory.newest or seq == 0:
            hint = "import the lines in the order they were exported"
            raise BadInput(
                "the entries are not in ascending order", operation="import memory", place=entry_id, hint=hint
            )
        query = "SELECT stem, created FROM entries WHERE memory = ? AND seq = ?"
        row = self._connection.execute(query, (self._memory.number, seq)).fetchone()
        if row and row[0] != stem:
            problem, hint = "the memory has a different entry with this number", _IMPORT_AS_NEW
            raise KeyConflict(problem, operation="import memory", place=entry_id, hint=hint)
        return StoredEntry(entry_id, seq, row[1] if row else 0, new.summary, replayed=True)

    def execute(self) -> None:
        """Write the collected entries, within the user's quotas."""
        if not self._entries:
            return
        memory, many = self._memory, self._connection.executemany
        memory.check_quotas(entries=len(self._entries), size=self._bytes)
        many("INSERT INTO texts VALUES (?, ?, ?, ?)", self._texts)
        many("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._entries)
        if self._tags:
            many("INSERT INTO tags VALUES (?, ?, ?)", self._tags)
        if self._keys:
            many("INSERT INTO keys VALUES (?, ?, ?)", self._keys)
        count = len(self._entries)
        self._connection.execute(
            "UPDATE memories SET newest = ?, latest = ?, entries = entries + ?, bytes = bytes + ? WHERE number = ?",
            (self._seq, self._latest, count, self._bytes, memory.number),
        )
        self._connection.execute(
            "UPDATE users SET entries = entries + ?, bytes = bytes + ? WHERE number = ?",
            (count, self._bytes, memory.owner),
        )


def add_documents(
    connection: "Connection", memory: MemoryRow, documents: Sequence[NewDocument]
) -> list[tuple[int, bytes]]:
    """Store versions of the document, within the quota; skip those of an archive that exist."""
    version, latest, size = memory.documents, memory.latest, 0
    added: list[tuple[int, bytes]] = []
    for document in documents:
        stem = os.urandom(_STEM_BYTES)
        if document.document_id is not None:
            stem, number = split_id(document.document_id)
            if number <= memory.documents:
                _check_document(connection, memory, document.document_id)
                continue
            if number != version + 1:
                hint = "import the whole export"
                raise BadInput(
                    "an earlier document is missing", operation="import memory", place=document.document_id, hint=hint
                )
        version += 1
        data = document.content.encode()
        now = max(now_ms(), latest)
        created = now if document.created_at is None else document.created_at
        latest = max(latest, min(created, now))
        record = DocumentRecord(*memory.owner_id, join_id(stem, version), created, document.content)
        row = (memory.number, version, stem, created, document.content, checksum(record))
        query = "INSERT INTO documents(memory, version, stem, created, content, crc) VALUES (?, ?, ?, ?, ?, ?)"
        connection.execute(query, row)
        added.append((version, stem))
        size += len(data)
    memory.check_quotas(size=size)
    query = "UPDATE memories SET documents = ?, latest = ?, bytes = bytes + ? WHERE number = ?"
    connection.execute(query, (version, latest, size, memory.number))
    connection.execute("UPDATE users SET bytes = bytes + ? WHERE number = ?", (size, memory.owner))
    return added


def _check_document(connection: "Connection", memory: MemoryRow, document_id: str) -> None:
    stem, version = split_id(document_id)
    query = "SELECT 1 FROM documents WHERE memory = ? AND version = ? AND stem != ?"
    if connection.execute(query, (memory.number, version, stem)).fetchone():
        problem, hint = "the memory has a different document with this number", _IMPORT_AS_NEW
        raise KeyConflict(problem, operation="import memory", place=document_id, hint=hint)


def find_keyed(connection: "Connection", memory: MemoryRow, client_key: str) -> Entry | None:
    """Return the entry stored with a client key; raise Damaged if it is damaged."""
    query = f"{ENTRY} AND e.seq = (SELECT seq FROM keys WHERE memory = ? AND key = ?)"  # noqa: S608
    row = connection.execute(query, (memory.number, memory.number, client_key)).fetchone()
    entry = entry_of(row, memory.owner_id) if row else None
    if isinstance(entry, DamagedRecord):
        raise damage_of(entry, "find entry")
    return entry


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
