"""Messages without the secrets in them."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from daypack.text.redact.redact import Redacted, redact, redact_value
from daypack.types.history import Message, Other, Part, Text, Thinking, ToolCall


def clear(message: Message) -> tuple[Message, tuple[str, ...]]:
    """Return a message without secrets, and the kinds that were in it."""
    content, kinds = message.content, set[str]()
    if isinstance(content, str):
        found = redact(content)
        content, kinds = found.text, set(found.kinds)
    elif content:
        content = tuple(part for item in content if (part := _clear_part(item, kinds)))
    calls = _clear_calls(message.tool_calls, kinds) if message.tool_calls else ()
    name = message.name
    if name:
        found = redact(name)
        name = found.text
        kinds.update(found.kinds)
    if not kinds:
        return message, ()
    return replace(message, content=content, tool_calls=calls, name=name), tuple(sorted(kinds))


def _clear_part(part: Part, kinds: set[str]) -> Part | None:
    if isinstance(part, Other):
        value, found_kinds = redact_value(part.value)
        kinds.update(found_kinds)
        return Other(value) if found_kinds else part
    if not isinstance(part, Text | Thinking):
        # An address may carry a password or a token.
        found = redact(part.source)
        kinds.update(found.kinds)
        return replace(part, source=found.text) if found.kinds else part
    found = redact(part.text)
    if not found.kinds:
        return part
    kinds.update(found.kinds)
    # A provider has signed its thinking word by word: with other words it would be refused.
    return Text(found.text, part.meta) if isinstance(part, Text) else None


def _clear_calls(calls: Sequence[ToolCall], kinds: set[str]) -> tuple[ToolCall, ...]:
    cleared: list[ToolCall] = []
    for call in calls:
        found, name = redact(call.arguments), redact(call.name)
        if "\\u" in found.text:
            found = _unescaped(found)
        kinds.update(found.kinds, name.kinds)
        changed = found.kinds or name.kinds
        cleared.append(replace(call, name=name.text, arguments=found.text) if changed else call)
    return tuple(cleared)


def _unescaped(found: Redacted) -> Redacted:
    """Redact inside the escapes of JSON: a dialect that takes arguments as objects would send the decoded text."""
    try:
        value, kinds = redact_value(msgspec.json.decode(found.text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return found
    return Redacted(msgspec.json.encode(value).decode(), (*found.kinds, *kinds)) if kinds else found
