"""Google's generateContent, as the server sees it: what it refuses, and what it answers.

The name of the method is part of the path: /v1beta/models/MODEL:streamGenerateContent?alt=sse
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from model_endpoint.rules import Block, as_object, as_objects, check_tools, estimate_tokens
from model_endpoint.script import Call, Fail, Say, Sent

METHOD = re.compile(r"/v1beta/models/(?P<model>[\w.-]+):(?P<method>generateContent|streamGenerateContent|countTokens)")
DONE = b""
_STATES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_PART_KINDS = frozenset({"text", "inlineData", "fileData", "functionCall", "functionResponse"})


def check(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the server refuses in a request."""
    contents = as_objects(body.get("contents"))
    if not contents:
        yield "contents is not specified"
    waiting = 0
    for index, content in enumerate(contents):
        place = f"contents[{index}]"
        if content.get("role") not in ("user", "model"):
            yield f"{place}.role: please use a valid role: user, model"
        parts = as_objects(content.get("parts"))
        if not parts:
            yield f"{place}.parts must not be empty"
        for number, part in enumerate(parts):
            if len(_PART_KINDS & part.keys()) != 1:
                yield f"{place}.parts[{number}].data: required oneof field 'data' must have one initialized field"
        answers = sum("functionResponse" in part for part in parts)
        if answers != waiting and (answers or content.get("role") == "user"):
            yield (
                f"{place}: the number of function response parts must be equal to the number of function call parts"
                " of the function call turn"
            )
        waiting = sum("functionCall" in part for part in parts)
    declared = [function for tool in as_objects(body.get("tools")) for function in _declared(tool)]
    yield from check_tools(
        (f"tools: {function.get('name')}", str(function.get("name")), function.get("parametersJsonSchema"), False)
        for function in declared
    )


def _declared(tool: Block) -> list[Block]:
    return as_objects(tool.get("functionDeclarations"))


def tokens(body: Mapping[str, Any]) -> int:
    """Return about how many tokens the input is."""
    return estimate_tokens(body.get("contents"), body.get("tools"), body.get("systemInstruction"))


def count(body: Mapping[str, Any]) -> Block:
    """Return the answer of countTokens."""
    return {"totalTokens": tokens(as_object(body.get("generateContentRequest")) or body)}


def too_long(count: int, window: int) -> Fail:
    """Return the refusal of a request that is longer than the model's window."""
    return Fail(400, f"The input token count ({count}) exceeds the maximum number of tokens allowed ({window}).")


def error(fail: Fail) -> Block:
    """Return the body of an error."""
    state = _STATES.get(fail.status, "UNKNOWN")
    return {"error": {"code": fail.status, "message": fail.message or state, "status": state}}


def whole(say: Say, body: Mapping[str, Any], number: int) -> Block:
    """Return a reply that is not streamed."""
    parts: list[Block] = [{"text": say.thinking, "thought": True}] if say.thinking else []
    parts += [{"text": say.said}] if say.said else []
    return _reply(say, body, number, [*parts, *map(_call, say.calls)], _finish(say))


def events(say: Say, body: Mapping[str, Any], number: int) -> Iterator[Sent]:
    """Yield a reply as chunks; a call comes whole."""
    if say.thinking:
        yield Sent("", _reply(say, body, number, [{"text": say.thinking, "thought": True}]), piece=True)
    for piece in say.pieces:
        yield Sent("", _reply(say, body, number, [{"text": piece}]), piece=True)
    for call in say.calls:
        yield Sent("", _reply(say, body, number, [_call(call)]), piece=True)
    yield Sent("", _reply(say, body, number, [{"text": ""}], _finish(say)))


def failure(fail: Fail) -> Sent:
    """Return an error in the middle of a stream."""
    return Sent("", error(fail))


def _call(call: Call) -> Block:
    return {"functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.text)}}


def _reply(say: Say, body: Mapping[str, Any], number: int, parts: list[Block], finish: str = "") -> Block:
    candidate: Block = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(say, body),
        "modelVersion": "scripted",
        "responseId": f"response-{number}",
    }


def _finish(say: Say) -> str:
    return "MAX_TOKENS" if say.stop == "length" else "STOP"


def _usage(say: Say, body: Mapping[str, Any]) -> Block:
    prompt = tokens(body) if say.input_tokens is None else say.input_tokens
    usage = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": say.output_tokens,
        "totalTokenCount": prompt + say.output_tokens,
    }
    return usage | ({"cachedContentTokenCount": say.cached_tokens} if say.cached_tokens else {})
