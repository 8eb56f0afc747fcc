"""A PostgreSQL database: transactions of one role and one tenant over a pool of connections.

Every transaction begins with `SET LOCAL`: the role, the tenant and the search path, which leads to the own schema only.
Nothing of a user is set for a session, so nothing of one transaction is left for the next one on the same connection,
with or without a pooler in between.

A transaction is sent as a pipeline: statements travel together, and only reading a result waits. A connection that is
lost before COMMIT was sent has changed nothing, so the work is done again on another one. If it is lost after that,
the outcome is not known: `CommitUnknown` is raised, unless `work` finds out by itself (`attempt` > 0).

Patience counts from the first failure of an outage, not from the beginning of each call (`outage`).
"""

import math
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from daypack import postgres
from daypack.errors import DaypackError
from daypack.forks import ThreadLock
from daypack.postgres.address import check_address, shown
from daypack.postgres.calls import Call
from daypack.postgres.commits import CommitDoubtful, require_replicated
from daypack.postgres.joined import Joined, received
from daypack.postgres.migrations import (
    APP,
    INCARNATION,
    OWNER,
    PATH,
    PLAIN_PATH,
    PLAIN_SETTINGS,
    SCHEMA,
    applied,
    check_encoding,
    check_membership,
    check_upgrading,
    list_migrations,
    migrate,
    schema_of_vector,
)
from daypack.postgres.outage import Outage
from daypack.postgres.pool import open_pool, roll_back, settle
from daypack.postgres.refusals import READ_ONLY, check_readable, is_on_replica, is_passing, psycopg_for, refusal
from daypack.postgres.transaction import Scope, Transaction

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

    from daypack.postgres.silence import WatchedConnection

Answer = TypeVar("Answer")
MAX_CONNECTIONS = 16
PATIENCE_SECONDS = 30.0  # for a server that restarts, a failover, or a free connection
STOPPED_SECONDS = 60  # of an exclusive transaction without a statement: more than an erasure computes new logs
CHECK_SECONDS = 2.0  # the patience of a check
_FIRST_PAUSE, _LAST_PAUSE = 0.02, 1.0
_PROBE_SECONDS = 2  # for one connection; libpq allows no less
_POOL_SECONDS = 2.0  # a call waits so long for a connection before it looks again whether one can be made
_BEGIN = (
    "SELECT pg_catalog.set_config('role', %s, true), pg_catalog.set_config('daypack.tenant', %s, true),"
    f" {PLAIN_SETTINGS}"
)
_AS_OWNER = (
    f"SELECT pg_catalog.set_config('search_path', '{PATH}', false),"
    " pg_catalog.set_config('default_transaction_read_only', 'off', false)"
)
_END_IF_STOPPED = "SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', %s, true)"
# Written by a transaction that finds out what became of an earlier one: with something to commit it waits until the
# synchronous replicas have both.
_RESOLVING = "SELECT pg_logical_emit_message(true, 'daypack', 'resolved'::text)"
# What was flushed, not what was written to the log: the rest may take a while until a replica gets it.
_POSITION = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
    " WHEN current_setting('synchronous_commit') = 'off' THEN pg_current_wal_insert_lsn()"
    f" ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn, {INCARNATION}"
)


_NOBODY, _READING = Scope(), Scope(reading=True)


class Database:
    """The database at an address; threads share it, and a forked child gets connections of its own.

    Nothing is connected before the first call, which brings the schema up to date.
    """

    def __init__(
        self, url: str, *, origin: str = "", most: int = MAX_CONNECTIONS, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.url = check_address(url, origin)
        self.place = shown(url)
        self._most = most
        self.patience = patience
        self.first_patience = min(patience, postgres.first_patience)  # until it has answered once
        self._outage = Outage()
        self._prepared = False
        self._pool: ConnectionPool[Connection[Any]] | None = None
        self._process = 0
        self._vector_schema = SCHEMA  # until it is known
        self._lock = ThreadLock()
        self._positions = threading.local()
        self.incarnation = ""  # as it was when the position was read last; see `migrations`
        self._joined = Joined()

    def run(self, operation: str, work: Callable[[Transaction], Answer], scope: Scope = _NOBODY) -> Answer:
        """Run `work` in one transaction and commit it; done again if the server gave it up or the connection was lost.

        Raises StorageFailed if that lasts longer than the patience, CommitUnknown if the outcome cannot be known.
        Work that can find out by itself whether an earlier attempt was committed is given to `resolve`.
        """
        return self._repeat(operation, work, scope, resolves=scope.reading)

    def resolve(self, operation: str, work: Callable[[Transaction], Answer], scope: Scope) -> Answer:
        """Run `work` that looks for its own earlier attempts, also after a commit with an unknown outcome."""
        return self._repeat(operation, work, scope, resolves=True)

    def call(self, operation: str, call: Call, scope: Scope) -> str | None:
        """Call a function that is a transaction: it sets its role and tenant, and looks for its earlier attempts."""
        return self._repeat(operation, _Calling(call), scope, resolves=True)

    @contextmanager
    def together(self, operation: str, tenant: str) -> Generator[None]:
        """Let the reads of this thread for a tenant share one transaction and one snapshot: fewer round trips.

        Anything else that the thread does ends it, and so does a lost connection: what follows has transactions of its
        own. They use the same connection, so that no thread waits for a second one.
        """
        if self._joined.connection is not None:
            yield
            return
        psycopg = psycopg_for(operation)
        if self._outage.has_lasted(self._patience):  # each read finds out whether it has ended
            yield
            return
        scope = Scope(tenant, reading=True, snapshot=True)
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(self._connections(operation).connection(timeout=_POOL_SECONDS))
                self._limit(connection)
                stack.enter_context(self._ending(connection))
                stack.enter_context(connection.pipeline())
                self._begin(connection, scope)
                self._joined.connection = connection
                self._joined.transaction = Transaction(connection, scope, 0, self._vector_schema)
            except psycopg.Error:
                stack.close()
            try:
                yield
            except psycopg.Error as error:  # else it would end here as an error of the shared transaction
                raise self._refusal(operation, error) from error

    @contextmanager
    def _ending(self, connection: "Connection[Any]") -> Generator[None]:
        """End a shared transaction, which has only read, whatever became of its connection."""
        import psycopg  # noqa: PLC0415

        try:
            with suppress(psycopg.Error):
                yield
        finally:
            self._joined.transaction = self._joined.connection = None
            if not connection.closed and not connection.broken:
                roll_back(connection)

    def _leave(self) -> None:
        """End the shared transaction; its connection is used on, if it is not lost."""
        connection, self._joined.transaction = self._joined.connection, None
        if connection is not None:
            roll_back(connection)

    def _repeat(self, operation: str, work: Callable[[Transaction], Answer], scope: Scope, *, resolves: bool) -> Answer:
        psycopg = psycopg_for(operation)
        joined = self._joined.transaction
        if joined is not None and scope.reading and scope.tenant == joined.tenant and scope.role == APP:
            try:
                return received(work(joined))
            except psycopg.Error:
                self._leave()  # what follows, this work included, begins anew
        elif joined is not None:
            self._leave()
        if self._outage.has_lasted(self._patience):
            self._require_server(operation)
        until, pause, attempt = self._outage.until(self._patience), _FIRST_PAUSE, 0
        doubt: CommitDoubtful | None = None
        promoted = time.monotonic() + self.first_patience  # a failover is over by then, or it is the wrong address
        while True:
            try:
                answer = self._attempt(operation, work, scope, attempt)
            except CommitDoubtful as error:
                if not resolves:
                    raise error.unknown(operation, self.place) from error.__cause__
                attempt, doubt = attempt + 1, error
                cause: BaseException = error
            except psycopg.Error as error:
                cause = self._reason(error)
                self._outage.note(cause)
                if not is_passing(cause) or (scope.reading and error.sqlstate == READ_ONLY):
                    raise self._given_up(operation, cause, doubt) from cause
                until = min(until, promoted) if is_on_replica(cause) else until
            else:
                self._outage.end()
                return answer
            if time.monotonic() > until:
                raise self._given_up(operation, cause, doubt) from cause
            time.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)

    def _attempt(self, operation: str, work: Callable[[Transaction], Answer], scope: Scope, attempt: int) -> Answer:
        import psycopg  # noqa: PLC0415

        if isinstance(work, _Calling) and not attempt and self._joined.connection is None:
            return cast(Answer, self._attempt_alone(operation, work.call))
        committing = False
        with self._connection(operation) as connection:
            self._limit(connection)
            try:
                with nullcontext() if scope.exclusive else connection.pipeline():
                    self._begin(connection, scope)
                    if attempt and not scope.reading:
                        connection.execute(_RESOLVING)
                    transaction = Transaction(connection, scope, attempt, self._vector_schema)
                    answer = work(transaction)
                    committing = not scope.reading
                    connection.execute("COMMIT")
                    position = connection.execute(_POSITION) if transaction.positioned else None
            except BaseException as error:
                lost = connection.closed or connection.broken
                if not lost:
                    roll_back(connection)
                if committing and lost and isinstance(error, psycopg.Error):
                    raise CommitDoubtful from error
                raise
            require_replicated(connection)
            if position is not None:
                self._positions.last = self._read_position(position.fetchone())
        return answer

    def _attempt_alone(self, operation: str, call: Call) -> str | None:
        """Make a call without BEGIN; it returns when the server is ready again, which is after the commit."""
        import psycopg  # noqa: PLC0415

        pool, sent = self._connections(operation), False
        connection = pool.getconn(timeout=_POOL_SECONDS)
        try:
            self._limit(connection)
            sent = True
            answer = call.alone(cast("WatchedConnection", connection))
            require_replicated(connection)
        except psycopg.Error as error:
            if sent and (connection.closed or connection.broken):
                raise CommitDoubtful from error
            raise
        else:
            return answer
        finally:
            pool.putconn(connection)

    def _begin(self, connection: "Connection[Any]", scope: Scope) -> None:
        connection.execute(scope.begin.encode())
        connection.execute(_BEGIN, (scope.role, scope.tenant))
        if scope.exclusive:
            connection.execute(_END_IF_STOPPED, (f"{STOPPED_SECONDS}s",))

    @property
    def last_position(self) -> int:
        """The position of the log after the last commit of this thread whose work was `positioned`; 0 before one."""
        return getattr(self._positions, "last", 0)

    def run_as_owner(self, operation: str, *statements: str) -> None:
        """Run statements that no transaction may contain, such as VACUUM, as the owner of the tables."""
        psycopg = psycopg_for(operation)
        from daypack.postgres.silence import connect  # noqa: PLC0415 — imports psycopg

        self._connections(operation)  # the schema is there
        try:
            with connect(self.url, 10) as one:
                one.execute(f"SET ROLE {OWNER}")
                one.execute(_AS_OWNER)
                for statement in statements:
                    one.execute(statement.encode())
        except psycopg.Error as error:
            raise self._refusal(operation, error) from error

    def wal_position(self) -> int:
        """Return the position of the log after everything that was committed; of a replica, how far it has replayed."""
        return self._read_position(self.run("read position", lambda transaction: transaction.row(_POSITION), _READING))

    def _read_position(self, row: tuple[Any, ...] | None) -> int:
        position, self.incarnation = row or (None, "")
        return int(position or 0)

    def check(self, operation: str, query: str = "SELECT 1") -> tuple[Any, ...] | None:
        """Return the first row of a query that writes nothing; raise if the database does not answer now."""
        with self.limited(CHECK_SECONDS):
            self.prepare(operation)
        with self.limited(CHECK_SECONDS):  # also after a first use that took longer
            return self._repeat(operation, lambda transaction: transaction.row(query), _READING, resolves=True)

    def prepare(self, operation: str) -> None:
        """Bring the schema up to date, if this is the first use: however long that takes, if the server answers."""
        psycopg_for(operation)
        self._connections(operation)

    def require_no_upgrade(self, operation: str) -> None:
        """Raise if another process is upgrading the schema: calls that have not used it yet wait for that."""
        psycopg = psycopg_for(operation)
        from daypack.postgres.silence import connect  # noqa: PLC0415 — imports psycopg

        check_readable(self.url, operation, self.place)
        try:
            with connect(self.url, _PROBE_SECONDS) as one:
                check_upgrading(one, self.place)
        except psycopg.Error as error:
            raise self._refusal(operation, error) from error

    @contextmanager
    def limited(self, seconds: float) -> Generator[None]:
        """Let calls of this thread wait at most so long in all for a database that does not answer."""
        before = self._joined.until
        self._joined.until = min(before, time.monotonic() + seconds)
        try:
            yield
        finally:
            self._joined.until = before

    @property
    def _patience(self) -> float:
        return min(self.patience, max(0.0, self._joined.until - time.monotonic()))

    def _require_server(self, operation: str) -> None:
        """Raise if the server still does not take connections: after a long outage, no call waits for it again."""
        import psycopg  # noqa: PLC0415

        try:
            psycopg.connect(self.url, connect_timeout=_PROBE_SECONDS).close()
        except psycopg.Error as error:
            self._outage.note(error)
            raise self._refusal(operation, error) from error
        self._outage.end()

    def close(self) -> None:
        """Close all connections; the next call opens them again."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._process == os.getpid():
            pool.close()

    # Connections

    def _connections(self, operation: str) -> "ConnectionPool[Connection[Any]]":
        if not self._prepared:  # without the lock: threads do not wait for the patience of another
            check_readable(self.url, operation, self.place)
            self._prepare(operation)
        with self._lock:
            if self._pool is None or self._process != os.getpid():
                self._pool = open_pool(self.url, self._most)
                self._process = os.getpid()
            return self._pool

    def _connection(self, operation: str) -> "AbstractContextManager[Connection[Any]]":
        """Return the connection that this thread has, or one of the pool."""
        held = self._joined.connection
        if held is not None and not held.closed and not held.broken:
            return nullcontext(held)
        return self._connections(operation).connection(timeout=_POOL_SECONDS)

    def _limit(self, connection: "Connection[Any]") -> None:
        """Have a connection give up when this call does, see `silence`; raise if it was closed before."""
        watched = cast("WatchedConnection", connection)
        watched.require_open()
        watched.until, watched.end = time.monotonic() + self._patience, self._joined.until

    def _prepare(self, operation: str) -> None:
        """Bring the schema up to date, with a connection that has the rights of the address."""
        import psycopg  # noqa: PLC0415

        from daypack.postgres.silence import connect  # noqa: PLC0415

        patience = min(self._patience, self.first_patience)
        until, pause = self._outage.until(patience), _FIRST_PAUSE
        while True:
            wait = max(_PROBE_SECONDS, min(10, int(until - time.monotonic())))
            try:
                with connect(self.url, wait) as one:
                    one.until, one.end = until, self._joined.until
                    check_encoding(one, self.place)
                    one.execute(f"SELECT {PLAIN_PATH}")
                    if (done := applied(one, self.place)) < list_migrations()[-1].number:
                        one.end = math.inf  # given up, it would be rolled back, and begin anew at the next call
                        migrate(one, self.place)
                    if done:
                        check_membership(one, APP, self.place)
                    self._vector_schema = schema_of_vector(one)
            except psycopg.Error as error:
                self._outage.note(error)
                if not is_passing(error) or time.monotonic() > until:
                    raise self._refusal(operation, error) from error
            else:
                self._outage.end()
                self._prepared = True
                return
            time.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)

    # Errors

    def _given_up(self, operation: str, error: BaseException, doubt: CommitDoubtful | None) -> DaypackError:
        return self._refusal(operation, error) if doubt is None else doubt.unknown(operation, self.place)

    def _refusal(self, operation: str, error: BaseException) -> DaypackError:
        return refusal(self._reason(error), operation, self.place)

    def _reason(self, error: BaseException) -> BaseException:
        """Return why a pool has no connection: it does not say so itself."""
        import psycopg  # noqa: PLC0415
        from psycopg_pool import PoolTimeout  # noqa: PLC0415

        if not isinstance(error, PoolTimeout):
            return error
        from daypack.postgres.silence import connect  # noqa: PLC0415

        try:
            with connect(self.url, _PROBE_SECONDS) as one:
                settle(one)
        except psycopg.Error as reason:
            return reason
        return psycopg.OperationalError(f"all {self._most} connections are in use")


class _Calling(NamedTuple):
    """A call as work for a transaction, after one by itself that may have been lost."""

    call: Call

    def __call__(self, transaction: Transaction) -> Any:  # noqa: ANN401 — of work, the answer can be any
        return self.call.within(transaction.connection)
