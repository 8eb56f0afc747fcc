"""A server with a default memory: it is that of its own user, and no other user learns of it."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from mcp import Client
from memory_server import Server, make_token, start_server
from tenants_server import Tenant, TenantServer, in_client, text_of

from daypack.memory.tools import open_memory
from daypack.serve.toolset import NAMES

USING = [name for name in NAMES if name not in ("create_memory", "await_consistency", "get_user")]


class Shared(NamedTuple):
    server: Server
    memory_id: str
    owner: str
    other: str


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    home = str(tmp_path_factory.mktemp("default") / "home")
    with open_memory(home=home) as memories:
        for user in ("ada", "eve"):
            memories.users.get(user)
        memory_id = memories.as_user("ada").create_memory("launch").memory_id
    owner, other = make_token(home, "ada"), make_token(home, "eve")
    with start_server(home, "--user", "ada", "--memory", "launch", "--require-token") as server:
        yield Shared(server, memory_id, owner, other)


def required(schema: dict[str, Any]) -> bool:
    return "memory_id" in schema["required"]


def test_the_owner_may_leave_it_out_and_others_may_not(shared: Shared) -> None:
    added = shared.server.call("add_entry", shared.owner, raw_entry="The boat of Ada is blue.")
    assert (added.status_code, added.json()["memory_id"]) == (200, shared.memory_id)
    refused = shared.server.call("add_entry", shared.other, raw_entry="x")
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "memory_id is missing"
    hint = refused.json()["error"]["hint"]
    assert "GET /api/memories" in hint
    assert "DAYPACK_MEMORY" not in hint  # which would not help: it is the owner's
    assert shared.memory_id not in refused.text
    assert "launch" not in refused.text
    with shared.server.client() as client:
        paths = client.get("/openapi.json").json()["paths"]
    schemas = [paths[f"/api/{name}"]["post"]["requestBody"]["content"]["application/json"]["schema"] for name in USING]
    assert all(required(schema) for schema in schemas)


@pytest.mark.requirement("S2-T0")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_over_mcp_each_user_is_told_what_holds_for_them(shared: Shared, mode: str) -> None:
    async def look(client: Client) -> tuple[dict[str, bool], str, str]:
        tools = (await client.list_tools()).tools
        assert tuple(tool.name for tool in tools) == NAMES
        called = await client.call_tool("get_memory", {})
        described = "".join(tool.model_dump_json() for tool in tools) + (client.instructions or "")
        return {tool.name: required(tool.input_schema) for tool in tools}, text_of(called), described

    asking = TenantServer(shared.server, [Tenant("ada", shared.owner, shared.memory_id, "", "", "")], "")
    needed, told, described = in_client(asking, look, shared.owner, mode=mode)
    assert not any(needed[name] for name in USING)
    assert json.loads(told)["memory_id"] == shared.memory_id
    assert f"the default memory, {shared.memory_id}" in described
    needed, told, described = in_client(asking, look, shared.other, mode=mode)
    assert all(needed[name] for name in USING)
    assert "memory_id is missing" in told
    assert shared.memory_id not in described + told


def test_without_tokens_the_description_has_the_default(shared: Shared) -> None:
    with start_server(shared.server.home, "--user", "ada", "--memory", shared.memory_id[:8]) as server:
        with server.client() as client:
            paths = client.get("/openapi.json").json()["paths"]
        schema = paths["/api/get_memory"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert not required(schema)
        assert shared.memory_id in schema["properties"]["memory_id"]["description"]
        assert server.call("get_memory").json()["memory_id"] == shared.memory_id
