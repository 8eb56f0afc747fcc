"""Explanations: why an item is in a turn, was omitted, or is missing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from daypack.errors import BadSource, NotFound
from daypack.turn.evidence.overhead import summarise
from daypack.turn.evidence.record import ToolsRecord
from daypack.turn.evidence.view import TOOLS, TurnView
from daypack.turn.items import CALLER, CHANGED, Item, Missing, Omission, message_range
from daypack.turn.pack.additions import added_items
from daypack.types.names import complete
from daypack.types.source import Messages, parse_source

State = Literal["included", "omitted", "missing"]
Part = Literal["prefix", "tail", "volatile", ""]

_PLACES: Mapping[Part, str] = {"prefix": "in the prefix", "tail": "in the tail", "volatile": "after the tail"}
_LOG = "messages.jsonl"
_MAX_ITEM_COLUMN = 40  # characters; a longer id moves the rest of its line to the right

MEANINGS: Mapping[str, str] = {
    "budget_limit": "did not fit into the room that was left for it",
    "duplicate": "the same text is already in the pack",
    "superseded_by_summary": "a compaction took it out of the window; recall returns it",
    "stale": "expired",
    "not_visible_to_target": "this target may not see it",
    "too_large": "too large to be included whole",
    "policy_blocked": "its policy forbids it",
    "low_relevance": "other excerpts match the question better",
    "permission_missing": "it cannot be read",
    "unsupported_media": "it is not text",
    "sensitive": "too sensitive for this target",
    "custom": "",
}


class Explanation(Struct, frozen=True):
    """Why one item is in a turn or not; `part` is empty for what the turn does not contain."""

    state: State
    item: str
    why: str
    tokens: int | None = None
    part: Part = ""

    def __str__(self) -> str:
        size = f", {self.tokens:,} tokens" if self.tokens is not None else ""
        place = f"{' ' if size else ', '}{_PLACES[self.part]}" if self.part else ""
        return _one_line(f"{self.state}: {self.item}{size}{place}; {self.why}")


def explain(turn: TurnView, item: str | None = None) -> str:
    """Return a line about an item; without an item, a headline and a table of everything the turn knew."""
    if item is not None:
        return str(explain_item(turn, item))
    rows = [("state", "part", "tokens", "item", "why")]
    rows += [
        (row.state, row.part, f"{row.tokens:,}" if row.tokens is not None else "", row.item, row.why)
        for row in explain_all(turn)
    ]
    return "\n".join([headline(turn), summarise(turn), *_aligned(rows)])


def explain_item(turn: TurnView, item: str) -> Explanation:
    """Explain one item, given by its id, the start of its id, its source, or a message as messages:12, msg-12 or 12."""
    if item == TOOLS and turn.record.tools:
        return explain_tools(turn.record.tools)
    for inserted in turn.inserted:
        if item in (inserted.id, inserted.id.removesuffix(CHANGED)) or (item == inserted.source != _LOG):
            return explain_included(turn, inserted)
    if item == _LOG and turn.parts.messages:
        return Explanation("included", _LOG, _count_messages(len(turn.parts.messages)), _tail_tokens(turn), "tail")
    seq = _message_number(item)
    if seq is not None and (found := _explain_message(turn, seq)):
        return found
    if omission := find_omission(turn.omitted, item):
        return _omitted(turn, omission)
    for missing in turn.missing:
        if missing.id == item:
            return _missing(missing)
    ids = [*(inserted.id for inserted in turn.inserted), *(missing.id for missing in turn.missing)]
    ids += (omission.item for omission in turn.omitted)
    own = f"item:{item.removeprefix(CALLER)}"  # the caller's own id, or the source that packs name
    whole = own if own in ids else complete(item, dict.fromkeys(ids), what="items")
    if whole is not None and whole != item:
        return explain_item(turn, whole)
    known = ", ".join((*(inserted.id for inserted in turn.inserted), message_range(1, turn.record.last)))
    raise NotFound(
        f"{item!r} was not available to this turn",
        operation="explain",
        place=turn.event_id or "dry run",
        hint=f"available: {known}",
    )


def explain_all(turn: TurnView) -> Iterator[Explanation]:
    """Explain everything a turn contains, in its order, then what was omitted and what is missing."""
    if turn.record.tools:
        yield explain_tools(turn.record.tools)
    yield from (explain_included(turn, item) for item in turn.parts.epoch.prefix)
    tail = turn.tail_items()
    for number, item in enumerate(tail):
        is_head = len(tail) > 1 and number == 0
        count = len(turn.parts.messages) - len(tail) + 1
        why = "the user message that the tail continues" if is_head else _count_messages(count)
        seqs = [message.seq for message in turn.parts.messages]
        seqs = seqs[:1] if is_head else seqs[len(tail) - 1 :]
        yield Explanation("included", message_range(seqs[0], seqs[-1]), why, item.tokens, "tail")
    yield from (explain_included(turn, item) for item in (*added_items(turn.parts.additions), *turn.parts.volatile))
    yield from (_omitted(turn, omission) for omission in turn.omitted)
    yield from (_missing(missing) for missing in turn.missing)


def find_omission(omitted: Sequence[Omission], item: str) -> Omission | None:
    """Return the omission of an item; a message is also found in the range it was omitted with."""
    seq = _message_number(item)
    for omission in omitted:
        if omission.item in (item, item.removesuffix(CHANGED)):
            return omission
        if seq is not None and _contains(omission, seq):
            return omission
    return None


def _contains(omission: Omission, seq: int) -> bool:
    if not omission.item.startswith("messages:"):
        return False
    try:
        source = parse_source(omission.item)
    except BadSource:
        return False
    return isinstance(source, Messages) and source.start <= seq <= source.stop


def _message_number(item: str) -> int | None:
    number = item.removeprefix("messages:").removeprefix("msg-")
    return int(number) if number.isascii() and number.isdecimal() else None


def _explain_message(turn: TurnView, seq: int) -> Explanation | None:
    if any(message.seq == seq for message in turn.parts.messages):
        return explain_in_tail(turn, seq)
    for item in turn.inserted:
        if item.id == f"excerpt:{seq}":
            return explain_included(turn, item)
    return None


def explain_in_tail(turn: TurnView, seq: int) -> Explanation:
    """Explain a message that the tail of a turn contains."""
    start = turn.parts.epoch.start
    why = f"the tail starts at message {start}"
    if seq < start:
        why = f"the user message that the tail continues from message {start}"
    parts = [omission for omission in turn.omitted if omission.item.startswith(f"messages:{seq}/")]
    without = [f"{omission.item.partition('/')[2]} ({omission.note})" for omission in parts]
    why += f"; shown without {', '.join(without)}" if without else ""
    return Explanation("included", f"messages:{seq}", why, part="tail")


def explain_included(turn: TurnView, item: Item) -> Explanation:
    """Explain an item that a turn contains beside its messages."""
    why = f"priority {item.priority:g}"
    if item.score is not None:
        why = f"score {item.score:g}"
    elif item.id.endswith(CHANGED):
        why = "changed since the epoch began"
    elif item.kind == "system" and item.source.startswith("context/pinned/"):
        why = "pinned"
    redacted = f", redacted: {', '.join(item.redacted)}" if item.redacted else ""
    part: Part = "prefix" if item in turn.parts.epoch.prefix else "tail" if item.placement == "tail" else "volatile"
    return Explanation("included", item.id, f"{why}, authority {item.authority}{redacted}", item.tokens, part)


def explain_tools(tools: ToolsRecord) -> Explanation:
    """Explain the definitions of tools."""
    count = "1 definition" if tools.count == 1 else f"{tools.count:,} definitions"
    return Explanation("included", TOOLS, f"{count}, which providers put first", tools.tokens, "prefix")


def _omitted(turn: TurnView, omission: Omission) -> Explanation:
    meaning = "" if omission.shortage else meaning_of(turn, omission)  # the numbers say it
    details = "; ".join(text for text in (meaning, omission.details) if text)
    return Explanation("omitted", omission.item, omission.explain(details), omission.tokens)


def meaning_of(turn: TurnView, omission: Omission) -> str:
    """Return the reason of an omission in words: the numbers if it did not fit; empty if its note says it."""
    if omission.shortage:
        return str(omission.shortage)
    if omission.reason == "budget_limit" and omission.item.startswith("messages:"):
        return f"before the tail, which starts at message {turn.parts.epoch.start:,}"
    return MEANINGS.get(omission.reason, "")  # a newer version may have recorded another reason


def _missing(missing: Missing) -> Explanation:
    return Explanation("missing", missing.id, f"severity {missing.severity}: {missing.question}")


def headline(turn: TurnView) -> str:
    """Return one line about a turn: its size, its epoch and what a prompt cache is expected to hold."""
    limit = f"of {turn.budget_tokens:,} tokens" if turn.budget_tokens else "tokens, no limit,"
    epoch = f"new epoch ({turn.new_epoch})" if turn.new_epoch else f"continues epoch {turn.record.epoch}"
    cached = f"expected cache hit: {turn.expected_cached_tokens:,} tokens"
    if turn.cache_lost:
        cached += f" ({turn.cache_lost})"
    reader = "" if turn.target == "model" else f" for {turn.target}"
    return f"{turn.tokens:,} {limit}{reader}; {epoch}; {cached}"


def _tail_tokens(turn: TurnView) -> int:
    return turn.record.stable.tokens - turn.record.stable.prefix_tokens


def _count_messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _aligned(rows: Sequence[tuple[str, str, str, str, str]]) -> list[str]:
    states, parts, tokens, items, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    items = min(items, _MAX_ITEM_COLUMN)
    return [
        _one_line(f"{state:<{states}}  {part:<{parts}}  {count:>{tokens}}  {item:<{items}}  {why}".rstrip())
        for state, part, count, item, why in rows
    ]


def _one_line(text: str) -> str:
    """Join the lines of a text: a question or an id with a line break in it must not look like a row of its own."""
    return " ".join(text.splitlines())
