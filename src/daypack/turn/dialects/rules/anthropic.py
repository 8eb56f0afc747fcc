"""What the messages API refuses."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from daypack.turn.dialects.parts import IMAGE_TYPES
from daypack.turn.dialects.rules import is_filled, objects
from daypack.turn.dialects.rules.openai import NAME

MAX_ID_CHARS = 64
MAX_CACHE_MARKS = 4
THINKING = ("thinking", "redacted_thinking")
CACHEABLE = ("text", "image", "document", "tool_use", "tool_result")
SERVER_RESULTS = (
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
)

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TAKEN = {
    "user": ("text", "image", "document", "search_result", "tool_result", "container_upload"),
    "assistant": ("text", "tool_use", "server_tool_use", *THINKING, *SERVER_RESULTS),
    "tool_result": ("text", "image", "document", "search_result", "tool_reference"),
}
_SOURCES = {"url": "url", "base64": "data", "text": "data", "file": "file_id", "content": "content"}

_Blocks = list[dict[str, Any]]


def validate(body: Mapping[str, Any]) -> list[str]:
    """Return what the API would refuse in `system` and `messages`."""
    messages = objects(body.get("messages"))
    if not messages:
        return ["messages: must be a list of at least one message"]
    turns: list[tuple[str, _Blocks]] = []
    problems: list[str] = []
    for index, message in enumerate(messages):
        role, blocks = message.get("role"), _blocks(message.get("content"))
        if role not in ("user", "assistant"):
            problems.append(f"messages[{index}].role: {role!r} is not user or assistant")
        elif blocks is None:
            problems.append(f"messages[{index}].content: must be a text that says something, or a list of blocks")
        else:
            turns.append((str(role), blocks))
    if problems:
        return problems
    checks = (
        _check_system(body.get("system")),
        _check_roles([role for role, _ in turns]),
        *(_check_block(block, role, place) for role, place, block in _walk(turns)),
        _check_pairs(turns),
        _check_ends(turns, body.get("thinking")),
        _check_marks(body.get("system"), turns),
    )
    return [problem for found in checks for problem in found]


def _blocks(content: object) -> _Blocks | None:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if is_filled(content) else None
    return objects(content) or None


def _walk(turns: list[tuple[str, _Blocks]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for index, (role, blocks) in enumerate(turns):
        for number, block in enumerate(blocks):
            yield role, f"messages[{index}].content[{number}]", block


def _check_system(system: object) -> Iterator[str]:
    if system is None or is_filled(system):
        return
    blocks = objects(system)
    if not blocks:
        yield "system: must be a text that says something, or a list of text blocks"
        return
    for index, block in enumerate(blocks):
        if block.get("type") != "text" or not is_filled(block.get("text")):
            yield f"system[{index}]: must be a text block that says something"


def _check_roles(roles: list[str]) -> Iterator[str]:
    if roles[0] != "user":
        yield "messages[0]: the first message must be the user's"
    for index in range(1, len(roles)):
        if roles[index] == roles[index - 1]:
            yield f"messages[{index}]: roles must alternate, and {roles[index]} speaks twice"


def _check_block(block: dict[str, Any], role: str, place: str) -> Iterator[str]:
    kind = block.get("type")
    if kind not in _TAKEN[role]:
        yield f"{place}.type: {kind!r} is not taken from {role}"
    elif kind == "text" and not is_filled(block.get("text")):
        yield f"{place}: text blocks must say something"
    elif kind in ("image", "document"):
        yield from _check_source(block, place)
    elif kind == "thinking" and not (isinstance(block.get("thinking"), str) and is_filled(block.get("signature"))):
        yield f"{place}: a thinking block needs its text and its signature"
    elif kind == "redacted_thinking" and not is_filled(block.get("data")):
        yield f"{place}: a redacted thinking block needs its data"
    elif kind in ("tool_use", "server_tool_use"):
        yield from _check_use(block, place)
    elif kind == "tool_result":
        yield from _check_result(block, place)


def _check_source(block: dict[str, Any], place: str) -> Iterator[str]:
    found = block.get("source")
    source = cast(dict[str, Any], found) if isinstance(found, dict) else {}
    kind = str(source.get("type"))
    if kind not in _SOURCES or not source.get(_SOURCES[kind]):
        yield f"{place}.source: must be of a known type and point to something"
    elif kind == "url" and not str(source["url"]).startswith("https://"):
        yield f"{place}.source.url: only https is fetched"
    elif block["type"] == "image" and kind == "base64" and source.get("media_type") not in IMAGE_TYPES:
        yield f"{place}.source.media_type: is not one of {', '.join(IMAGE_TYPES)}"


def _check_use(block: dict[str, Any], place: str) -> Iterator[str]:
    given = block.get("id")
    if not isinstance(given, str) or not _ID.fullmatch(given) or len(given) > MAX_ID_CHARS:
        yield f"{place}.id: must be 1 to {MAX_ID_CHARS} letters, digits, _ or -"
    if not NAME.fullmatch(str(block.get("name"))):
        yield f"{place}.name: is not 1 to 64 letters, digits, _ or -"
    if not isinstance(block.get("input"), dict):
        yield f"{place}.input: must be an object"


def _check_result(block: dict[str, Any], place: str) -> Iterator[str]:
    content = block.get("content", "")
    if isinstance(content, str):
        return
    parts = objects(cast(object, content))
    if parts is None:
        yield f"{place}.content: must be a text or a list of blocks"
        return
    for index, part in enumerate(parts):
        here = f"{place}.content[{index}]"
        if part.get("type") not in _TAKEN["tool_result"]:
            yield f"{here}.type: {part.get('type')!r} is not taken in a tool result"
        else:
            yield from _check_block(part, "user", here)


def _check_pairs(turns: list[tuple[str, _Blocks]]) -> Iterator[str]:
    """A tool use has its result in the next message, before everything else there; a result has its use."""
    seen: set[str] = set()
    waiting: dict[str, str] = {}
    for index, (role, blocks) in enumerate(turns):
        served: set[str] = set()
        begun = False
        for number, block in enumerate(blocks):
            place = f"messages[{index}].content[{number}]"
            kind, given = block.get("type"), str(block.get("tool_use_id", block.get("id")))
            if kind == "tool_result":
                if begun:
                    yield f"{place}: tool results must come first in their message"
                if waiting.pop(given, None) is None:
                    yield f"{place}: no tool_use {given} in the message before, or answered already"
            elif kind in ("tool_use", "server_tool_use"):
                if given in seen:
                    yield f"{place}.id: tool_use ids must be unique, and {given} is not"
                seen.add(given)
                served.add(given)
            elif kind in SERVER_RESULTS and given not in served:
                yield f"{place}: no server_tool_use {given} before it"
            begun = begun or kind != "tool_result"
        yield from (f"{place}: no tool_result for {given} in the next message" for given, place in waiting.items())
        calls = enumerate(blocks) if role == "assistant" else ()
        uses = [(number, block) for number, block in calls if block.get("type") == "tool_use"]
        waiting = {str(block.get("id")): f"messages[{index}].content[{number}]" for number, block in uses}
    yield from (f"{place}: no tool_result for {given} in the next message" for given, place in waiting.items())


def _check_ends(turns: list[tuple[str, _Blocks]], thinking: object) -> Iterator[str]:
    for index, (role, blocks) in enumerate(turns):
        if role == "assistant" and blocks[-1].get("type") in THINKING:
            yield f"messages[{index}]: the last block of an assistant message cannot be thinking"
    role, blocks = turns[-1]
    text = blocks[-1].get("text")
    if role == "assistant" and isinstance(text, str) and text != text.rstrip():
        yield f"messages[{len(turns) - 1}]: the last assistant message cannot end with white space"
    mode = cast(dict[str, Any], thinking).get("type") if isinstance(thinking, dict) else None
    replies = [index for index, (role, _) in enumerate(turns) if role == "assistant"]
    if mode == "enabled" and replies:
        blocks = turns[replies[-1]][1]
        if any(block.get("type") == "tool_use" for block in blocks) and blocks[0].get("type") not in THINKING:
            yield f"messages[{replies[-1]}].content[0]: with thinking enabled, a turn with tools begins with thinking"


def _check_marks(system: object, turns: list[tuple[str, _Blocks]]) -> Iterator[str]:
    marked = [("system", block) for block in objects(system) or () if block.get("cache_control")]
    for _, place, block in _walk(turns):
        inner = objects(block.get("content")) or () if block.get("type") == "tool_result" else ()
        marked += [(place, inside) for inside in (block, *inner) if inside.get("cache_control")]
    for place, block in marked:
        if block.get("type") in THINKING:
            yield f"{place}: cache_control cannot be set on thinking"
    if len(marked) > MAX_CACHE_MARKS:
        yield f"cache_control: {len(marked)} blocks are marked, and at most {MAX_CACHE_MARKS} may be"
