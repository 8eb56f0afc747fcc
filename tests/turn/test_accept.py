"""A reply comes back into history: as text, as a message or as what a client library returned, with what it cost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from faults import refused_writing
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from turn.scenes import logs, stage

from daypack.errors import BadInput, EmptyReply, WriteFailed
from daypack.session import Session
from daypack.types.history import Event, Thinking


def opened(home: str) -> Session:
    session = stage(home)
    session.append("user", "Where is the boat?")
    return session


def usages(session: Session) -> list[Event]:
    return [event for event in session.events() if event.type == "context.usage"]


def chat(**message: Any) -> ChatCompletion:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "In the bay.", **message},
    }
    usage = {
        "prompt_tokens": 90,
        "completion_tokens": 5,
        "total_tokens": 95,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    data = {"id": "chat-1", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [choice]}
    return ChatCompletion.model_validate({**data, "usage": usage})


def response() -> Response:
    text: dict[str, Any] = {"type": "output_text", "text": "In the bay.", "annotations": []}
    thoughts = [{"type": "summary_text", "text": "Look at the sea."}]
    output: list[dict[str, Any]] = [
        {"id": "rs_1", "type": "reasoning", "summary": thoughts, "encrypted_content": "ZW5j"},
        {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [text]},
        {
            "id": "f1",
            "type": "function_call",
            "call_id": "c1",
            "name": "look",
            "arguments": "{}",
            "status": "completed",
        },
    ]
    usage = {
        "input_tokens": 90,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 95,
    }
    data: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4o",
        "output": output,
        "usage": usage,
    }
    return Response.model_validate(
        {**data, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed"}
    )


def claude() -> AnthropicMessage:
    content = [
        {"type": "thinking", "thinking": "Look at the sea.", "signature": "c2ln"},
        {"type": "text", "text": "In the bay."},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
    ]
    usage = {
        "input_tokens": 20,
        "cache_read_input_tokens": 64,
        "cache_creation_input_tokens": 6,
        "output_tokens": 5,
    }
    data = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": content}
    return AnthropicMessage.model_validate({**data, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage})


def test_a_text_is_the_assistants(home: str) -> None:
    session = opened(home)
    session.prepare()
    message = session.accept("In the bay.")
    assert (message.seq, message.role, message.text) == (2, "assistant", "In the bay.")
    assert session.tail(1) == (message,)
    assert usages(session) == []


@pytest.mark.parametrize(
    "reply",
    [
        {"role": "assistant", "content": "In the bay."},
        {"role": "assistant", "content": [{"type": "text", "text": "In the bay."}], "meta": {"mine": 1}},
        {"choices": [{"message": {"role": "assistant", "content": "In the bay."}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "In the bay."}], "stop_reason": "end_turn"},
    ],
)
def test_mappings_are_read_by_their_shape(home: str, reply: dict[str, Any]) -> None:
    session = opened(home)
    assert session.accept(reply).text == "In the bay."


def test_a_chat_completion_is_taken_whole(home: str) -> None:
    session = opened(home)
    turn = session.prepare()
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}]
    message = session.accept(chat(tool_calls=calls))
    assert message.text == "In the bay."
    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [("c1", "look", '{"at": 1}')]
    [usage] = usages(session)
    assert usage.data == {
        "message": message.id,
        "turn": turn.event_id,
        "expected_tokens": turn.tokens,
        "expected_cached_tokens": 0,
        "input_tokens": 90,
        "cached_tokens": 64,
        "output_tokens": 5,
    }


def test_a_response_is_taken_whole(home: str) -> None:
    session = opened(home)
    session.prepare()
    message = session.accept(response())
    assert message.text == "In the bay."
    assert [call.id for call in message.tool_calls] == ["c1"]
    assert any(isinstance(part, Thinking) for part in message.content)
    assert usages(session)[0].data["cached_tokens"] == 64
    session.append("tool", "There.", tool_call_id="c1")
    turn = session.prepare()
    kinds = [one.get("type", "message") for one in turn.messages("responses")]
    assert kinds[-4:] == ["reasoning", "message", "function_call", "function_call_output"]


def test_an_anthropic_message_is_taken_whole(home: str) -> None:
    session = opened(home)
    session.prepare()
    message = session.accept(claude())
    assert message.text == "In the bay."
    assert [(call.id, call.arguments) for call in message.tool_calls] == [("c1", '{"at":1}')]
    data = usages(session)[0].data
    assert (data["input_tokens"], data["cached_tokens"], data["cache_written_tokens"]) == (90, 64, 6)
    session.append("tool", "There.", tool_call_id="c1")
    turn = session.prepare()
    reply = [one for one in turn.messages("anthropic") if one["role"] == "assistant"][-1]
    assert [block["type"] for block in reply["content"]] == ["thinking", "text", "tool_use"]
    assert reply["content"][0]["signature"] == "c2ln"


@pytest.mark.parametrize("make", [chat, response, claude])
def test_what_was_expected_of_the_cache_stands_beside_what_it_gave(home: str, make: Any) -> None:
    session = opened(home)
    first = session.prepare()
    session.accept(make())
    if session.tail(1)[0].tool_calls:
        session.append("tool", "There.", tool_call_id="c1")
    session.append("user", "And now?")
    second = session.prepare()
    session.accept(make())
    assert second.expected_cached_tokens == first.stable_tokens > 0
    expected = [event.data["expected_cached_tokens"] for event in usages(session)]
    assert expected == [0, first.stable_tokens]
    assert [event.data["cached_tokens"] for event in usages(session)] == [64, 64]


def test_usage_can_be_given_apart(home: str) -> None:
    session = opened(home)
    session.prepare()
    session.accept("In the bay.", usage={"input_tokens": 7, "output_tokens": 3})
    session.accept(chat(), usage={"prompt_tokens": 8})
    session.accept(chat(), usage={"colour": "blue"})
    assert [event.data.get("input_tokens") for event in usages(session)] == [7, 8]


def test_a_reply_to_a_turn_of_another_process_names_that_turn(home: str) -> None:
    session = opened(home)
    turn = session.prepare()
    other = stage(home)
    other.accept(chat())
    assert usages(other)[0].data["turn"] == turn.event_id
    assert usages(other)[0].data["expected_tokens"] == turn.tokens


def test_a_reply_without_any_turn_is_appended_all_the_same(home: str) -> None:
    session = opened(home)
    session.accept(chat())
    assert "turn" not in usages(session)[0].data
    assert usages(session)[0].data["message"] == "msg-2"


def without_failures(found: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Leave out the events that say that a call of the provider failed."""
    return tuple(
        b"".join(line for line in data.splitlines(keepends=True) if b'"type":"provider.error"' not in line)
        for data in found
    )


async def _reply() -> str:
    return "x"


@pytest.mark.parametrize(
    "reply",
    [
        None,
        5,
        [],
        ["text"],
        {},
        object(),
        ValueError("no"),
        {"choices": []},
        {"error": {"message": "overloaded"}},
        {"role": "user", "content": "not a reply"},
        {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "x"}}]},
        {"output": "text"},
        {"role": "assistant", "content": {"text": "an object"}},
        {"role": "assistant", "content": 5},
        {"content": "text", "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]},
    ],
)
def test_what_is_no_reply_is_refused_and_nothing_is_appended(home: str, reply: object) -> None:
    session = opened(home)
    session.prepare()
    before = logs(session)
    with pytest.raises(BadInput):
        session.accept(reply)
    assert without_failures(logs(session)) == before


def test_what_has_not_arrived_yet_is_refused(home: str) -> None:
    session = opened(home)
    coroutine = _reply()
    with pytest.raises(BadInput, match="has not been awaited"):
        session.accept(coroutine)
    asyncio.run(coroutine)
    assert len(session.messages()) == 1


@pytest.mark.parametrize("usage", [5, "many", ValueError("no")])
def test_a_usage_that_cannot_be_read_is_refused_before_anything_is_appended(home: str, usage: object) -> None:
    session = opened(home)
    before = logs(session)
    with pytest.raises(BadInput):
        session.accept("In the bay.", usage=usage)
    assert logs(session) == before


def test_a_reply_that_is_stored_does_not_look_lost_when_its_cost_cannot_be_recorded(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(home)
    session.prepare()
    real = session.history.append_event

    def fail(event: Event) -> Event:
        raise WriteFailed("no space", operation="append", place="events.jsonl")

    monkeypatch.setattr(session.history, "append_event", fail)
    message = session.accept(chat())
    assert session.tail(1) == (message,)
    assert usages(session) == []
    monkeypatch.setattr(session.history, "append_event", real)
    session.append("user", "And now?")
    session.prepare()
    assert [event.data["message"] for event in usages(session)] == [message.id]


def test_a_full_disk_refuses_the_reply_and_the_next_one_is_taken(home: str) -> None:
    session = opened(home)
    session.prepare()
    before = logs(session)
    with refused_writing(28), pytest.raises(WriteFailed):
        session.accept(chat())
    assert logs(session) == before
    assert session.accept(chat()).seq == 2
    assert Path(session.history.layout.messages).read_bytes().startswith(before[0])


def silent_chat(stop: str, content: str | None = None) -> ChatCompletion:
    choice = {"index": 0, "finish_reason": stop, "message": {"role": "assistant", "content": content}}
    data = {"id": "chat-1", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [choice]}
    return ChatCompletion.model_validate(data)


def silent_claude(stop: str) -> AnthropicMessage:
    data: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    usage = {"input_tokens": 20, "output_tokens": 1}
    return AnthropicMessage.model_validate({**data, "stop_reason": stop, "stop_sequence": None, "usage": usage})


def silent_response() -> Response:
    given = response().model_dump()
    thought: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": []}
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return Response.model_validate({**given, "output": [thought], **cut})


CUT_OFF = "raise the limit of output tokens and call again"
WITHHELD = "change the request and call again, or append your own words for it"


@pytest.mark.parametrize(
    ("reply", "stop", "hint"),
    [
        ("", None, "call the model again"),
        (" \n", None, "call the model again"),
        ({"role": "assistant", "content": None, "tool_calls": []}, None, "call the model again"),
        ({"role": "assistant", "content": [{"type": "text", "text": " "}], "meta": {}}, None, "call the model again"),
        (silent_chat("stop"), "stop", "call the model again"),
        (silent_chat("length", ""), "length", CUT_OFF),
        (silent_chat("content_filter"), "content_filter", WITHHELD),
        (silent_claude("end_turn"), "end_turn", "call the model again"),
        (silent_claude("max_tokens"), "max_tokens", CUT_OFF),
        (silent_claude("refusal"), "refusal", WITHHELD),
        (silent_response(), "max_output_tokens", CUT_OFF),
    ],
)
def test_an_empty_reply_is_refused_with_the_providers_reason(
    home: str, reply: object, stop: str | None, hint: str
) -> None:
    session = opened(home)
    session.prepare()
    before = logs(session)
    with pytest.raises(EmptyReply) as caught:
        session.accept(reply, usage={"input_tokens": 9, "output_tokens": 0})
    reason = f" (the provider stopped with {stop!r})" if stop else ""
    problem = f"the reply is empty: no text and no tool calls{reason}; nothing was stored"
    assert str(caught.value) == f"accept: reply: {problem} (hint: {hint})"
    assert without_failures(logs(session)) == before


@pytest.mark.parametrize(
    "reply",
    [
        chat(content=None, refusal="I cannot do that."),
        chat(content=None, tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]),
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "", "signature": "c2ln"}],
            "stop_reason": "x",
        },
        {"role": "assistant", "content": [{"type": "thinking", "text": "Look at the sea."}]},
        {"output": [{"id": "w1", "type": "web_search_call", "status": "completed"}]},
    ],
)
def test_a_reply_with_anything_in_it_is_stored(home: str, reply: object) -> None:
    session = opened(home)
    message = session.accept(reply)
    assert session.tail(1) == (message,)
