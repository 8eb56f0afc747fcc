"""Explanations of observed turns: what a call contained, by source, and where one message or one text of it is."""

from collections.abc import Sequence

from msgspec import Struct

from daypack.errors import NotFound
from daypack.history.session import History
from daypack.text.tokens import counter_for
from daypack.turn.evidence.observed.calls import Call, Compacted, newest_calls
from daypack.turn.evidence.observed.links import Links
from daypack.turn.evidence.observed.request import ObservedTurn
from daypack.turn.evidence.observed.sources import SentPart, SourceTotal, parts_of, total_by_source


class ObservedExplanation(Struct, frozen=True, kw_only=True):
    """What a call contained."""

    call: Call
    counted_by: str  # the counter of the tokens of parts, an estimate
    tokens: int | None  # of all parts; None if one is unknown
    sources: tuple[SourceTotal, ...]
    parts: tuple[SentPart, ...]

    def scaled(self, tokens: int | None) -> int | None:
        """Return the tokens of a part as a share of what the provider reported: all parts together are that."""
        if tokens is None or not self.tokens or self.call.input_tokens is None:
            return tokens
        return round(tokens * self.call.input_tokens / self.tokens)


def explain_observed(history: History, call: Call, turn: ObservedTurn) -> ObservedExplanation:
    """Explain everything that a call contained."""
    return explain_parts(call, turn, parts_of(turn, Links(history)))


def explain_parts(call: Call, turn: ObservedTurn, parts: Sequence[SentPart]) -> ObservedExplanation:
    """Explain a call whose parts are known already."""
    unknown = any(part.tokens is None for part in parts)
    return ObservedExplanation(
        call=call,
        counted_by=counter_for(turn.record.model).name,
        tokens=None if unknown else sum(part.tokens or 0 for part in parts),
        sources=tuple(total_by_source(parts)),
        parts=tuple(parts),
    )


def why_missing(history: History, call: Call, item: str) -> str:
    """Return why a message of history is not in a call; empty if the item is no message of history."""
    seq = _number(item)
    messages = history.messages.reader.pick([seq]) if seq else []
    if not messages:
        return ""
    sent = messages[0].ts
    if sent > call.at:
        return f"messages:{seq} came after this call"
    for entry in newest_calls(history):
        if isinstance(entry, Compacted) and sent <= entry.at <= call.at:
            return f"messages:{seq} left the window with the compaction {entry.event}"
    return f"messages:{seq} came before this call, which does not contain it"


def parts_named(found: ObservedExplanation, item: str) -> Sequence[SentPart]:
    """Return the parts with a name: a message of history (messages:12, msg-12, 12), a source, a tool, file or hook."""
    number = _number(item)
    if number:
        parts = [part for part in found.parts if part.ref == f"messages:{number}"]
    else:
        parts = [part for part in found.parts if item in (part.source, part.name)]
    if parts:
        return parts
    known = [*(total.source for total in found.sources), *(name for total in found.sources for name in total.names)]
    raise NotFound(
        f"{item!r} is not in this call",
        operation="explain",
        place=found.call.event,
        hint=f"in it are: {', '.join(dict.fromkeys(known))}, and messages {_ranges(found)}",
    )


def _number(item: str) -> int:
    """Return the number of a message of history; 0 if an item is none."""
    number = item.removeprefix("messages:").removeprefix("msg-")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 18 else 0


def _ranges(found: ObservedExplanation) -> str:
    from daypack.turn.evidence.diff import ranges  # noqa: PLC0415 — only for errors

    numbers = sorted({number for total in found.sources for number in total.refs})
    return ranges(numbers) or "of history: none"
