"""Run a server until SIGINT or SIGTERM, then answer what has begun, in bounded time."""

import asyncio
import os
import signal
import socket
import time
from functools import partial
from ssl import SSLContext
from threading import Timer
from types import FrameType
from typing import NamedTuple

from uvicorn import Config, Server

from daypack import __version__
from daypack.serve.http.address import BACKLOG
from daypack.serve.http.connections import KEEP_ALIVE_SECONDS, Connection, Connections, Handshake
from daypack.serve.http.limits import Shares
from daypack.serve.http.observed import Observed
from daypack.serve.observe.library_lines import redirect_libraries
from daypack.serve.observe.log import log
from daypack.serve.reach.open_files import ACCEPTED_AT_ONCE
from daypack.serve.reach.proxies import Proxies

CALL_SECONDS = 30  # after which a call in progress is abandoned; a write is committed or it is not
WAIT_SECONDS = 3  # for callers that do not finish their request, or do not read their answer
_FORCED_SECONDS = 1  # after a second Ctrl-C
_LOOK_SECONDS = 0.1  # how soon a second Ctrl-C ends the drain


class Reach(NamedTuple):
    """How callers reach the server: with TLS or without, and which proxies are in front of it.

    `drain_seconds`: how long a server that is about to stop still accepts connections, while it is not ready.
    """

    tls: SSLContext | None = None
    proxies: Proxies = Proxies()
    drain_seconds: float = 0.0


_PLAIN = Reach()


def run(app: Observed, listening: socket.socket, shares: Shares, reach: Reach = _PLAIN) -> None:
    """Serve until SIGINT or SIGTERM, then drain: running calls are answered, barriers are ended."""
    connections = Connections(shares, app.observer, reach.proxies)
    tls = reach.tls
    connection = partial(Connection, connections)
    config = Config(
        app,
        http=connection if tls is None else partial(Handshake, connections, tls, connection),  # pyright: ignore[reportArgumentType] — called, nothing else
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,  # its lines, which may quote requests, are replaced by ours
        access_log=False,
        proxy_headers=False,  # a caller must not choose its address by a header
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,  # asyncio's other meaning of the word
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=CALL_SECONDS,
    )
    server = _DrainingServer(config, app, connections, reach.drain_seconds)
    if app.observer.metrics is not None:
        app.observer.metrics.connections.read = lambda: len(server.server_state.connections)

    def stop(_signal: int, _frame: object) -> None:
        # Before uvicorn listens for signals this ends it; it raises them again after its shutdown, which does nothing.
        server.should_exit = True

    redirect_libraries()
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        host, port = listening.getsockname()[:2]
        log.line(
            "info", "server.started", address=f"{host}:{port}", version=__version__, store=app.tenants.backend.place
        )
        server.run(sockets=[listening])
        log.line("info", "server.stopped")
    finally:
        log.flush()
        for number, action in previous.items():
            signal.signal(number, action)


def _abandon() -> None:
    log.line("warning", "server.stopped", error="calls were still running")
    log.flush(0.2)
    os._exit(0)


class _DrainingServer(Server):
    """A server that answers what has begun before it exits, in bounded time."""

    def __init__(self, config: Config, app: Observed, connections: Connections, drain_seconds: float) -> None:
        super().__init__(config)
        self._app = app
        self._connections = connections
        self._drain_seconds = drain_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)  # asyncio has made the queue as short as the number it accepts at once

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note a signal: the server is not ready from now on. A second Ctrl-C ends it without waiting for calls."""
        self._app.health.state = "stopping"
        super().handle_exit(sig, frame)
        if self.force_exit:
            _abandon_after(_FORCED_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.health.state = "stopping"
        await self._drain()
        self._app.end_streams()
        self._app.tenants.end_barriers()
        _abandon_after(CALL_SECONDS + 1)
        asyncio.get_running_loop().call_later(WAIT_SECONDS, self._connections.close_waiting)
        await super().shutdown(sockets)

    async def _drain(self) -> None:
        """Accept connections until a load balancer has seen that the server is not ready."""
        end = time.monotonic() + self._drain_seconds
        if self._drain_seconds:
            log.line("info", "server.draining", seconds=self._drain_seconds)
        while not self.force_exit and (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _LOOK_SECONDS))


def _abandon_after(seconds: float) -> None:
    """Exit after so many seconds, even while a worker thread is still busy."""
    watchdog = Timer(seconds, _abandon)
    watchdog.daemon = True
    watchdog.start()
