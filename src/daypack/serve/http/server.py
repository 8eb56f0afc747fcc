"""The HTTP server: its doors put together behind the gate, how it starts and ends."""

import os
import signal
import socket
from asyncio import TimerHandle, Transport
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from threading import Timer
from typing import TYPE_CHECKING

import h11
import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from daypack.serve.http.api import Api, problem_response
from daypack.serve.http.errors import Problem, describe
from daypack.serve.http.gate import MCP_PATH, Gate, Policy
from daypack.serve.http.mcp import Streamable
from daypack.serve.http.openapi import describe_api

if TYPE_CHECKING:
    from daypack.serve.http.tenants import Tenants
    from daypack.serve.toolset import Toolset

HEADER_SECONDS = 15.0
_KEEP_ALIVE_SECONDS = 30
_FAREWELL_SECONDS = 3
_MAX_HEADER_BYTES = 64 << 10  # that are held before they are whole
_MAX_CONNECTIONS = 500


def make_app(toolset: "Toolset", tenants: "Tenants", policy: Policy) -> Gate:
    """Return the whole server as one ASGI application."""
    warm()
    api = Api(toolset, tenants)
    mcp = Streamable(tenants, max_body_bytes=policy.max_body_bytes)
    described = msgspec.json.encode(describe_api(toolset))

    async def tell_health(_: Request) -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def tell_api(_: Request) -> Response:
        return Response(described, media_type="application/json")

    @asynccontextmanager
    async def living(_: Starlette) -> AsyncGenerator[None]:
        async with mcp.running():
            yield

    app = Starlette(
        routes=[
            Route("/health", tell_health),
            Route("/openapi.json", tell_api),
            Route("/api/memories", api.memories),
            Route("/api/{tool}", api.call, methods=["POST"]),
            Route(MCP_PATH, mcp, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _refuse, Exception: _fail},
        lifespan=living,
    )
    app.router.redirect_slashes = False  # such an answer would name whatever host the request named
    # Outermost, so that nothing is answered that the gate has not seen, not even a failure.
    return Gate(app, policy, tenants.check_token)


def run(app: Gate, listening: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; calls under way have a few seconds to end."""
    config = Config(
        app,
        http=_PunctualProtocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_level="error",  # what callers do wrong, they are told
        access_log=False,
        proxy_headers=False,  # who a caller is, and from where, is not told by headers
        server_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_FAREWELL_SECONDS,
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
    )
    # uvicorn raises the signal again when all is done; then it has been obeyed already.
    former = {one: signal.signal(one, _pass_over) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        _EndingServer(config).run(sockets=[listening])
    finally:
        for one, action in former.items():
            signal.signal(one, action)


def warm() -> None:
    """Let msgspec learn every type once: two threads must not make it learn the same one at the same time."""
    waiting: list[type[Struct]] = [Struct]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            try:
                msgspec.json.Decoder(kind)
            except (TypeError, NameError):  # one that is never read, only inherited from
                continue


def _pass_over(_signal: int, _frame: object) -> None:
    """Take a signal without doing anything."""


async def _refuse(_: Request, error: Exception) -> Response:
    """Answer what no route takes."""
    assert isinstance(error, HTTPException)
    what = "that method does not go with this path" if error.status_code == 405 else "there is nothing here"
    code = "BadInput" if error.status_code == 405 else "NotFound"
    return problem_response(Problem(error.status_code, code, what), error.headers)


async def _fail(_: Request, error: Exception) -> Response:
    """Answer what nobody foresaw; the log has the rest."""
    return problem_response(describe(error))


class _EndingServer(Server):
    """A server that ends when it is told to, also while a thread of it waits for a barrier that may take minutes."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # What a call wrote is in the store, or nothing of it is: it may be left where it is.
        watchdog = Timer(_FAREWELL_SECONDS + 1, os._exit, (0,))
        watchdog.daemon = True
        watchdog.start()
        await super().shutdown(sockets)


class _PunctualProtocol(H11Protocol):
    """HTTP/1.1 whose headers have to arrive in time: uvicorn limits how long they are, not how long they take."""

    _late: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def _watch(self) -> None:
        awaited = self.conn.their_state is h11.IDLE
        if awaited and self._late is None:
            self._late = self.loop.call_later(HEADER_SECONDS, self._give_up)
        elif not awaited and self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
