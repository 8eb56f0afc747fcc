"""The official client drives `daypack mcp`, in both eras of the protocol."""

import json
import sys
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CallToolResult, TextContent, TextResourceContents
from serve.wire import PROGRAM, environment

from daypack.memory.tools import open_memory
from daypack.serve.toolset import NAMES
from daypack.session import open_session
from daypack.types.memory import PLACEHOLDER

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


def start(home: str, *arguments: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-c", PROGRAM, "mcp", *arguments], env=environment(home))


async def call(client: Client, name: str, **given: Any) -> Any:
    """Call a tool; the client itself holds the result against the output schema."""
    result = await client.call_tool(name, given)
    assert isinstance(result, CallToolResult)
    text = result.content[0]
    assert isinstance(text, TextContent)
    assert not result.is_error, text.text
    assert json.loads(text.text) == result.structured_content
    return result.structured_content


@pytest.mark.requirement("S2-T0")
@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_calls_all_nine_tools(mode: Any, home: str) -> None:
    async def talk() -> None:
        async with Client(start(home), mode=mode) as client:
            assert client.protocol_version == ERAS[mode]
            tools = (await client.list_tools()).tools
            assert tuple(tool.name for tool in tools) == NAMES
            assert all(tool.output_schema and tool.annotations for tool in tools)
            made = await call(client, "create_memory", title="Ada")
            one = {"memory_id": made["memory_id"]}
            assert (await call(client, "get_memory", **one))["title"] == "Ada"
            assert (await call(client, "get_context", **one))["content"] == PLACEHOLDER
            about = {"author": "Ada", "role": "user", "session": "s", "at": "2025-08-01", "tags": ["launch"]}
            added = await call(client, "add_entry", **one, raw_entry="The launch is on 17 Aug 2025.", **about)
            listed = await call(client, "list_entries", **one, limit=10)
            assert listed["entries"][0]["entry_id"] == added["entry_id"]
            assert listed["entries"][0]["tags"] == ["launch"]
            held = await call(client, "await_consistency", **one, token=added["token"])
            assert held["status"] == "consistent"
            assert (await call(client, "put_context", **one, content="# Launch"))["version"] == 2
            found = await call(client, "search_memories", **one, query="launch date", explain=True, tags=["launch"])
            assert [hit["entry_id"] for hit in found["entries"]] == [added["entry_id"]]
            assert (await call(client, "get_user"))["quotas"]["used"]["entries"] == 1

    anyio.run(talk)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_reads_prompts_and_resources(mode: Any, home: str) -> None:
    async def talk() -> None:
        async with Client(start(home), mode=mode) as client:
            made = await call(client, "create_memory", title="Ada")
            prompts = (await client.list_prompts()).prompts
            assert "chat/context_prompt" in [prompt.name for prompt in prompts]
            got = await client.get_prompt("chat/context_prompt", {"tool": "put_context"})
            assert isinstance(got.messages[0].content, TextContent)
            listed = await client.list_resources()
            uris = [resource.uri for resource in listed.resources]
            assert f"daypack://memory/{made['memory_id']}/context" in uris
            for uri in uris:
                read = (await client.read_resource(uri)).contents[0]
                assert isinstance(read, TextResourceContents)
                assert read.text
            templates = (await client.list_resource_templates()).resource_templates
            assert len(templates) == 3
            if mode == "auto":
                assert (listed.cache_scope, listed.ttl_ms) == ("private", 0)

    anyio.run(talk)


@pytest.mark.requirement("S2-T0")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_uses_the_default_memory_and_reads_the_list(mode: Any, home: str) -> None:
    with open_memory(home=home) as memories:
        memory_id = memories.create_memory("launch").memory_id

    async def talk() -> None:
        async with Client(start(home, "--memory", "launch"), mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert tuple(tool.name for tool in tools) == NAMES
            optional = [tool.name for tool in tools if "memory_id" not in (tool.input_schema.get("required") or ())]
            assert set(optional) == set(NAMES)
            assert (await call(client, "add_entry", raw_entry="Maria leads the launch."))["memory_id"] == memory_id
            found = await call(client, "search_memories", query="who leads the launch")
            assert found["entries"][0]["raw_entry"] == "Maria leads the launch."
            read = (await client.read_resource("daypack://memories")).contents[0]
            assert isinstance(read, TextResourceContents)
            assert [one["memory_id"] for one in json.loads(read.text)["memories"]] == [memory_id]
            assert mode == "auto" or "memory_id may be left out" in (client.instructions or "")

    anyio.run(talk)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_what_goes_wrong_arrives_as_the_client_expects_it(mode: Any, home: str) -> None:
    async def talk() -> None:
        async with Client(start(home), mode=mode) as client:
            refused = await client.call_tool("get_memory", {"memory_id": "x", "colour": "red"})
            assert isinstance(refused, CallToolResult)
            assert refused.is_error
            assert isinstance(refused.content[0], TextContent)
            assert "'colour'" in refused.content[0].text
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("drop_everything", {})
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource("daypack://memory/none/context")
            with pytest.raises(MCPError, match="Unknown prompt"):
                await client.get_prompt("chat/none")
            assert (await call(client, "get_user"))["user_id"] == "local"

    anyio.run(talk)


def test_the_official_client_gets_many_answers_at_once(home: str) -> None:
    async def talk() -> None:
        async with Client(start(home), mode="legacy") as client:
            one = (await call(client, "create_memory", title="x"))["memory_id"]
            async with anyio.create_task_group() as group:
                for number in range(40):
                    group.start_soon(_add, client, one, number)
                    group.start_soon(client.list_prompts)
            page = await call(client, "list_entries", memory_id=one, limit=50)
            assert {entry["raw_entry"] for entry in page["entries"]} == {f"entry {number}" for number in range(40)}

    async def _add(client: Client, one: str, number: int) -> None:
        await call(client, "add_entry", memory_id=one, raw_entry=f"entry {number}")

    anyio.run(talk)


def test_a_call_the_official_client_gives_up_leaves_the_rest_working(home: str) -> None:
    async def talk() -> None:
        async with Client(start(home), mode="legacy") as client:
            one = (await call(client, "create_memory", title="x"))["memory_id"]
            with anyio.move_on_after(0.01):
                while True:
                    await call(client, "search_memories", memory_id=one, query="x")
            assert (await call(client, "get_memory", memory_id=one))["title"] == "x"

    anyio.run(talk)


def test_with_a_session_the_official_client_sees_two_tools_more(home: str) -> None:
    with open_session("work", home=home) as session:
        session.append("user", "The valve is at 47 bar.")

    async def talk() -> None:
        async with Client(start(home, "--session", "work"), mode="auto") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [*NAMES, "recall", "search_history"]
            for name, given in (("recall", {"id": "msg-1"}), ("search_history", {"query": "valve"})):
                result = await client.call_tool(name, given)
                assert isinstance(result, CallToolResult)
                assert isinstance(result.content[0], TextContent)
                assert "47 bar" in result.content[0].text
                assert result.structured_content is None

    anyio.run(talk)
