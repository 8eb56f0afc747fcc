"""/health/live: the process answers. /health/ready: it can also read and write, and is not about to end.

200 {"status":"ok"}
503 {"error":{"code":"NotReady","message":"the server is shutting down"}}

Both are open to everybody, so they name no file and no error, and the store is examined at most once a second.
/metrics is for `--user` only, because it is about all users together.
"""

import time
from typing import TYPE_CHECKING, Literal

import anyio
from starlette.requests import Request
from starlette.responses import Response

from daypack.errors import DaypackError
from daypack.serve.http.api import problem_response
from daypack.serve.observe.log import log
from daypack.serve.observe.metrics import CONTENT_TYPE
from daypack.serve.observe.observer import report_error
from daypack.serve.problems import Problem

if TYPE_CHECKING:
    from daypack.serve.http.limits import Usage
    from daypack.serve.http.tenants import Tenants
    from daypack.serve.observe.metrics import Metrics

CHECK_SECONDS = 2.0  # for the store to answer
METRICS_SECONDS = 8.0  # for the metrics to be read: a scrape waits 10 s
_RETRY_SECONDS = 5
_FRESH_SECONDS = 1.0
_MESSAGES = {"starting": "the server is starting", "stopping": "the server is shutting down"}
_STORE = "the store cannot be read and written"
_LATE = "the store did not answer in time"


class Health:
    """The health of one server; `state` is set when it starts and stops."""

    def __init__(self, tenants: "Tenants") -> None:
        self.state: Literal["starting", "running", "stopping"] = "starting"
        self._tenants = tenants
        self._place = tenants.backend.place
        self._checked = 0.0
        self._problem = ""
        self._checking = anyio.Lock()

    async def live(self, _: Request) -> Response:
        """Answer as long as the loop runs."""
        return _ok()

    async def ready(self, _: Request) -> Response:
        """Answer whether requests are served."""
        problem = _MESSAGES.get(self.state) or await self._examine()
        return problem_response(Problem(503, "NotReady", problem)) if problem else _ok()

    async def _examine(self) -> str:
        async with self._checking:  # many callers at once cause one examination
            if time.monotonic() - self._checked >= _FRESH_SECONDS or not self._checked:
                before, self._problem = self._problem, await self._examine_store()
                if not before and self._problem:
                    log.line("error", "store.unreachable", place=self._place, problem=self._problem)
                elif before and not self._problem:
                    log.line("info", "store.reachable", place=self._place)
                self._checked = time.monotonic()
            return self._problem

    async def _examine_store(self) -> str:
        with anyio.move_on_after(CHECK_SECONDS):
            try:
                await self._tenants.examine_store()
            except DaypackError as error:
                if not self._problem:  # once, until it is reachable again
                    report_error("readiness", error)
                return _STORE
            return ""
        return _LATE


class MetricsPage:
    """Answers with the metrics. On loopback no token is needed, as for all paths; beyond it, a token of the owner."""

    def __init__(self, metrics: "Metrics | None", tenants: "Tenants", usage: "Usage") -> None:
        self._metrics = metrics
        self._tenants = tenants
        if metrics is not None:
            backend = tenants.backend
            metrics.barriers.read = lambda: tenants.load().barriers
            metrics.waiting.read = lambda: tenants.load().queued
            metrics.lag.read = backend.indexes.lag
            metrics.unaudited.read = lambda: backend.audit.pending if backend.audit else 0
            metrics.limited.read = lambda: usage.refused
            metrics.closed.read = lambda: usage.closed
            tenants.observe_queues(metrics.queued.observe)

    async def get(self, request: Request) -> Response:
        """Answer GET /metrics."""
        if self._metrics is None:
            return problem_response(Problem(404, "NotFound", "no such path"))
        if request.scope["daypack.caller"].user != self._tenants.owner:
            hint = "use a token of the user that the server was started for (--user)"
            return problem_response(Problem(403, "AccessDenied", "this token may not read the metrics", hint))
        with anyio.move_on_after(METRICS_SECONDS):
            text = await self._tenants.measure(self._metrics.text)  # the index lag is read from files
            return Response(text, media_type=CONTENT_TYPE)
        return problem_response(Problem(503, "NotReady", _LATE, retry_after=_RETRY_SECONDS))


def _ok() -> Response:
    return Response(b'{"status":"ok"}', media_type="application/json")
