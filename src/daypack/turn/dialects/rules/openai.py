"""What the chat completions API refuses."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from daypack.turn.dialects.rules import is_filled, objects

MAX_ID_CHARS = 40
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_PARTS = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}
# Under which key a part has what it is about, and of which kind that is.
_BODIES: dict[str, tuple[str, type]] = {
    "text": ("text", str),
    "refusal": ("refusal", str),
    "image_url": ("image_url", dict),
    "input_audio": ("input_audio", dict),
    "file": ("file", dict),
}


def validate(body: Mapping[str, Any]) -> list[str]:
    """Return what the API would refuse in `messages`."""
    messages = objects(body.get("messages"))
    if not messages:
        return ["messages: must be a list of at least one message"]
    return [problem for found in (_check_messages(messages), _check_order(messages)) for problem in found]


def _check_messages(messages: list[dict[str, Any]]) -> Iterator[str]:
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        role = message.get("role")
        if role not in _PARTS:
            yield f"{place}.role: {role!r} is not one of {', '.join(_PARTS)}"
            continue
        name = message.get("name")
        if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
            yield f"{place}.name: {name!r} is not 1 to 64 letters, digits, _ or -"
        if role == "assistant" and "tool_calls" in message:
            yield from _check_calls(message["tool_calls"], place)
            if message.get("content") is None:
                continue
        yield from _check_content(message.get("content"), role, f"{place}.content")


def _check_content(content: object, role: str, place: str) -> Iterator[str]:
    if isinstance(content, str):
        return
    parts = objects(content)
    if not parts:
        yield f"{place}: must be a text or a list of at least one part"
        return
    for index, part in enumerate(parts):
        kind = str(part.get("type"))
        if kind not in _PARTS[role]:
            yield f"{place}[{index}].type: {kind!r} is not taken from {role}"
            continue
        key, shape = _BODIES[kind]
        if not isinstance(part.get(key), shape):
            yield f"{place}[{index}].{key}: is missing"
        elif kind == "image_url" and not is_filled(part["image_url"].get("url")):
            yield f"{place}[{index}].image_url.url: is missing"


def _check_calls(value: object, place: str) -> Iterator[str]:
    calls = objects(value)
    if not calls:
        yield f"{place}.tool_calls: must be a list of at least one call"
        return
    for index, call in enumerate(calls):
        here = f"{place}.tool_calls[{index}]"
        given, kind = call.get("id"), call.get("type")
        if not isinstance(given, str) or not 0 < len(given) <= MAX_ID_CHARS:
            yield f"{here}.id: must be a text of 1 to {MAX_ID_CHARS} characters"
        words = {"function": "arguments", "custom": "input"}.get(str(kind))
        if words is None:
            yield f"{here}.type: {kind!r} is not function or custom"
            continue
        found = call.get(str(kind))
        if not isinstance(found, dict):
            yield f"{here}.{kind}: is missing"
            continue
        inner = cast(dict[str, Any], found)
        if not NAME.fullmatch(str(inner.get("name"))):
            yield f"{here}.{kind}.name: is not 1 to 64 letters, digits, _ or -"
        if not isinstance(inner.get(words), str):
            yield f"{here}.{kind}.{words}: must be a text"


def _check_order(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Each call has its result before any other message, and each result has its call."""
    waiting: dict[str, str] = {}
    answered: set[str] = set()
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        if message.get("role") == "tool":
            given = str(message.get("tool_call_id"))
            if given in waiting:
                del waiting[given]
                answered.add(given)
            elif given in answered:
                yield f"{place}: {given} has been answered already"
            else:
                yield f"{place}: a tool message must answer a call of the message with tool_calls before it"
            continue
        yield from (f"{where}: no tool message answers {given}" for given, where in waiting.items())
        waiting, answered = {}, set()
        for number, call in enumerate(objects(message.get("tool_calls")) or ()):
            if str(call.get("id")) in waiting:
                yield f"{place}.tool_calls[{number}].id: {call.get('id')} is used twice"
            waiting[str(call.get("id"))] = f"{place}.tool_calls[{number}]"
    yield from (f"{where}: no tool message answers {given}" for given, where in waiting.items())
