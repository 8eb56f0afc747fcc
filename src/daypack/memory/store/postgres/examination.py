"""Examines a PostgreSQL store: every record's checksum, counts and usage, numbers, tags, tokens, dead jobs, rights.

Everything is read as the operator, as of one moment, in batches. Nothing is repaired: the server keeps its own files
intact, so what is wrong here was changed by hand, and only a backup has what was there.
"""

from collections.abc import Generator, Iterator
from typing import NamedTuple

from daypack.memory.store.checksums import MemoryRecord, UserRecord, is_intact
from daypack.memory.store.counts import Counts, plausible_numbers
from daypack.memory.store.examination import StoreProblem
from daypack.memory.store.port import is_store_id
from daypack.memory.store.postgres.jobs import Jobs
from daypack.memory.store.postgres.rights import examine_rights
from daypack.memory.store.postgres.statements import (
    DOCUMENT,
    ENTRY,
    TOKEN,
    USERS,
    counted_bytes,
    document_row,
    entry_row,
    memory_texts,
    token_texts,
    user_texts,
)
from daypack.memory.store.rows import Owner, Row, as_text, document_of, entry_of, token_of
from daypack.memory.times import now_ms
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction
from daypack.types.memory import DamagedRecord

_OPERATION = "examine store"
_BATCH = 1_000
_KEY_BYTES = 32
_MAX_NUMBER = (1 << 32) - 1
_TAGS = 9  # the column of an ENTRY row
_MEMORIES = (
    "SELECT m.tenant, m.id, m.title, m.type, m.description, m.created, m.deleted, m.crc,"
    " m.number, m.newest, m.documents, m.latest, m.entries, m.bytes FROM memories m"
    ' WHERE (m.tenant COLLATE "C", m.number) > (%s, %s) ORDER BY m.tenant COLLATE "C", m.number LIMIT %s'
)
_SUMS = (
    "SELECT count(*), coalesce(sum(entries), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM memories"
    " WHERE tenant = %s"
)
_ORPHANS = (
    "SELECT tenant, memory, count(*) FROM {} r WHERE NOT EXISTS"
    " (SELECT FROM memories m WHERE m.tenant = r.tenant AND m.number = r.memory) GROUP BY tenant, memory"
)


def examine(database: Database) -> list[StoreProblem]:
    """Return everything that is wrong with a store."""
    scope = Scope(role="daypack_operator", reading=True, snapshot=True)
    found = database.run(_OPERATION, lambda transaction: list(_Examination(transaction).problems()), scope)
    for job in Jobs(database).list_dead():
        what = f"the index of memory {job.memory_id or '?'} of {as_text(job.user)}"
        found.append(StoreProblem(what, f"given up after {job.attempts} attempts: {job.problem}"))
    return found


class _Found(NamedTuple):
    """What the records of one memory add up to: counts, and the highest seq, version and time."""

    counts: Counts
    newest: int
    documents: int
    latest: int


class _Examination:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._users: set[str] = set()
        self._now = now_ms()

    def problems(self) -> Iterator[StoreProblem]:
        yield from examine_rights(self._transaction)
        yield from self._check_store()
        yield from self._check_users()
        yield from self._check_memories()
        for table in ("entries", "documents", "tags"):
            for user, number, count in self._transaction.rows(_ORPHANS.format(table)):
                what = f"{count:,} rows of {table} (memory number {number} of {as_text(user)})"
                yield StoreProblem(what, "their memory does not exist")
        yield from self._check_tokens()

    def _check_store(self) -> Iterator[StoreProblem]:
        rows = self._transaction.rows("SELECT id, signing_key FROM store")
        if len(rows) != 1 or not is_store_id(rows[0][0]) or len(rows[0][1]) != _KEY_BYTES:
            yield StoreProblem("the store's id", "there must be one, of 16 hexadecimal digits, with a key of 32 bytes")

    def _check_users(self) -> Iterator[StoreProblem]:
        for row in self._transaction.rows(USERS):
            *fields, crc, memories, entries, size = user_texts(row)
            user = fields[0]
            self._users.add(user)
            what = f"user {as_text(user)}"
            if not is_intact(UserRecord(*fields), crc):
                yield StoreProblem(what, "checksum mismatch")
            counted = self._transaction.row(_SUMS, (user,)) or (0, 0, 0)
            if (memories, entries, size) != counted:
                stored = f"{memories} memories, {entries} entries, {size} bytes"
                yield StoreProblem(what, f"its usage is {stored}; there are {counted[0]}, {counted[1]}, {counted[2]}")

    def _check_memories(self) -> Iterator[StoreProblem]:
        last: tuple[str, int] = ("", -1)
        while rows := self._transaction.rows(_MEMORIES, (*last, _BATCH)):
            for row in rows:
                yield from self._check_memory(memory_texts(row))
            last = rows[-1][0], rows[-1][8]

    def _check_memory(self, row: Row) -> Iterator[StoreProblem]:
        *fields, crc, number, newest, documents, latest, entries, size = row
        owner = Owner(fields[0], fields[1])
        what = f"memory {as_text(owner.memory_id)}"
        if owner.user not in self._users:
            yield StoreProblem(what, f"its user {as_text(owner.user)} does not exist")
        if not is_intact(MemoryRecord(*fields), crc):
            yield StoreProblem(what, "checksum mismatch")
        found = yield from self._check_records(owner, number, what)
        if (entries, size) != found.counts:
            counted = f"there are {found.counts.entries}, {found.counts.bytes}"
            yield StoreProblem(what, f"it counts {entries} entries, {size} bytes; {counted}")
        stored = (newest, documents, latest)
        right = plausible_numbers(stored, (found.newest, found.documents, found.latest), self._now)
        for name, value, other in zip(("newest entry", "newest document", "latest time"), stored, right, strict=True):
            if value != other:
                yield StoreProblem(what, f"its {name} is {value}; its records have {other}")

    def _check_records(self, owner: Owner, number: int, what: str) -> Generator[StoreProblem, None, _Found]:
        counts, latest, newest, versions, intact = Counts(0, 0), 0, 0, 0, 0
        tags: set[tuple[bytes, int]] = set()
        for row in self._rows(ENTRY, "seq", (owner.user, number)):
            entry = entry_of(entry_row(row), owner)
            if isinstance(entry, DamagedRecord):
                yield StoreProblem(f"entry {row[0]} ({entry.id}) of {what}", entry.problem)
            counts = Counts(counts.entries + 1, counts.bytes + counted_bytes(row))
            newest, latest = max(newest, row[0] if row[0] <= _MAX_NUMBER else 0), max(latest, row[2])
            if row[_TAGS]:
                tags.update((tag, row[0]) for tag in row[_TAGS].split(b"\n"))
        for row in self._rows(DOCUMENT, "version", (owner.user, number)):
            document = document_of(document_row(row), owner)
            if isinstance(document, DamagedRecord):
                yield StoreProblem(f"document {row[0]} of {what}", document.problem)
            else:
                intact += 1
            counts = counts._replace(bytes=counts.bytes + len(row[3]))
            versions, latest = max(versions, row[0] if row[0] <= _MAX_NUMBER else 0), max(latest, row[2])
        if not intact:
            yield StoreProblem(what, "no version of its document is intact")
        query = "SELECT tag, seq FROM tags WHERE tenant = %s AND memory = %s"
        if set(self._transaction.rows(query, (owner.user, number))) != tags:
            yield StoreProblem(what, "tags differ from its entries")
        return _Found(counts, newest, versions, latest)

    def _rows(self, query: str, column: str, place: tuple[str, int]) -> Iterator[Row]:
        text, last = f"{query} AND {column} > %s ORDER BY {column} LIMIT {_BATCH}", -1
        while rows := self._transaction.execute(text.encode(), (*place, last), binary=True).fetchall():
            yield from rows
            last = rows[-1][0]

    def _check_tokens(self) -> Iterator[StoreProblem]:
        for row in self._transaction.rows(TOKEN):
            token = token_of(token_texts(row))
            what = f"token {as_text(row[0])}"
            if isinstance(token, DamagedRecord):
                yield StoreProblem(what, token.problem)
            elif token.user not in self._users:
                yield StoreProblem(what, f"its user {as_text(token.user)} does not exist")
