"""The parts of a window that a picture of a call distinguishes, for turns of daypack and calls of other programs."""

from typing import Literal, get_args

from daypack.turn.evidence.observed.links import Source
from daypack.turn.items import Item
from daypack.types.kinds import PackKind

Part = Literal["prefix", "pins", "memory", "summary", "records", "tail", "recalled", "volatile", "unknown"]
PARTS: tuple[Part, ...] = get_args(Part)

_PREFIX: dict[PackKind, Part] = {
    **dict.fromkeys(("memory_document", "memory_entries", "core_blocks"), "memory"),
    **dict.fromkeys(("context_doc", "summary"), "summary"),
    **dict.fromkeys(("facts", "decisions", "todo", "errors", "refs", "child_refs", "child_result"), "records"),
}
_SOURCES: dict[Source, Part] = {
    "system": "prefix",
    "tools": "prefix",
    "instructions": "pins",
    "hooks": "recalled",
    "attachments": "recalled",
    "reminders": "volatile",
    "summary": "summary",
    "unknown": "unknown",
}


def part_of_item(item: Item) -> Part:
    """Return the part that an item of a turn is shown as; messages are the tail, tools belong to the prefix."""
    if item.placement == "volatile":
        return "volatile"
    if item.placement == "tail":
        return "tail" if item.kind in ("child_result", "child_refs") else "recalled"
    return "pins" if item.id.startswith("pin:") else _PREFIX.get(item.kind, "prefix")


def part_of_source(source: Source) -> Part:
    """Return the part that a source of an observed call is shown as; what was said and done is the tail."""
    return _SOURCES.get(source, "tail")
