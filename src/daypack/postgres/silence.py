"""Connections that do not wait for ever: after a silence they find out whether their server is still there.

A server that vanished has not closed its connections: a machine without power, a lost network, a process of a killed
server that still waits for another one. A statement that takes long is silent too, so a silence is not an error by
itself: another connection to the same server is tried. Keepalives find out where that would lead to another machine,
as with an address that moved to the new primary.
"""

import math
import time
from collections.abc import Generator, Sequence
from select import POLLIN, POLLOUT, poll
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from daypack.postgres.refusals import is_passing

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic
    from psycopg.pq.abc import PGresult

_Answer = TypeVar("_Answer")
SILENCE_SECONDS = 5.0
_WARNING = "01000"
_POLL_MS = 100
_LEAST_SECONDS, _MOST_SECONDS = 2, 10  # for another connection; libpq allows no less
# Within 25 seconds, less than the patience of a call; the defaults of most systems are two hours.
_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 25_000}


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that is closed, as if it were lost, when its server has vanished or its time is up."""

    address: str = ""  # of the database
    until: float = math.inf  # when the call that uses it gives up on a server that has vanished
    end: float = math.inf  # when that call ends, whether the server is there or not
    prepared: frozenset[bytes] = frozenset()  # names of statements
    unreplicated: bool = False  # a commit was acknowledged before the synchronous replicas had it

    def heed(self, notice: "Diagnostic") -> None:
        """Remember that an administrator has cancelled the wait of a commit: the server reports it as a success."""
        if notice.sqlstate == _WARNING and notice.source_function == "SyncRepWaitForLSN":  # its text is translated
            self.unreplicated = True

    def require_open(self) -> None:
        """Raise if the server has closed the connection since its last use: what is sent now is not executed."""
        poller = poll()
        poller.register(self.pgconn.socket, POLLIN)
        try:
            while poller.poll(0):  # its reason first, then the end
                self.pgconn.consume_input()
        except psycopg.Error:
            self._give_up("the server has closed the connection")

    def wait(self, gen: Generator[Any, Any, _Answer], *arguments: Any, **options: Any) -> _Answer:  # noqa: ANN401
        """Consume a generator of psycopg, as long as the server is there."""
        return super().wait(self._watched(gen), *arguments, **options)

    def _watched(self, gen: Generator[Any, Any, _Answer]) -> Generator[Any, Any, _Answer]:
        """Pass everything on; psycopg resumes it several times a second with what is ready, or with nothing."""
        silent_since = 0.0
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                silent_since = 0.0 if ready else self._still_silent(silent_since)
                wanted = gen.send(ready)
        except StopIteration as stop:
            return stop.value

    def execute_prepared(self, name: bytes, values: Sequence[bytes], binary: Sequence[bool]) -> "PGresult":
        """Execute a statement, as long as the server is there; without a generator, which costs twice as much."""
        server = self.pgconn
        server.send_query_prepared(name, values, binary)
        while server.flush():
            self._await_socket(POLLIN | POLLOUT)
        results: list[PGresult] = []
        while True:
            while server.is_busy():
                self._await_socket(POLLIN)
            result = server.get_result()
            if result is None:
                return results[0]
            results.append(result)

    def _await_socket(self, events: int) -> None:
        poller = poll()
        poller.register(self.pgconn.socket, events)
        silent_since = 0.0
        while not poller.poll(_POLL_MS):
            silent_since = self._still_silent(silent_since)
        self.pgconn.consume_input()

    def _still_silent(self, since: float) -> float:
        """Return since when the server is silent, if it still is (0: it was not); raise if it has vanished."""
        now = time.monotonic()
        if now > self.end:
            self._give_up("no answer in time")
        if since and now - since > SILENCE_SECONDS:
            self._check()
            return 0.0
        return since or now

    def _check(self) -> None:
        """Close the connection and raise if its server does not take others; refusing them is an answer too."""
        info, seconds = self.info, int(max(_LEAST_SECONDS, min(_MOST_SECONDS, self.until - time.monotonic())))
        same: dict[str, Any] = {"host": info.host or None, "hostaddr": info.hostaddr or None, "port": info.port}
        try:
            psycopg.connect(self.address, **same, target_session_attrs="any", connect_timeout=seconds).close()
        except psycopg.Error as error:
            if error.sqlstate is None and "FATAL" not in str(error) and is_passing(error):
                self._give_up(f"the server has vanished: {error}")

    def _give_up(self, problem: str) -> None:
        self.close()
        raise psycopg.OperationalError(problem)


def connect(url: str, seconds: int) -> WatchedConnection:
    """Return a connection with the rights of an address, outside of pools."""
    connection = WatchedConnection.connect(url, **options_of(url), connect_timeout=seconds)
    connection.address = url
    return connection


def options_of(url: str) -> dict[str, Any]:
    """Return what all connections have in common; keepalives that the address sets are as it says."""
    given = conninfo_to_dict(url)
    keepalives = {name: value for name, value in _KEEPALIVES.items() if name not in given}
    return {"autocommit": True, "application_name": "daypack", "client_encoding": "utf8", **keepalives}
