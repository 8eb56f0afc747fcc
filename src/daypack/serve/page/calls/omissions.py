"""What a call does not contain: omissions of turns, and messages that left the window of another program."""

import re
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise

from daypack.files.offsets import DAMAGED, UNCOUNTED
from daypack.history.session import History
from daypack.serve.page.calls.shapes import ShownOmission
from daypack.turn.evidence.calls.rows import FoldRow
from daypack.turn.evidence.explain import MEANINGS, meaning_of
from daypack.turn.items import Omission, message_range
from daypack.turn.pack.omissions import damaged_line
from daypack.turn.turn import Turn

_RANGE = re.compile(r"messages:\d+(?:-\d+)?")
_DAMAGED = damaged_line(0).note


def omissions_of(turn: Turn) -> list[ShownOmission]:
    """Return what a turn left out, in its order."""
    return [
        ShownOmission(
            item=omission.item,
            reason=omission.reason,
            words=meaning_of(turn, omission),
            tokens=omission.tokens,
            swap=omission.swap,
            high_impact=omission.high_impact,
            note=omission.note,
            shortage=omission.shortage,
            read=_readable(omission),
        )
        for omission in turn.omitted
    ]


def _readable(omission: Omission) -> str | None:
    """Return the id that recall takes for what was left out; None if history does not have it."""
    item = omission.item
    if omission.swap:
        return omission.swap
    if omission.note == _DAMAGED:
        return None
    if item.startswith("excerpt:"):
        return f"messages:{item.removeprefix('excerpt:')}"
    if item.startswith("tool:"):
        return item
    found = _RANGE.search(item)  # also of a part of a message, and of rules that were not read
    return found[0] if found else None


def compacted_ranges(history: History, compactions: Sequence[FoldRow], sent: Container[int]) -> Iterator[ShownOmission]:
    """Yield the messages that left the window with each compaction before a call, oldest first.

    `sent` are the numbers of the messages that the call contains.
    """
    ends = [0, *(_last_before(history, compaction.at) for compaction in compactions)]
    for compaction, (before, end) in zip(compactions, pairwise(ends), strict=True):
        gone = next((seq for seq in range(before + 1, end + 1) if seq not in sent), end + 1)
        kept = next((seq for seq in range(gone, end + 1) if seq in sent), end + 1)
        if gone < kept:
            extent = message_range(gone, kept - 1)
            yield ShownOmission(
                item=extent,
                reason="superseded_by_summary",
                words=MEANINGS["superseded_by_summary"],
                tokens=_tokens(history, gone, kept - 1),
                note=f"compaction {compaction.event}",
                read=extent,
            )


def _last_before(history: History, moment: str) -> int:
    """Return the number of the last message before a compaction; the log is in order of time."""
    reader = history.messages.reader
    low, high = 0, reader.count()
    while low < high:
        middle = (low + high) // 2
        found = reader.read(middle, middle + 1)
        if found and found[0].ts > moment:
            high = middle
        else:
            low = middle + 1
    found = reader.slots(low - 1, low) if low else []
    return found[0].seq if found else 0


def _tokens(history: History, first: int, last: int) -> int | None:
    """Return the tokens of messages by the log's own counts; None if some are not counted."""
    reader = history.messages.reader
    slots = reader.slots(reader.position(first), reader.position(last + 1))
    if any(slot.tokens == UNCOUNTED or slot.flags & DAMAGED for slot in slots):
        return None
    return sum(slot.tokens for slot in slots)
