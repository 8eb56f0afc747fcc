"""MCP over streamable HTTP, built on the official SDK: stateless, with progress for clients that ask for it."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from daypack import __version__
from daypack.errors import AccessDenied, BadInput, ServerBusy
from daypack.serve.http.bodies import Receive
from daypack.serve.http.gate import Scope, Send, require_write
from daypack.serve.http.tenants import AFTER
from daypack.serve.http.turns import Call, CallerGone
from daypack.serve.mcp.jsonrpc import RpcError
from daypack.serve.mcp.lifecycle import add_version_fields
from daypack.serve.problems import describe_in_text

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from starlette.requests import Request

    from daypack.serve.http.tenants import Tenants

    Context = ServerRequestContext[Any, Request]

PROGRESS_SECONDS = 1.0
_METHODS: dict[str, type[BaseModel]] = {
    "tools/list": types.PaginatedRequestParams,
    "tools/call": types.CallToolRequestParams,
    "prompts/list": types.PaginatedRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "resources/list": types.PaginatedRequestParams,
    "resources/templates/list": types.PaginatedRequestParams,
    "resources/read": types.ReadResourceRequestParams,
}


class McpEndpoint:
    """Answers POST /mcp: with an event stream if the client asks for progress, else with one JSON response."""

    def __init__(self, tenants: "Tenants", *, instructions: str, max_body_bytes: int) -> None:
        self._tenants = tenants
        server: Server[Any] = Server("daypack", version=__version__, title="daypack", instructions=instructions)
        for method, params in _METHODS.items():
            server.add_request_handler(method, params, self._answer_method(method))
        self._json, self._streaming = (
            StreamableHTTPSessionManager(
                server, json_response=json_response, stateless=True, max_request_body_size=max_body_bytes
            )
            for json_response in (True, False)
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the SDK's session managers for the lifetime of the server."""
        async with self._json.run(), self._streaming.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        chosen = self._streaming if _wants_progress(scope["daypack.json"]) else self._json
        await chosen.asgi_app(scope, receive, send)

    def _answer_method(self, method: str) -> "Callable[[Context, BaseModel], Awaitable[dict[str, Any]]]":
        async def handle(context: "Context", _: BaseModel) -> dict[str, Any]:
            assert context.request is not None  # it came over HTTP
            call: Call = context.request.scope["daypack.call"]
            call.after = context.request.headers.get(AFTER, "")
            params = dict(context.params or {})
            result: dict[str, Any] | MCPError = {}
            async with anyio.create_task_group() as group:
                group.start_soon(_report_progress, context, str(params.get("name", method)))
                result = await self._work(call, method, params)
                group.cancel_scope.cancel()
            if isinstance(result, MCPError):  # raised outside the task group, which would wrap it
                raise result
            return add_version_fields(context.protocol_version, method, result)

        return handle

    async def _work(self, call: Call, method: str, params: dict[str, Any]) -> dict[str, Any] | MCPError:
        name = str(params.get("name", method))
        try:
            job = self._tenants.router(call).route(method, params)
            if job.writes:
                require_write(call.caller, name)
            waits = name == "await_consistency"
            return await self._tenants.run(lambda: msgspec.to_builtins(job.work()), call, waits=waits)
        except CallerGone:
            return MCPError(types.INTERNAL_ERROR, "the caller has disconnected")
        except RpcError as error:
            return MCPError(error.code, error.message, error.data)
        except (AccessDenied, BadInput, ServerBusy) as error:
            return {"content": [{"type": "text", "text": describe_in_text(name, error)}], "isError": True}
        except Exception as error:  # the SDK would send its text to an old client
            return MCPError(types.INTERNAL_ERROR, describe_in_text(name, error))


async def _report_progress(context: "Context", name: str) -> None:
    """Report every second that a call is still running; the SDK drops it unless the client asked for progress."""
    started = time.monotonic()
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        seconds = time.monotonic() - started
        await context.session.report_progress(seconds, message=f"{name}: {seconds:.0f} s")


def _wants_progress(message: object) -> bool:
    for name in ("params", "_meta"):
        message = cast("dict[str, Any]", message).get(name) if isinstance(message, dict) else None
    return isinstance(message, dict) and "progressToken" in message
