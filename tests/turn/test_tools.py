"""Tools of a turn: counted before anything is chosen, recorded by digest, and in the request of every dialect."""

import json
from typing import Any

import pytest
from anthropic import Anthropic
from anthropic.types import ToolParam
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from pydantic import BaseModel
from scripted_endpoint import Endpoint, Reply, Seen
from turn.dialects.library import answer, completion, response, said, text

import daypack
from daypack.errors import BadInput, BudgetTooSmall, SourceMissing
from daypack.session import Session
from daypack.text.tokens import counter_for
from daypack.turn.dialects import NAMES
from daypack.turn.dialects.tool_definitions import render_tools
from daypack.turn.tools import read_tools
from daypack.types.history import Event, Message
from daypack.upkeep.gc.references import captured_by

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The city"}},
    "required": ["city"],
}
FUNCTION = {"name": "weather", "description": "The weather now", "parameters": SCHEMA}
CHAT: dict[str, Any] = {"type": "function", "function": FUNCTION}
FLAT: dict[str, Any] = {"type": "function", **FUNCTION}
BLOCK: dict[str, Any] = {"name": "weather", "description": "The weather now", "input_schema": SCHEMA}
OTHER: dict[str, Any] = {"type": "function", "function": {"name": "time"}}


def ready(session: Session, words: str = "Hi.") -> Session:
    session.append("user", words)
    return session


def test_tools_count_and_their_digest_is_recorded(session: Session) -> None:
    without = ready(session).prepare(budget=8000, dry_run=True)
    turn = session.prepare(budget=8000, tools=[CHAT])
    tools = turn.record.tools
    assert tools is not None
    assert tools.count == 1
    assert tools.tokens > counter_for(None).count(json.dumps(CHAT))
    assert turn.tokens == without.tokens + tools.tokens
    assert turn.stable_tokens == without.stable_tokens + tools.tokens
    [event] = [event for event in session.events() if event.type == "context.turn"]
    assert event.data["tools"] == {"count": 1, "tokens": tools.tokens, "digest": tools.digest}
    assert json.loads((session.path / "blob" / tools.digest.replace(":", "-")).read_bytes()) == [CHAT]
    assert sum(item.tokens for item in turn.items) == turn.tokens
    assert "tools" not in session.prepare(budget=8000, dry_run=True).request()


def test_claude_adds_a_prompt_of_its_own_for_tools(session: Session) -> None:
    ready(session)
    plain = counter_for("claude-opus-4-6").count(json.dumps([BLOCK], separators=(",", ":")))
    tools = session.prepare(budget=8000, model="claude-opus-4-6", tools=[BLOCK], dry_run=True).record.tools
    assert tools is not None
    assert tools.tokens >= plain + 530
    hosted = session.prepare(budget=8000, tools=[{"type": "web_search"}], dry_run=True).record.tools
    assert hosted is not None
    assert hosted.tokens > 700


def test_the_messages_get_what_the_tools_leave(session: Session) -> None:
    for number in range(40):
        session.append("user", f"Question {number} " + "about the plan " * 20)
        session.append("assistant", f"Answer {number} " + "about the plan " * 20)
    ready(session)
    large = {"type": "function", "function": {"name": "f", "description": "many words " * 700}}
    without = session.prepare(budget=4000, dry_run=True)
    turn = session.prepare(budget=4000, tools=[large])
    assert turn.record.tools is not None
    assert turn.record.used.fits(turn.record.limits.room)
    assert turn.tokens <= turn.record.limits.room.tokens
    assert len(turn.parts.messages) < len(without.parts.messages)
    assert session.compact().before_tokens > 0  # and a compaction knows of them
    assert session.prepare(budget=4000, tools=[large]).record.used.fits(turn.record.limits.room)


def test_tools_that_leave_no_space_are_named(session: Session) -> None:
    ready(session, "word " * 300)
    large = {"type": "function", "function": {"name": "f", "description": "many words " * 700}}
    with pytest.raises(
        BudgetTooSmall, match=r"the definitions of 1 tool need 1,\d+ tokens, the budget leaves 893"
    ) as error:
        session.prepare(budget=1200, tools=[large])
    assert error.value.place == "tools"
    assert "fewer tools" in error.value.hint
    with pytest.raises(BudgetTooSmall, match=r"leaves \d+ beside 1,\d+ tokens of tools") as error:
        session.prepare(budget=2300, tools=[large])
    least = int(error.value.hint.split("at least ")[1].split(" tokens")[0].replace(",", ""))
    assert session.prepare(budget=least, tools=[large]).tokens <= least
    with pytest.raises(BudgetTooSmall, match="bytes"):
        session.prepare(budget={"tokens": 9000, "bytes": 4000}, tools=[large])


def test_a_compaction_after_a_refusal_leaves_the_tools_their_space(home: str) -> None:
    """Half of what an epoch starts with stays: of the room beside the tools, not of the whole window."""
    large = {"type": "function", "function": {"name": "f", "description": "word " * 6_000}}
    kept: list[int] = []
    for name, tools in (("without", []), ("with", [large])):
        with daypack.open_session(name, home=home, durability="os", workspace="") as session:
            for number in range(60):
                session.append("user" if number % 2 == 0 else "assistant", f"{number} " + "word " * 100)
            ready(session).prepare(budget=16_000, tools=tools)
            done = session.compact_on_overflow()
            assert done.changed
            assert done.kept_from is not None
            kept.append(62 - done.kept_from)
    without, beside = kept
    assert beside < without * 0.6


def test_changed_tools_lose_the_cache_and_the_turn_says_so(session: Session) -> None:
    first = ready(session).prepare(budget=8000, tools=[CHAT])
    again = session.prepare(budget=8000, tools=[CHAT])
    assert (again.expected_cached_tokens, again.cache_lost) == (first.stable_tokens, "")
    more = session.prepare(budget=8000, tools=[CHAT, OTHER])
    assert (more.expected_cached_tokens, more.cache_lost, more.new_epoch) == (0, "tools_changed", "")
    assert "expected cache hit: 0 tokens (tools_changed)" in more.explain()
    assert "(tools_changed)" in more.pack_md
    none = session.prepare(budget=8000)
    assert (none.expected_cached_tokens, none.cache_lost) == (0, "tools_changed")
    assert session.prepare(budget=8000).cache_lost == ""
    swapped = session.prepare(budget=8000, tools=[{"function": FUNCTION, "type": "function"}])
    assert swapped.cache_lost  # another order of keys is another text


def test_a_later_process_knows_the_tools_of_the_last_turn(session: Session, home: str) -> None:
    first = ready(session).prepare(budget=8000, tools=[CHAT])
    with daypack.open_session("work", home=home) as later:
        assert later.prepare(budget=8000, tools=[CHAT], dry_run=True).expected_cached_tokens == first.stable_tokens
        assert later.prepare(budget=8000, tools=[OTHER], dry_run=True).cache_lost == "tools_changed"


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_has_the_same_request(session: Session, name: str) -> None:
    turn = ready(session).prepare(budget=8000, tools=[CHAT, OTHER])
    assert turn.event_id
    replayed = session.replay(turn.event_id)
    assert json.dumps(replayed.request(name)) == json.dumps(turn.request(name))
    assert replayed.items == turn.items
    assert replayed.explain("tools") == turn.explain("tools")
    turn.request(name)["tools"].clear()  # what a caller does with a request changes no other
    assert len(turn.request(name)["tools"]) == 2


def test_a_lost_definition_is_reported(session: Session) -> None:
    turn = ready(session).prepare(budget=8000, tools=[CHAT])
    assert turn.record.tools
    assert turn.event_id
    (session.path / "blob" / turn.record.tools.digest.replace(":", "-")).unlink()
    with pytest.raises(SourceMissing, match="the tools of the turn are gone"):
        session.replay(turn.event_id)


def test_evidence_shows_the_tools(session: Session) -> None:
    turn = ready(session).prepare(budget=8000, tools=[CHAT])
    tools = turn.record.tools
    assert tools is not None
    assert turn.explain("tools") == (
        f"included: tools, {tools.tokens} tokens in the prefix; 1 definition, which providers put first"
    )
    assert turn.pack.items[0].kind == "tools"
    envelope = turn.envelope
    assert {"rendering": "tools", "digest": tools.digest} in envelope.evidence_refs
    segments = {segment.role: segment.actual_tokens for segment in envelope.windows[0].segments}
    assert segments["tools"] == tools.tokens
    assert sum(tokens or 0 for tokens in segments.values()) == turn.tokens
    [event] = [event for event in session.events() if event.type == "context.turn"]
    assert tools.digest.replace(":", "-") in set(captured_by(event))


def test_a_garbage_collection_keeps_what_a_turn_added_to_the_tail() -> None:
    digest = "sha256:" + "a" * 64
    added = [{"after": 3, "items": [{"id": "note", "context_kind": "custom", "digest": digest}]}]
    assert list(captured_by(Event(type="context.turn", data={"added": added}))) == [digest.replace(":", "-")]


def test_only_a_turn_for_the_model_takes_tools(session: Session) -> None:
    with pytest.raises(BadInput, match="a turn for ui carries no tools"):
        ready(session).prepare(target="ui", tools=[CHAT])
    assert session.prepare(target="ui", tools=[]).record.tools is None


# Shapes


@pytest.mark.parametrize("tool", [CHAT, FLAT, BLOCK], ids=["chat", "responses", "anthropic"])
def test_a_function_is_rendered_for_every_dialect(tool: dict[str, Any]) -> None:
    assert render_tools([tool], "openai") == [CHAT]
    assert render_tools([tool], "anthropic") == [BLOCK]
    assert render_tools([tool], "responses") == [FLAT if tool is FLAT else {**FLAT, "strict": False}]


def test_what_a_shape_says_beyond_the_schema_goes_only_where_it_is_known() -> None:
    marked = {**BLOCK, "cache_control": {"type": "ephemeral"}, "strict": True}
    assert render_tools([marked], "anthropic") == [marked]
    assert render_tools([marked], "openai") == [{"type": "function", "function": {**FUNCTION, "strict": True}}]
    assert render_tools([OTHER], "anthropic") == [
        {"name": "time", "input_schema": {"type": "object", "properties": {}}}
    ]


def test_a_custom_tool_is_rendered_for_both_apis_of_openai() -> None:
    grammar = {"definition": "start: /a/", "syntax": "lark"}
    chat = {"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": grammar}}}
    flat = {"type": "custom", "name": "c", "format": {"type": "grammar", **grammar}}
    assert render_tools([chat], "responses") == render_tools([flat], "responses") == [flat]
    assert render_tools([chat], "openai") == render_tools([flat], "openai") == [chat]
    with pytest.raises(BadInput, match="c is a custom tool, which anthropic does not have"):
        render_tools([chat], "anthropic")


@pytest.mark.parametrize(
    ("tool", "own"),
    [
        ({"type": "web_search"}, "responses"),
        ({"type": "file_search", "vector_store_ids": ["v"]}, "responses"),
        ({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}, "anthropic"),
        ({"type": "bash_20250124", "name": "bash"}, "anthropic"),
    ],
)
def test_a_tool_of_a_provider_goes_only_to_it(session: Session, tool: dict[str, Any], own: str) -> None:
    turn = ready(session).prepare(budget=8000, tools=[CHAT, tool])
    assert turn.request(own)["tools"][1] == tool
    for name in set(NAMES) - {own}:
        assert turn.messages(name)
        with pytest.raises(BadInput, match=f"a tool of {own}, which {name} does not have") as error:
            turn.request(name)
        assert error.value.place == "tools[1]"
        assert f'request("{own}")' in error.value.hint


def test_a_name_that_only_anthropic_takes_goes_only_to_it(session: Session) -> None:
    turn = ready(session).prepare(budget=8000, tools=[{**BLOCK, "name": "f" * 65}])
    assert turn.request("anthropic")["tools"][0]["name"] == "f" * 65
    for name in ("openai", "responses"):
        with pytest.raises(BadInput, match=f"has 65 characters, {name} takes 64") as error:
            turn.request(name)
        assert error.value.place == "tools[0].name"


def test_objects_of_client_libraries_are_definitions(session: Session) -> None:
    class Function(BaseModel):
        name: str = "weather"
        description: str | None = None

    class Tool(BaseModel):
        type: str = "function"
        function: Function = Function()

    turn = ready(session).prepare(budget=8000, tools=(tool for tool in [Tool(), *session.tools("anthropic")]))
    assert [tool["function"]["name"] for tool in turn.request()["tools"]] == ["weather", "recall", "search_history"]
    assert turn.request()["tools"][0] == {"type": "function", "function": {"name": "weather"}}


BAD: list[tuple[Any, str, str]] = [
    (7, "tools", "must be a list of definitions, not int"),
    (CHAT, "tools", "must be a list of definitions, not dict"),
    ([CHAT, "weather"], "tools[1]", "a definition is an object, not str"),
    ([{"name": "f", "parameters": {}}], "tools[0]", "has no type and no input_schema"),
    ([{"name": "f", "inputSchema": {}}], "tools[0]", "has no type and no input_schema"),
    ([CHAT, OTHER, {"type": "function"}], "tools[2].name", "a tool needs a name"),
    ([{"type": "function", "function": {"name": "a b"}}], "tools[0].function.name", "'a b' is not a name"),
    ([CHAT, FLAT], "tools[1].name", "tools[0] is called 'weather' too"),
    ([{**FLAT, "description": 1}], "tools[0].description", "must be a text"),
    ([{**FLAT, "parameters": []}], "tools[0].parameters", "must be an object"),
    ([{**BLOCK, "input_schema": {"a": {1}}}], "tools[0].input_schema.a", "set cannot be stored as JSON"),
    ([{"type": ""}], "tools[0]", "has no type"),
    ([{**BLOCK, "input_schema": None}], "tools[0].input_schema", "must be an object"),
    ([{**FLAT, "description": "\ud800"}], "tools", "a lone surrogate cannot be stored as UTF-8"),
    ([CHAT, BaseModel], "tools[1]", "a definition is an object, not the class BaseModel"),
]


@pytest.mark.parametrize(("tools", "place", "problem"), BAD)
def test_a_bad_definition_is_refused_with_its_place(session: Session, tools: Any, place: str, problem: str) -> None:
    ready(session)
    with pytest.raises(BadInput) as error:
        session.prepare(tools=tools)
    assert error.value.place == place
    assert problem in error.value.problem
    assert error.value.hint
    assert [event.type for event in session.events()] == []


# The real clients


def scripted(seen: Seen) -> Reply:
    if seen.path.endswith("/messages"):
        return Reply(answer(text("Yes.")).to_dict())
    if seen.path.endswith("/responses"):
        return Reply(response(said("Yes.")).to_dict())
    return Reply(completion({"content": "Yes."}).to_dict())


def test_the_request_of_a_turn_is_all_that_a_client_needs(session: Session) -> None:
    turn = ready(session).prepare(budget=8000, tools=[CHAT])
    with Endpoint(scripted) as endpoint:
        openai = OpenAI(base_url=endpoint.url, api_key="k", max_retries=0)
        anthropic = Anthropic(base_url=endpoint.url, api_key="k", max_retries=0)
        replies: list[Any] = [
            openai.chat.completions.create(model="gpt-5", **turn.request("openai")),
            openai.responses.create(model="gpt-5", **turn.request("responses")),
            anthropic.messages.create(model="claude-opus-4-6", max_tokens=9, **turn.request("anthropic")),
        ]
        stored: list[Message] = [session.accept(reply) for reply in replies]
        assert [message.content for message in stored] == ["Yes."] * 3
        assert [seen.json["tools"] for seen in endpoint.seen] == [[CHAT], [{**FLAT, "strict": False}], [BLOCK]]
        tools: list[ToolParam] = [{"name": "weather", "input_schema": SCHEMA}]
        with pytest.raises(TypeError, match="multiple values for keyword argument 'tools'"):
            anthropic.messages.create(model="m", max_tokens=9, tools=tools, **turn.request("anthropic"))


def test_an_unknown_option_is_refused_as_python_does(session: Session) -> None:
    with pytest.raises(TypeError, match=r"prepare\(\) got an unexpected keyword argument 'tool'"):
        ready(session).prepare(tool=[CHAT])  # pyright: ignore[reportCallIssue]


# The upper bound

types = st.sampled_from(["string", "integer", "number", "boolean", "null"])
words = st.text(alphabet="abc defg-hij, klm.'é漢\n", max_size=40)
names = st.from_regex(r"[a-z][a-z_]{0,12}", fullmatch=True)
leaves = st.fixed_dictionaries({"type": types}, optional={"description": words}) | st.fixed_dictionaries(
    {"type": st.just("string"), "enum": st.lists(st.text("abcxyz", min_size=1, max_size=8), min_size=1, max_size=4)}
)


def object_schema(properties: dict[str, Any], required: bool) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties) if required else []}


def array_schema(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(object_schema, st.dictionaries(names, inner, max_size=4), st.booleans())


schemas: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: objects(inner) | st.builds(array_schema, inner), max_leaves=6
)
functions = st.fixed_dictionaries({"name": names, "parameters": objects(schemas)}, optional={"description": words})


def written(schema: dict[str, Any], indent: int) -> str:
    """A type as OpenAI is known to write it."""
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if schema["type"] == "array":
        return f"{written(schema['items'], indent)}[]"
    if schema["type"] != "object":
        return "number" if schema["type"] == "integer" else schema["type"]
    lines = ["{"]
    for name, inner in schema["properties"].items():
        lines += [f"{' ' * indent}// {line}" for line in inner.get("description", "").splitlines()]
        optional = "" if name in schema["required"] else "?"
        lines.append(f"{' ' * indent}{name}{optional}: {written(inner, indent + 2)},")
    return "\n".join([*lines, " " * max(0, indent - 2) + "}"])


@settings(deadline=None)
@given(st.lists(functions, min_size=1, max_size=4, unique_by=lambda function: function["name"]))
def test_the_count_covers_the_text_that_openai_makes_of_functions(given_functions: list[dict[str, Any]]) -> None:
    lines = ["# Tools", "", "## functions", "", "namespace functions {", ""]
    for function in given_functions:
        lines += [f"// {line}" for line in function.get("description", "").splitlines()]
        lines += [f"type {function['name']} = (_: {written(function['parameters'], 0)}) => any;", ""]
    shown = "\n".join([*lines, "} // namespace functions"])
    counter = counter_for("gpt-4o")
    tools = read_tools([{"type": "function", "function": function} for function in given_functions], counter)
    assert tools is not None
    assert counter.count(shown) <= tools.cost.tokens
