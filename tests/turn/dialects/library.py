"""Replies made with the real client libraries, and bodies checked against their types."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec
from anthropic.types import Message, MessageParam, TextBlockParam
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.responses import Response, ResponseInputItemParam
from pydantic import TypeAdapter

from daypack.history.draft import draft_from
from daypack.turn.dialects import Given


def given(*drafts: dict[str, Any], prefix: tuple[str, ...] = (), volatile: tuple[str, ...] = ()) -> Given:
    """A turn of these messages."""
    return Given(prefix, tuple(draft_from(one) for one in drafts), volatile)


def user(text: str = "Go on.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def calling(*ids: str, content: object = "") -> dict[str, Any]:
    calls = [{"id": one, "name": "read_file", "arguments": '{"path": "a"}'} for one in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(call_id: str, text: object = "done", **fields: object) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text, **fields}


def completion(message: dict[str, Any], **fields: Any) -> ChatCompletion:
    choice = {"index": 0, "finish_reason": fields.pop("stop", "stop"), "message": {"role": "assistant", **message}}
    return ChatCompletion.model_validate(
        {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **fields}
    )


def response(*output: dict[str, Any], **fields: Any) -> Response:
    return Response.model_validate(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "status": "completed",
            "output": list(output),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **fields,
        }
    )


def said(text: str, **fields: Any) -> dict[str, Any]:
    content: list[Any] = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content, **fields}


def reasoned(number: int = 1, sealed: str | None = "ZW5j") -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": "I looked."}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": sealed}


def called(call_id: str = "call_1", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": '{"x":1}', **fields}


def answer(*content: dict[str, Any], **fields: Any) -> Message:
    return Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": list(content),
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 4},
            **fields,
        }
    )


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def use(use_id: str = "toolu_1", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": use_id, "name": "f", "input": given}


_TYPES: dict[str, dict[str, Any]] = {
    "openai": {"messages": list[ChatCompletionMessageParam]},
    "responses": {"input": list[ResponseInputItemParam]},
    "anthropic": {"messages": list[MessageParam], "system": list[TextBlockParam]},
}


@lru_cache
def _adapter(name: str, key: str) -> TypeAdapter[Any]:
    return TypeAdapter(_TYPES[name][key])


def check_types(name: str, body: Mapping[str, Any]) -> None:
    """Fail unless the client library's types take the body.

    Pydantic reads an `Iterable` field lazily: writing the validated value out is what really checks its elements,
    and it must give back what was put in.
    """
    assert body.keys() <= _TYPES[name].keys()
    for key, value in body.items():
        adapter = _adapter(name, key)
        taken = adapter.validate_python(msgspec.json.decode(msgspec.json.encode(value)))
        assert _consumed(taken) == value


def _consumed(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _consumed(item) for key, item in cast(Mapping[str, object], value).items()}
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return [_consumed(item) for item in cast(list[object], value)]
