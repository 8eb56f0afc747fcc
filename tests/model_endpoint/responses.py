"""OpenAI's responses, as the server sees them: what it refuses, and what it answers."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import count as counting
from typing import Any

from openai.types.responses.response_create_params import ResponseCreateParamsBase

from model_endpoint import published_types
from model_endpoint.chat import error
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
from model_endpoint.script import Call, Fail, Say, Sent

__all__ = ["DONE", "PATH", "check", "error", "events", "failure", "tokens", "too_long", "whole"]

PATH = "/v1/responses"
DONE = b""
MAX_CALL_ID_CHARS = 64
_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}


def check(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the server refuses in a request."""
    untyped = list(published_types.problems(ResponseCreateParamsBase, {k: v for k, v in body.items() if k != "stream"}))
    if untyped:
        yield from untyped
        return
    if "model" not in body:
        yield "model: missing required parameter"
    if body.get("previous_response_id"):
        yield f"previous_response_id: previous response with id {body['previous_response_id']!r} not found"
    yield from _check_tools(body)
    given = body.get("input")
    if not given:
        yield "input: missing required parameter"
    items = as_objects(given)
    for index, item in enumerate(items):
        yield from _check_item(f"input[{index}]", item)
    yield from _check_pairs(items)
    yield from _check_reasoning(items)


def _check_tools(body: Mapping[str, Any]) -> Iterator[str]:
    functions = [
        (f"tools[{index}]", tool) for index, tool in enumerate(body.get("tools", ())) if tool["type"] == "function"
    ]
    yield from check_tools(
        (place, tool["name"], tool.get("parameters"), bool(tool.get("strict"))) for place, tool in functions
    )
    choice = as_object(body.get("tool_choice"))
    yield from check_choice(choice.get("name"), [tool["name"] for _, tool in functions])


def _check_item(place: str, item: Block) -> Iterator[str]:
    kind = item.get("type", "message")
    if kind in (*_CALLS, *_CALLS.values()) and not 0 < len(item["call_id"]) <= MAX_CALL_ID_CHARS:
        yield f"{place}.call_id: must have 1 to {MAX_CALL_ID_CHARS} characters"
    if kind in _CALLS and not NAME.fullmatch(item["name"]):
        yield f"{place}.name: does not match '^[a-zA-Z0-9_-]+$'"
    for field in ("content", "output"):
        parts = item.get(field)
        if parts is None or isinstance(parts, str):
            continue
        if not parts and kind != "reasoning":
            yield f"{place}.{field}: is empty"
        for index, part in enumerate(parts):
            here = f"{place}.{field}[{index}]"
            said = part["type"] in ("output_text", "refusal")
            if kind == "message" and said != (item["role"] == "assistant"):
                yield f"{here}: invalid value {part['type']!r} in a message of {item['role']}"
            if part["type"] == "input_image" and part.get("image_url"):
                yield from check_image_url(f"{here}.image_url", part["image_url"])


def _check_pairs(items: list[Block]) -> Iterator[str]:
    """Outputs follow their calls; a message between them is refused, as models that see one answer it instead."""
    waiting: dict[str, str] = {}
    for item in [*items, {"type": "end"}]:
        kind = item.get("type", "message")
        if kind in _CALLS:
            if item["call_id"] in waiting:
                yield f"Duplicate function call for call_id {item['call_id']}."
            waiting[item["call_id"]] = _CALLS[kind]
        elif kind in _CALLS.values():
            if waiting.pop(item["call_id"], None) != kind:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
        elif waiting and kind != "reasoning":
            yield from (f"No tool output found for function call {given}." for given in waiting)
            waiting = {}


def _check_reasoning(items: list[Block]) -> Iterator[str]:
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        after = items[index + 1] if index + 1 < len(items) else {}
        if after.get("type") not in ("reasoning", *_CALLS) and after.get("role") != "assistant":
            yield f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
        if item.get("encrypted_content") != _seal(item["id"]):
            yield f"The encrypted content for item {item['id']} could not be verified."


def tokens(body: Mapping[str, Any]) -> int:
    """Return about how many tokens the input is."""
    return estimate_tokens(body.get("instructions"), body.get("input"), body.get("tools"))


def too_long(count: int, window: int) -> Fail:
    """Return the refusal of a request that is longer than the model's window."""
    return Fail(400, code="context_length_exceeded")


def whole(say: Say, body: Mapping[str, Any], number: int) -> Block:
    """Return a reply that is not streamed."""
    return _response(say, body, number, _items(say, body, number))


def events(say: Say, body: Mapping[str, Any], number: int) -> Iterator[Sent]:
    """Yield a reply as events."""
    numbers = counting()

    def event(kind: str, **fields: object) -> Sent:
        return Sent(kind, {"type": kind, "sequence_number": next(numbers), **fields}, kind.endswith(".delta"))

    begun = {**_response(say, body, number, []), "status": "in_progress", "incomplete_details": None, "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    items = _items(say, body, number)
    for index, item in enumerate(items):
        where = {"output_index": index, "item_id": item["id"]}
        yield event("response.output_item.added", output_index=index, item=_emptied(item))
        if item["type"] == "reasoning":
            part = {**where, "summary_index": 0}
            empty, full = {"type": "summary_text", "text": ""}, item["summary"][0]
            yield event("response.reasoning_summary_part.added", **part, part=empty)
            yield event("response.reasoning_summary_text.delta", **part, delta=full["text"])
            yield event("response.reasoning_summary_text.done", **part, text=full["text"])
            yield event("response.reasoning_summary_part.done", **part, part=full)
        elif item["type"] == "message":
            part = {**where, "content_index": 0}
            full = item["content"][0]
            yield event("response.content_part.added", **part, part={**full, "text": ""})
            for piece in say.pieces:
                yield event("response.output_text.delta", **part, delta=piece, logprobs=[])
            yield event("response.output_text.done", **part, text=full["text"], logprobs=[])
            yield event("response.content_part.done", **part, part=full)
        elif item["type"] == "custom_tool_call":
            for piece in Call(item["name"], item["input"]).pieces:
                yield event("response.custom_tool_call_input.delta", **where, delta=piece)
            yield event("response.custom_tool_call_input.done", **where, input=item["input"])
        else:
            call = Call(item["name"], item["arguments"])
            for piece in call.pieces:
                yield event("response.function_call_arguments.delta", **where, delta=piece)
            yield event(
                "response.function_call_arguments.done", **where, name=item["name"], arguments=item["arguments"]
            )
        yield event("response.output_item.done", output_index=index, item=item)
    last = _response(say, body, number, items)
    yield event(f"response.{last['status']}", response=last)


def failure(fail: Fail) -> Sent:
    """Return an error in the middle of a stream."""
    found = error(fail)["error"]
    fields = {"code": found["code"] or found["type"], "message": found["message"], "param": None}
    return Sent("error", {"type": "error", "sequence_number": 0, **fields})


def _items(say: Say, body: Mapping[str, Any], number: int) -> list[Block]:
    items: list[Block] = []
    if say.thinking:
        given = f"rs_{number}"
        thought: Block = {"type": "reasoning", "id": given, "summary": [{"type": "summary_text", "text": say.thinking}]}
        if "reasoning.encrypted_content" in (body.get("include") or ()):
            thought["encrypted_content"] = _seal(given)
        items.append(thought)
    if say.said:
        text: Block = {"type": "output_text", "text": say.said, "annotations": [], "logprobs": []}
        status = "incomplete" if say.stop == "length" else "completed"
        head: Block = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": status}
        items.append({**head, "content": [text]})
    for index, call in enumerate(say.calls, 1):
        if call.is_freeform:
            head = {"type": "custom_tool_call", "id": f"ctc_{number}_{index}", "call_id": call.id}
            items.append({**head, "status": "completed", "name": call.name, "input": call.text})
            continue
        head = {"type": "function_call", "id": f"fc_{number}_{index}", "call_id": call.id, "status": "completed"}
        group = {"namespace": call.namespace} if call.namespace else {}
        items.append({**head, **group, "name": call.name, "arguments": call.text})
    return items


def _emptied(item: Block) -> Block:
    """Return an item as it is announced, before its content is sent."""
    if item["type"] == "reasoning":
        return {**item, "summary": []}
    if item["type"] == "message":
        return {**item, "status": "in_progress", "content": []}
    return {**item, "status": "in_progress", "input" if item["type"] == "custom_tool_call" else "arguments": ""}


def _seal(item_id: str) -> str:
    return "enc-" + sha256(item_id.encode()).hexdigest()[:24]


def _response(say: Say, body: Mapping[str, Any], number: int, output: list[Block]) -> Block:
    spent = tokens(body) if say.input_tokens is None else say.input_tokens
    cut = say.stop == "length"
    usage = {
        "input_tokens": spent,
        "input_tokens_details": {"cached_tokens": say.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": say.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": spent + say.output_tokens,
    }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": 1.0,
        "usage": usage,
    }
