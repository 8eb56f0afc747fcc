"""What is written into a memory, in one transaction of the caller: entries and documents, keys, counts, quotas."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from daypack.errors import BadInput, KeyConflict, QuotaExceeded
from daypack.memory.store.port import Draft, Kept, NewDocument, join_id, split_id
from daypack.memory.store.tables import ENTRY, entry_of, join_tags, size_of, text_crc
from daypack.memory.times import moment_of, now_ms
from daypack.types.memory import Entry

if TYPE_CHECKING:
    from sqlite3 import Connection

_STEM_BYTES = 12
_MAX_NUMBER = (1 << 32) - 1
_PLACE = (
    "SELECT m.number, m.id, m.owner, m.newest, m.documents, m.latest, u.max_entries, u.max_bytes, u.entries, u.bytes"
    " FROM memories m JOIN users u ON u.number = m.owner WHERE m.id = ? AND u.user = ? AND m.deleted IS NULL"
)


class Place(NamedTuple):
    """A memory as whoever writes to it must know it."""

    number: int
    memory_id: str
    owner: int
    newest: int
    documents: int
    latest: int
    max_entries: int | None
    max_bytes: int | None
    user_entries: int
    user_bytes: int


def find_place(connection: "Connection", user: str, memory_id: str) -> Place | None:
    """Return the place of a memory of this user that is not deleted."""
    row = connection.execute(_PLACE, (memory_id, user)).fetchone()
    return Place(*row) if row else None


class Additions:
    """The entries of one transaction; `finish` writes them."""

    def __init__(self, connection: "Connection", place: Place) -> None:
        self._connection = connection
        self._place = place
        self._now = max(now_ms(), place.latest)  # a clock that was set back does not turn the order around
        self._seq = place.newest
        self._latest = place.latest
        self._bytes = 0
        self._number: int = connection.execute("SELECT coalesce(max(number), 0) FROM texts").fetchone()[0]
        self._fresh: dict[str, tuple[Draft, Kept]] = {}  # by client key
        self._entries: list[tuple[object, ...]] = []
        self._texts: list[tuple[object, ...]] = []
        self._tags: list[tuple[object, ...]] = []
        self._keys: list[tuple[object, ...]] = []

    def take(self, draft: Draft) -> Kept:
        """Take an entry in, unless it is there already."""
        known = self._known(draft) if draft.client_key is not None or draft.entry_id is not None else None
        if known:
            return known
        if draft.entry_id is None:
            stem, seq = os.urandom(_STEM_BYTES), self._seq + 1
        else:
            stem, seq = split_id(draft.entry_id)
        if seq > _MAX_NUMBER:
            raise BadInput("the memory is full", operation="add_entry", hint="begin another memory")
        self._seq = seq
        kept = self._enter(draft, stem, seq)
        if draft.client_key is not None:
            self._keys.append((self._place.number, draft.client_key, seq))
            self._fresh[draft.client_key] = draft, kept
        return kept

    def _enter(self, draft: Draft, stem: bytes, seq: int) -> Kept:
        about, memory = draft.about, self._place.number
        created = self._now if draft.created_at is None else draft.created_at
        moment = moment_of(about.at)
        raw = draft.raw.encode()
        own = None if draft.summary == draft.raw else draft.summary
        self._number += 1
        self._texts.append((self._number, raw, own, text_crc(raw, own)))
        row = (about.session, about.role, about.author, about.at, about.source, join_tags(about.tags))
        self._entries.append((memory, seq, self._number, stem, created, created if moment is None else moment, *row))
        if about.tags:
            self._tags.extend((memory, tag, seq) for tag in about.tags)
        self._bytes += size_of(raw, own, about)
        self._latest = max(self._latest, min(created, self._now))  # an archive may be of a clock that is ahead
        return Kept(join_id(stem, seq), seq, created, draft.summary)

    def _known(self, draft: Draft) -> Kept | None:
        """Return what a draft became that was stored before; refuse another one in its place."""
        if draft.client_key is not None:
            if draft.client_key in self._fresh:
                earlier, kept = self._fresh[draft.client_key]
                same = (earlier.raw, earlier.about) == (draft.raw, draft.about)
                if not same or (draft.stated and draft.summary != earlier.summary):
                    raise _conflict(draft.client_key)
                return kept._replace(replayed=True)
            stored = find_keyed(self._connection, self._place, draft.client_key)
            return _replay(stored, draft) if stored else None
        entry_id = draft.entry_id or ""
        stem, seq = split_id(entry_id)
        if seq > self._seq:
            return None
        if seq > self._place.newest or seq == 0:
            raise BadInput("entries do not ascend", operation="import memory", place=entry_id)
        query = "SELECT stem, created FROM entries WHERE memory = ? AND seq = ?"
        row = self._connection.execute(query, (self._place.number, seq)).fetchone()
        if row and row[0] != stem:
            problem, hint = "the memory has another entry in this place", "give a title, and it becomes a memory apart"
            raise KeyConflict(problem, operation="import memory", place=entry_id, hint=hint)
        return Kept(entry_id, seq, row[1] if row else 0, draft.summary, replayed=True)

    def finish(self) -> None:
        """Write what was taken in, within the user's quotas."""
        if not self._entries:
            return
        place, many = self._place, self._connection.executemany
        check_quota("entries", place.user_entries + len(self._entries), place.max_entries)
        check_quota("bytes", place.user_bytes + self._bytes, place.max_bytes)
        many("INSERT INTO texts VALUES (?, ?, ?, ?)", self._texts)
        many("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._entries)
        if self._tags:
            many("INSERT INTO tags VALUES (?, ?, ?)", self._tags)
        if self._keys:
            many("INSERT INTO keys VALUES (?, ?, ?)", self._keys)
        count = len(self._entries)
        self._connection.execute(
            "UPDATE memories SET newest = ?, latest = ?, entries = entries + ?, bytes = bytes + ? WHERE number = ?",
            (self._seq, self._latest, count, self._bytes, place.number),
        )
        self._connection.execute(
            "UPDATE users SET entries = entries + ?, bytes = bytes + ? WHERE number = ?",
            (count, self._bytes, place.owner),
        )


def add_documents(connection: "Connection", place: Place, documents: Sequence[NewDocument]) -> list[tuple[int, bytes]]:
    """Store versions of the document, within the quota; those of an archive that are there are passed over."""
    version, latest, size = place.documents, place.latest, 0
    added: list[tuple[int, bytes]] = []
    for document in documents:
        stem = os.urandom(_STEM_BYTES)
        if document.document_id is not None:
            stem, number = split_id(document.document_id)
            if number <= place.documents:
                _check_document(connection, place, document.document_id)
                continue
            if number != version + 1:
                raise BadInput("a document is missing before it", operation="import memory", place=document.document_id)
        version += 1
        data = document.content.encode()
        now = max(now_ms(), latest)
        created = now if document.created_at is None else document.created_at
        latest = max(latest, min(created, now))
        row = (place.number, version, stem, created, document.content, crc32(data))
        query = "INSERT INTO documents(memory, version, stem, created, content, crc) VALUES (?, ?, ?, ?, ?, ?)"
        connection.execute(query, row)
        added.append((version, stem))
        size += len(data)
    check_quota("bytes", place.user_bytes + size, place.max_bytes)
    query = "UPDATE memories SET documents = ?, latest = ?, bytes = bytes + ? WHERE number = ?"
    connection.execute(query, (version, latest, size, place.number))
    connection.execute("UPDATE users SET bytes = bytes + ? WHERE number = ?", (size, place.owner))
    return added


def _check_document(connection: "Connection", place: Place, document_id: str) -> None:
    stem, version = split_id(document_id)
    query = "SELECT 1 FROM documents WHERE memory = ? AND version = ? AND stem != ?"
    if connection.execute(query, (place.number, version, stem)).fetchone():
        problem, hint = "the memory has another document in this place", "give a title, and it becomes a memory apart"
        raise KeyConflict(problem, operation="import memory", place=document_id, hint=hint)


def find_keyed(connection: "Connection", place: Place, client_key: str) -> Entry | None:
    """Return the entry that was stored with a client key."""
    query = f"{ENTRY} AND e.seq = (SELECT seq FROM keys WHERE memory = ? AND key = ?)"  # noqa: S608
    row = connection.execute(query, (place.number, place.number, client_key)).fetchone()
    return entry_of(row, place.memory_id) if row else None


def _replay(stored: Entry, draft: Draft) -> Kept:
    """Return the answer of the first time; refuse another payload. A summary that was made is not compared."""
    about = draft.about
    same = stored.raw_entry == draft.raw and all(getattr(stored, name) == getattr(about, name) for name in _ABOUT)
    if not same or (draft.stated and draft.summary != stored.summary):
        raise _conflict(draft.client_key or "")
    return Kept(stored.entry_id, stored.seq, moment_of(stored.created_at) or 0, stored.summary, replayed=True)


_ABOUT = ("session", "role", "author", "at", "tags", "source")


def _conflict(client_key: str) -> KeyConflict:
    """Return the refusal of a client key that stands for another payload."""
    problem = f"client key {client_key!r} already stands for another payload"
    return KeyConflict(problem, operation="add_entry", hint="use a new key for a new entry")


def check_quota(what: str, wanted: int, allowed: int | None) -> None:
    """Refuse what would exceed a quota."""
    if allowed is not None and wanted > allowed:
        problem = f"{what} would be {wanted:,}, the quota is {allowed:,}"
        raise QuotaExceeded(problem, operation="write memory", hint="erase something, or raise the quota")
