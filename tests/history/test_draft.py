"""What callers hand in: taken whole, or refused with its place."""

from typing import Any

import pytest

import daypack
from daypack.errors import BadMessage
from daypack.session import Session
from daypack.types.history import Message, Other, Text, Thinking


@pytest.mark.parametrize(
    ("role", "content", "fields", "problem"),
    [
        ("king", "x", {}, "role 'king'"),
        ("Human", "x", {}, "role 'Human' is not one of system, user, assistant, tool (hint: use 'user')"),
        ("USER", "x", {}, "(hint: use 'user')"),
        (
            Message(role="user"),
            "x",
            {},
            "must be one of system, user, assistant, tool, not a Message (hint:",
        ),
        ("user", "x", {"colour": "red"}, "unknown field 'colour'"),
        ("user", "\ud800", {}, "lone surrogate"),
        ("user", 7, {}, "text or a list of parts"),
        ("user", [7], {}, "content[0]"),
        ("user", [{"text": "x"}], {}, "needs a type"),
        ("user", "x", {"meta": {"a": float("nan")}}, "meta.a"),
        ("user", "x", {"meta": {"a": 1 << 70}}, "64 bits"),
        ("user", "x", {"meta": {1: 2}}, "not a string"),
        ("user", "x", {"meta": {"a": object()}}, "cannot be stored"),
        ("user", "x", {"meta": [1]}, "must be an object"),
        ("assistant", "x", {"tool_calls": [{"name": "f"}]}, "tool_calls[0]: a tool call needs an id and a name"),
        ("assistant", "x", {"tool_calls": [{"id": "", "name": "f"}]}, "tool_calls[0]: a tool call needs an id"),
        ("assistant", "x", {"tool_calls": [{"id": "1", "name": "f"}, {"id": "2"}]}, "tool_calls[1]: a tool call needs"),
        ("user", "x", {"tool_calls": [{"id": "1", "name": "f"}]}, "tool_calls: a user message has no tool calls"),
        ("system", "x", {"tool_call_id": "1"}, "tool_call_id: a system message answers no tool call"),
        ("user", "x", {"client_key": ""}, "client_key"),
        ("user", "x", {"ts": "yesterday"}, "not a point in time"),
        ("user", "x", {"ts": "2026-01-01T00:00:00"}, "not a point in time"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place(
    session: Session, role: str, content: Any, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BadMessage) as refused:
        session.append(role, content, **fields)
    assert problem in str(refused.value)
    assert list(session.messages()) == []


@pytest.mark.parametrize("given", ["Hi", {"role": "user", "content": "Hi"}, Message(role="user", content="Hi")])
def test_one_message_is_no_list_of_messages(session: Session, given: Any) -> None:
    with pytest.raises(BadMessage, match="must be a list of messages, not a"):
        session.append_many(given)
    assert list(session.messages()) == []


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_pin_is_refused(session: Session, text: str) -> None:
    session.pin("goal", "Ship it.")
    with pytest.raises(BadMessage, match="the text is empty"):
        session.pin("goal", text)
    assert session.pins == {"goal.md": "Ship it."}


def test_nesting_beyond_reason_is_refused(session: Session) -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    with pytest.raises(BadMessage, match="nested deeper"):
        session.append("user", "x", meta={"deep": deep})


def test_parts_of_other_systems_are_kept_whole(session: Session) -> None:
    given = [
        {"type": "thinking", "thinking": "hm", "signature": "abc"},
        {"type": "text", "text": "yes", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
    ]
    session.append("assistant", given)
    assert session.tail(1)[0].content == (
        Thinking("hm", "abc"),
        Text("yes", {"cache_control": {"type": "ephemeral"}}),
        Other(given[2]),
        Other(given[3]),
    )


def test_a_message_of_one_session_can_be_appended_to_another(session: Session, home: str) -> None:
    session.append(
        "assistant",
        [{"type": "text", "text": "a", "x": 1}],
        tool_calls=[{"id": "1", "name": "f"}],
        ts="2020-01-01T00:00:00Z",
    )
    other = daypack.open_session("other", home=home, durability="os")
    other.append("user", "first")
    (copy,) = other.append_many(session.messages())
    original = session.tail(1)[0]
    assert (copy.seq, copy.id) == (2, "msg-2")
    assert (copy.content, copy.tool_calls, copy.ts) == (original.content, original.tool_calls, original.ts)
    assert copy.ts == "2020-01-01T00:00:00.000Z"


@pytest.mark.parametrize("kind", [5, "", None, "x" * 300])
def test_an_event_needs_a_type_that_is_text(session: Session, kind: Any) -> None:
    with pytest.raises(BadMessage, match="type"):
        session.append_event(kind, {})
    assert list(session.events()) == []


class Shout(str):
    """Text of a kind of its own."""

    __slots__ = ()


def test_text_of_a_subclass_is_stored_as_its_text(session: Session) -> None:
    stored = session.append(Shout("user"), Shout("hello"), client_key=Shout("k"), meta={"a": Shout("b")})
    assert session.tail(1)[0] == stored
    assert (stored.content, stored.client_key, stored.meta) == ("hello", "k", {"a": "b"})


@pytest.mark.parametrize(("field", "value"), [("client_key", "\ud800"), ("ts", "0001-01-01T00:00:00+23:00")])
def test_values_at_the_edge_are_refused_plainly(session: Session, field: str, value: str) -> None:
    with pytest.raises(BadMessage, match=field):
        session.append("user", "x", **{field: value})


def test_absent_values_of_other_systems_are_left_out(session: Session) -> None:
    given: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [], "name": None}
    (stored,) = session.append_many([given])
    assert (stored.content, stored.tool_calls, stored.name) == ("", (), None)
