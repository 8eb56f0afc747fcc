"""Parts of a content that no provider would be sent: refused when they are appended, not left out of every turn."""

from collections.abc import Sequence
from typing import Any

from daypack.errors import BadMessage
from daypack.types.history import Message, Other
from daypack.types.names import did_you_mean

_TEXTS = ("text", "input_text", "output_text")
# Types that some provider has; other names are kept too, unless they look like one of these with an error.
_TYPES = (
    *(*_TEXTS, "thinking", "redacted_thinking", "reasoning", "refusal", "image", "image_url", "input_image"),
    *("file", "input_file", "document", "audio", "input_audio", "video", "video_url", "search_result", "other"),
)
_RESULT = "append each result by itself: append('tool', text, tool_call_id={})"
_CALL = "append the reply with session.accept(reply), or pass tool_calls=[…]"


def require_parts(drafts: Sequence[Message]) -> None:
    """Refuse parts of messages that no turn would show: results and calls of tools, misspelt and empty parts."""
    for number, draft in enumerate(drafts):
        if isinstance(draft.content, str):
            continue
        for index, part in enumerate(draft.content):
            if isinstance(part, Other):
                _require(part, f"messages[{number}].content[{index}]" if number else f"content[{index}]")


def _require(part: Other, place: str) -> None:
    kind, value = part.kind, part.value
    if kind in ("tool_result", "function_call_output"):
        raise _bad("a tool result is a message of its own", place, _RESULT.format(repr(_call_of(value))))
    if kind in ("tool_use", "function_call"):
        raise _bad("a tool call is no part of a content", place, _CALL)
    if kind in _TEXTS:
        raise _bad("has no text", f"{place}.text", f"write {{'type': '{kind}', 'text': …}}")
    if kind in ("image_url", "input_image") and not value.get("image_url") and not value.get("file_id"):
        raise _bad("has no address", f"{place}.image_url", "give an https: or data: address")
    if kind not in _TYPES and (hint := did_you_mean(kind, _TYPES)):
        raise _bad(f"{kind!r} is no type of a part", f"{place}.type", hint)


def _call_of(value: dict[str, Any]) -> str:
    given = value.get("tool_use_id") or value.get("call_id")
    return given if isinstance(given, str) else "…"


def _bad(problem: str, place: str, hint: str) -> BadMessage:
    return BadMessage(problem, operation="append", place=place, hint=hint)
