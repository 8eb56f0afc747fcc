"""One session in a database: its logs as rows of bytes, its blobs and its settings.

An append is one statement and one round trip. It names the place in the log where its bytes begin, so it is stored
only if no other worker has appended since the caller looked: a worker that was paused, or lost its connection, cannot
write under a lock that it no longer has.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from daypack.errors import SessionMissing
from daypack.history.facets import Condition, format_meta, parse_meta
from daypack.history.logs.upstream import Mark
from daypack.history.postgres.appends import Added, Append, Outcome
from daypack.postgres.calls import Call
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

LOGS = ("messages", "events")  # their numbers in the database
MAX_FETCHED_BYTES = 16 << 20  # of a log at once; a longer row comes whole

_REACH = "SELECT pg_catalog.array_to_string(daypack.reach_of_session(%s, %s), ' ')"
_SESSION = (
    "SELECT generation, version, small.* FROM sessions LEFT JOIN LATERAL (SELECT meta, cwd, created) small"
    " ON (generation, version) <> (%s, %s) WHERE tenant = %s AND number = %s"
)
_OWN = "FROM session_lines WHERE tenant = %s AND session = %s AND log = %s"
_LINES = (
    f"(SELECT start, stop, crc, NULL::bytea {_OWN} AND start < %s ORDER BY start DESC LIMIT 1)"
    f" UNION ALL (SELECT start, stop, crc, data {_OWN} AND start >= %s AND start < %s ORDER BY start)"
)
_LOCK_META = "SELECT meta, version FROM sessions WHERE tenant = %s AND number = %s FOR UPDATE"
_PUT_META = "UPDATE sessions SET meta = %s WHERE tenant = %s AND number = %s RETURNING version"
_BLOB = "SELECT data FROM session_blobs WHERE tenant = %s AND session = %s AND name = %s"
_BLOBS = "SELECT name FROM session_blobs WHERE tenant = %s AND session = %s ORDER BY name"


class SmallFiles(NamedTuple):
    """The small files of a session that are no part of its logs."""

    meta: bytes
    cwd: bytes
    created_at: bytes


class Lines(NamedTuple):
    """What follows a mark in a log. `fits`: the mark is a place of this log; else what is before it is wrong."""

    fits: bool
    data: bytes
    more: bool  # there may be further lines after these
    reach: int  # bytes of the log, as far as they were fetched


class Fetched(NamedTuple):
    """What a session has that a cache lacks, as of one moment."""

    generation: int
    version: int
    files: SmallFiles | None  # None: as before
    logs: tuple[Lines, ...]


class StoredSession:
    """The rows of one session."""

    def __init__(self, database: Database, tenant: str, number: int) -> None:
        self.database = database
        self.number = number
        self._tenant = tenant
        self._writing = Scope(tenant)
        self._reading = Scope(tenant, reading=True, snapshot=True)

    @property
    def place(self) -> str:
        """The address of the database, without its password."""
        return self.database.place

    def append(self, generation: int, added: Added, blobs: Mapping[str, bytes]) -> Outcome:
        """Store lines, and the blobs they refer to, if the log still ends where they begin."""
        return Append(self.database, self._tenant, self.number, generation, added, blobs).store()

    def reaches(self, generation: int, version: int, marks: Sequence[Mark]) -> bool:
        """Return True if nothing was stored since it had this generation and version, and these logs."""
        call = Call(_REACH, (self._tenant, str(self.number)))
        known = generation, version, *(number for mark in marks for number in mark)
        return self.database.call("read session", call, self._reading) == " ".join(map(str, known))

    def fetch(self, marks: Sequence[Mark], generation: int, version: int) -> Fetched:
        """Return what follows these marks in the logs, of each at most about `MAX_FETCHED_BYTES`."""
        own = self._tenant, self.number

        def work(transaction: Transaction) -> tuple[Any, ...]:
            logs = [
                transaction.execute(
                    _LINES, (*own, log, mark.end, *own, log, mark.end, mark.end + MAX_FETCHED_BYTES), binary=True
                )
                for log, mark in enumerate(marks)
            ]
            return (transaction.execute(_SESSION, (generation, version, *own), binary=True), *logs)

        session, *logs = self.database.run("read session", work, self._reading)
        row = session.fetchone()
        if row is None:
            raise self.gone("read session")
        found = tuple(_lines(mark, rows.fetchall()) for mark, rows in zip(marks, logs, strict=True))
        files = None if row[2] is None else SmallFiles(*row[2:])
        return Fetched(row[0], row[1], files, found)

    def change_meta(self, changes: Mapping[str, Any], only_if: Condition | None = None) -> tuple[bytes, int]:
        """Change keys of meta.json and keep the others, if a condition is true of it; return its bytes and version."""
        own = self._tenant, self.number

        def work(transaction: Transaction) -> tuple[bytes, int]:
            row = transaction.execute(_LOCK_META, own, binary=True).fetchone()
            if row is None:
                raise self.gone("write settings")
            meta = parse_meta(row[0])
            if only_if is not None and not only_if(meta or {}):
                return row[0], row[1]
            data = row[0] if meta is None else format_meta({**meta, **changes})
            written = transaction.row(_PUT_META, (data, *own))
            return data, written[0] if written else 0

        return self.database.resolve("write settings", work, self._writing)

    def gone(self, operation: str) -> SessionMissing:
        """Return the error for a session that was deleted while it was open."""
        hint = "it was deleted, or moved to another database; opening it again creates a new one"
        return SessionMissing("the session is gone", operation=operation, place=self.place, hint=hint)

    def blob(self, name: str) -> bytes | None:
        """Return a blob; None if there is none of that name."""
        query = (self._tenant, self.number, name)
        rows = self.database.run(
            "read blob", lambda transaction: transaction.execute(_BLOB, query, binary=True).fetchall(), self._reading
        )
        return rows[0][0] if rows else None

    def blob_names(self) -> list[str]:
        """Return the names of all blobs."""
        query = (self._tenant, self.number)
        rows = self.database.run("list blobs", lambda transaction: transaction.rows(_BLOBS, query), self._reading)
        return [name for (name,) in rows]


def _lines(mark: Mark, rows: Sequence[tuple[int, int, int, bytes | None]]) -> Lines:
    before = next((Mark(stop, crc) for _, stop, crc, data in rows if data is None), Mark())
    found = [data for _, _, _, data in rows if data is not None]
    fits = mark == before
    reach = max((stop for _, stop, _, _ in rows), default=0)
    return Lines(fits, b"".join(found) if fits else b"", bool(found) or not fits, reach)
