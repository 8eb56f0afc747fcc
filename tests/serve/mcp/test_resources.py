"""Prompts and documents that a client may read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serve.wire import by_id, exchange, initialize, make_offer, request, stateless

from daypack.memory.tools import Memories, open_memory
from daypack.serve.mcp import resources
from daypack.serve.mcp.router import Router
from daypack.types.memory import PLACEHOLDER


@pytest.fixture
def memories(home: str) -> Iterator[Memories]:
    with open_memory(home=home) as memories:
        yield memories


@pytest.fixture
def offer(memories: Memories, home: str) -> Router:
    return make_offer(lambda: memories, home)


def ask(offer: Router, method: str, **params: Any) -> Any:
    told = exchange(offer, [initialize(), request(1, method, params)])[1]
    return told.get("result", told.get("error"))


@pytest.mark.requirement("S2-P1", "S2-P2", "S2-P2.1", "S2-P2.2", "S2-P2.3")
def test_the_prompts_of_every_memory_type_are_listed_and_can_be_had(offer: Router) -> None:
    names = [prompt["name"] for prompt in ask(offer, "prompts/list")["prompts"]]
    kinds = ("context_prompt", "entry_capture_prompt", "summary_prompt")
    assert names == [f"{kind}/{name}" for kind in ("chat", "task", "project") for name in kinds]
    for name in names:
        message = ask(offer, "prompts/get", name=name)["messages"][0]
        read = ask(offer, "resources/read", uri=f"daypack://prompts/{name}")["contents"][0]
        assert message["role"] == "user"
        assert message["content"]["text"] == read["text"]
        assert read["mimeType"] == "text/markdown"
        assert len(read["text"]) > 100


@pytest.mark.requirement("S2-TS")
def test_for_a_tool_a_prompt_has_only_the_blocks_of_that_tool(offer: Router) -> None:
    asked: dict[str, Any] = {"name": "chat/context_prompt", "arguments": {"tool": "put_context"}}
    text = ask(offer, "prompts/get", **asked)["messages"][0]["content"]["text"]
    assert "### TOOL: put_context" in text
    assert text.count("### TOOL:") == 1
    whole = ask(offer, "prompts/get", name="chat/context_prompt")["messages"][0]["content"]["text"]
    assert whole.count("### TOOL:") > 1


def test_a_users_own_prompt_goes_first(offer: Router, home: str) -> None:
    own = Path(home) / "prompts" / "chat"
    own.mkdir(parents=True)
    (own / "summary_prompt.md").write_text("Mine.")
    assert ask(offer, "prompts/get", name="chat/summary_prompt")["messages"][0]["content"]["text"] == "Mine."


@pytest.mark.parametrize(
    "params",
    [
        {"name": "chat/none"},
        {"name": "chat"},
        {"name": "../chat/context_prompt"},
        {"name": "chat/context_prompt", "arguments": {"x": "y"}},
        {"name": "chat/context_prompt", "arguments": {"tool": 5}},
        {},
    ],
)
def test_a_prompt_that_is_not_there_is_refused(params: dict[str, Any], offer: Router) -> None:
    assert ask(offer, "prompts/get", **params)["code"] == -32602


def test_a_prompt_that_cannot_be_used_is_told_without_its_place(offer: Router, home: str) -> None:
    own = Path(home) / "prompts" / "chat"
    own.mkdir(parents=True)
    (own / "summary_prompt.md").write_text(" ")
    error = ask(offer, "prompts/get", name="chat/summary_prompt")
    assert error["code"] == -32603
    assert home not in str(error)


def test_the_documents_of_the_users_memories_are_listed_and_read(offer: Router, memories: Memories) -> None:
    one, other = memories.create_memory("Ada"), memories.create_memory("Grace", "task", "ships")
    memories.as_user("eve").create_memory("hers")
    memories.put_context(other.memory_id, "# Ships")
    found = {one["uri"]: one for one in ask(offer, "resources/list")["resources"] if "/memory/" in one["uri"]}
    uris = [f"daypack://memory/{memory.memory_id}/context" for memory in (one, other)]
    assert list(found) == uris
    assert found[uris[1]]["title"] == "Grace"
    assert other.memory_id in found[uris[1]]["description"]
    texts = [ask(offer, "resources/read", uri=uri)["contents"][0]["text"] for uri in uris]
    assert texts == [PLACEHOLDER, "# Ships"]


@pytest.mark.parametrize(
    "uri",
    [
        "daypack://memory/00000000000000000000000000000000/context",
        "daypack://memory/../context",
        "daypack://memory//context",
        "daypack://memory/context",
        "daypack://memories?after=",
        "daypack://memories?after=00000000000000000000000000000000",
        "daypack://memories/",
        "daypack://prompts/chat/none",
        "daypack://prompts/chat/../../x",
        "chat/context_prompt",
        "file:///etc/passwd",
        "",
    ],
)
def test_what_is_not_there_is_not_found(uri: str, offer: Router) -> None:
    error = ask(offer, "resources/read", uri=uri)
    assert (error["code"], error["message"], error["data"]) == (-32602, "Resource not found", {"uri": uri})


def test_another_users_document_is_not_there(offer: Router, memories: Memories) -> None:
    hers = memories.as_user("eve").create_memory("hers").memory_id
    assert ask(offer, "resources/read", uri=f"daypack://memory/{hers}/context")["message"] == "Resource not found"


def test_a_long_list_comes_in_pages(offer: Router, memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PAGE", 4)
    made = {f"daypack://memory/{memories.create_memory('x').memory_id}/context" for _ in range(3)}
    seen: list[str] = []
    page = ask(offer, "resources/list")
    while True:
        seen += [one["uri"] for one in page["resources"]]
        if "nextCursor" not in page:
            break
        page = ask(offer, "resources/list", cursor=page["nextCursor"])
    assert len(seen) == len(set(seen)) == 13
    assert made < set(seen)
    assert ask(offer, "resources/list", cursor="nowhere")["code"] == -32602


def test_the_users_own_memories_are_a_resource(offer: Router, memories: Memories) -> None:
    made = [memories.create_memory(f"number {at}", "task").memory_id for at in range(3)]
    memories.as_user("eve").create_memory("hers")
    assert ask(offer, "resources/list")["resources"][0]["uri"] == "daypack://memories"
    read = ask(offer, "resources/read", uri="daypack://memories")["contents"][0]
    page = json.loads(read["text"])
    assert (read["mimeType"], page["count"], page["next_after"]) == ("application/json", 3, None)
    assert [(memory["memory_id"], memory["title"]) for memory in page["memories"]] == [
        (memory_id, f"number {at}") for at, memory_id in enumerate(made)
    ]


def test_the_resource_of_memories_has_pages(offer: Router, memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PAGE", 2)
    made = [memories.create_memory("x").memory_id for _ in range(5)]
    seen: list[str] = []
    uri = "daypack://memories"
    while uri:
        page = json.loads(ask(offer, "resources/read", uri=uri)["contents"][0]["text"])
        seen += [memory["memory_id"] for memory in page["memories"]]
        uri = f"daypack://memories?after={page['next_after']}" if page["next_after"] else ""
    assert seen == made
    hers = memories.as_user("eve").create_memory("hers").memory_id
    assert ask(offer, "resources/read", uri=f"daypack://memories?after={hers}")["message"] == "Resource not found"


def test_a_secret_in_a_title_is_redacted(offer: Router, memories: Memories) -> None:
    secret = f"ghp_{'aB3dE6gH9j' * 3}kL2mN5"
    memories.create_memory(f"key {secret}")
    read = ask(offer, "resources/read", uri="daypack://memories")["contents"][0]["text"]
    assert '"title":"key ' in read
    assert secret not in read


def test_templates_say_how_uris_are_made(offer: Router) -> None:
    made = ask(offer, "resources/templates/list")["resourceTemplates"]
    assert [one["uriTemplate"] for one in made] == [
        "daypack://memories{?after}",
        "daypack://memory/{memory_id}/context",
        "daypack://prompts/{memory_type}/{name}",
    ]


def test_in_the_stateless_era_what_may_change_is_not_to_be_kept(offer: Router) -> None:
    uri = "daypack://prompts/chat/context_prompt"
    asked = [
        stateless(1, "resources/list"),
        stateless(2, "prompts/list"),
        stateless(3, "resources/read", uri=uri),
        stateless(4, "resources/templates/list"),
    ]
    told = by_id(exchange(offer, asked))
    assert {one["result"]["cacheScope"] for one in told.values()} == {"private"}
    assert [told[number]["result"]["ttlMs"] for number in (1, 2, 3)] == [0, 0, 0]
