"""The two tools an agent can be given: definitions providers take, and marked answers, never an exception."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionToolParam
from pydantic import TypeAdapter
from turn.compacting import scene, step
from turn.scenes import stage

from daypack.errors import BadInput
from daypack.session import Session
from daypack.text.injected import RECALLED
from daypack.turn.recall_tools import definitions


@pytest.fixture
def session(home: str) -> Session:
    made = scene(home, steps=6)
    made.append("assistant", "", tool_calls=[{"id": "big", "name": "cat", "arguments": "{}"}])
    made.append("tool", "".join(f"row {at} of the table\n" for at in range(3000)), tool_call_id="big")
    made.append("user", "And?")
    return made


def test_each_dialect_has_both_tools_in_its_own_shape(home: str) -> None:
    openai, responses, anthropic = (definitions(name) for name in ("openai", "responses", "anthropic"))
    for tools in (openai, responses, anthropic):
        assert len(tools) == 2
        json.dumps(tools)
    assert [one["function"]["name"] for one in openai] == ["recall", "search_history"]
    assert [(one["type"], one["name"]) for one in responses] == [("function", "recall"), ("function", "search_history")]
    assert [one["input_schema"]["required"] for one in anthropic] == [["id"], ["query"]]
    with pytest.raises(BadInput, match="not a dialect"):
        definitions("klingon")
    assert stage(home).tools("anthropic") == anthropic


def test_the_sdk_of_openai_takes_the_definitions() -> None:
    adapter = TypeAdapter(list[ChatCompletionToolParam])
    assert len(adapter.validate_python(definitions())) == 2


def test_an_answer_is_marked_with_where_it_is_from(session: Session) -> None:
    whole, _, end = session.call("recall", {"id": "msg-1"}).rpartition("\n")
    assert whole == f"{RECALLED}messages:1]\nFix the harbour of part 0: its lamp should burn 3 hours."
    assert re.fullmatch(r"\[end of recalled text [0-9a-f]{12}\]", end)
    part = session.call("recall", '{"id": "tool:big", "lines": "3-4"}').rpartition("\n")[0]
    assert part == f"{RECALLED}messages:27, lines 3-4 of 3000]\nrow 2 of the table\nrow 3 of the table"
    found = session.call("search_history", {"query": "lamp of the violin", "k": 2})
    assert found.startswith(f"{RECALLED}a search for 'lamp of the violin']\nmessages:")
    assert found.count("messages:") >= 2
    assert session.call("search_history", {"query": "xylophone"}).rpartition("\n")[0].endswith("no results")


def test_a_long_answer_is_cut_and_says_which_lines_it_has(session: Session) -> None:
    first = session.call("recall", {"id": "tool:big"}).rpartition("\n")[0]
    assert len(first) < 25_000
    head, _, body = first.partition("]\n")
    assert head == f"{RECALLED}messages:27, lines 1-400 of 3000"
    assert len(body.split("\n")) == 400
    rows: list[str] = body.split("\n")
    while len(rows) < 3000:
        more = session.call("recall", {"id": "tool:big", "lines": f"{len(rows) + 1}-9999"}).partition("]\n")[2]
        rows += more.split("\n")[:-1]
    assert "\n".join(rows) == session.recall("tool:big").text.rstrip("\n")


def test_a_very_long_line_is_not_cut_in_silence(home: str) -> None:
    session = stage(home)
    session.append("user", "Look.")
    session.append("assistant", "", tool_calls=[{"id": "a", "name": "cat", "arguments": "{}"}])
    session.append("tool", "x" * 60_000 + "END", tool_call_id="a")
    answer = session.call("recall", {"id": "tool:a"})
    assert "END" in answer or "60,003" in answer or "characters" in answer.partition("]\n")[0]


def test_long_lines_are_not_lost_between_two_answers(home: str) -> None:
    session = stage(home)
    session.append("user", "Look.")
    session.append("assistant", "", tool_calls=[{"id": "a", "name": "cat", "arguments": "{}"}])
    rows = [f"{at}: " + chr(97 + at % 26) * 900 for at in range(60)]
    session.append("tool", "\n".join(rows), tool_call_id="a")
    seen: list[str] = []
    for _ in range(10):
        answer = session.call("recall", {"id": "tool:a", "lines": f"{len(seen) + 1}-60"})
        seen += answer.partition("]\n")[2].split("\n")[:-1]
        if len(seen) >= 60:
            break
    assert seen == rows


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall", ""),
        ("recall", "not json"),
        ("recall", "[]"),
        ("recall", "null"),
        ("recall", {}),
        ("recall", {"id": None}),
        ("recall", {"id": ["msg-1"]}),
        ("recall", {"id": "msg-1", "lines": "from the start"}),
        ("recall", {"id": "msg-1", "lines": [1, 2]}),
        ("recall", {"id": "nothing"}),
        ("search_history", {}),
        ("search_history", {"query": ""}),
        ("search_history", {"query": "lamp", "k": "many"}),
        ("search_history", {"query": "lamp", "k": -1}),
        ("search_history", {"query": "lamp", "k": [3]}),
        ("search_history", {"query": "lamp", "k": {"most": 3}}),
        ("forget", {"id": "msg-1"}),
    ],
)
def test_what_is_wrong_with_a_call_is_told_in_words(session: Session, name: str, arguments: Any) -> None:
    answer = session.call(name, arguments)
    assert answer.startswith(f"{RECALLED}nowhere] ")
    assert len(answer) > 30


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["recall", "search_history"]),
    arguments=st.dictionaries(
        st.sampled_from(["id", "lines", "query", "k", "more"]),
        st.recursive(
            st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
            max_leaves=3,
        ),
    ),
)
def test_no_call_of_a_model_ever_raises(tmp_path_factory: pytest.TempPathFactory, name: str, arguments: Any) -> None:
    session = stage(str(tmp_path_factory.getbasetemp() / "tools"))
    if not session.messages():
        step(session, 1)
    assert session.call(name, json.dumps(arguments)).startswith(RECALLED)
    session.close()
