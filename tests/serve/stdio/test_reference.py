"""Our loop and a server on the official SDK get the same requests: their answers are the same, field by field."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import INVALID_PARAMS, jsonrpc_message_adapter
from mcp_types import methods as surface
from serve.stdio.reference import exchange_with_reference
from serve.wire import META, Message, exchange, initialize, make_offer, request

from daypack.memory.tools import Memories, open_memory
from daypack.serve.mcp.router import Router

MEMORY = "0" * 32
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
PROMPT = "chat/context_prompt"

# What is asked of both, in every version.
ASKED: dict[str, tuple[str, Any]] = {
    "ping": ("ping", None),
    "discover": ("server/discover", {}),
    "tools": ("tools/list", {}),
    "no parameters": ("tools/list", None),
    "user": ("tools/call", {"name": "get_user"}),
    "user, no arguments": ("tools/call", {"name": "get_user", "arguments": {}}),
    "user, null arguments": ("tools/call", {"name": "get_user", "arguments": None}),
    "document": ("tools/call", {"name": "get_context", "arguments": {"memory_id": MEMORY}}),
    "entries": ("tools/call", {"name": "list_entries", "arguments": {"memory_id": MEMORY, "limit": "2"}}),
    "search": ("tools/call", {"name": "search_memories", "arguments": {"memory_id": MEMORY, "query": "ünï 漢字"}}),
    "barrier": ("tools/call", {"name": "await_consistency", "arguments": {"memory_id": MEMORY}}),
    "token": ("tools/call", {"name": "get_user", "_meta": {"progressToken": "t"}}),
    "wrong argument": ("tools/call", {"name": "get_user", "arguments": {"x": 1}}),
    "no such memory": ("tools/call", {"name": "get_memory", "arguments": {"memory_id": "1" * 32}}),
    "no such tool": ("tools/call", {"name": "nothing"}),
    "no tool": ("tools/call", {}),
    "tool is a number": ("tools/call", {"name": 3}),
    "arguments are a list": ("tools/call", {"name": "get_user", "arguments": []}),
    "prompts": ("prompts/list", {}),
    "prompt": ("prompts/get", {"name": PROMPT}),
    "prompt for a tool": ("prompts/get", {"name": PROMPT, "arguments": {"tool": "put_context"}}),
    "no such prompt": ("prompts/get", {"name": "nothing"}),
    "no prompt": ("prompts/get", {}),
    "argument is a number": ("prompts/get", {"name": PROMPT, "arguments": {"tool": 1}}),
    "resources": ("resources/list", {}),
    "wrong cursor": ("resources/list", {"cursor": "x"}),
    "cursor is a number": ("resources/list", {"cursor": 1}),
    "templates": ("resources/templates/list", {}),
    "resource": ("resources/read", {"uri": f"daypack://memory/{MEMORY}/context"}),
    "no such resource": ("resources/read", {"uri": "daypack://memory/none/context"}),
    "no resource": ("resources/read", {}),
    "level": ("logging/setLevel", {"level": "info"}),
    "subscribe": ("resources/subscribe", {"uri": "daypack://x"}),
    "complete": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": PROMPT}, "argument": {"name": "tool", "value": "p"}},
    ),
    "nothing": ("nothing/there", {}),
    "empty": ("", {}),
}


@pytest.fixture(scope="module")
def offer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Router]:
    """One memory with a known id, two entries and a document, shared by both servers."""
    home = str(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
        with open_memory(home=home) as memories:
            _fill(memories)
            yield make_offer(lambda: memories, home)


def _fill(memories: Memories) -> None:
    made = memories.create_memory("shared")
    memories.add_entry(made.memory_id, "ünï 漢字\n\u2028 end", about={"author": "Ada", "tags": ["a"]})
    memories.add_entry(made.memory_id, "second 漢字")
    memories.put_context(made.memory_id, "# Document")
    lines = [line.replace(made.memory_id.encode(), MEMORY.encode()) for line in memories.export_memory(made.memory_id)]
    memories.import_memory(lines)


def in_version(version: str, number: int, method: str, params: Any) -> Message:
    if version != "2026-07-28":
        return request(number, method, params)
    given: Message = params or {}
    return request(number, method, {**given, "_meta": {**META, **given.get("_meta", {})}})


def same(answer: Message) -> Message:
    """Return an answer without what is known to differ: see `test_what_differs_is_known`."""
    answer = json.loads(json.dumps(answer))
    if answer.get("error", {}).get("code") == INVALID_PARAMS:
        answer["error"].pop("data", None)
    return answer


@pytest.mark.parametrize("version", VERSIONS)
def test_the_answers_are_the_same_field_by_field(version: str, offer: Router) -> None:
    opening = [] if version == "2026-07-28" else [initialize(version)]
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    asked = [in_version(version, number, *one) for number, one in enumerate(ASKED.values(), 1)]
    ours = exchange(offer, [*opening, told, *asked])
    theirs = exchange_with_reference(offer, [*opening, told, *asked])
    names = ["initialize", *ASKED] if opening else list(ASKED)
    for name, one, other in zip(names, sorted(ours, key=lambda one: one["id"]), theirs, strict=True):
        assert same(one) == same(other), f"{version}: {name}"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_answer_is_what_the_types_of_the_sdk_say(version: str, offer: Router) -> None:
    opening = [] if version == "2026-07-28" else [initialize(version)]
    asked = [in_version(version, number, *one) for number, one in enumerate(ASKED.values(), 1)]
    methods = {0: "initialize"} | {message["id"]: message["method"] for message in asked}
    checked: set[str] = set()
    for answer in exchange(offer, [*opening, *asked]):
        jsonrpc_message_adapter.validate_python(answer, by_name=False)
        if "result" in answer:
            method = methods[answer["id"]]
            told = surface.serialize_server_result(method, version, answer["result"])
            assert told == answer["result"], f"{method} has what {version} does not know"
            checked.add(method)
    assert len(checked) >= 8


def test_a_write_is_answered_in_the_same_form(offer: Router) -> None:
    given = {"name": "add_entry", "arguments": {"memory_id": MEMORY, "raw_entry": "third", "client_key": "k"}}
    asked = [initialize(), request(1, "tools/call", given)]
    ours, theirs = exchange(offer, asked)[1], exchange_with_reference(offer, asked)[1]
    assert not ours["result"]["structuredContent"]["replayed"]
    ours["result"]["structuredContent"]["replayed"] = True  # the second to ask is told that it was the second
    for answer in (ours, theirs):
        text = json.loads(answer["result"].pop("content")[0]["text"])
        assert text | {"replayed": True} == answer["result"]["structuredContent"]
    assert ours == theirs


@pytest.mark.parametrize(
    "messages",
    [
        [request(1, "tools/list")],
        [request(1, "ping"), request(2, "tools/call", {"name": "get_user"})],
        [request(1, "nothing/there")],
        [request(1, "initialize", {"protocolVersion": "2025-06-18"})],
        [request(1, "initialize")],
        [initialize("1999-01-01", 1), request(2, "tools/list")],
        [initialize("2026-07-28", 1)],
        [initialize("2025-06-18", 1), initialize("2025-11-25", 2)],
        [initialize("2025-06-18", "one"), request("two", "ping")],
        [request(1, "server/discover", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}})],
        [request(1, "server/discover", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": 3}})],
        [request(1, "tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})],
        [request(1, "ping", {"_meta": META})],
        [request(1, "initialize", {**initialize()["params"], "_meta": META})],
    ],
)
def test_beginnings_of_every_kind_are_answered_alike(messages: list[Message], offer: Router) -> None:
    ours, theirs = exchange(offer, messages), exchange_with_reference(offer, messages)
    assert [same(one) for one in ours] == [same(one) for one in theirs]


def test_what_differs_is_known(offer: Router) -> None:
    """Six things are otherwise than in the SDK, on purpose."""
    # 1. What is wrong with parameters is said, where the SDK says nothing.
    asked = [initialize(), request(1, "tools/call", {})]
    ours, theirs = exchange(offer, asked)[1]["error"], exchange_with_reference(offer, asked)[1]["error"]
    assert (ours["data"], theirs["data"]) == ("Object missing required field `name`", "")
    # 2. Both eras are served side by side, as the specification allows; the SDK serves the one a client began with.
    mixed = [initialize(), request(1, "tools/list", {"_meta": META})]
    ours, theirs = exchange(offer, mixed)[1], exchange_with_reference(offer, mixed)[1]
    assert ours["result"]["resultType"] == "complete"
    assert theirs["error"]["code"] == -32600
    # 3. A line that is no message is answered with an error (test_stdio); the SDK drops it.
    # 4. Batches of 2025-03-26, where they are part of the protocol, are answered (test_stdio); the SDK drops them.
    # 5. An error nobody thought of is -32603 in every version (test_stdio); in the handshake era the SDK says 0.
    # 6. When the input ends, calls that run are answered (test_calls); the SDK breaks them off with -32000.
