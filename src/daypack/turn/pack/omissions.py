"""Records of the messages that are not in the tail, and of what its messages are shown without.

A range of messages is one record; `messages:3/tool_calls` and `messages:3/content[1]` are parts of a message.
"""

from collections.abc import Collection, Sequence

from daypack.derived.swap import SHORT_ID
from daypack.turn.items import Missing, Omission, message_range
from daypack.turn.pack.new_tail import Tail
from daypack.turn.pack.tail import Settled
from daypack.turn.surface import CompactionInfo, Surface, Window
from daypack.types.history import Message


def outside_tail(surface: Surface, window: Window, tail: Tail) -> list[Omission]:
    """Return a record for each range of messages before the tail, and for each message that settling dropped."""
    omitted: list[Omission] = []
    head = tail.head.message.seq if tail.head else None
    before = tail.start - 1
    ranges = [(surface.first, before)] if head is None else [(surface.first, head - 1), (head + 1, before)]
    greeting = before >= surface.first and _before_first_user(window, tail)
    if surface.compaction and not greeting:
        omitted += _compacted(surface.compaction, ranges)
        ranges = [(max(start, surface.compaction.through + 1), end) for start, end in ranges]
    for start, end in ranges:
        if end >= start:
            measured = window.complete or (window.entries and window.entries[0].message.seq <= start)
            tokens = sum(entry.cost.tokens for entry in window.entries if start <= entry.message.seq <= end)
            omitted.append(
                Omission(
                    item=message_range(start, end),
                    reason="custom" if greeting else "budget_limit",
                    tokens=tokens if measured else None,
                    high_impact=head is not None and start > head,
                    note="before the first user message" if greeting else None,
                )
            )
    for dropped in tail.settled.dropped:
        if dropped.seq >= tail.start:
            item = message_range(dropped.seq, dropped.seq)
            omitted.append(Omission(item=item, reason=dropped.reason, note=dropped.note))
    return omitted


def within_tail(tail: Tail, of_parts: Sequence[Message]) -> list[Omission]:
    """Return a record for each field and part that a message of the tail is shown without.

    `of_parts` are its messages that are more than one text.
    """
    sent = {message.seq for message in tail.messages}
    omitted = [
        Omission(item=f"{message_range(short.seq, short.seq)}/{short.field}", reason="custom", note=short.note)
        for short in tail.settled.shortened
        if short.seq in sent
    ]
    if of_parts:
        from daypack.turn.dialects.unsent import unsent_parts  # noqa: PLC0415 — most messages are one text

        for message in of_parts:
            for index, what in unsent_parts(message):
                item = f"{message_range(message.seq, message.seq)}/content[{index}]"
                omitted.append(Omission(item=item, reason="unsupported_media", note=f"no provider takes {what}"))
    return omitted


def _before_first_user(window: Window, tail: Tail) -> bool:
    """Return True if no user message comes before the tail."""
    if not window.complete:
        return False
    return not any(entry.message.role == "user" and entry.message.seq < tail.start for entry in window.entries)


def _compacted(compaction: CompactionInfo, ranges: Sequence[tuple[int, int]]) -> list[Omission]:
    """Return the records of messages that CONTEXT.md covers; the newest compaction's have a swap id."""
    omitted: list[Omission] = []
    for start, end in ranges:
        stop = min(end, compaction.through)
        for first, last in ((start, min(stop, compaction.start - 1)), (max(start, compaction.start), stop)):
            if first <= last:
                newest = first >= compaction.start
                omitted.append(
                    Omission(
                        item=message_range(first, last),
                        reason="superseded_by_summary",
                        note=f"CONTEXT.md ({compaction.id})",
                        swap=compaction.swap[:SHORT_ID] if newest and compaction.swap else None,
                    )
                )
    return omitted


def unreadable(surface: Surface, window: Window, tail: Tail, recorded: Collection[str]) -> list[Omission]:
    """Return a record for each message of the tail whose line is damaged."""
    if not window.entries:
        return []
    readable = {entry.message.seq for entry in window.entries}
    gaps = (seq for seq in range(tail.start, surface.last + 1) if seq not in readable)
    return [gap for gap in map(damaged_line, gaps) if gap.item not in recorded]


def damaged_line(seq: int) -> Omission:
    """Return the record of a message that cannot be read."""
    return Omission(item=message_range(seq, seq), reason="custom", note="damaged line", high_impact=True)


def question_of(gap: Omission) -> Missing:
    """Return the question that a damaged line leaves."""
    question = f"What did {gap.item} say? Its line is damaged."
    return Missing(id=gap.item, question=question, severity="high", requested=gap.item)


def open_calls(settled: Settled) -> list[Missing]:
    """Return a question for each tool call that has no result yet."""
    return [
        Missing(
            id=f"tool:{call}",
            question=f"What is the result of call {call}? It is not recorded yet.",
            severity="high",
            needed_for="the batch of calls it belongs to",
            requested=f"tool:{call}",
        )
        for call in settled.waiting
    ]
