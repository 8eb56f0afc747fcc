"""Explanations: why one item is in a turn or not, and what differs between two turns."""

from typing import TYPE_CHECKING

from msgspec import Struct

from daypack.errors import NotFound
from daypack.turn.items import CHANGED

if TYPE_CHECKING:
    from daypack.turn.items import Item
    from daypack.turn.turn import Turn

_MEANING = {
    "budget_limit": "there was no room left for it",
    "duplicate": "its words already stand in the pack",
    "superseded_by_summary": "a summary stands for it",
    "stale": "it has expired",
    "not_visible_to_target": "it may not be shown to this target",
    "too_large": "it is larger than the whole budget",
    "policy_blocked": "a policy forbids it",
    "low_relevance": "other excerpts fitted the question better",
    "permission_missing": "it cannot be read",
    "unsupported_media": "it cannot be shown as text",
    "sensitive": "it is secret",
    "custom": "",
}


def explain(turn: "Turn", item: str | None = None) -> str:
    """Say why an item is in or out; without one, everything in a line each."""
    if item is None:
        lines = [*_summary(turn), *(_in(turn, one) for one in _all(turn)), *_tail(turn), *_out(turn), *_gone(turn)]
        return "\n".join(map(_line, lines))
    if found := _answer(turn, item):
        return _line(found)
    known = ", ".join(one.id for one in (*_all(turn),))
    raise NotFound(
        f"{item!r} was not available to this turn",
        operation="explain",
        place=turn.event_id or "dry run",
        hint=f"it knew {known}, messages:1-{turn.record.last}",
    )


def _line(text: str) -> str:
    """One line, whatever stands in a question or an id: nobody forges a second one."""
    return " ".join(text.splitlines())


def _tail(turn: "Turn") -> list[str]:
    messages = turn.parts.messages
    if not messages:
        return []
    tokens = turn.record.stable.tokens - turn.record.stable.prefix_tokens
    start = turn.parts.epoch.start
    head = f", behind message {messages[0].seq}" if messages[0].seq < start else ""
    return [f"in   messages.jsonl: the tail, {_counted(len(messages))} from {start} on{head}, {tokens:,} tokens"]


def _counted(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages:,} messages"


def _answer(turn: "Turn", item: str) -> str:
    from daypack.turn.turn import find_left  # noqa: PLC0415 — turns import this module where they explain

    for one in _all(turn):
        if item in (one.id, one.id.removesuffix(CHANGED)) or (one.source == item and item != "messages.jsonl"):
            return _in(turn, one)
    if item == "messages.jsonl":
        return "\n".join(_tail(turn))
    number = item.removeprefix("messages:").removeprefix("msg-")
    if number.isdecimal():
        shown = {message.seq: message for message in turn.parts.messages}
        if int(number) in shown:
            part = "the head of the tail" if int(number) < turn.parts.epoch.start else "in the tail"
            return f"in   messages:{number}: {part}, which begins with message {turn.parts.epoch.start}"
        for one in _all(turn):
            if one.id == f"past:{number}":
                return _in(turn, one)
    if omitted := find_left(turn.omitted, f"messages:{number}" if number.isdecimal() else item):
        return _left_line(omitted.item, omitted.reason, omitted.note, omitted.tokens)
    for missing in turn.missing:
        if missing.id == item:
            return f"gone {missing.id} ({missing.severity}): {missing.question}"
    return ""


def _all(turn: "Turn") -> "tuple[Item, ...]":
    return (*turn.parts.epoch.prefix, *turn.parts.volatile)


def _summary(turn: "Turn") -> list[str]:
    record = turn.record
    limit = f"of {record.limits.tokens:,}" if record.limits.tokens else "without a limit"
    why = f"an epoch begins ({turn.new_epoch})" if turn.new_epoch else f"the epoch of {record.epoch} goes on"
    return [f"{turn.tokens:,} tokens {limit} for {turn.target}; {why}"]


def _in(turn: "Turn", item: "Item") -> str:
    part = "frozen prefix" if item in turn.parts.epoch.prefix else "after the messages"
    why = f"priority {item.priority:g}"
    if item.score is not None:
        why = f"score {item.score:g}"
    elif item.id.endswith(CHANGED):
        why = "it changed since the epoch began"
    elif item.kind == "system" and item.source.startswith("context/pinned/"):
        why = "it is pinned"
    hidden = f"; redacted: {', '.join(item.redacted)}" if item.redacted else ""
    return f"in   {item.id}: {part}, {item.tokens:,} tokens, {item.authority}, {why}{hidden}"


def _out(turn: "Turn") -> list[str]:
    return [_left_line(one.item, one.reason, one.note, one.tokens) for one in turn.omitted]


def _left_line(item: str, reason: str, note: str | None, tokens: int | None) -> str:
    meaning = "; ".join(part for part in (_MEANING.get(reason, ""), note) if part)
    size = f", {tokens:,} tokens" if tokens else ""
    return f"out  {item}{size}: {reason}{f' ({meaning})' if meaning else ''}"


def _gone(turn: "Turn") -> list[str]:
    return [f"gone {one.id} ({one.severity}): {one.question}" for one in turn.missing]


class Difference(Struct, frozen=True, omit_defaults=True):
    """What differs between two turns."""

    added: tuple[str, ...]
    dropped: tuple[str, ...]
    changed: tuple[str, ...]
    moved: tuple[str, ...]
    messages_added: str | None
    messages_dropped: str | None
    tokens: tuple[int, int]
    prefix_kept: bool
    tail_kept: bool  # the messages of the first are the beginning of the second's
    epoch_kept: bool


def compare(one: "Turn", other: "Turn") -> Difference:
    """Return what changed from one turn to another."""
    before = {item.id: item for item in _all(one)}
    after = {item.id: item for item in _all(other)}
    both = [name for name in before if name in after]
    order = [name for name in after if name in before]
    tail, later = one.parts.messages, other.parts.messages
    seqs, later_seqs = [m.seq for m in tail], [m.seq for m in later]
    return Difference(
        added=tuple(name for name in after if name not in before),
        dropped=tuple(name for name in before if name not in after),
        changed=tuple(name for name in both if _content(before[name]) != _content(after[name])),
        moved=_moved(both, order, before, after),
        messages_added=ranges(sorted(set(later_seqs) - set(seqs))),
        messages_dropped=ranges(sorted(set(seqs) - set(later_seqs))),
        tokens=(one.tokens, other.tokens),
        prefix_kept=one.prefix_sha256 == other.prefix_sha256,
        tail_kept=later[: len(tail)] == tail,
        epoch_kept=one.parts.epoch.event == other.parts.epoch.event,
    )


def _moved(both: list[str], order: list[str], before: "dict[str, Item]", after: "dict[str, Item]") -> tuple[str, ...]:
    """Return what stands elsewhere; what was only pushed along by that does not count."""
    from difflib import SequenceMatcher  # noqa: PLC0415 — only for comparing

    same = {
        name
        for block in SequenceMatcher(None, both, order, autojunk=False).get_matching_blocks()
        for name in both[block.a : block.a + block.size]
    }
    return tuple(name for name in both if name not in same or before[name].placement != after[name].placement)


def _content(item: "Item") -> str:
    return item.digest or item.text


def ranges(numbers: list[int]) -> str | None:
    """Spell sorted numbers as ranges: 3-7, 9."""
    parts: list[tuple[int, int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ", ".join(f"{start}-{stop}" if stop > start else f"{start}" for start, stop in parts) or None
