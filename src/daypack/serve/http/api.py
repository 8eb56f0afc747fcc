"""The JSON API: POST /api/{tool} with the arguments as one JSON object, and GET /api/memories?limit=50&after=ID."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from daypack.errors import BadInput, DaypackError, NotFound
from daypack.serve.audited import audited
from daypack.serve.http.gate import require_write
from daypack.serve.http.tenants import AFTER
from daypack.serve.http.turns import Call
from daypack.serve.observe.request_facts import current
from daypack.serve.problems import Problem, report
from daypack.serve.reach.resource import challenge

if TYPE_CHECKING:
    from daypack.serve.http.tenants import Tenants


class Api:
    """The endpoints for programs that do not use MCP."""

    def __init__(self, tenants: "Tenants") -> None:
        self._tenants = tenants
        toolset = tenants.toolset(None)
        self._names, self._writing = toolset.names, toolset.writing

    async def call(self, request: Request) -> Response:
        """Answer POST /api/{tool}."""
        tool, call = request.path_params["tool"], _call(request)
        headers: dict[str, str] = {}

        def work() -> object:
            return self._tenants.toolset(call.caller.user).call(self._tenants.memories(call), tool, arguments)

        try:
            if tool not in self._names:
                raise NotFound("unknown tool", hint=f"the tools are {', '.join(self._names)}")
            arguments = _read_arguments(request.scope["daypack.json"])
            if tool in self._writing and not call.caller.writes:
                wanted = challenge(request.scope["daypack.metadata"], "insufficient_scope", "write")
                headers["www-authenticate"] = wanted
                require_write(call.caller, tool)
            return await self._answer(work, call, waits=tool == "await_consistency")
        except DaypackError as error:
            return problem_response(report(tool, error), headers)

    async def memories(self, request: Request) -> Response:
        """Answer GET /api/memories with a page of the caller's own memories."""
        call, asked = _call(request), dict(request.query_params)

        def work() -> object:
            memories = self._tenants.memories(call)
            with audited(memories, "list_memories") as outcome:
                page = outcome.value = memories.list_memories(**asked)
            return memories.backend.shown(page)

        try:
            if unknown := asked.keys() - {"limit", "after"}:
                hint = "it takes limit and after"
                raise BadInput(f"memories has no parameter {', '.join(sorted(unknown))}", hint=hint)
            return await self._answer(work, call)
        except DaypackError as error:
            return problem_response(report("list_memories", error))

    async def _answer(self, work: "Callable[[], object]", call: Call, *, waits: bool = False) -> Response:
        body = await self._tenants.run(lambda: msgspec.json.encode(work()), call, waits=waits)
        return Response(body, media_type="application/json")


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem as a JSON response."""
    facts = current.get()
    if facts is not None:
        facts.error = problem.code
    return Response(problem.body, problem.status, {**problem.headers, **(headers or {})}, media_type="application/json")


def _call(request: Request) -> Call:
    call: Call = request.scope["daypack.call"]
    call.after = request.headers.get(AFTER, "")
    return call


def _read_arguments(body: object) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise BadInput("the body is not a JSON object", hint='send {"name": value, …}, or {} for no arguments')
    return cast("dict[str, Any]", body)
