"""The database that has the memories of a home, if a setting names one: for backups, restores, doctor and checks."""

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from daypack import postgres
from daypack.config import with_database
from daypack.errors import DaypackError
from daypack.history.layout import Home

if TYPE_CHECKING:
    from daypack.memory.store.examination import StoreProblem
    from daypack.memory.store.postgres.jobs import JobCounts
    from daypack.postgres.database import Database
    from daypack.postgres.transaction import Transaction

_ABOUT = (
    "SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
    " (SELECT max(number) FROM migrations), session_user,"
    " (SELECT rolsuper FROM pg_roles WHERE rolname = session_user), current_user,"
    " extract(epoch FROM clock_timestamp())::float8"
)


LAX = "synchronous_commit is off: a crash of the database loses writes that were acknowledged"
_LAX = "SELECT quote_ident(session_user) WHERE current_setting('synchronous_commit') = 'off'"
_SIZE = (
    "SELECT count(*), coalesce(sum(bytes), 0)::bigint,"
    " (SELECT count(*) FROM entries) + (SELECT count(*) FROM documents) FROM memories"
)


_SESSIONS = (
    "SELECT (SELECT coalesce(sum(stop - start), 0)::bigint FROM session_lines)"
    " + (SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM session_blobs)"
)


class Size(NamedTuple):
    """How much the memories of all users are; `records` are entries and versions of documents."""

    memories: int
    bytes: int
    records: int


class ReplicaState(Struct, frozen=True):
    """A replica; `lag` counts the bytes of the log that it has not replayed, None if it is not used.

    `is_wrong`: it has another store than the primary, or none.
    """

    place: str
    lag: int | None
    problem: str = ""
    is_wrong: bool = False


class DatabaseState(Struct, frozen=True):
    """What a database is, and how many index jobs it has. `clock` is how many seconds it is ahead of this machine.

    `lax_account` is the account if its commits do not wait for the disk, else empty.
    """

    place: str
    server: str
    vector: str
    schema: int
    known_schema: int
    account: str
    is_superuser: bool
    role: str
    role_problems: tuple["StoreProblem", ...]
    lax_account: str
    clock: float
    due_jobs: int
    dead_jobs: int
    replica: ReplicaState | None = None


def find_database(home: Home) -> "Database | None":
    """Return the database of --store, DAYPACK_STORE_URL or config.toml; None if memories are files of the home."""
    config = with_database(os.environ, home.config)
    if config is None:
        return None
    from daypack.postgres.database import Database  # noqa: PLC0415 — few have one

    database = Database(config.store_url or "", origin=home.config)
    database.first_patience = (
        postgres.SHORT_SECONDS
    )  # a person waits; after its first answer, a restart is waited for longer
    return database


def measure(database: "Database") -> Size:
    """Return how much the memories in a database are."""
    from daypack.postgres.transaction import Scope  # noqa: PLC0415 — only with a database

    scope = Scope(role="daypack_operator", reading=True)
    return Size(*(database.run("measure", lambda transaction: transaction.row(_SIZE), scope) or (0, 0, 0)))


def measure_sessions(database: "Database") -> int:
    """Return how many bytes the logs and blobs of all sessions in a database have."""
    from daypack.postgres.transaction import Scope  # noqa: PLC0415 — only with a database

    scope = Scope(role="daypack_operator", reading=True)
    return (database.run("measure", lambda transaction: transaction.row(_SESSIONS), scope) or (0,))[0]


def lax_account(database: "Database") -> str:
    """Return the account of a database, quoted, if its commits do not wait for the disk; else an empty text."""
    from daypack.postgres.transaction import Scope  # noqa: PLC0415 — only with a database

    row = database.run("check", lambda transaction: transaction.row(_LAX), Scope(reading=True))
    return row[0] if row else ""


def lax_remedy(account: str) -> str:
    """Return what has the commits of an account wait."""
    return f"ALTER ROLE {account} SET synchronous_commit = on; then connect again"


def describe(database: "Database", replica: "Database | None" = None) -> DatabaseState:
    """Return what a database is now; raise if it does not answer. A replica that does not answer has a problem."""
    from daypack.memory.store.postgres.jobs import Jobs  # noqa: PLC0415 — only with a database
    from daypack.memory.store.postgres.rights import examine_roles  # noqa: PLC0415
    from daypack.postgres.migrations import list_migrations  # noqa: PLC0415
    from daypack.postgres.transaction import Scope  # noqa: PLC0415

    def read(transaction: "Transaction") -> tuple[Any, ...]:
        before = time.time()
        row = transaction.row(_ABOUT) or ("", "", 0, "", False, "", before)
        clock = row[-1] - (before + time.time()) / 2
        return *row[:-1], clock, tuple(examine_roles(transaction))

    server, vector, schema, *accounts, clock, role_problems = database.run("check", read, Scope(reading=True))
    account, is_superuser, role = accounts
    jobs: JobCounts = Jobs(database).counts()
    return DatabaseState(
        place=database.place,
        server=server.partition(" ")[0],
        vector=vector or "",
        schema=schema or 0,
        known_schema=list_migrations()[-1].number,
        account=account,
        is_superuser=is_superuser,
        role=role,
        role_problems=role_problems,
        lax_account=lax_account(database),
        clock=round(clock, 3),
        due_jobs=jobs.due,
        dead_jobs=jobs.dead,
        replica=None if replica is None else _describe_replica(database, replica),
    )


def _describe_replica(database: "Database", replica: "Database") -> ReplicaState:
    from daypack.memory.store.postgres.replica import WrongStore  # noqa: PLC0415 — only with a replica

    try:
        position = database.wal_position()
        return ReplicaState(replica.place, max(0, position - replica.wal_position()))
    except DaypackError as error:
        return ReplicaState(replica.place, None, error.problem, isinstance(error, WrongStore))
