"""The official MCP client over HTTP, in both eras."""

import json
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent, TextResourceContents
from tenants_server import TOOL_NAMES, TenantServer, in_client, text_of

from daypack.types.memory import PLACEHOLDER

ERAS = ["legacy", "auto", "2026-07-28"]


@pytest.mark.requirement("S2-T1", "S2-T2", "S2-T3", "S2-T4", "S2-T5", "S2-T6", "S2-T7", "S2-T8", "S2-T9")
@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_calls_all_nine_tools(shared_server: TenantServer, mode: str) -> None:
    seen: list[str] = []

    async def work(client: Client) -> None:
        async def call(name: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.content
            assert json.loads(text_of(result)) == result.structured_content
            seen.append(name)
            assert result.structured_content is not None
            return result.structured_content

        assert [tool.name for tool in (await client.list_tools()).tools][:9] == TOOL_NAMES
        memory_id = (await call("create_memory", title=f"by {mode}"))["memory_id"]
        assert (await call("get_memory", memory_id=memory_id))["title"] == f"by {mode}"
        raw = "Nadia 说爵士乐队六月十二日到。 The band is called Blue Crane."
        added = await call("add_entry", memory_id=memory_id, raw_entry=raw, author="Nadia", tags=["music"])
        listed = await call("list_entries", memory_id=memory_id, limit="10")
        assert [one["entry_id"] for one in listed["entries"]] == [added["entry_id"]]
        assert (await call("get_context", memory_id=memory_id))["content"] == PLACEHOLDER
        assert (await call("put_context", memory_id=memory_id, content="# Band"))["version"] == 2
        held = await call("await_consistency", memory_id=memory_id, token=added["token"])
        assert held["status"] == "consistent"
        assert (await call("get_user"))["user_id"] == shared_server.owner.name
        found = await call("search_memories", memory_id=memory_id, query="爵士乐队", tags=["music"])
        assert found["entries"][0]["raw_entry"] == raw

    in_client(shared_server, work, mode=mode)
    assert sorted(seen) == sorted(TOOL_NAMES)


@pytest.mark.parametrize("mode", ERAS)
def test_both_eras_agree_on_their_version_and_say_who_is_there(shared_server: TenantServer, mode: str) -> None:
    async def work(client: Client) -> tuple[str, str]:
        return client.protocol_version, client.instructions or ""

    version, told = in_client(shared_server, work, mode=mode)
    assert version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    assert mode == "2026-07-28" or "get_context" in told  # pinned, it asks for nothing


@pytest.mark.parametrize("mode", ERAS)
def test_a_refused_call_is_told_to_the_model_and_an_unknown_tool_to_the_client(
    shared_server: TenantServer, mode: str
) -> None:
    async def work(client: Client) -> None:
        for name, arguments, told in (
            ("get_memory", {"memory_id": "0" * 32}, "no such memory"),
            ("get_memory", {}, "memory_id"),
            ("put_context", {"memory_id": shared_server.owner.memory_id, "content": "x" * 5001}, "5,001"),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert told in text_of(result)
            assert shared_server.server.home not in text_of(result)
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("erase_memory", {"memory_id": shared_server.owner.memory_id})

    in_client(shared_server, work, mode=mode)


@pytest.mark.requirement("S2-P1", "S2-P2")
@pytest.mark.parametrize("mode", ERAS)
def test_prompts_and_documents_are_there_to_be_read(shared_server: TenantServer, mode: str) -> None:
    async def work(client: Client) -> None:
        prompts = [one.name for one in (await client.list_prompts()).prompts]
        assert {"chat/context_prompt", "chat/entry_capture_prompt", "chat/summary_prompt"} <= set(prompts)
        got = await client.get_prompt("chat/context_prompt")
        assert isinstance(got.messages[0].content, TextContent)
        assert "context" in got.messages[0].content.text
        assert (await client.list_resource_templates()).resource_templates
        uri = f"daypack://memory/{shared_server.owner.memory_id}/context"
        listed = await client.list_resources()
        assert uri in {str(one.uri) for one in listed.resources}
        read = await client.read_resource(uri)
        assert isinstance(read.contents[0], TextResourceContents)
        assert read.contents[0].text == PLACEHOLDER

    in_client(shared_server, work, mode=mode)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_long_call_tells_how_it_goes_on_and_a_timeout_is_a_result(shared_server: TenantServer, mode: str) -> None:
    told: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert message is not None
        assert message.startswith("await_consistency")
        told.append(progress)

    async def work(client: Client) -> Any:
        given = {
            "token": shared_server.never(shared_server.owner.memory_id),
            "memory_id": shared_server.owner.memory_id,
            "timeout_ms": 2300,
        }
        return await client.call_tool("await_consistency", given, progress_callback=note)

    result = in_client(shared_server, work, mode=mode)
    assert result.structured_content["status"] == "timeout"
    assert told
    assert told == sorted(told)


def test_whoever_does_not_ask_for_progress_gets_plain_json(shared_server: TenantServer) -> None:
    headers = {"Authorization": f"Bearer {shared_server.owner.token}", "Accept": "application/json, text/event-stream"}
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_user"}}
    with shared_server.server.client() as client:
        plain = client.post("/mcp", json=call, headers=headers)
        call["params"]["_meta"] = {"progressToken": 1}
        streamed = client.post("/mcp", json=call, headers=headers)
    assert plain.headers["content-type"] == "application/json"
    assert plain.json()["result"]["structuredContent"]["user_id"] == "user0"
    assert streamed.headers["content-type"].startswith("text/event-stream")
    for answered in (plain, streamed):
        assert answered.headers["cache-control"] == "no-store"
        assert "mcp-session-id" not in answered.headers


def test_a_session_is_offered_to_its_owner_alone(shared_server: TenantServer) -> None:
    async def names(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    async def recall(client: Client) -> str:
        return text_of(await client.call_tool("search_history", {"query": "crane"}))

    async def refused(client: Client) -> None:
        with pytest.raises(MCPError, match="Unknown tool"):
            await recall(client)

    other = shared_server.tenants[1].token
    assert in_client(shared_server, names) == [*TOOL_NAMES, "recall", "search_history"]
    assert in_client(shared_server, names, other) == TOOL_NAMES
    assert "The crane is number 7." in in_client(shared_server, recall)
    in_client(shared_server, refused, other)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_token_for_reading_reads_and_writes_nothing(shared_server: TenantServer, mode: str) -> None:
    memory_id = shared_server.owner.memory_id
    writes: dict[str, dict[str, Any]] = {
        "create_memory": {"title": "x"},
        "add_entry": {"memory_id": memory_id, "raw_entry": "x"},
        "put_context": {"memory_id": memory_id, "content": "x"},
    }

    async def work(client: Client) -> None:
        for name, arguments in writes.items():
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert "read-only" in text_of(result)
        for name, arguments in (("get_memory", {"memory_id": memory_id}), ("get_user", {})):
            assert not (await client.call_tool(name, arguments)).is_error

    in_client(shared_server, work, shared_server.reader, mode)
    for name, arguments in writes.items():
        answered = shared_server.server.call(name, shared_server.reader, **arguments)
        assert (answered.status_code, answered.json()["error"]["code"]) == (403, "AccessDenied")
    assert (
        shared_server.server.call(
            "search_memories", shared_server.reader, memory_id=memory_id, query="vault"
        ).status_code
        == 200
    )
    page = shared_server.server.call("list_entries", shared_server.owner.token, memory_id=memory_id).json()
    assert page["count"] == 1
