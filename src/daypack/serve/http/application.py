"""One server as an ASGI application: its routes behind the gate, with health and metrics, observed from outside."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daypack.errors import DaypackError
from daypack.serve.http.api import problem_response
from daypack.serve.http.gate import MCP_PATH, Gate
from daypack.serve.http.health import Health, MetricsPage
from daypack.serve.http.limits import CLOSED, REFUSED
from daypack.serve.http.observed import Observed
from daypack.serve.observe.metrics import Metrics
from daypack.serve.observe.observer import SLOW_MS, Observer
from daypack.serve.problems import Problem, error_names, report

if TYPE_CHECKING:
    from daypack.serve.http.address import Policy
    from daypack.serve.http.limits import Shares
    from daypack.serve.http.page_requests import Visitors
    from daypack.serve.http.tenants import Tenants

Running = Callable[[], AbstractAsyncContextManager[None]]


class Part(NamedTuple):
    """A part of a server: its routes, what runs while the server runs, and how its long answers are ended.

    `names` are those of its calls in logs and metrics; `paths` describes it in GET /.
    """

    routes: Sequence[Route]
    paths: dict[str, str]
    names: Sequence[str] = ()
    running: Running | None = None
    end_streams: Callable[[], None] = lambda: None


class PagePart(NamedTuple):
    """The part that serves the page: `shell` answers GET / for browsers, `visitors` knows the cookies."""

    part: Part
    shell: Callable[[Request], Awaitable[Response]]
    visitors: "Visitors"


class Place(NamedTuple):
    """The users of a server, its policy and its limits."""

    tenants: "Tenants"
    policy: "Policy"
    shares: "Shares"
    slow_ms: int = SLOW_MS


_OWN_PATHS = {
    "/health/ready": "GET: whether the server can serve; /health/live: whether it runs",
    "/metrics": "GET: metrics for Prometheus",
}


def assemble(place: Place, purpose: str, parts: Sequence[Part], page: PagePart | None = None) -> Observed:
    """Return a server of these parts as one ASGI application."""
    warm_up_types()
    tenants, policy, shares, slow_ms = place
    parts = [*parts, page.part] if page is not None else list(parts)
    names = [name for part in parts for name in part.names]
    observer = Observer(Metrics(names, error_names(), REFUSED, CLOSED), slow_ms)
    health = Health(tenants)
    metrics = MetricsPage(observer.metrics, tenants, shares.usage)
    paths = {path: what for part in parts for path, what in part.paths.items()} | _OWN_PATHS
    described = msgspec.json.encode({"name": "daypack", "purpose": purpose, "paths": paths})

    async def get_start(request: Request) -> Response:
        if page is not None and _wants_html(request):
            return await page.shell(request)
        return Response(described, media_type="application/json", headers={"vary": "accept"} if page else None)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                if part.running is not None:
                    await stack.enter_async_context(part.running())
            health.state = "running"
            yield

    app = Starlette(
        routes=[
            Route("/", get_start),
            Route("/health", health.live),
            Route("/health/live", health.live),
            Route("/health/ready", health.ready),
            Route("/metrics", metrics.get),
            *(route for part in parts for route in part.routes),
        ],
        exception_handlers={
            HTTPException: _answer_unrouted(paths),
            DaypackError: _answer_failure,
            Exception: _answer_failure,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect would repeat the host name of the request
    # Outermost, so that no response bypasses the gate, not even that of a failure.
    visitors = page.visitors if page is not None else None
    gate = Gate(app, policy, tenants.check_token, shares, visitors, tenants.check_token_id)

    def end_streams() -> None:
        for part in parts:
            part.end_streams()

    return Observed(gate, observer, tenants, health, names=names, end_streams=end_streams)


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


def _wants_html(request: Request) -> bool:
    """Return True for a browser, and for an address with a one-time token, whatever opens it."""
    return "token" in request.query_params or any("text/html" in value for value in request.headers.getlist("accept"))


def _answer_unrouted(paths: dict[str, str]) -> Callable[[Request, Exception], Response]:
    listed = [name for path in paths if not (name := path.partition(" ")[0]).startswith("/health")]
    hint = f"the paths are {', '.join(listed)} and /health; GET / lists them"

    def answer(request: Request, error: Exception) -> Response:
        """Answer a request that no route accepts, with what to call instead."""
        assert isinstance(error, HTTPException)
        return _describe_unrouted(request, error, hint)

    return answer


def _describe_unrouted(request: Request, error: HTTPException, hint: str) -> Response:
    path, headers = request.scope["path"], error.headers
    if error.status_code == 405:
        allowed = (headers or {}).get("Allow", "POST")
        hint = f"send {allowed.removeprefix('HEAD, ').removesuffix(', HEAD')} {path}"
        if path == MCP_PATH:
            hint += "; this server is stateless: it has no sessions to delete and no stream to GET"
        return problem_response(Problem(405, "BadInput", f"{request.method} is not allowed here", hint), headers)
    if path.startswith(MCP_PATH):
        hint = f"the MCP endpoint is {MCP_PATH}, without anything after it"
    elif path.startswith("/api"):
        hint = "POST /api/TOOL, for instance /api/search_memories; /openapi.json describes the tools"
    return problem_response(Problem(error.status_code, "NotFound", "no such path", hint), headers)


async def _answer_failure(_: Request, error: Exception) -> Response:
    """Answer after an exception that no route expects; the log says where it was raised."""
    return problem_response(report("request", error))
