"""Tool calls in the form that every provider accepts: ids, names and arguments."""

import re
from functools import lru_cache
from typing import Any, cast

import msgspec

from daypack.errors import BadInput
from daypack.types.history import Message, Part, Text, ToolCall

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BAD_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64
_MAX_DEPTH = 100


class Calls:
    """Gives each call of one rendering an id its provider takes, and the same one to its result.

    An id is kept if it is short, plain and not used before. Otherwise it gets another, which depends on the calls
    before it and on nothing else: what was rendered once is rendered the same when the history has grown.
    """

    __slots__ = ("_fits", "_open", "_used")

    def __init__(self, max_chars: int) -> None:
        self._fits = _id_pattern(max_chars).fullmatch
        self._used: set[str] = set()
        self._open: dict[str, list[str]] = {}

    def name_call(self, call_id: str) -> str:
        """Return the id to send for a call."""
        name = call_id
        if name in self._used or not self._fits(name):
            attempt = 0
            while (name := f"call_{_checksum(f'{attempt}:{call_id}')}") in self._used:
                attempt += 1
        self._used.add(name)
        self._open.setdefault(call_id, []).append(name)
        return name

    def claim(self, use_id: str) -> bool:
        """Take an id that must stay as it is; say whether it can be sent."""
        if use_id in self._used or not self._fits(use_id):
            return False
        self._used.add(use_id)
        return True

    def name_result(self, message: Message) -> str:
        """Return the id to send for a result: that of the oldest call with its id that has none yet."""
        waiting = self._open.get(message.tool_call_id or "")
        if not waiting:
            raise BadInput(
                f"the result of {message.tool_call_id!r} has no call before it",
                operation="render",
                place=message.id or "messages",
                hint="a dialect takes settled messages: each result after its call",
            )
        return waiting.pop(0)


@lru_cache
def _id_pattern(max_chars: int) -> re.Pattern[str]:
    return re.compile(rf"[a-zA-Z0-9_-]{{1,{max_chars}}}")


@lru_cache(maxsize=1024)
def tool_name(name: str) -> str:
    """Return a tool's name with letters, digits, _ and - only, at most 64; a name that is such stays as it is."""
    if _NAME.fullmatch(name):
        return name
    plain = _BAD_IN_NAME.sub("_", name)
    if len(plain) <= _MAX_NAME_CHARS and plain.strip("_-"):
        return plain
    # Cut or with nothing left to read: the checksum keeps two such names apart.
    return f"{plain[: _MAX_NAME_CHARS - 9]}_{_checksum(name)}"


def arguments_object(text: str) -> dict[str, Any]:
    """Return a call's arguments as an object; a text that is not an object becomes its `arguments`."""
    if not text or text.isspace():
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return {"arguments": text}
    if isinstance(value, dict) and not _is_deep(text, cast(dict[str, Any], value)):
        return cast(dict[str, Any], value)
    return {"arguments": text}


def whole_text(message: Message) -> Text:
    """Return the text of a message that has no parts, with what its provider said about it."""
    about = message.meta.get("text") if message.meta else None
    return Text(cast(str, message.content), cast(dict[str, Any], about) if isinstance(about, dict) else None)


def in_order(message: Message) -> list[Part | ToolCall]:
    """Return the parts and calls of an assistant message in the order the model wrote them.

    Calls come after all parts, unless the reader of the reply noted another place (`after`, a number of parts).
    """
    content = message.content
    parts: list[Part | ToolCall] = [whole_text(message)] if isinstance(content, str) else list(content)
    calls, count = message.tool_calls, len(parts)
    if not any(call.meta and "after" in call.meta for call in calls):
        parts.extend(calls)
        return parts
    # From the last to the first, so that a place is not moved by what was put in before.
    for call in reversed(calls):
        after = (call.meta or {}).get("after")
        parts.insert(after if isinstance(after, int) and 0 <= after <= count else count, call)
    return parts


def is_custom(call: ToolCall) -> bool:
    """True for a call of an OpenAI custom tool: free text instead of JSON."""
    return bool(call.meta) and call.meta.get("type") == "custom"


def _checksum(text: str) -> str:
    import zlib  # noqa: PLC0415 — few histories have a name to mend

    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def _is_deep(text: str, value: dict[str, Any]) -> bool:
    """True if JSON is nested so deeply that an encoder might fail."""
    if text.count("{") + text.count("[") <= _MAX_DEPTH:
        return False
    level: list[object] = [value]
    for _ in range(_MAX_DEPTH):
        inner: list[object] = []
        for value_at in level:
            if isinstance(value_at, dict):
                inner.extend(cast(dict[str, object], value_at).values())
            elif isinstance(value_at, list):
                inner.extend(cast(list[object], value_at))
        if not inner:
            return False
        level = inner
    return True
