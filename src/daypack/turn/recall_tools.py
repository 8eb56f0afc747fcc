"""The two tools an agent can be given: `recall` and `search_history`, their definitions and their answers.

What they answer begins with a mark, so that text that was brought back is never taken for something new.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from daypack.errors import BadInput, DaypackError
from daypack.text.injected import RECALLED
from daypack.text.redact.redact import redact
from daypack.turn.recall import Lookup

_MOST_LINES = 400
_MOST_CHARS = 24_000  # of one answer; the rest can be asked for by lines

_TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": "recall",
        "description": "Bring back text that left the window, by its id (sha256-…, msg-12, messages:12-18, f3, r2).",
        "parameters": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "the id in a stub, a record or a search result"},
                "lines": {"type": "string", "description": "which lines, for instance 1-40; all when left out"},
            },
            "required": ["id"],
        },
    },
    {
        "name": "search_history",
        "description": "Search everything said and done in this session, also what left the window.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "words, a path, a number or a name"},
                "k": {"type": "integer", "description": "how many results, 5 when left out"},
            },
            "required": ["query"],
        },
    },
)


def definitions(dialect: str = "openai") -> list[dict[str, Any]]:
    """Return the tools as a provider's request takes them: openai, responses or anthropic."""
    if dialect == "anthropic":
        return [
            {"name": one["name"], "description": one["description"], "input_schema": one["parameters"]}
            for one in _TOOLS
        ]
    if dialect == "responses":
        return [{"type": "function", **one} for one in _TOOLS]
    if dialect == "openai":
        return [{"type": "function", "function": dict(one)} for one in _TOOLS]
    hint = "use openai, responses or anthropic"
    raise BadInput(f"{dialect!r} is no dialect", operation="define tools", place="dialect", hint=hint)


def answer(lookup: Lookup, name: str, arguments: "str | Mapping[str, Any]") -> str:
    """Return what a call of one of the tools is answered with; what is wrong with it is told in words."""
    try:
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments)
        given = msgspec.json.decode(text, type=dict[str, Any])
        if name == "recall":
            return _recall(lookup, str(given.get("id", "")), given.get("lines"))
        if name == "search_history":
            return _search(lookup, str(given.get("query", "")), msgspec.convert(given.get("k") or 5, int, strict=False))
        raise BadInput(f"there is no tool {name!r}", operation="call tool", hint="there are recall, search_history")
    except (DaypackError, msgspec.DecodeError, msgspec.ValidationError, TypeError, ValueError) as error:
        problem = f"{error.problem} ({error.hint})" if isinstance(error, DaypackError) else str(error)
        return f"{RECALLED}nowhere] {problem}"


def _recall(lookup: Lookup, name: str, lines: Any) -> str:  # noqa: ANN401 — whatever a model wrote
    found = lookup.recall(name, str(lines) if lines else None)
    shown, start = found.split("\n"), found.start
    kept, size = 0, 0
    for line in shown[:_MOST_LINES]:
        size += len(line) + 1
        if kept and size > _MOST_CHARS:
            break
        kept += 1
    stop = min(start + kept - 1, found.stop)
    text = "\n".join(shown[:kept])
    part = "" if (start, stop) == (1, found.lines) else f", lines {start}-{stop} of {found.lines}"
    if len(text) > _MOST_CHARS and kept == 1:
        part += f", the first {_MOST_CHARS:,} of {len(text):,} characters of line {start}"
        text = text[:_MOST_CHARS]
    return f"{RECALLED}{found.source}{part}]\n{text}"


def _search(lookup: Lookup, query: str, k: int) -> str:
    hits = lookup.search(query, min(k, 20))
    lines = [f"{hit.source}: {hit.text}" for hit in hits] or ["nothing was found"]
    return f"{RECALLED}a search for {redact(query).text!r}]\n" + "\n\n".join(lines)
