"""OpenAI's chat completions, as the server sees them: what it refuses, and what it answers."""

from collections.abc import Iterator, Mapping
from typing import Any

from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from model_endpoint import published_types
from model_endpoint.rules import (
    NAME,
    Block,
    as_object,
    as_objects,
    check_choice,
    check_image_url,
    check_tools,
    estimate_tokens,
)
from model_endpoint.script import Fail, Say, Sent

PATH = "/v1/chat/completions"
DONE = b"data: [DONE]\n\n"
MAX_CALL_ID_CHARS = 40
_TYPES = {401: "invalid_request_error", 429: "requests", 500: "server_error", 503: "server_error"}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_MESSAGES = {
    401: "Incorrect API key provided.",
    429: "Rate limit reached for requests. Please try again in 1ms.",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later.",
}


def check(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the server refuses in a request."""
    untyped = list(published_types.problems(CompletionCreateParamsBase, _without(body, "stream")))
    if untyped:
        yield from untyped
        return
    if not body["messages"]:
        yield "messages: [] is too short"
    if body.get("stream_options") is not None and not body.get("stream"):
        yield "stream_options: only allowed when stream is enabled"
    if body.get("n", 1) != 1:
        yield "n: the scripted model gives one choice"
    yield from _check_tools(body)
    for index, message in enumerate(body["messages"]):
        yield from _check_message(f"messages[{index}]", message)
    yield from _check_order(body["messages"])


def _without(body: Mapping[str, Any], name: str) -> Block:
    return {key: value for key, value in body.items() if key != name}


def _check_tools(body: Mapping[str, Any]) -> Iterator[str]:
    if "tools" not in body:
        if "tool_choice" in body:
            yield "tool_choice: only allowed when tools are specified"
        return
    if not body["tools"]:
        yield "tools: [] is too short"
    functions = [(f"tools[{index}].function", tool.get("function", {})) for index, tool in enumerate(body["tools"])]
    yield from check_tools(
        (place, function.get("name", ""), function.get("parameters"), bool(function.get("strict")))
        for place, function in functions
    )
    choice = as_object(as_object(body.get("tool_choice")).get("function"))
    yield from check_choice(choice.get("name"), [function.get("name", "") for _, function in functions])


def _check_message(place: str, message: Block) -> Iterator[str]:
    if "name" in message and not NAME.fullmatch(message["name"]):
        yield f"{place}.name: does not match '^[a-zA-Z0-9_-]+$'"
    content = message.get("content")
    if message["role"] == "assistant":
        if content is None and not message.get("tool_calls"):
            yield f"{place}.content: expected a string, got null"
        if message.get("tool_calls") == []:
            yield f"{place}.tool_calls: [] is too short"
    elif content is None or content == []:
        yield f"{place}.content: is empty"
    for index, part in enumerate(as_objects(content)):
        if part["type"] == "image_url":
            yield from check_image_url(f"{place}.content[{index}].image_url.url", part["image_url"]["url"])
    for index, call in enumerate(message.get("tool_calls", ())):
        here = f"{place}.tool_calls[{index}]"
        if not 0 < len(call["id"]) <= MAX_CALL_ID_CHARS:
            yield f"{here}.id: must have 1 to {MAX_CALL_ID_CHARS} characters"
        if not NAME.fullmatch(call.get("function", call.get("custom"))["name"]):
            yield f"{here}.function.name: does not match '^[a-zA-Z0-9_-]+$'"


def _check_order(messages: list[Block]) -> Iterator[str]:
    waiting: list[str] = []
    for index, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                yield (
                    f"messages[{index}]: messages with role 'tool' must be a response to a preceding message with"
                    f" 'tool_calls', {message['tool_call_id']} is not waiting"
                )
            continue
        if waiting:
            yield (
                f"messages[{index}]: an assistant message with 'tool_calls' must be followed by tool messages"
                f" responding to each 'tool_call_id'; no response for: {', '.join(waiting)}"
            )
        waiting = [call["id"] for call in as_objects(message.get("tool_calls"))]
        if len(set(waiting)) < len(waiting):
            yield f"messages[{index}].tool_calls: duplicate ids"


def tokens(body: Mapping[str, Any]) -> int:
    """Return about how many tokens the input is."""
    return estimate_tokens(body.get("messages"), body.get("tools"))


def error(fail: Fail) -> Block:
    """Return the body of an error."""
    code = fail.code or _CODES.get(fail.status)
    message = fail.message or _MESSAGES.get(fail.status, "Invalid request.")
    if code == "context_length_exceeded" and not fail.message:
        message = "Your input exceeds the context window of this model. Please adjust your input and try again."
    kind = _TYPES.get(fail.status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def too_long(count: int, window: int) -> Fail:
    """Return the refusal of a request that is longer than the model's window."""
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {count} tokens."
        " Please reduce the length of the messages."
    )
    return Fail(400, message, "context_length_exceeded")


def whole(say: Say, body: Mapping[str, Any], number: int) -> Block:
    """Return a reply that is not streamed."""
    message: Block = {"role": "assistant", "content": say.said or None, "refusal": None}
    if say.thinking:
        message["reasoning_content"] = say.thinking  # not OpenAI's: of servers with the same API
    if say.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
            for call in say.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(say)}
    return {**_head(body, number, "chat.completion"), "choices": [choice], "usage": _usage(say, body)}


def events(say: Say, body: Mapping[str, Any], number: int) -> Iterator[Sent]:
    """Yield a reply as chunks."""
    head = _head(body, number, "chat.completion.chunk")
    asked = as_object(body.get("stream_options")).get("include_usage")
    if asked:
        head["usage"] = None

    def chunk(delta: Block, finish: str | None = None, *, piece: bool = True) -> Sent:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Sent("", {**head, "choices": [choice]}, piece)

    yield chunk({"role": "assistant", "content": "", "refusal": None}, piece=False)
    if say.thinking:
        yield chunk({"reasoning_content": say.thinking})
    for piece in say.pieces:
        yield chunk({"content": piece})
    for index, call in enumerate(say.calls):
        first = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield chunk({"tool_calls": [first]}, piece=False)
        for piece in call.pieces:
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(say), piece=False)
    if asked:
        yield Sent("", {**head, "choices": [], "usage": _usage(say, body)})


def failure(fail: Fail) -> Sent:
    """Return an error in the middle of a stream."""
    return Sent("", error(fail))


def _head(body: Mapping[str, Any], number: int, kind: str) -> Block:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_760_000_000, "model": body["model"]}


def _finish(say: Say) -> str:
    return "length" if say.stop == "length" else "tool_calls" if say.calls else "stop"


def _usage(say: Say, body: Mapping[str, Any]) -> Block:
    count = tokens(body) if say.input_tokens is None else say.input_tokens
    return {
        "prompt_tokens": count,
        "completion_tokens": say.output_tokens,
        "total_tokens": count + say.output_tokens,
        "prompt_tokens_details": {"cached_tokens": say.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
