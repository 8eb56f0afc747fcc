"""Reads on a replica: as new as their user must see, or on the primary.

Every transaction on the replica first reads how far the replica has replayed the log, and of which store. What it
found counts only if that is at least the position its user needs, the server is still a replica and the store is that
of the primary. So it does not matter whether several replicas share the address, whether the connection led to a server
that was promoted or to another one, or what was known about it before: any doubt, and any error, has the read repeated
on the primary.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Thread, local
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from daypack.errors import DaypackError, StorageFailed
from daypack.forks import ThreadLock, forks
from daypack.postgres.database import Database
from daypack.postgres.migrations import PLAIN_PATH, SCHEMA, schema_of_vector
from daypack.postgres.transaction import Scope, Transaction

if TYPE_CHECKING:
    from psycopg import Cursor

Answer = TypeVar("Answer")
MAX_USERS = 10_000  # whose last writes are remembered
_WAIT_SECONDS = 0.05  # a read waits so long for the replica before it asks the primary
_FIRST_PAUSE = 0.002
_LATE_SECONDS = 0.25  # after a read has waited in vain, others do not wait
_PROBE_SECONDS, _MAX_PROBE_SECONDS = 0.5, 10.0
_CONNECT_SECONDS = 2
_PAGE_BYTES, _PAGE_HEADER_BYTES = 8192, 24
# Answers of a replica that works: queries it cancelled in favour of replaying, and a write.
_CONFLICTS = ("40001", "40P01", "57014", "25006")
# A restored store may have the id of the one in the backup: only its database and its server are different.
_STORE = "(SELECT min(id) FROM store), (SELECT oid FROM pg_database WHERE datname = current_database())"
_SYSTEM = "(SELECT system_identifier FROM pg_control_system())"
_MAY_READ_SYSTEM = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
_POSITION = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() - '0/0'::pg_lsn END"
_HAS_STORE = f"SELECT to_regclass('{SCHEMA}.store') IS NOT NULL, pg_is_in_recovery()"
_NOBODY = Scope()
_PROMOTED = "it is no replica, or was promoted"
_NO_REPLICA = "it is no replica, and "
_OTHER_STORE, _NO_STORE = "it has another store", "it has no daypack store"
_HINT = "take replica_url out of the configuration, or give it the address of a replica of this database"


class Lagging(StorageFailed):
    """The replica has not replayed the log as far as a read needs."""


class Promoted(StorageFailed):
    """The server accepts writes: its log has a history of its own."""


class WrongStore(StorageFailed):
    """The server has another store than the primary, or none: nothing that it says is about the same memories."""


class _Identity(NamedTuple):
    """What a primary and its replicas have in common: `values`, which `columns` read."""

    columns: str
    values: tuple[Any, ...]


class _Floor(local):
    """The position that every transaction of a thread must have reached."""

    position: int = 0


class Replica(Database):
    """A replica of `primary`: every transaction only reads, and fails if the server is no replica of it any more."""

    def __init__(self, url: str, primary: Database, *, origin: str = "") -> None:
        super().__init__(url, origin=origin, patience=0.0)
        self._primary = primary
        self._identity: _Identity | None = None  # of the primary
        self.problem = ""  # why it is not used; empty if it is
        self.replayed = 0  # the farthest position seen
        self.answered = 0  # reads
        self._late_until = 0.0
        self._floor = _Floor()
        self._probing: Thread | None = None
        self._closing = Event()
        self._state = ThreadLock()
        forks.watch(self)

    def run(
        self, operation: str, work: Callable[[Transaction], Answer], scope: Scope = _NOBODY, *, wanted: int = 0
    ) -> Answer:  # fmt: skip
        """Run `work`, which only reads, as of `wanted` or later; nothing is waited for. Raises Lagging if it is not."""
        wanted = max(wanted, self._floor.position)
        identity = self._identity or self._identify(operation)
        query = f"{_POSITION}, {identity.columns}".encode()

        def checked(transaction: Transaction) -> "tuple[Cursor[Any], Answer]":
            position = transaction.execute(query)
            if scope.snapshot:  # it is taken by the first statement of a transaction, and must not be older
                transaction.execute("COMMIT")
                self._begin(transaction.connection, scope)
            return position, work(transaction)

        scope = scope._replace(reading=True)
        position, answer = super().run(operation, checked, scope._replace(snapshot=False))
        self._check(operation, position.fetchone(), identity, wanted)
        return answer

    def resolve(self, operation: str, work: Callable[[Transaction], Answer], scope: Scope) -> Answer:
        """Run `work` as `run` does: there are no commits with an unknown outcome."""
        return self.run(operation, work, scope)

    @contextmanager
    def together(self, operation: str, tenant: str) -> Generator[None]:
        """Have each read use a transaction of its own, whose snapshot is not older than the position it reads."""
        _ = operation, tenant
        yield

    def wal_position(self) -> int:
        """Return how far it has replayed."""
        self.run("read position", _nothing)
        return self.replayed

    def wait_for(self, position: int) -> None:
        """Wait a little until it has replayed a position; raise Lagging if it has not."""
        until, pause = time.monotonic() + _WAIT_SECONDS, _FIRST_PAUSE
        while self.replayed < end_of_record(position):
            try:
                self.run("read position", _nothing, wanted=position)
            except Lagging:
                now = time.monotonic()
                if now >= until or now < self._late_until:
                    self._late_until = now + _LATE_SECONDS
                    raise
                time.sleep(pause)
                pause *= 2

    def lag(self, wanted: int) -> str:
        """Return why reads as of a position cannot be answered here; empty if they can, or if none are sent here."""
        try:
            self.run("read position", _nothing, wanted=wanted)
        except Promoted:
            return ""  # every read notices that too, and goes to the primary
        except Lagging:
            return "the replica has not caught up"
        except WrongStore as error:
            self.failed(error)
            return f"the replica cannot be used: {error.problem}"
        except DaypackError as error:
            self.failed(error)
            return f"the replica cannot be reached: {error.problem}"
        return ""

    @contextmanager
    def at_least(self, position: int) -> Generator[None]:
        """Have everything that this thread reads meanwhile be as of a position or later, or raise Lagging."""
        before = self._floor.position
        self._floor.position = max(before, position)
        try:
            yield
        finally:
            self._floor.position = before

    def failed(self, error: BaseException) -> None:
        """Remember why a read failed, if reads to come would fail too; the replica is tried again in the background."""
        import psycopg  # noqa: PLC0415 — opened by `_connections`

        cause = error.__cause__
        if isinstance(cause, psycopg.Error):
            if cause.sqlstate in _CONFLICTS:
                return
        elif not isinstance(error, Promoted | WrongStore):
            return  # it has answered, if only that it lags
        with self._state:
            self.problem = str(error.problem if isinstance(error, DaypackError) else error) or "no answer"
            if self._probing is None or not self._probing.is_alive():
                self._closing.clear()
                self._probing = Thread(target=self._probe, name="daypack-replica", daemon=True)
                self._probing.start()

    def close(self) -> None:
        """Close all connections; the next call opens them again."""
        self._closing.set()
        super().close()
        self.forget()

    def forget(self) -> None:
        """Try it again: after a fork or a close, no thread looks at it in the background."""
        self.problem = ""

    def _identify(self, operation: str) -> _Identity:
        """Ask the primary what its replicas must have too."""
        may_read = self._primary.check(operation, _MAY_READ_SYSTEM)
        columns = f"{_STORE}, {_SYSTEM}" if may_read and may_read[0] else _STORE
        found = _Identity(columns, self._primary.check(operation, f"SELECT {columns}") or ())
        self._identity = found
        return found

    def _check(self, operation: str, row: tuple[Any, ...] | None, identity: _Identity, wanted: int) -> None:
        position, *values = row or (None,)
        if tuple(values) != identity.values:
            self._identity = None  # the primary may have another one, since it was restored
            problem = _OTHER_STORE if values and values[0] else _NO_STORE
            raise self._wrong_store(operation, problem, is_replica=position is not None)
        if position is None:
            raise Promoted(_PROMOTED, operation=operation, place=self.place, hint=_HINT)
        self.replayed = max(self.replayed, int(position))
        if int(position) < end_of_record(wanted):
            self.replayed = int(position)  # several replicas may share the address
            raise Lagging("the replica has not caught up", operation=operation, place=self.place)

    def _wrong_store(self, operation: str, problem: str, *, is_replica: bool) -> WrongStore:
        problem = problem if is_replica else f"{_NO_REPLICA}{problem.removeprefix('it ')}"
        return WrongStore(problem, operation=operation, place=self.place, hint=_HINT)

    def _probe(self) -> None:
        pause = _PROBE_SECONDS
        while not self._closing.wait(pause):
            try:
                self.wal_position()
            except DaypackError as error:
                self.problem = error.problem
                pause = min(2 * pause, _MAX_PROBE_SECONDS)
            else:
                self.problem = ""
                return

    def _prepare(self, operation: str) -> None:
        """Find out whether there is a store, and where the types of pgvector are: as in the primary."""
        import psycopg  # noqa: PLC0415 — opened by `_connections`

        from daypack.postgres.silence import connect  # noqa: PLC0415

        try:
            with connect(self.url, _CONNECT_SECONDS) as connection:
                connection.execute(f"SELECT {PLAIN_PATH}")
                has_store, is_replica = connection.execute(_HAS_STORE.encode()).fetchone() or (False, False)
                self._vector_schema = schema_of_vector(connection)
        except psycopg.Error as error:
            raise self._refusal(operation, error) from error
        if not has_store:
            raise self._wrong_store(operation, _NO_STORE, is_replica=is_replica)
        self._prepared = True


class Reads:
    """Where the reads of each user go: to the replica if it has what the user wrote or saw, else to the primary."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._wanted: OrderedDict[str, int] = OrderedDict()
        self._least = 0  # of users that are not remembered
        self._state = ThreadLock()

    def require(self, user: str | None, position: int) -> None:
        """Have all later reads of a user through this process see what was committed at a position; None: of all."""
        with self._state:
            if user is None:
                self._least = max(self._least, position)
                return
            self._wanted[user] = max(position, self._wanted.pop(user, 0))
            if len(self._wanted) > MAX_USERS:
                self._least = max(self._least, self._wanted.popitem(last=False)[1])

    def wanted(self, user: str) -> int:
        """Return the position that reads of a user must have reached; 0 if any will do."""
        with self._state:
            return max(self._least, self._wanted.get(user, 0))

    def choose(self, user: str, there: Callable[[], Answer], here: Callable[[], Answer]) -> Answer:
        """Return what `there` reads, on the replica, if it is as new as the user needs; else what `here` reads."""
        replica, wanted = self.replica, self.wanted(user)
        if not replica.problem:
            try:
                replica.wait_for(wanted)
                with replica.at_least(wanted):
                    answer = there()
            except Exception as error:  # also that it found nothing: the primary may have it
                replica.failed(error)
            else:
                replica.answered += 1
                return answer
        return here()


def end_of_record(position: int) -> int:
    """Return where the last record before a position ends: the position a replica reports once it has replayed it.

    A position read from the primary is where the next record begins. Between both may be the header of a page.
    """
    return position - _PAGE_HEADER_BYTES if position % _PAGE_BYTES == _PAGE_HEADER_BYTES else position


def _nothing(_: Transaction) -> None:
    return None
