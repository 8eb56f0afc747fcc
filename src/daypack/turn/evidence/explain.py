"""Explanations: why an item is in a turn or not."""

from collections.abc import Sequence

from daypack.errors import NotFound
from daypack.turn.evidence.view import TurnView
from daypack.turn.items import CHANGED, Item, Omission

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


def explain(turn: TurnView, item: str | None = None) -> str:
    """Say why an item is in or out; without one, everything in a line each."""
    if item is None:
        lines = [*_summary(turn), *(_in(turn, one) for one in turn.inserted), *_tail(turn), *_out(turn), *_gone(turn)]
        return "\n".join(map(_line, lines))
    if found := _answer(turn, item):
        return _line(found)
    known = ", ".join(one.id for one in turn.inserted)
    raise NotFound(
        f"{item!r} was not available to this turn",
        operation="explain",
        place=turn.event_id or "dry run",
        hint=f"it knew {known}, messages:1-{turn.record.last}",
    )


def _line(text: str) -> str:
    """One line, whatever stands in a question or an id: nobody forges a second one."""
    return " ".join(text.splitlines())


def _tail(turn: TurnView) -> list[str]:
    messages = turn.parts.messages
    if not messages:
        return []
    tokens = turn.record.stable.tokens - turn.record.stable.prefix_tokens
    start = turn.parts.epoch.start
    head = f", behind message {messages[0].seq}" if messages[0].seq < start else ""
    return [f"in   messages.jsonl: the tail, {_counted(len(messages))} from {start} on{head}, {tokens:,} tokens"]


def _counted(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages:,} messages"


def _answer(turn: TurnView, item: str) -> str:
    for one in turn.inserted:
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
        for one in turn.inserted:
            if one.id == f"past:{number}":
                return _in(turn, one)
    if omitted := find_omission(turn.omitted, f"messages:{number}" if number.isdecimal() else item):
        return _left_line(omitted.item, omitted.reason, omitted.note, omitted.tokens)
    for missing in turn.missing:
        if missing.id == item:
            return f"gone {missing.id} ({missing.severity}): {missing.question}"
    return ""


def _summary(turn: TurnView) -> list[str]:
    record = turn.record
    limit = f"of {record.limits.tokens:,}" if record.limits.tokens else "without a limit"
    why = f"an epoch begins ({turn.new_epoch})" if turn.new_epoch else f"the epoch of {record.epoch} goes on"
    return [f"{turn.tokens:,} tokens {limit} for {turn.target}; {why}"]


def _in(turn: TurnView, item: Item) -> str:
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


def _out(turn: TurnView) -> list[str]:
    return [_left_line(one.item, one.reason, one.note, one.tokens) for one in turn.omitted]


def _left_line(item: str, reason: str, note: str | None, tokens: int | None) -> str:
    meaning = "; ".join(part for part in (_MEANING.get(reason, ""), note) if part)
    size = f", {tokens:,} tokens" if tokens else ""
    return f"out  {item}{size}: {reason}{f' ({meaning})' if meaning else ''}"


def _gone(turn: TurnView) -> list[str]:
    return [f"gone {one.id} ({one.severity}): {one.question}" for one in turn.missing]


def find_omission(omitted: Sequence[Omission], item: str) -> Omission | None:
    """Return the omission of an item; a message is also found in the range it was omitted with."""
    number = item.removeprefix("messages:").removeprefix("msg-")
    for omission in omitted:
        if omission.item in (item, item.removesuffix(CHANGED)):
            return omission
        if number.isdecimal() and omission.item.startswith("messages:"):
            start, _, stop = omission.item.removeprefix("messages:").partition("-")
            if int(start) <= int(number) <= int(stop or start):
                return omission
    return None
