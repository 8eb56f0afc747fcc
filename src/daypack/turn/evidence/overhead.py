"""Overhead: everything in a turn that is not a message of the session as it was said, and its cause."""

from msgspec import Struct

from daypack.text.tokens import counter_named
from daypack.turn.evidence.view import TurnView
from daypack.turn.items import AROUND_QUOTED, CHANGED, CLOCK, RULES, STAMP, Excerpt, Item
from daypack.turn.survey.message_cost import message_cost

_PASSED = "passed by the caller"
# Start of an item's id -> why the item is there.
_CAUSES = {
    "identity": "switched on",
    CLOCK: "switched on",
    "block:": "switched on",
    STAMP: "switched on",
    "pin:": "pinned",
    RULES: "standing rules",
    "file:": "workspace file",
    "memory": "bound memory",
    "child": "child agent",
    "item:": _PASSED,
    "import:": "imported",
    "blocks:": "the model's own memory",
}


class Overhead(Struct, frozen=True):
    """One text that daypack added."""

    item: str
    tokens: int
    why: str


def overhead(turn: TurnView) -> tuple[Overhead, ...]:
    """Return what daypack added; the other tokens of the turn are those of messages sent as they were said."""
    added = [Overhead(item.id, item.tokens, _cause(item)) for item in turn.inserted if not _is_message(item)]
    counter = counter_named(turn.token_method)
    for message in turn.parts.messages:
        why = ""
        if message.seq in turn.parts.epoch.stubbed:
            why = "stub"
        elif message.role == "tool" and not message.id:
            why = "no result"
        elif message.role == "tool" and message.seq in turn.parts.repeats:
            why = "repeated output"
        if why:
            added.append(
                Overhead(f"messages:{message.seq}", message_cost(message, counter, model=turn.record.model).tokens, why)
            )
    around = turn.tokens - sum(item.tokens for item in turn.items)
    if turn.assembly.given.quoted:
        added.append(Overhead("quoted", AROUND_QUOTED.tokens, "text around what is quoted"))
        around -= AROUND_QUOTED.tokens
    if around:
        added.append(Overhead("excerpts", around, "text around the excerpts"))
    return tuple(added)


def summarise(turn: TurnView) -> str:
    """Return one line: how much daypack added, by cause, and how much the caller passed."""
    tokens: dict[str, int] = {}
    for part in overhead(turn):
        tokens[part.why] = tokens.get(part.why, 0) + part.tokens
    passed = tokens.pop(_PASSED, 0)
    causes = ", ".join(f"{why} {count:,}" for why, count in tokens.items())
    added = f"added by daypack: {sum(tokens.values()):,} tokens ({causes})" if tokens else "added by daypack: nothing"
    return f"{added}; {_PASSED}: {passed:,} tokens" if passed else added


def added_tokens(turn: TurnView) -> int:
    """Return the tokens that daypack added, without what the caller passed."""
    return sum(part.tokens for part in overhead(turn) if part.why != _PASSED)


def _is_message(item: Item) -> bool:
    """Return True for a leading message, which the prefix shows in place of the tail."""
    return item.id.startswith("messages:")


def _cause(item: Item) -> str:
    if item.id.endswith(CHANGED):
        return "changed since the epoch began"
    if isinstance(item, Excerpt):
        return "recalled"
    return next((why for start, why in _CAUSES.items() if item.id.startswith(start)), "compaction")
