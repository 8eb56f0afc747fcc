"""The rows of a session as they are: read in ranges, copied into, replaced by an erasure, deleted.

Nothing here uses a cache. Rows are read in batches of bounded size, each with the generation of that moment: if an
erasure has rewritten the logs since, the read fails instead of mixing both.
"""

# ruff: noqa: S608 — the parts of statements are constants

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4
from zlib import crc32

from daypack.errors import Overtaken
from daypack.history.logs.upstream import Mark
from daypack.history.postgres.stored import LOGS, MAX_FETCHED_BYTES, SmallFiles, StoredSession
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

MAX_ROW_BYTES = 16 << 20  # a longer line is a row of its own
_OWN = "WHERE tenant = %s AND session = %s"
_HEAD = "SELECT generation, version, meta, cwd, created FROM sessions WHERE tenant = %s AND number = %s"
_END = f"SELECT stop, crc FROM session_lines {_OWN} AND log = %s ORDER BY start DESC LIMIT 1"
_ROWS = (
    f"SELECT start, stop, crc, data FROM session_lines {_OWN} AND log = %s AND start >= %s AND start < %s"
    " ORDER BY start LIMIT %s"
)
_NEXT = f"SELECT min(start) FROM session_lines {_OWN} AND log = %s AND start >= %s"
_PUT_BLOBS = (
    "INSERT INTO session_blobs(tenant, session, name, data)"
    " SELECT %s, %s, * FROM unnest(%s::text[], %s::bytea[]) ON CONFLICT DO NOTHING"
)
_PUT_LINES = (
    "INSERT INTO session_lines(tenant, session, log, start, stop, crc, writer, data)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))"
_SETTINGS = "UPDATE sessions SET meta = %s, cwd = %s WHERE tenant = %s AND number = %s"
_REWRITTEN = (
    "UPDATE sessions SET generation = generation + 1,"
    f" writers = writers || ARRAY(SELECT writer FROM session_lines {_OWN}) WHERE tenant = %s AND number = %s"
)
_TABLES = (
    "SELECT DISTINCT format('%%I.%%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
    " WHERE c.oid IN (SELECT tableoid FROM session_lines WHERE tenant = %s AND session = %s"
    " UNION SELECT tableoid FROM session_blobs WHERE tenant = %s AND session = %s)"
)


class Row(NamedTuple):
    """A part of a log."""

    start: int
    stop: int
    crc: int
    data: bytes


class Known(NamedTuple):
    """A session at one moment: what a rewrite must find unchanged."""

    generation: int
    version: int
    files: SmallFiles
    ends: tuple[Mark, ...]  # of messages and events


class NewRows(NamedTuple):
    """What an erasure puts in the place of a session. `blobs` are added, those in `removed` deleted."""

    logs: Sequence[bytes]
    blobs: Mapping[str, bytes]
    removed: Sequence[str]
    files: SmallFiles


class SessionRows:
    """The rows of one session of a user."""

    def __init__(self, database: Database, tenant: str, number: int) -> None:
        self.database = database
        self.stored = StoredSession(database, tenant, number)
        self._own = tenant, number
        self._reading = Scope(tenant, reading=True, snapshot=True)
        self._writing = Scope(tenant)
        self._erasing = Scope(tenant, "daypack_eraser", exclusive=True)

    def known(self) -> Known:
        """Return how far the logs reach now, and the small files; raise SessionMissing if it is gone."""
        return self.database.run("read session", self._known, self._reading)

    def _known(self, transaction: Transaction) -> Known:
        head = transaction.execute(_HEAD, self._own, binary=True)
        ends = [transaction.execute(_END, (*self._own, log)) for log in range(len(LOGS))]
        row = head.fetchone()
        if row is None:
            raise self.stored.gone("read session")
        marks = tuple(Mark(*(end.fetchone() or ())) for end in ends)
        return Known(row[0], row[1], SmallFiles(*row[2:]), marks)

    def read(self, generation: int, log: int, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """Yield the rows that begin between two places, as they are: a gap stays a gap.

        Raises Overtaken if the logs were rewritten since `generation`.
        """
        at = start
        while stop is None or at < stop:
            rows = self._batch(generation, log, at, stop)
            if not rows:
                return
            yield from rows
            at = rows[-1].start + 1

    def _batch(self, generation: int, log: int, at: int, stop: int | None) -> list[Row]:
        def work(transaction: Transaction) -> tuple[Any, ...]:
            begin = transaction.row(_NEXT, (*self._own, log, at))
            first = begin[0] if begin and begin[0] is not None else at
            until = first + MAX_FETCHED_BYTES if stop is None else min(stop, first + MAX_FETCHED_BYTES)
            rows = transaction.execute(_ROWS, (*self._own, log, first, until, 20_000), binary=True)
            return transaction.execute(_HEAD, self._own, binary=True).fetchone(), rows.fetchall()

        head, rows = self.database.run("read session", work, self._reading)
        if head is None:
            raise self.stored.gone("read session")
        if head[0] != generation:
            raise self._rewritten("read session")
        return [Row(*row) for row in rows]

    def row_with(self, log: int, place: int) -> int | None:
        """Return where the row begins that has the byte at a place, or that ends there."""
        query = f"SELECT max(start) FROM session_lines {_OWN} AND log = %s AND start <= %s"
        row = self.database.run("read session", lambda at: at.row(query, (*self._own, log, place)), self._reading)
        return row[0] if row else None

    def put_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Store blobs that no line refers to yet; those that are there stay as they are."""
        values = (*self._own, list(blobs), list(blobs.values()))
        self.database.resolve("store blobs", lambda transaction: transaction.execute(_PUT_BLOBS, values), self._writing)

    def put_settings(self, files: SmallFiles) -> None:
        """Replace meta.json and cwd."""
        values = (files.meta, files.cwd, *self._own)
        self.database.resolve(
            "write settings", lambda transaction: transaction.execute(_SETTINGS, values), self._writing
        )

    def replace(self, known: Known, new: NewRows) -> tuple[str, ...]:
        """Put new logs in the place of the old ones, in one transaction; return the tables that have old bytes.

        Raises Overtaken, and changes nothing, if the session is not as `known` any more.
        """

        def same(found: Known) -> NewRows:
            if found != known:
                raise self._rewritten("erase")
            return new

        return self.rewrite(same) or ()

    def rewrite(self, make: Callable[[Known], NewRows | None]) -> tuple[str, ...] | None:
        """Put logs in the place of the old ones that are made while every append waits; None: nothing is changed.

        `make` is called within the transaction. It must not wait for a lock of which the holder may be appending.
        """
        attempts: list[tuple[int, tuple[Mark, ...]]] = []

        def work(transaction: Transaction) -> tuple[str, ...] | None:
            transaction.execute(_LOCK, self._own)  # appends wait, and find another generation then
            transaction.execute("SELECT FROM sessions WHERE tenant = %s AND number = %s FOR UPDATE", self._own)
            known = self._known(transaction)
            tables = tuple(name for (name,) in transaction.rows(_TABLES, (*self._own, *self._own)))
            if transaction.attempt and (known.generation, known.ends) in attempts:
                return tables  # an earlier attempt was committed
            new = make(known)
            if new is None:
                return None
            attempts.append((known.generation + 1, tuple(Mark(len(data), crc32(data)) for data in new.logs)))
            transaction.execute(_REWRITTEN, (*self._own, *self._own))  # before the rows with the writers are deleted
            transaction.execute(f"DELETE FROM session_lines {_OWN}".encode(), self._own)
            gone = (*self._own, list(new.removed))
            transaction.execute(f"DELETE FROM session_blobs {_OWN} AND name = ANY(%s)".encode(), gone)
            self._insert_blobs(transaction, new.blobs)
            for log, data in enumerate(new.logs):
                self._insert_lines(transaction, log, data)
            if new.files != known.files:
                transaction.execute(_SETTINGS, (new.files.meta, new.files.cwd, *self._own))
            return (*tables, "daypack.sessions") if new.files != known.files else tables

        return self.database.resolve("erase", work, self._erasing)

    def _insert_blobs(self, transaction: Transaction, blobs: Mapping[str, bytes]) -> None:
        for name, data in blobs.items():
            transaction.execute(_PUT_BLOBS, (*self._own, [name], [data]))
            transaction.row("SELECT 1")  # waits, so that not everything is under way at once

    def _insert_lines(self, transaction: Transaction, log: int, data: bytes) -> None:
        place = Mark()
        for part in split_lines(data):
            after = Mark(place.end + len(part), crc32(part, place.crc))
            transaction.execute(_PUT_LINES, (*self._own, log, place.end, *after, uuid4(), part))
            transaction.row("SELECT 1")
            place = after

    def delete(self) -> tuple[str, ...]:
        """Delete the session with its logs and blobs; return the tables that have old bytes."""

        def work(transaction: Transaction) -> tuple[str, ...]:
            transaction.execute(_LOCK, self._own)
            tables = tuple(name for (name,) in transaction.rows(_TABLES, (*self._own, *self._own)))
            for table in ("session_lines", "session_blobs"):
                transaction.execute(f"DELETE FROM {table} {_OWN}".encode(), self._own)
            transaction.execute("DELETE FROM sessions WHERE tenant = %s AND number = %s", self._own)
            return (*tables, "daypack.sessions")

        return self.database.resolve("delete session", work, self._erasing)

    def _rewritten(self, operation: str) -> Overtaken:
        hint = "another worker changed the session meanwhile; run it again"
        return Overtaken("the session has changed", operation=operation, place=self.stored.place, hint=hint)


def split_lines(data: bytes) -> Iterator[bytes]:
    """Yield whole lines in parts of at most MAX_ROW_BYTES; a longer line is a part of its own."""
    at = 0
    while at < len(data):
        stop = len(data)
        if stop - at > MAX_ROW_BYTES:
            cut = data.rfind(b"\n", at, at + MAX_ROW_BYTES)
            cut = cut if cut != -1 else data.find(b"\n", at)
            stop = len(data) if cut == -1 else cut + 1
        yield data[at:stop]
        at = stop
