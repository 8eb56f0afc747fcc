"""What a call does not contain: omissions of turns, and messages that left the window of another program."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from daypack.history.session import History
from daypack.serve.page.calls.shapes import ShownOmission
from daypack.turn.evidence.calls.rows import FoldRow
from daypack.turn.evidence.explain import MEANINGS, meaning_of
from daypack.turn.items import Omission, message_range
from daypack.turn.pack.omissions import damaged_line
from daypack.turn.turn import Turn

_RANGE = re.compile(r"messages:\d+(?:-\d+)?")
_DAMAGED = damaged_line(0).note


def omissions_of(history: History, turn: Turn) -> list[ShownOmission]:
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
            counted=_counted(history, omission),
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


def _counted(history: History, omission: Omission) -> int | None:
    """Return the tokens of messages that were left out without a count."""
    found = _RANGE.fullmatch(omission.item) if omission.tokens is None else None
    if found is None:
        return None
    first, _, last = omission.item.removeprefix("messages:").partition("-")
    return tokens_of(history, int(first), int(last or first))


def tokens_of(history: History, first: int, last: int) -> int | None:
    """Return the tokens of messages by the log's own counts; None if some are not counted."""
    reader = history.messages.reader
    total, others = reader.counted_tokens(reader.position(first), reader.position(last + 1))
    return None if others else total


class CompactedRanges:
    """Which messages left the window of another program with each compaction. What was computed once is kept."""

    def __init__(self) -> None:
        self._generation = -1
        self._ends: dict[str, int] = {}  # event of a compaction -> the last message before it
        self._tokens: dict[tuple[int, int], int | None] = {}

    def before(self, history: History, folds: Sequence[FoldRow], sent: Collection[int]) -> Iterator[ShownOmission]:
        """Yield what a call does not contain because of the compactions before it, oldest first.

        `sent` are the numbers of the messages that the call contains.
        """
        if self._generation != history.messages.reader.generation:
            self._ends, self._tokens = {}, {}
            self._generation = history.messages.reader.generation
        shown = sorted(sent)
        ends = [0, *(self._end(history, fold) for fold in folds)]
        for fold, (before, end) in zip(folds, pairwise(ends), strict=True):
            gone = before + 1
            while gone in sent:
                gone += 1
            after = bisect_left(shown, gone)
            last = min(end, shown[after] - 1) if after < len(shown) else end
            if gone <= last:
                extent = message_range(gone, last)
                yield ShownOmission(
                    item=extent,
                    reason="superseded_by_summary",
                    words=MEANINGS["superseded_by_summary"],
                    tokens=self._count(history, gone, last),
                    note=f"compaction {fold.event}",
                    read=extent,
                )

    def _end(self, history: History, fold: FoldRow) -> int:
        if fold.event not in self._ends:
            self._ends[fold.event] = _last_before(history, fold.at)
        return self._ends[fold.event]

    def _count(self, history: History, first: int, last: int) -> int | None:
        if (first, last) not in self._tokens:
            self._tokens[first, last] = tokens_of(history, first, last)
        return self._tokens[first, last]


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
