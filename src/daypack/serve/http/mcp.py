"""The MCP door over HTTP, on the official SDK: stateless, both protocol eras, progress for those who ask for it."""

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
from daypack.errors import AccessDenied
from daypack.serve.http.bodies import Receive
from daypack.serve.http.errors import Send
from daypack.serve.http.gate import Caller, Scope, require_write
from daypack.serve.stdio.jsonrpc import Fault
from daypack.serve.stdio.lifecycle import dress
from daypack.serve.toolset import explain

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


class Streamable:
    """Answers POST /mcp. Whoever asks for progress gets a stream of events, all others one JSON answer."""

    def __init__(self, tenants: "Tenants", *, max_body_bytes: int) -> None:
        self._tenants = tenants
        told = tenants.offer(tenants.owner).instructions
        server: Server[Any] = Server("daypack", version=__version__, title="daypack", instructions=told)
        for method, params in _METHODS.items():
            server.add_request_handler(method, params, self._answering(method))
        self._plain, self._streaming = (
            StreamableHTTPSessionManager(
                server, json_response=plain, stateless=True, max_request_body_size=max_body_bytes
            )
            for plain in (True, False)
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Answer while this is open."""
        async with self._plain.run(), self._streaming.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        chosen = self._streaming if _wants_progress(scope["daypack.json"]) else self._plain
        await chosen.asgi_app(scope, receive, send)

    def _answering(self, method: str) -> "Callable[[Context, BaseModel], Awaitable[dict[str, Any]]]":
        async def answer(context: "Context", _: BaseModel) -> dict[str, Any]:
            assert context.request is not None  # it came over HTTP
            caller: Caller = context.request.scope["daypack.caller"]
            params = dict(context.params or {})
            result: dict[str, Any] | MCPError = {}
            async with anyio.create_task_group() as group:
                group.start_soon(_tell_progress, context, str(params.get("name", method)))
                result = await self._work(caller, method, params)
                group.cancel_scope.cancel()
            if isinstance(result, MCPError):  # raised here: a group would wrap it
                raise result
            return dress(context.protocol_version, method, result)

        return answer

    async def _work(self, caller: Caller, method: str, params: dict[str, Any]) -> dict[str, Any] | MCPError:
        name = str(params.get("name", method))
        try:
            job = self._tenants.offer(caller.user).prepare(method, params)
            if job.writes:
                require_write(caller, name)
            return await self._tenants.run(lambda: msgspec.to_builtins(job.work()), waits=name == "await_consistency")
        except Fault as fault:
            return MCPError(fault.code, fault.message, fault.data)
        except AccessDenied as error:
            return {"content": [{"type": "text", "text": explain(name, error)}], "isError": True}
        except Exception as error:  # the SDK would tell an old client its text
            return MCPError(types.INTERNAL_ERROR, explain(name, error))


async def _tell_progress(context: "Context", name: str) -> None:
    """Say every second that a call is still at work; nothing happens when its caller did not ask for it."""
    started = time.monotonic()
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        seconds = time.monotonic() - started
        await context.session.report_progress(seconds, message=f"{name}: {seconds:.0f} s")


def _wants_progress(message: object) -> bool:
    for name in ("params", "_meta"):
        message = cast("dict[str, Any]", message).get(name) if isinstance(message, dict) else None
    return isinstance(message, dict) and "progressToken" in message
