"""A message of a host program in OpenAI's chat form: what identifies it, and what of it is stored."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, cast

from daypack.importers.readers.content_parts import openai_parts

Fields = dict[str, Any]
"""A chat message as the host has it."""
DIGEST = "host_digest"
"""The key in a stored message's meta under which the digest of the host's message is."""
_SYSTEM = ("system", "developer")
_THINKING = ("reasoning_content", "reasoning")
_MARKS = ("cache_control",)  # of a request, not of the message


def split_system(messages: list[Fields]) -> tuple[list[Fields], list[Fields]]:
    """Return the system prompt at the beginning of a request, and the conversation after it."""
    start = next((at for at, message in enumerate(messages) if message.get("role") not in _SYSTEM), len(messages))
    return messages[:start], messages[start:]


def text_of(message: Mapping[str, Any]) -> str:
    """Return the words of a message."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in _parts(content))
    return "\n".join(text for text in texts if isinstance(text, str))


def digest_of(message: Mapping[str, Any]) -> str:
    """Return what identifies a message: role, words, other parts and calls, however the host spells them.

    Hosts strip texts, normalise arguments and mark parts for the cache between one request and the next.
    """
    others = [part for part in _parts(message.get("content")) if not isinstance(part.get("text"), str)]
    identity = {
        "role": message.get("role"),
        "text": text_of(message).strip(),
        "others": others,
        "calls": [_call(call) for call in _list(message.get("tool_calls"))],
        "result": message.get("tool_call_id"),
    }
    return sha256(json.dumps(identity, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()[:32]


def draft_of(message: Mapping[str, Any], key: str, store_blob: Callable[[bytes], str]) -> Fields:
    """Return the message to store; `key` makes storing it twice impossible."""
    role, content = message.get("role"), message.get("content")
    said = openai_parts(content if isinstance(content, str) else _parts(content), store_blob)
    thought = next((text for name in _THINKING if isinstance(text := message.get(name), str) and text), "")
    if thought and role == "assistant":
        words: list[Fields] = [{"type": "text", "text": said}] if isinstance(said, str) else said
        said = [{"type": "thinking", "text": thought}, *(part for part in words if part.get("text") != "")]
    calls = [_stored_call(call) for call in _list(message.get("tool_calls"))]
    result = message.get("tool_call_id")
    return {
        "role": "system" if role in _SYSTEM else role,
        "content": said,
        **({"tool_calls": calls} if calls and role == "assistant" else {}),
        **({"tool_call_id": result} if role == "tool" and isinstance(result, str) else {}),
        "client_key": key,
        "meta": {DIGEST: digest_of(message)},
    }


def with_text_before(message: Fields, text: str) -> Fields:
    """Return a message whose content begins with a text."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": text}, *cast("list[Any]", content)]}
    return {**message, "content": f"{text}\n\n{content or ''}".rstrip()}


def with_text_after(message: Fields, text: str) -> Fields:
    """Return a message whose content ends with a text."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*cast("list[Any]", content), {"type": "text", "text": text}]}
    return {**message, "content": f"{content or ''}\n\n{text}".lstrip()}


def _parts(content: object) -> list[Fields]:
    parts = (cast(Fields, part) for part in _list(content) if isinstance(part, dict))
    return [{name: value for name, value in part.items() if name not in _MARKS} for part in parts]


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _call(call: object) -> list[Any]:
    fields = cast(Fields, call) if isinstance(call, dict) else {}
    function = fields.get("function")
    function = cast(Fields, function) if isinstance(function, dict) else fields
    arguments = function.get("arguments")
    with suppress(ValueError):  # not JSON: compared as it is
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    return [fields.get("id"), function.get("name"), arguments]


def _stored_call(call: object) -> Fields:
    fields = cast(Fields, call) if isinstance(call, dict) else {}
    function = fields.get("function")
    function = cast(Fields, function) if isinstance(function, dict) else fields
    arguments = function.get("arguments", "")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": fields.get("id"), "name": function.get("name"), "arguments": text}
