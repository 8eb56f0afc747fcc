"""Anthropic's messages, as the server sees them: what it refuses, and what it answers."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import pairwise
from typing import Any

from anthropic.types.message_create_params import MessageCreateParamsBase

from model_endpoint import published_types
from model_endpoint.rules import (
    NAME,
    Block,
    as_object,
    as_objects,
    check_choice,
    check_image,
    check_tools,
    estimate_tokens,
)
from model_endpoint.script import Fail, Say, Sent

PATH = "/v1/messages"
COUNT_PATH = f"{PATH}/count_tokens"
DONE = b""
MAX_CACHE_MARKS = 4
_THINKING = ("thinking", "redacted_thinking")
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
_MESSAGES = {
    401: "invalid x-api-key",
    429: "Number of request tokens has exceeded your per-minute rate limit.",
    500: "Internal server error",
    529: "Overloaded",
}


def check(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the server refuses in a request."""
    untyped = list(published_types.problems(MessageCreateParamsBase, {k: v for k, v in body.items() if k != "stream"}))
    if untyped:
        yield from untyped
        return
    if not body["messages"]:
        yield "messages: at least one message is required"
    if body["max_tokens"] < 1:
        yield "max_tokens: must be greater than or equal to 1"
    yield from _check_tools(body)
    yield from _check_system(body.get("system"))
    turns = [(message["role"], _blocks(message["content"])) for message in body["messages"]]
    yield from _check_roles([role for role, _ in turns])
    for index, (role, blocks) in enumerate(turns):
        if not blocks:
            yield f"messages.{index}: all messages must have non-empty content"
        for number, block in enumerate(blocks):
            yield from _check_block(f"messages.{index}.content.{number}", role, block)
    yield from _check_pairs(turns)
    if len(list(_marks([body.get("system"), body["messages"], body.get("tools")]))) > MAX_CACHE_MARKS:
        yield f"A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided"


def _blocks(content: str | list[Block]) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _check_tools(body: Mapping[str, Any]) -> Iterator[str]:
    tools: list[Block] = body.get("tools", [])
    own = [(f"tools.{index}", tool) for index, tool in enumerate(tools) if tool.get("type", "custom") == "custom"]
    yield from check_tools((place, tool["name"], tool["input_schema"], False) for place, tool in own)
    choice: Block = body.get("tool_choice") or {}
    if choice and not tools:
        yield "tool_choice: may only be specified while providing tools"
    yield from check_choice(choice.get("name"), [tool.get("name", "") for tool in tools])
    blocks = [block for message in body["messages"] for block in _blocks(message["content"])]
    if not tools and any(block["type"] in ("tool_use", "tool_result") for block in blocks):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"


def _check_system(system: str | list[Block] | None) -> Iterator[str]:
    for index, block in enumerate(_blocks(system or [])):
        if not block["text"].strip():
            yield f"system.{index}: text content blocks must be non-empty"


def _check_roles(roles: list[str]) -> Iterator[str]:
    if roles[:1] not in ([], ["user"]):
        yield 'messages: first message must use the "user" role'
    for index, (role, next_role) in enumerate(pairwise(roles), 1):
        if role == next_role:
            yield f'messages.{index}: roles must alternate between "user" and "assistant", found two {role}'
    if "system" in roles:
        yield "messages: use the top-level `system` parameter for a system prompt"


def _check_block(place: str, role: str, block: Block) -> Iterator[str]:
    kind = block["type"]
    if kind in ("tool_use", *_THINKING) and role != "assistant":
        yield f"{place}: `{kind}` blocks can only be in `assistant` messages"
    if kind in ("tool_result", "image", "document") and role != "user":
        yield f"{place}: `{kind}` blocks can only be in `user` messages"
    if kind == "text" and not block["text"].strip():
        yield f"{place}: text content blocks must contain non-whitespace text"
    elif kind == "image" and block["source"]["type"] == "base64":
        yield from check_image(f"{place}.image.source", block["source"]["media_type"], block["source"]["data"])
    elif kind == "image" and block["source"]["type"] == "url" and not block["source"]["url"].startswith("https://"):
        yield f"{place}.image.source.url: only HTTPS URLs are supported"
    elif kind == "tool_use" and not NAME.fullmatch(block["name"]):
        yield f"{place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
    elif kind == "thinking" and block["signature"] != _sign(block["thinking"]):
        yield f"{place}: Invalid `signature` in `thinking` block"
    elif kind == "tool_result" and isinstance(block.get("content"), list):
        for index, inner in enumerate(block["content"]):
            yield from _check_block(f"{place}.content.{index}", "user", inner)


def _check_pairs(turns: list[tuple[str, list[Block]]]) -> Iterator[str]:
    waiting: list[str] = []
    for index, (role, blocks) in enumerate([*turns, ("end", [])]):
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if unknown := [given for given in results if given not in waiting]:
            yield f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(unknown)}"
        if unanswered := [given for given in waiting if given not in results]:
            yield (
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after:"
                f" {', '.join(unanswered)}"
            )
        if len(set(results)) < len(results):
            yield f"messages.{index}: each tool_use must have a single result"
        if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
            yield f"messages.{index}: `tool_result` blocks must come first in the message"
        waiting = [block["id"] for block in blocks if role == "assistant" and block["type"] == "tool_use"]
        if len(set(waiting)) < len(waiting):
            yield f"messages.{index}: `tool_use` ids must be unique"
    if turns and turns[-1][0] == "assistant":
        last = turns[-1][1][-1]
        if last["type"] in _THINKING:
            yield "messages: the final block in an assistant message cannot be `thinking`"
        elif last["type"] == "text" and last["text"] != last["text"].rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"


def _marks(value: object) -> Iterator[object]:
    for item in as_objects(value):
        yield from _marks(item)
    fields = as_object(value)
    if fields.get("cache_control"):
        yield fields
    if "content" in fields:
        yield from _marks(fields["content"])


def tokens(body: Mapping[str, Any]) -> int:
    """Return about how many tokens the input is."""
    return estimate_tokens(body.get("system"), body.get("messages"), body.get("tools"))


def error(fail: Fail) -> Block:
    """Return the body of an error."""
    message = fail.message or _MESSAGES.get(fail.status, "Invalid request.")
    if fail.code == "context_length_exceeded" and not fail.message:
        message = "prompt is too long: 250000 tokens > 200000 maximum"
    return {"type": "error", "error": {"type": _TYPES.get(fail.status, "api_error"), "message": message}}


def too_long(count: int, window: int) -> Fail:
    """Return the refusal of a request that is longer than the model's window."""
    return Fail(400, f"prompt is too long: {count} tokens > {window} maximum")


def whole(say: Say, body: Mapping[str, Any], number: int) -> Block:
    """Return a reply that is not streamed."""
    content: list[Block] = []
    if say.thinking:
        content.append({"type": "thinking", "thinking": say.thinking, "signature": _sign(say.thinking)})
    if say.said:
        content.append({"type": "text", "text": say.said, "citations": None})
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(_arguments(call.arguments))}
        for call in say.calls
    ]
    return {**_head(say, body, number), "content": content, "stop_reason": _stop(say)}


def events(say: Say, body: Mapping[str, Any], number: int) -> Iterator[Sent]:
    """Yield a reply as events."""
    head = _head(say, body, number)
    begun = {**head, "usage": {**head["usage"], "output_tokens": 1}}
    yield _event("message_start", message=begun)
    yield _event("ping")
    index = 0
    if say.thinking:
        yield from _block(
            index,
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "thinking_delta", "thinking": say.thinking}],
            [{"type": "signature_delta", "signature": _sign(say.thinking)}],
        )
        index += 1
    if say.pieces:
        empty: Block = {"type": "text", "text": "", "citations": None}
        yield from _block(index, empty, [{"type": "text_delta", "text": piece} for piece in say.pieces])
        index += 1
    for call in say.calls:
        empty: Block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield from _block(
            index, empty, [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *call.pieces)]
        )
        index += 1
    yield _event(
        "message_delta",
        delta={"stop_reason": _stop(say), "stop_sequence": None},
        usage={"output_tokens": say.output_tokens},
    )
    yield _event("message_stop")


def failure(fail: Fail) -> Sent:
    """Return an error in the middle of a stream."""
    return Sent("error", error(fail))


def _event(kind: str, *, piece: bool = False, **fields: object) -> Sent:
    return Sent(kind, {"type": kind, **fields}, piece)


def _block(index: int, empty: Block, deltas: list[Block], last: list[Block] = []) -> Iterator[Sent]:  # noqa: B006
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta, piece=delta.get("partial_json") != "")
    for delta in last:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _arguments(arguments: Mapping[str, Any] | str) -> Mapping[str, Any]:
    assert not isinstance(arguments, str), "a text of arguments can only be streamed: the API returns objects"
    return arguments


def _sign(thinking: str) -> str:
    return "sig-" + sha256(thinking.encode()).hexdigest()[:24]


def _head(say: Say, body: Mapping[str, Any], number: int) -> Block:
    count = tokens(body) if say.input_tokens is None else say.input_tokens
    usage = {
        "input_tokens": max(count - say.cached_tokens, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": say.cached_tokens,
        "output_tokens": say.output_tokens,
    }
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _stop(say: Say) -> str:
    return "max_tokens" if say.stop == "length" else "tool_use" if say.calls else "end_turn"
