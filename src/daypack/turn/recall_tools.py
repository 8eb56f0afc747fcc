"""The tools `recall` and `search_history` for agents: their definitions, and their results.

Every result ends with a line by which it is recognised, so that recalled text is never captured as new.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from daypack.errors import BadInput, DaypackError
from daypack.history.recalled import seal_answer
from daypack.text.injected import RECALLED
from daypack.text.redact.redact import redact
from daypack.turn.recall import Lookup
from daypack.types.names import one_line

_MAX_LINES = 400
_MAX_CHARS = 24_000  # of one result; the rest can be requested with `lines`

_TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": "recall",
        "description": "Return text that left the window, by its id (sha256-…, msg-12, messages:12-18, f3, r2).",
        "parameters": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "the id in a stub, a record or a search result"},
                "lines": {"type": "string", "description": "range of lines, for instance 1-40 (default: all)"},
            },
            "required": ["id"],
        },
    },
    {
        "name": "search_history",
        "description": "Search the whole history of this session, including what left the window.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "words, a path, a number or a name"},
                "k": {"type": "integer", "description": "number of results (default: 5)"},
            },
            "required": ["query"],
        },
    },
)


def definitions(dialect: str = "openai") -> list[dict[str, Any]]:
    """Return the tools as a provider's request takes them: openai, responses or anthropic."""
    if dialect == "anthropic":
        return [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
            for tool in _TOOLS
        ]
    if dialect == "responses":
        return [{"type": "function", **tool} for tool in _TOOLS]
    if dialect == "openai":
        return [{"type": "function", "function": dict(tool)} for tool in _TOOLS]
    hint = "use openai, responses or anthropic"
    raise BadInput(f"{dialect!r} is not a dialect", operation="define tools", place="dialect", hint=hint)


def answer(lookup: Lookup, name: str, arguments: "str | Mapping[str, Any]") -> str:
    """Return the result of a tool call, sealed as daypack's own; for a bad call the result is the error text."""
    return seal_answer(lookup.layout, _answer(lookup, name, arguments))


def _answer(lookup: Lookup, name: str, arguments: "str | Mapping[str, Any]") -> str:
    try:
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments)
        parsed = msgspec.json.decode(text, type=dict[str, Any])
        if name == "recall":
            return _recall(lookup, str(parsed.get("id", "")), parsed.get("lines"))
        if name == "search_history":
            count = msgspec.convert(parsed.get("k") or 5, int, strict=False)
            return _search(lookup, str(parsed.get("query", "")), count)
        raise BadInput(f"unknown tool {name!r}", operation="call tool", hint="use recall or search_history")
    except (DaypackError, msgspec.DecodeError, msgspec.ValidationError, TypeError, ValueError) as error:
        problem = f"{error.problem} ({error.hint})" if isinstance(error, DaypackError) else str(error)
        return f"{RECALLED}nowhere] {problem}"


def _recall(lookup: Lookup, name: str, lines: Any) -> str:  # noqa: ANN401 — whatever a model wrote
    found = lookup.recall(name, str(lines) if lines else None)
    shown, start = found.split("\n"), found.start
    kept, size = 0, 0
    for line in shown[:_MAX_LINES]:
        size += len(line) + 1
        if kept and size > _MAX_CHARS:
            break
        kept += 1
    stop = min(start + kept - 1, found.stop)
    text = "\n".join(shown[:kept])
    part = "" if (start, stop) == (1, found.lines) else f", lines {start}-{stop} of {found.lines}"
    if len(text) > _MAX_CHARS and kept == 1:
        part += f", the first {_MAX_CHARS:,} of {len(text):,} characters of line {start}"
        text = text[:_MAX_CHARS]
    return f"{RECALLED}{one_line(found.source)}{part}]\n{text}"


def _search(lookup: Lookup, query: str, k: int) -> str:
    hits = lookup.search(query, min(k, 20))
    lines = [f"{hit.source}: {hit.text}" for hit in hits] or ["no results"]
    return f"{RECALLED}a search for {redact(query).text!r}]\n" + "\n\n".join(lines)
