"""A memory server with tokens and many users, called by the official MCP client or by plain HTTP requests."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from memory_server import Server

from daypack.memory.tools import open_memory
from daypack.memory.writes.positions import Position

TOOL_NAMES = [
    "create_memory",
    "get_memory",
    "add_entry",
    "list_entries",
    "get_context",
    "put_context",
    "await_consistency",
    "get_user",
    "search_memories",
]
SECRET = "the vault opens with 4711-"
USERS = 50


class Tenant(NamedTuple):
    """A user with one memory that contains a secret."""

    name: str
    token: str
    memory_id: str
    entry_id: str
    barrier: str
    secret: str


class TenantServer(NamedTuple):
    """A server that requires tokens, and its users."""

    server: Server
    tenants: list[Tenant]
    reader: str  # a token of the first tenant that may only read

    @property
    def owner(self) -> Tenant:
        return self.tenants[0]

    def never(self, memory_id: str) -> str:
        """Return a token of the owner for a write that nobody has made."""
        with open_memory(home=self.server.home) as memories:
            position = Position(memories.backend.store.store_id, memory_id, 1_000_000, 0)
            return memories.backend.positions.write_token(self.owner.name, position)


def attempts(own_id: str, memory_id: str, entry_id: str, barrier: str) -> list[tuple[str, dict[str, Any]]]:
    """All ways to reach for a memory, an entry and a write that are not one's own."""
    return [
        ("get_memory", {"memory_id": memory_id}),
        ("get_memory", {"memory_id": memory_id.upper()}),
        ("get_memory", {"memory_id": f"{memory_id}%00"}),
        ("get_context", {"memory_id": memory_id}),
        ("put_context", {"memory_id": memory_id, "content": "mine now"}),
        ("add_entry", {"memory_id": memory_id, "raw_entry": "mine now"}),
        ("add_entry", {"memory_id": memory_id, "raw_entry": "mine now", "client_key": "k"}),
        ("list_entries", {"memory_id": memory_id}),
        ("list_entries", {"memory_id": memory_id, "before": entry_id}),
        ("list_entries", {"memory_id": own_id, "before": entry_id}),
        ("list_entries", {"memory_id": own_id, "after": entry_id}),
        ("search_memories", {"memory_id": memory_id, "query": "vault 4711", "top_k": 100}),
        ("await_consistency", {"memory_id": memory_id, "timeout_ms": 0}),
        ("await_consistency", {"token": barrier, "timeout_ms": 0}),
        ("await_consistency", {"memory_id": own_id, "token": barrier, "timeout_ms": 0}),
        ("await_consistency", {"memory_id": memory_id, "token": barrier, "timeout_ms": 0}),
        ("list_entries", {"memory_id": memory_id, "after": "2020-01-01T00:00:00Z", "limit": "50"}),
        ("search_memories", {"memory_id": memory_id, "query": "vault", "since": "2020-01-01"}),
        ("search_memories", {"memory_id": f"{memory_id}/../{own_id}", "query": "vault"}),
    ]


@asynccontextmanager
async def connected(shared_server: TenantServer, token: str, mode: str) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        transport = streamable_http_client(shared_server.server.told["mcp"], http_client=http)
        async with Client(transport, mode=mode) as client:  # pyright: ignore[reportArgumentType]
            yield client


def in_client(
    shared_server: TenantServer, work: Callable[[Client], Any], token: str | None = None, mode: str = "auto"
) -> Any:
    """Run `work` with the official client."""

    async def run() -> Any:
        async with connected(shared_server, token or shared_server.owner.token, mode) as client:
            return await work(client)

    return anyio.run(run)


def text_of(result: CallToolResult) -> str:
    """Return the text of a tool result."""
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


class Connection:
    """A persistent connection of one caller, cheap enough for thousands of requests."""

    def __init__(self, server: Server, token: str | None) -> None:
        place = urlsplit(server.url)
        self._connection = HTTPConnection(place.hostname or "", place.port, timeout=60)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def begin(self, path: str, value: Any) -> None:
        self._connection.request("POST", path, json.dumps(value), self._headers)

    def post(self, path: str, value: Any) -> tuple[int, bytes]:
        self.begin(path, value)
        return self.answer()

    def answer(self) -> tuple[int, bytes]:
        response = self._connection.getresponse()
        return response.status, response.read()

    def api(self, tool: str, arguments: dict[str, Any]) -> tuple[int, bytes]:
        return self.post(f"/api/{tool}", arguments)

    def mcp(self, tool: str, arguments: dict[str, Any]) -> tuple[int, bytes]:
        params = {"name": tool, "arguments": arguments}
        return self.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    def read(self, uri: str) -> tuple[int, bytes]:
        return self.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}})

    @property
    def routes(self) -> tuple[Callable[[str, dict[str, Any]], tuple[int, bytes]], ...]:
        return self.api, self.mcp

    def fileno(self) -> int:
        return self._connection.sock.fileno()

    def close(self) -> None:
        self._connection.close()
