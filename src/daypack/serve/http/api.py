"""The JSON API: POST /api/{tool} with the arguments as one object, GET /api/memories; the answers are the results."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from daypack.errors import BadInput, DaypackError, NotFound
from daypack.serve.http.errors import Problem, describe
from daypack.serve.http.gate import Caller, require_write
from daypack.serve.server_log import note
from daypack.serve.toolset import NAMES

if TYPE_CHECKING:
    from daypack.serve.http.tenants import Tenants
    from daypack.serve.toolset import Toolset


class Api:
    """The door for programs that do not speak MCP."""

    def __init__(self, toolset: "Toolset", tenants: "Tenants") -> None:
        self._toolset = toolset
        self._tenants = tenants
        self._names = [name for name in toolset.names if name in NAMES]  # without those of a session

    async def call(self, request: Request) -> Response:
        """Answer POST /api/{tool}."""
        tool, caller = request.path_params["tool"], _caller(request)

        def work() -> object:
            return self._toolset.call(self._tenants.memories(caller.user), tool, given)

        try:
            if tool not in self._names:
                raise NotFound("there is no such tool", hint=f"there are {', '.join(self._names)}")
            given = _arguments(request.scope["daypack.json"])
            if tool in self._toolset.writing:
                require_write(caller, tool)
            return await self._answer(work, waits=tool == "await_consistency")
        except DaypackError as error:
            return _refusal(tool, error)

    async def memories(self, request: Request) -> Response:
        """Answer GET /api/memories: the caller's own, and no others."""
        caller = _caller(request)
        try:
            return await self._answer(lambda: self._tenants.memories(caller.user).memories())
        except DaypackError as error:
            return _refusal("memories", error)

    async def _answer(self, work: "Callable[[], object]", *, waits: bool = False) -> Response:
        body = await self._tenants.run(lambda: msgspec.json.encode(work()), waits=waits)
        return Response(body, media_type="application/json")


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Return what went wrong as an answer."""
    return Response(problem.body, problem.status, headers, media_type="application/json")


def _refusal(tool: str, error: DaypackError) -> Response:
    problem = describe(error)
    if problem.status >= 500:  # the caller is not told all of it
        note(tool, error)
    return problem_response(problem)


def _caller(request: Request) -> Caller:
    return request.scope["daypack.caller"]


def _arguments(given: object) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise BadInput("the arguments are no object", hint='send {"name": value, …}, or {} when there are none')
    return cast("dict[str, Any]", given)
