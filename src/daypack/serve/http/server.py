"""The HTTP server: its routes behind the gate, its limits, start and shutdown."""

import os
import resource
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from threading import Timer
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn import Config, Server

from daypack import __version__
from daypack.serve.http.address import BACKLOG, Policy
from daypack.serve.http.api import Api, problem_response
from daypack.serve.http.connections import KEEP_ALIVE_SECONDS, Connection, Connections
from daypack.serve.http.gate import MCP_PATH, Gate
from daypack.serve.http.health import Health
from daypack.serve.http.limits import CLOSED, REFUSED, Shares
from daypack.serve.http.mcp import McpEndpoint
from daypack.serve.http.metrics_page import MetricsPage
from daypack.serve.http.observed import Observed
from daypack.serve.http.openapi import describe_api
from daypack.serve.http.turns import Call, Caller
from daypack.serve.observe.library_lines import redirect_libraries
from daypack.serve.observe.log import log
from daypack.serve.observe.metrics import Metrics
from daypack.serve.observe.observer import SLOW_MS, Observer
from daypack.serve.problems import Problem, error_names, report

if TYPE_CHECKING:
    from daypack.serve.http.tenants import Tenants

_SHUTDOWN_SECONDS = 3
_START = msgspec.json.encode(
    {
        "name": "daypack",
        "purpose": "memory for agents, across sessions",
        "paths": {
            MCP_PATH: "POST: MCP over streamable HTTP",
            "/api/TOOL": "POST: a tool, with its arguments as one JSON object",
            "/api/memories": "GET: your memories",
            "/openapi.json": "GET: the description of /api",
            "/health/ready": "GET: whether the server can serve; /health/live: whether it runs",
            "/metrics": "GET: metrics for Prometheus",
        },
    }
)
_LEAST_CONNECTIONS = 20
_ACCEPTED_AT_ONCE = 64  # by one round of the event loop; a connection that is replaced is closed three rounds later
_FILES_IN_BETWEEN = 4 * _ACCEPTED_AT_ONCE
_FILES_OF_MACOS = 10_240  # OPEN_MAX: macOS never refuses so many
_OTHER_FILES = 256  # open files besides connections: stores, indexes, threads


def make_app(tenants: "Tenants", policy: Policy, shares: Shares, *, slow_ms: int = SLOW_MS) -> Observed:
    """Return the server as one ASGI application; calls that take longer than `slow_ms` are logged."""
    warm_up_types()
    tools = tenants.toolset(tenants.owner).names
    observer = Observer(Metrics(tools, error_names(), REFUSED, CLOSED), slow_ms)
    # With tokens there are several users, and only the owner knows the default memory.
    described = None if policy.token_required else Call(Caller(tenants.owner, writes=True))
    api = Api(tenants)
    instructions = tenants.router(described).instructions
    mcp = McpEndpoint(tenants, instructions=instructions, max_body_bytes=policy.max_body_bytes)
    openapi = msgspec.json.encode(describe_api(tenants.toolset(described and described.caller.user)))

    health = Health(tenants)
    metrics = MetricsPage(observer.metrics, tenants, shares.usage)

    async def get_start(_: Request) -> Response:
        return Response(_START, media_type="application/json")

    async def get_openapi(_: Request) -> Response:
        return Response(openapi, media_type="application/json")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with mcp.running():
            health.state = "running"
            yield

    app = Starlette(
        routes=[
            Route("/", get_start),
            Route("/health", health.live),
            Route("/health/live", health.live),
            Route("/health/ready", health.ready),
            Route("/metrics", metrics.get),
            Route("/openapi.json", get_openapi),
            Route("/api/memories", api.memories),
            Route("/api/{tool}", api.call, methods=["POST"]),
            Route(MCP_PATH, mcp, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _answer_unrouted, Exception: _answer_failure},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect would repeat the host name of the request
    # Outermost, so that no response bypasses the gate, not even that of a failure.
    gate = Gate(app, policy, tenants.check_token, shares)
    return Observed(gate, observer, tenants, health)


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
    server = _BoundedShutdownServer(config, app.health)
    if app.observer.metrics is not None:
        app.observer.metrics.connections.read = lambda: len(server.server_state.connections)
    # uvicorn raises the signal again after its shutdown; by then there is nothing to do.
    redirect_libraries()
    previous = {number: signal.signal(number, _ignore_signal) for number in (signal.SIGINT, signal.SIGTERM)}
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


def warm_up_types() -> None:
    """Build the msgspec decoder of every Struct once: doing so for one type in two threads at once is not safe."""
    pending: list[type[Struct]] = [Struct]
    while pending:
        for kind in pending.pop().__subclasses__():
            pending.append(kind)
            try:
                msgspec.json.Decoder(kind)
            except (TypeError, NameError):  # a base class that is never decoded
                continue


def _ignore_signal(_signal: int, _frame: object) -> None:
    """Do nothing; unlike SIG_IGN, this is not inherited by child processes."""


async def _answer_unrouted(request: Request, error: Exception) -> Response:
    """Answer a request that no route accepts, with what to call instead."""
    assert isinstance(error, HTTPException)
    path, headers = request.scope["path"], error.headers
    if error.status_code == 405:
        allowed = (headers or {}).get("Allow", "POST")
        hint = f"send {allowed.removeprefix('HEAD, ').removesuffix(', HEAD')} {path}"
        if path == MCP_PATH:
            hint += "; this server is stateless: it has no sessions to delete and no stream to GET"
        return problem_response(Problem(405, "BadInput", f"{request.method} is not allowed here", hint), headers)
    hint = "the paths are /mcp, /api/TOOL, /api/memories, /openapi.json, /health and /metrics; GET / lists them"
    if path.startswith(MCP_PATH):
        hint = f"the MCP endpoint is {MCP_PATH}, without anything after it"
    elif path.startswith("/api"):
        hint = "POST /api/TOOL, for instance /api/search_memories; /openapi.json describes the tools"
    return problem_response(Problem(error.status_code, "NotFound", "no such path", hint), headers)


async def _answer_failure(_: Request, error: Exception) -> Response:
    """Answer after an unexpected exception; the log says where it was raised."""
    return problem_response(report("request", error))


def _abandon() -> None:
    log.line("warning", "server.stopped", error="calls were still running")
    log.flush(0.2)
    os._exit(0)


class _BoundedShutdownServer(Server):
    """A server that exits in bounded time, even while a worker thread waits for minutes in await_consistency."""

    def __init__(self, config: Config, health: Health) -> None:
        super().__init__(config)
        self._health = health

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)  # asyncio has made the queue as short as the number it accepts at once

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._health.state = "stopping"
        # A write is committed or it is not, so a running call can be abandoned.
        watchdog = Timer(_SHUTDOWN_SECONDS + 1, _abandon)
        watchdog.daemon = True
        watchdog.start()
        await super().shutdown(sockets)
