"""Run a server until SIGINT or SIGTERM: connections, limits of the system, and a shutdown in bounded time."""

import os
import resource
import signal
import socket
from functools import partial
from threading import Timer

from uvicorn import Config, Server

from daypack import __version__
from daypack.serve.http.address import BACKLOG
from daypack.serve.http.connections import KEEP_ALIVE_SECONDS, Connection, Connections
from daypack.serve.http.limits import Shares
from daypack.serve.http.observed import Observed
from daypack.serve.observe.library_lines import redirect_libraries
from daypack.serve.observe.log import log

_SHUTDOWN_SECONDS = 3
_LEAST_CONNECTIONS = 20
_ACCEPTED_AT_ONCE = 64  # by one round of the event loop; a connection that is replaced is closed three rounds later
_FILES_IN_BETWEEN = 4 * _ACCEPTED_AT_ONCE
_FILES_OF_MACOS = 10_240  # OPEN_MAX: macOS never refuses so many
_OTHER_FILES = 256  # open files besides connections: stores, indexes, threads


def run(app: Observed, listening: socket.socket, shares: Shares) -> None:
    """Serve until SIGINT or SIGTERM; running calls get a few seconds to finish."""
    config = Config(
        app,
        http=partial(Connection, Connections(shares, app.observer)),  # pyright: ignore[reportArgumentType] — called, nothing else
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,  # its lines, which may quote requests, are replaced by ours
        access_log=False,
        proxy_headers=False,  # a caller must not choose its address by a header
        server_header=False,
        backlog=_ACCEPTED_AT_ONCE,  # asyncio's other meaning of the word
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    server = _BoundedShutdownServer(config, app)
    if app.observer.metrics is not None:
        app.observer.metrics.connections.read = lambda: len(server.server_state.connections)

    def stop(_signal: int, _frame: object) -> None:
        # Before uvicorn listens for signals this ends it; it raises them again after its shutdown, which does nothing.
        server.should_exit = True

    redirect_libraries()
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        host, port = listening.getsockname()[:2]
        log.line("info", "server.started", address=f"{host}:{port}", version=__version__)
        server.run(sockets=[listening])
        log.line("info", "server.stopped")
    finally:
        log.flush()
        for number, action in previous.items():
            signal.signal(number, action)


def allow_connections(asked: int) -> int:
    """Return how many connections there is room for, after raising the limit of open files as far as the system allows.

    With more, none could be accepted any more: closing one in favour of another needs a free file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = asked + _FILES_IN_BETWEEN + _OTHER_FILES
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        most = _raise_file_limit(soft, most, hard)
    if most == needed:
        return asked
    allowed = max(_LEAST_CONNECTIONS, most - _FILES_IN_BETWEEN - _OTHER_FILES)
    hint = f"for {asked:,} connections allow {needed:,} open files (ulimit -Hn)"
    log.line("warning", "server.connections", asked=asked, allowed=allowed, files=most, hint=hint)
    return allowed


def _raise_file_limit(soft: int, most: int, hard: int) -> int:
    """Raise the limit of open files as far as possible and return it; macOS refuses much although it shows no limit."""
    for limit in (most, min(most, _FILES_OF_MACOS)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
        except (ValueError, OSError):
            continue
        return max(soft, limit)
    return soft


def _abandon() -> None:
    log.line("warning", "server.stopped", error="calls were still running")
    log.flush(0.2)
    os._exit(0)


class _BoundedShutdownServer(Server):
    """A server that exits in bounded time, even while a worker thread waits for minutes in await_consistency."""

    def __init__(self, config: Config, app: Observed) -> None:
        super().__init__(config)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)  # asyncio has made the queue as short as the number it accepts at once

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.health.state = "stopping"
        self._app.end_streams()
        # A write is committed or it is not, so a running call can be abandoned.
        watchdog = Timer(_SHUTDOWN_SECONDS + 1, _abandon)
        watchdog.daemon = True
        watchdog.start()
        await super().shutdown(sockets)
