"""The nine tools as a server lists and calls them."""

import contextvars
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import msgspec
import pytest

from daypack.errors import BadInput, StorageFailed
from daypack.memory.requests import Request
from daypack.memory.tools import Memories, open_memory
from daypack.serve.observe.log import log
from daypack.serve.toolset import NAMES, Answer, Tool, Toolset
from daypack.session import Session
from daypack.types.memory import NOTHING_RELEVANT, PLACEHOLDER

SEED = [
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


@pytest.fixture
def memories(home: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memories]:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    with open_memory(home=home) as memories:
        yield memories


@pytest.fixture
def tools() -> Toolset:
    return Toolset()


def ask(tools: Toolset, memories: Memories, name: str, **given: Any) -> Any:
    """Call a tool, check that text and value say the same, and return the value."""
    answer = tools.answer(lambda: memories, name, given)
    assert not answer.failed, answer.text
    value = msgspec.to_builtins(answer.value)
    assert msgspec.json.decode(answer.text) == msgspec.json.decode(msgspec.json.encode(value))
    schema = next(tool for tool in tools.tools if tool.name == name).output_schema
    assert schema is not None
    jsonschema.validate(msgspec.json.decode(answer.text), schema, jsonschema.Draft202012Validator)
    return msgspec.json.decode(answer.text)


def refused(tools: Toolset, memories: Memories, name: str, **given: Any) -> str:
    answer = tools.answer(lambda: memories, name, given)
    assert answer.failed
    assert answer.value is None
    return answer.text


@pytest.mark.requirement("S2-T0")
def test_there_are_exactly_the_nine_tools_of_the_seed_in_one_order(tools: Toolset) -> None:
    assert list(tools.names) == SEED == list(NAMES)
    assert [tool.as_listed() for tool in Toolset().tools] == [tool.as_listed() for tool in tools.tools]


@pytest.mark.requirement("S2-E3", "X37")
def test_arguments_have_the_names_of_the_seed(tools: Toolset) -> None:
    named = {tool.name: tool.input_schema for tool in tools.tools}
    assert {"raw_entry", "summary"} <= named["add_entry"]["properties"].keys()
    assert {"limit", "before", "after"} <= named["list_entries"]["properties"].keys()
    assert named["search_memories"]["required"] == ["memory_id", "query"]
    flat = {"session", "role", "author", "at", "tags"}
    assert flat <= named["add_entry"]["properties"].keys()
    assert {"since", "until", "tags", "role", "author", "session"} <= named["search_memories"]["properties"].keys()
    assert named["get_user"] == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def test_with_a_default_memory_its_id_may_be_left_out_and_the_schema_says_so(home: str) -> None:
    plain, tools = Toolset(), Toolset(default_memory="launch")
    assert tools.names == plain.names
    for tool, other in zip(tools.tools, plain.tools, strict=True):
        memory_id = tool.input_schema["properties"].get("memory_id")
        if memory_id is None or tool.name == "await_consistency":
            assert tool.input_schema == other.input_schema
            continue
        assert "memory_id" in other.input_schema["required"]
        assert "memory_id" not in tool.input_schema["required"]
        assert memory_id["description"].endswith("If omitted: the default memory, launch.")
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    with open_memory(home=home, memory="launch") as memories:
        made = memories.create_memory("launch").memory_id
        assert ask(tools, memories, "get_memory")["memory_id"] == made
        assert ask(tools, memories, "add_entry", raw_entry="x")["memory_id"] == made
    with open_memory(home=home) as memories:
        assert "set a default memory with --memory" in refused(plain, memories, "get_context")


@pytest.mark.parametrize("tool", Toolset().tools, ids=lambda tool: tool.name)
def test_schemas_are_whole_objects_that_every_client_can_read(tool: Tool) -> None:
    for schema in (tool.input_schema, tool.output_schema):
        assert schema is not None
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert "$ref" not in repr(schema)
    assert tool.input_schema["additionalProperties"] is False
    for name, part in tool.input_schema["properties"].items():
        assert part["description"], name
        assert isinstance(part["type"], str), f"{name}: some clients take one type only"
    assert len(tool.title) < 40
    assert len(tool.description) < 500


def test_the_hints_say_that_nothing_is_destroyed_and_nothing_is_beyond_the_store(tools: Toolset) -> None:
    hints = {tool.name: tool.as_listed()["annotations"] for tool in tools.tools}
    writing = {name for name, one in hints.items() if not one["readOnlyHint"]}
    assert writing == {"create_memory", "add_entry", "put_context"} == tools.writing
    assert not any(one["destructiveHint"] or one["openWorldHint"] for one in hints.values())
    assert all(one["idempotentHint"] == one["readOnlyHint"] for one in hints.values())


@pytest.mark.requirement("S2-T1", "S2-T2", "S2-T3", "S2-T4", "S2-T5", "S2-T6", "S2-T7", "S2-T8", "S2-T9")
def test_all_nine_do_what_they_are_for(tools: Toolset, memories: Memories) -> None:
    made = ask(tools, memories, "create_memory", title="Ada", memory_type="project", description="engines")
    one = {"memory_id": made["memory_id"]}
    told = ask(tools, memories, "get_memory", **one)
    assert (told["title"], told["memory_type"], told["stats"]["documents"]) == ("Ada", "project", 1)
    assert ask(tools, memories, "get_context", **one)["content"] == PLACEHOLDER
    raw = "Ada moved the launch to 17 Aug 2025."
    added = ask(tools, memories, "add_entry", **one, raw_entry=raw, summary="Ada moved the launch.", author="Ada")
    assert added["summary"] == "Ada moved the launch."
    page = ask(tools, memories, "list_entries", **one, limit=10)
    assert [(entry["raw_entry"], entry["author"]) for entry in page["entries"]] == [(raw, "Ada")]
    held = ask(tools, memories, "await_consistency", **one, token=added["token"])
    assert (held["status"], held["search_index"]) == ("consistent", True)
    written = ask(tools, memories, "put_context", **one, content="# Launch\n17 Aug 2025")
    assert written["version"] == 2
    found = ask(tools, memories, "search_memories", **one, query="when is the launch", explain=True)
    assert [entry["entry_id"] for entry in found["entries"]] == [added["entry_id"]]
    assert found["entries"][0]["score_parts"]
    assert found["latest_context"] == found["best_context"] == "# Launch\n17 Aug 2025"
    foreign = ask(tools, memories, "search_memories", **one, query="Which museum in Lisbon does Ingrid recommend?")
    assert (foreign["entries"], foreign["notes"]) == ([], [NOTHING_RELEVANT])
    user = ask(tools, memories, "get_user")
    assert (user["name"], user["email"], user["quotas"]["used"]["entries"]) == ("local", "", 1)


def test_metadata_in_one_object_means_the_same_as_flat_arguments(tools: Toolset, memories: Memories) -> None:
    one = ask(tools, memories, "create_memory", title="x")["memory_id"]
    about = {"session": "s1", "author": "Ada", "role": "user", "at": "2026-05-01", "tags": ["a", "b"]}
    ask(tools, memories, "add_entry", memory_id=one, raw_entry="flat", **about)
    ask(tools, memories, "add_entry", memory_id=one, raw_entry="whole", metadata=about)
    dated = {**about, "date": about["at"], "at": None}
    ask(tools, memories, "add_entry", memory_id=one, raw_entry="dated", metadata=dated)
    entries = ask(tools, memories, "list_entries", memory_id=one)["entries"]
    assert [{name: entry[name] for name in about} for entry in entries] == [about] * 3
    found = ask(tools, memories, "search_memories", memory_id=one, query="flat whole dated", tags=["a"], author="Ada")
    assert found["count"] == 3
    assert ask(tools, memories, "search_memories", memory_id=one, query="flat", until="2026-04-30")["count"] == 0


def test_an_unknown_argument_is_named_with_those_that_are_known(tools: Toolset, memories: Memories) -> None:
    text = refused(tools, memories, "list_entries", memory_id="x", count=3)
    assert "'count'" in text
    assert "memory_id, limit, before, after" in text
    assert "takes no arguments" in refused(tools, memories, "get_user", email="x")
    assert "metadata" in refused(tools, memories, "add_entry", memory_id="x", raw_entry="y", metadata={"who": "z"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "memory_id"),
        ({"memory_id": 5}, "memory_id cannot be 5: expected `str`"),
        ({"memory_id": None}, "memory_id"),
        ({"memory_id": "x", "limit": "many"}, "limit cannot be 'many'"),
        ({"memory_id": "x", "limit": 2.5}, "limit cannot be 2.5"),
        ({"memory_id": "x", "limit": float("nan")}, "limit cannot be nan"),
        ({"memory_id": "x", "limit": float("inf")}, "limit cannot be inf"),
        ({"memory_id": "x", "limit": True}, "limit cannot be True"),
        ({"memory_id": "x", "limit": 0}, "limit is 0"),
        ({"memory_id": "x", "before": ["a" * 500]}, "before cannot be"),
    ],
)
def test_a_wrong_argument_is_told_in_words(
    given: dict[str, Any], said: str, tools: Toolset, memories: Memories
) -> None:
    text = refused(tools, memories, "list_entries", **given)
    assert said in text
    assert len(text) < 300
    with pytest.raises(BadInput):
        tools.call(memories, "list_entries", given)


def test_numbers_are_taken_as_text_too_and_nulls_as_left_out(tools: Toolset, memories: Memories) -> None:
    one = ask(tools, memories, "create_memory", title="x", description=None)["memory_id"]
    page = ask(tools, memories, "list_entries", memory_id=one, limit="7", before=None)
    assert page["applied_limit"] == 7
    assert ask(tools, memories, "search_memories", memory_id=one, query="y", top_k="3", tags=None)["count"] == 0
    assert ask(tools, memories, "await_consistency", timeout_ms="500")["status"] == "consistent"


@pytest.mark.requirement("X45", "T7")
def test_caps_are_refused_with_the_length_seen(tools: Toolset, memories: Memories) -> None:
    one = ask(tools, memories, "create_memory", title="x")["memory_id"]
    for length, fits in ((4999, True), (5000, True), (5001, False)):
        answer = tools.answer(lambda: memories, "put_context", {"memory_id": one, "content": "é" * length})
        assert answer.failed != fits
        assert fits or "5,001" in answer.text
    for length, fits in ((511, True), (512, True), (513, False)):
        given = {"memory_id": one, "raw_entry": "r", "summary": "漢" * length}
        answer = tools.answer(lambda: memories, "add_entry", given)
        assert answer.failed != fits
        assert fits or "513" in answer.text


def test_an_empty_object_is_the_initial_document_and_another_object_none(tools: Toolset, memories: Memories) -> None:
    one = ask(tools, memories, "create_memory", title="x")["memory_id"]
    assert ask(tools, memories, "put_context", memory_id=one, content={})["content"] != PLACEHOLDER
    assert "object" in refused(tools, memories, "put_context", memory_id=one, content={"a": 1})


@pytest.mark.requirement("X36")
def test_create_memory_can_be_left_out() -> None:
    tools = Toolset(without=("create_memory",))
    assert list(tools.names) == SEED[1:]


class Broken:
    """Memories that fail in ways that must not be told."""

    backend = SimpleNamespace(audit=None)

    def __init__(self, error: Exception) -> None:
        self._error = error

    def call(self, _: Request[Any]) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        StorageFailed("no space left in /home/ada/secret", operation="add", place="/home/ada/secret", hint="see /home"),
        ZeroDivisionError("at /home/ada/code.py"),
        MemoryError(),
    ],
)
def test_what_is_the_servers_own_trouble_goes_to_its_log_and_not_to_the_model(
    error: Exception, tools: Toolset, capsys: pytest.CaptureFixture[str]
) -> None:
    text = refused(tools, Broken(error), "get_user")  # pyright: ignore[reportArgumentType] — fails before it matters
    assert "/home" not in text
    assert "Traceback" not in text
    assert log.flush()
    told = capsys.readouterr()
    assert told.out == ""
    assert type(error).__name__ in told.err
    assert "code.py" not in told.err  # the text of an error may quote contents


def test_the_store_is_not_opened_for_arguments_that_are_wrong_and_the_attempt_is_recorded(
    home: str, tools: Toolset
) -> None:
    with open_memory(home=home) as memories:
        # In a context of its own: a request that an earlier test left in this thread has its line already.
        answer = contextvars.Context().run(tools.answer, lambda: memories, "get_user", {"x": 1})
    assert "'x'" in answer.text
    assert not list(Path(home).rglob("store.sqlite"))
    [log] = Path(home).rglob("audit.jsonl")
    assert '"result":"BadInput"' in log.read_text()


def test_with_a_session_two_more_tools_answer_from_it(session: Session, memories: Memories) -> None:
    session.append("user", "The valve is at 47 bar.")
    tools = Toolset(open_session=lambda: session)
    assert list(tools.names) == [*SEED, "recall", "search_history"]
    for tool in tools.tools[-2:]:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.as_listed()["annotations"]["readOnlyHint"]
        assert "outputSchema" not in tool.as_listed()

    def told(name: str, **given: Any) -> Answer:
        return tools.answer(lambda: memories, name, given)

    assert "47 bar" in told("recall", id="msg-1").text
    assert "47 bar" in told("search_history", query="valve").text
    assert not told("recall", id="msg-1").failed
    assert told("recall", id="msg-99").failed
    tools.close()


def test_every_type_is_known_before_threads_can_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # msgspec 0.22 breaks down when two threads convert to the same type for the first time.
    learnt: set[str] = set()
    decoder: Any = msgspec.json.Decoder

    def learn(kind: type[Any], **options: Any) -> Any:
        learnt.add(kind.__name__)
        return decoder(kind, **options)

    monkeypatch.setattr(msgspec.json, "Decoder", learn)
    Toolset()
    wanted = {"".join(map(str.capitalize, name.split("_"))) for name in NAMES}
    results = {"Memory", "Added", "EntryPage", "ContextDocument", "Consistency", "User", "SearchResult"}
    assert wanted | results <= learnt


def test_secrets_are_in_the_store_and_not_in_what_a_model_reads(
    tools: Toolset, memories: Memories, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    memory_id = memories.create_memory("keys").memory_id
    added = ask(tools, memories, "add_entry", memory_id=memory_id, raw_entry=f"The deploy token is {secret}.")
    ask(tools, memories, "put_context", memory_id=memory_id, content=f"- deploy token: {secret}")
    assert added["token"]  # the place of the write is no secret
    for name, given in (
        ("list_entries", {}),
        ("get_context", {}),
        ("search_memories", {"query": "deploy token"}),
    ):
        assert secret not in msgspec.json.encode(ask(tools, memories, name, memory_id=memory_id, **given)).decode()
    assert secret in memories.list_entries(memory_id).entries[0].raw_entry
    monkeypatch.setenv("DAYPACK_REDACTION", "off")
    with open_memory(home=home) as unredacted:
        assert secret in ask(tools, unredacted, "get_context", memory_id=memory_id)["content"]


def test_a_number_where_a_word_is_wanted_is_taken_as_text(tools: Toolset, memories: Memories) -> None:
    memory_id = memories.create_memory("numbered").memory_id
    ask(tools, memories, "add_entry", memory_id=memory_id, raw_entry="One.", session=4)
    ask(tools, memories, "add_entry", memory_id=memory_id, raw_entry="Two.", metadata={"session": 5, "role": None})
    sessions = [entry["session"] for entry in ask(tools, memories, "list_entries", memory_id=memory_id)["entries"]]
    assert sessions == ["5", "4"]
