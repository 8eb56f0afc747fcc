"""The same words and calls are the same message, whichever provider's shape they came in."""

import json
from typing import Any

import pytest
from hypothesis import given as varied
from hypothesis import settings
from hypothesis import strategies as st
from turn.dialects.library import answer, called, completion, given, reasoned, response, result, said, text, use, user

from daypack.errors import BadMessage
from daypack.history.draft import draft_from
from daypack.session import Session
from daypack.turn.dialects import NAMES, dialect, read_reply
from daypack.types.history import Message, Text, ToolCall

NOTE = {"type": "file_citation", "file_id": "f", "filename": "a.md", "index": 0}
CITED = {"type": "char_location", "cited_text": "Hel", "document_index": 0, "document_title": None}
CITATION = {**CITED, "start_char_index": 0, "end_char_index": 3}
WEB = {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 1, "title": "t", "url": "https://a.b"}}
CALL = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1.0}'}}


def replies(name: str, *, extras: bool, calls: bool) -> object:
    """The reply "Hello" of one API, with what it says about a text, and with a call."""
    if name == "openai":
        message: dict[str, Any] = {"content": "Hello", **({"annotations": [WEB]} if extras else {})}
        return completion({**message, **({"tool_calls": [CALL]} if calls else {})})
    if name == "responses":
        item = said("Hello", **({"phase": "final_answer"} if extras else {}))
        if extras:
            item["content"][0]["annotations"] = [NOTE]
        only_an_id: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}
        call = called("t1", arguments='{"x": 1.0}', id="fc_1")
        return response(*([only_an_id] if extras else []), item, *([call] if calls else []))
    words = [text("Hel", citations=[CITATION]), text("lo")] if extras else [text("Hello")]
    return answer(*words, *([use("t1", x=1.0)] if calls else []))


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize("extras", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_reply_of_one_text_is_the_same_message_from_every_provider(
    session: Session, name: str, extras: bool, calls: bool
) -> None:
    session.append("user", "Hi.")
    message: Message = session.accept(replies(name, extras=extras, calls=calls))
    assert (message.content, message.text) == ("Hello", "Hello")
    assert [(call.id, call.name, json.loads(call.arguments)) for call in message.tool_calls] == (
        [("t1", "f", {"x": 1.0})] if calls else []
    )
    assert session.tail(1)[0] == message


def test_what_a_provider_said_about_a_text_stays_in_the_meta_of_the_message() -> None:
    about = {name: read_reply(replies(name, extras=True, calls=False)).message["meta"] for name in NAMES}
    assert about["openai"]["text"] == {"annotations": [WEB]}
    assert about["responses"]["text"] == {"id": "msg_1", "phase": "final_answer", "annotations": [NOTE]}
    assert about["responses"]["reasoning"] == [{"dialect": "responses", "id": "rs_1"}]
    assert [cited["cited_text"] for cited in about["anthropic"]["text"]["citations"]] == ["Hel"]
    assert "text" not in read_reply(replies("anthropic", extras=False, calls=False)).message["meta"]


@pytest.mark.parametrize("calls", [False, True])
def test_the_phase_of_a_plain_text_goes_back_to_its_api(calls: bool) -> None:
    reply = read_reply(replies("responses", extras=True, calls=calls)).message
    items = dialect("responses").render(given(user(), reply, *([result("t1")] if calls else [])))["input"]
    assert items[1] == {"role": "assistant", "content": "Hello", "phase": "final_answer"}
    for name in ("openai", "anthropic"):
        assert "phase" not in str(dialect(name).render(given(user(), reply, *([result("t1")] if calls else []))))


def test_reasoning_that_must_go_back_stays_a_part() -> None:
    message = draft_from(read_reply(response(reasoned(), said("Hello"))).message)
    assert isinstance(message.content, tuple)
    assert message.text == "Hello"


def test_texts_around_something_else_are_not_joined() -> None:
    message = draft_from(read_reply(answer(text("a"), use(), text("b"), text("c"))).message)
    assert message.content == (Text("a"), Text("bc"))


SAME_WORDS: list[Any] = [
    "Hi.",
    ["Hi."],
    [{"type": "text", "text": "Hi."}],
    [{"type": "text", "text": "Hi.", "cache_control": {"type": "ephemeral"}}],
    [{"type": "input_text", "text": "Hi."}],
    [{"type": "output_text", "text": "Hi.", "annotations": []}],
    [{"type": "refusal", "refusal": "Hi."}],
    [{"type": "text", "text": "Hi."}, {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}],
    [{"type": "input_text", "text": "Hi."}, {"type": "input_image", "image_url": "https://a.b/c.png"}],
    [{"type": "text", "text": "Hi."}, {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}],
]


@pytest.mark.parametrize("content", SAME_WORDS)
def test_the_text_of_a_content_does_not_depend_on_its_shape(session: Session, content: Any) -> None:
    assert session.append("user", content).text == "Hi."
    assert session.tail(1)[0].text == "Hi."


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("content", SAME_WORDS[:6])
def test_words_in_any_shape_are_sent_alike(name: str, content: Any) -> None:
    render = dialect(name).render
    assert render(given({"role": "user", "content": content})) == render(given(user("Hi.")))


def test_objects_of_client_libraries_can_be_appended(session: Session) -> None:
    message = completion({"content": None, "tool_calls": [CALL]}).choices[0].message
    stored = session.append("assistant", message.content, tool_calls=message.tool_calls)
    assert stored.tool_calls == (ToolCall("t1", "f", '{"x": 1.0}'),)
    blocks = answer(text("Look."), use("t2", path=None)).content
    stored = session.append("assistant", blocks[:1], tool_calls=blocks[1:])
    assert stored.content == (Text("Look."),)
    assert stored.tool_calls == (ToolCall("t2", "f", '{"path":null}'),)


# Arguments

SHAPES = ("flat", "typed", "chat", "item")
BLOCK = {"type": "tool_use", "id": "t1", "name": "f"}


def calling(shape: str, arguments: object) -> dict[str, Any]:
    """A call in one of the shapes in which people pass it."""
    if shape == "chat":
        return {"id": "t1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    call = {"id": "t1", "name": "f", "arguments": arguments}
    if shape == "item":
        call |= {"type": "function_call", "id": "fc_1", "call_id": "t1"}
    return call if shape != "typed" else {"type": "function", **call}


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
readable = values.filter(lambda value: "\\ud" not in json.dumps(value).lower())  # UTF-8 has no lone surrogates
objects = st.dictionaries(st.text(), readable, max_size=4).filter(lambda value: "\\ud" not in json.dumps(value).lower())
written = st.sampled_from(["", " ", "{}", "[]", "null", "not json", '{"a": 1.0}', '{"a":1e5, "b": 1E400}', "{"]) | (
    objects.map(lambda value: json.dumps(value, indent=1))
)


def sent(name: str, call: dict[str, Any]) -> Any:
    """What a provider receives as the arguments of an appended call."""
    body = dialect(name).render(given(user(), {"role": "assistant", "content": "", "tool_calls": [call]}, result("t1")))
    if name == "openai":
        return body["messages"][1]["tool_calls"][0]["function"]["arguments"]
    if name == "responses":
        return body["input"][1]["arguments"]
    return body["messages"][1]["content"][0]["input"]


@pytest.mark.parametrize("shape", SHAPES)
@settings(deadline=None)
@varied(words=written)
def test_arguments_given_as_text_come_back_byte_for_byte(shape: str, words: str) -> None:
    call = calling(shape, words)
    assert draft_from({"role": "assistant", "tool_calls": [call]}).tool_calls[0].arguments == words
    assert sent("openai", call) == sent("responses", call) == words


@pytest.mark.parametrize("shape", [*SHAPES, "block"])
@settings(deadline=None)
@varied(value=objects)
def test_arguments_given_as_an_object_come_back_equal(shape: str, value: dict[str, Any]) -> None:
    call = {**BLOCK, "input": value} if shape == "block" else calling(shape, value)
    back = sent("anthropic", call)
    assert json.dumps(back) == json.dumps(value)  # with the order of keys, and 1.0 is not 1
    for name in ("openai", "responses"):
        assert json.dumps(json.loads(sent(name, call))) == json.dumps(value)


@settings(deadline=None)
@varied(value=objects)
def test_the_input_of_an_accepted_tool_use_comes_back_equal(value: dict[str, Any]) -> None:
    reply = read_reply({**answer().to_dict(), "content": [{**BLOCK, "input": value}]}).message
    body = dialect("anthropic").render(given(user(), reply, result("t1")))
    assert json.dumps(body["messages"][1]["content"][0]["input"]) == json.dumps(value)


@settings(deadline=None)
@varied(words=written)
def test_the_arguments_of_an_accepted_call_come_back_byte_for_byte(words: str) -> None:
    chat = completion({"content": None, "tool_calls": [calling("chat", words)]})
    body = dialect("openai").render(given(user(), read_reply(chat).message, result("t1")))
    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == words
    item = response(called("t1", arguments=words))
    body = dialect("responses").render(given(user(), read_reply(item).message, result("t1")))
    assert body["input"][1]["arguments"] == words


@pytest.mark.parametrize("shape", [*SHAPES, "block"])
def test_a_call_without_arguments_has_an_empty_text(shape: str) -> None:
    for call in ({**BLOCK}, {**BLOCK, "input": None}) if shape == "block" else (calling(shape, None),):
        assert draft_from({"role": "assistant", "tool_calls": [call]}).tool_calls == (ToolCall("t1", "f", ""),)
        assert sent("anthropic", call) == {}
    without = completion({"content": None, "tool_calls": [CALL]}).to_dict()
    without["choices"][0]["message"]["tool_calls"] = [calling("chat", None)]  # type: ignore[index]
    assert read_reply(without).message["tool_calls"][0]["arguments"] == ""


def test_a_custom_call_keeps_its_free_text() -> None:
    for call in (
        {"id": "t1", "type": "custom", "custom": {"name": "f", "input": "print(1)"}},
        {"type": "custom_tool_call", "call_id": "t1", "name": "f", "input": "print(1)"},
    ):
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        assert draft_from(message).tool_calls == (ToolCall("t1", "f", "print(1)", {"type": "custom"}),)
        body = dialect("openai").render(given(user(), message, result("t1")))
        assert body["messages"][1]["tool_calls"][0]["custom"] == {"name": "f", "input": "print(1)"}


def test_integers_of_any_size_are_allowed_in_arguments_only() -> None:
    call = calling("flat", {"n": 1 << 90})
    assert sent("anthropic", call) == {"n": 1 << 90}
    with pytest.raises(BadMessage, match="64 bits"):
        draft_from({"role": "assistant", "tool_calls": [{**call, "mine": 1 << 90}]})
