"""GET /metrics: the metrics of the server, for `--user` only, because they are about all users together."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from daypack.serve.http.api import problem_response
from daypack.serve.observe.metrics import CONTENT_TYPE
from daypack.serve.problems import Problem

if TYPE_CHECKING:
    from daypack.serve.http.limits import Usage
    from daypack.serve.http.tenants import Tenants
    from daypack.serve.observe.metrics import Metrics


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
        text = await self._tenants.run(
            self._metrics.text, request.scope["daypack.call"]
        )  # the index lag is read from files
        return Response(text, media_type=CONTENT_TYPE)
