"""A server on the official SDK that offers the same as ours: what it answers is what ours must answer."""

import json
from collections.abc import Iterable
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from serve.wire import Message

from daypack import __version__
from daypack.serve.mcp.jsonrpc import RpcError
from daypack.serve.mcp.router import Router

_LASTING = CacheHint(ttl_ms=3_600_000)


def make_server(offer: Router) -> Server[Any]:
    """Return the SDK's low-level server over what `offer` has."""

    def do(method: str, params: Any) -> Any:
        given: Message = {} if params is None else params.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            return offer.route(method, given).work()
        except RpcError as fault:
            raise MCPError(fault.code, fault.message, fault.data) from fault

    def wire(value: Any) -> Any:
        return msgspec.json.decode(msgspec.json.encode(value))

    async def list_tools(_: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate(wire(do("tools/list", params)))

    async def call_tool(_: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult.model_validate(wire(do("tools/call", params)))

    async def list_prompts(_: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate(do("prompts/list", params))

    async def get_prompt(_: Any, params: Any) -> types.GetPromptResult:
        return types.GetPromptResult.model_validate(do("prompts/get", params))

    async def list_resources(_: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate(do("resources/list", params))

    async def list_templates(_: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult.model_validate(do("resources/templates/list", params))

    async def read_resource(_: Any, params: Any) -> types.ReadResourceResult:
        return types.ReadResourceResult.model_validate(do("resources/read", params))

    return Server(
        "daypack",
        version=__version__,
        title="daypack",
        instructions=offer.instructions,
        cache_hints={"server/discover": _LASTING, "tools/list": _LASTING, "resources/templates/list": _LASTING},
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def exchange_with_reference(offer: Router, messages: Iterable[Message]) -> list[Message]:
    """Send messages to the SDK's server, each after the answer to the one before; return what it answered."""
    told: list[Message] = []

    async def talk() -> None:
        server = make_server(offer)
        ours_out, theirs_in = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        theirs_out, ours_in = anyio.create_memory_object_stream[SessionMessage](1)
        async with ours_out, ours_in, anyio.create_task_group() as group:
            group.start_soon(server.run, theirs_in, theirs_out, server.create_initialization_options())
            for message in messages:
                parsed = types.jsonrpc_message_adapter.validate_json(json.dumps(message), by_name=False)
                await ours_out.send(SessionMessage(parsed))
                if "id" in message:
                    answer = (await ours_in.receive()).message
                    told.append(json.loads(answer.model_dump_json(by_alias=True, exclude_unset=True)))
            ours_out.close()

    anyio.run(talk)
    return told
