"""What the responses API refuses."""

from collections.abc import Iterator, Mapping
from typing import Any

from daypack.turn.dialects.rules import is_filled, objects
from daypack.turn.dialects.rules.openai import NAME

MAX_ID_CHARS = 64

# Items of tools the server runs itself: they may be sent back as they came.
SERVER_ITEMS = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
    "compaction",
)

_ROLES = ("user", "assistant", "system", "developer")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
_INPUT = {
    "input_text": ("text",),
    "input_image": ("image_url", "file_id"),
    "input_file": ("file_url", "file_data", "file_id"),
}
_OUTPUT = {"output_text": ("text",), "refusal": ("refusal",)}


def validate(body: Mapping[str, Any]) -> list[str]:
    """Return what the API would refuse in `input`."""
    if is_filled(body.get("input")):
        return []
    items = objects(body.get("input"))
    if not items:
        return ["input: must be a text or a list of at least one item"]
    checks = (_check_items(items), _check_pairs(items), _check_reasoning(items), _check_ids(items))
    return [problem for found in checks for problem in found]


def _check_items(items: list[dict[str, Any]]) -> Iterator[str]:
    for index, item in enumerate(items):
        place = f"input[{index}]"
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            yield from _check_message(item, place)
        elif kind in _CALLS:
            yield from _check_call(item, _CALLS[kind], place)
        elif kind in _OUTPUTS:
            yield from _check_call_id(item, place)
            yield from _check_parts(item.get("output"), _INPUT, f"{place}.output")
        elif kind == "reasoning":
            if not isinstance(item.get("id"), str) or objects(item.get("summary")) is None:
                yield f"{place}: reasoning needs an id and a summary"
        elif kind not in SERVER_ITEMS:
            yield f"{place}.type: {kind!r} is not an item that can be sent"
        elif kind != "compaction" and not isinstance(item.get("id"), str):
            yield f"{place}.id: is missing"


def _check_message(item: dict[str, Any], place: str) -> Iterator[str]:
    role = item.get("role")
    if role not in _ROLES:
        yield f"{place}.role: {role!r} is not one of {', '.join(_ROLES)}"
        return
    yield from _check_parts(item.get("content"), _OUTPUT if role == "assistant" else _INPUT, f"{place}.content")


def _check_parts(content: object, taken: Mapping[str, tuple[str, ...]], place: str) -> Iterator[str]:
    if isinstance(content, str):
        return
    parts = objects(content)
    if not parts:
        yield f"{place}: must be a text or a list of at least one part"
        return
    for index, part in enumerate(parts):
        keys = taken.get(str(part.get("type")))
        if keys is None:
            yield f"{place}[{index}].type: {part.get('type')!r} is not one of {', '.join(taken)}"
        elif not any(isinstance(part.get(key), str) for key in keys):
            yield f"{place}[{index}]: needs {' or '.join(keys)}"


def _check_call(item: dict[str, Any], words: str, place: str) -> Iterator[str]:
    yield from _check_call_id(item, place)
    if not NAME.fullmatch(str(item.get("name"))):
        yield f"{place}.name: is not 1 to 64 letters, digits, _ or -"
    if not isinstance(item.get(words), str):
        yield f"{place}.{words}: must be a text"


def _check_call_id(item: dict[str, Any], place: str) -> Iterator[str]:
    given = item.get("call_id")
    if not isinstance(given, str) or not 0 < len(given) <= MAX_ID_CHARS:
        yield f"{place}.call_id: must be a text of 1 to {MAX_ID_CHARS} characters"


def _check_pairs(items: list[dict[str, Any]]) -> Iterator[str]:
    """Each call is followed by one output of its own kind, and each output has its call."""
    waiting: dict[tuple[Any, str], int] = {}
    seen: set[tuple[Any, str]] = set()
    for index, item in enumerate(items):
        kind, given = item.get("type"), str(item.get("call_id"))
        if kind in _CALLS:
            if (kind, given) in seen:
                yield f"input[{index}].call_id: {given} is used twice"
            waiting[kind, given] = index
            seen.add((kind, given))
        elif kind in _OUTPUTS and waiting.pop((_OUTPUTS[kind], given), None) is None:
            twice = (_OUTPUTS[kind], given) in seen
            yield f"input[{index}]: {'a second output for' if twice else 'no tool call found for'} {given}"
    yield from (f"input[{index}]: no tool output found for {given}" for (_, given), index in waiting.items())


def _check_reasoning(items: list[dict[str, Any]]) -> Iterator[str]:
    """Reasoning is followed by what it led to."""
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        after = items[index + 1] if index + 1 < len(items) else {}
        kind = after.get("type")
        if not (kind == "reasoning" or kind in _CALLS or kind in SERVER_ITEMS or after.get("role") == "assistant"):
            yield f"input[{index}]: reasoning without the item that follows it"


def _check_ids(items: list[dict[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if isinstance(given := item.get("id"), str):
            if given in seen:
                yield f"input[{index}].id: {given} is used twice"
            seen.add(given)
