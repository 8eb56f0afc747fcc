"""Masks: large tool outputs stand in the tail as one line, when they are of the past or repeat what stands there.

Which outputs of the past are masked is decided when an epoch begins and stays so while it goes on. An output that comes
later and repeats one that stands in the tail names it. So a tail only grows.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from daypack.derived.repeated_content import same_as
from daypack.derived.swap import LARGE_TOKENS, stub
from daypack.history.session import History
from daypack.text.injected import SAME
from daypack.turn.items import Entry, Scales
from daypack.turn.pack.tail import settle
from daypack.turn.survey.messages import weigh_message
from daypack.types.history import Message

FRESH = 6  # the newest outputs are shown whole: what was just found out is what the next step rests on


class Masks:
    """Makes masked entries; what was made once is not made again."""

    def __init__(self, history: History, scales: Scales) -> None:
        self._history = history
        self._scales = scales
        self._known: dict[int, tuple[Message, Entry]] = {}

    def mask(self, entry: Entry) -> Entry:
        """Return an entry with a line in place of its content."""
        message = entry.message
        known = self._known.get(message.seq)
        if known and known[0] is message:
            return known[1]
        raw = message
        if entry.redacted:  # the id is that of the words in history
            raw = next(iter(self._history.messages.reader.pick([message.seq])), message)
        shown = masked(raw, message)
        made = Entry(shown, weigh_message(shown, self._scales.counter), entry.redacted)
        if len(self._known) > 4096:
            self._known.clear()
        self._known[message.seq] = message, made
        return made

    def choose(self, entries: Sequence[Entry]) -> tuple[dict[int, Entry], ...]:
        """Return the masked form of every large output that a new epoch may mask, in steps.

        First those of the past; then, when these leave too little room, of the newest few one after the other; then,
        when it does not fit otherwise, the very newest too.
        """
        outputs = [entry for entry in entries if entry.message.role == "tool"]
        steps: list[dict[int, Entry]] = []
        for stop in range(len(outputs) - FRESH, len(outputs) + 1):
            found = {entry.message.seq: self.mask(entry) for entry in outputs[: max(0, stop)] if is_large(entry)}
            if not steps or len(found) > len(steps[-1]):
                steps.append(found)
        return tuple(steps)

    def apply(self, entries: Iterable[Entry], seqs: frozenset[int]) -> list[Entry]:
        """Return entries with those masked that an epoch masks."""
        return [self.mask(entry) if entry.message.seq in seqs else entry for entry in entries]

    def refer(self, entries: Sequence[Entry], after: int) -> list[Entry]:
        """Return entries with those behind a number named, not copied, that repeat what stands before them."""
        first = repeated([entry.message for entry in entries], after)
        return [self._refer(entry, first) if entry.message.seq in first else entry for entry in entries]

    def _refer(self, entry: Entry, first: Mapping[int, int]) -> Entry:
        shown = referring(entry.message, first)
        return Entry(shown, weigh_message(shown, self._scales.counter), entry.redacted)


def repeated(messages: Sequence[Message], after: int) -> dict[int, int]:
    """Say which outputs behind a number repeat one of a tail: number -> the number of the first."""
    found = {seq: first for seq, first in same_as(messages).items() if seq > after}
    if not found:
        return found
    shown = {message.seq for message in settle(messages).messages}
    return {seq: first for seq, first in found.items() if first in shown}


def referring(message: Message, first: Mapping[int, int]) -> Message:
    """Return an output as a line that names the first one with the same text."""
    if message.seq not in first:
        return message
    return replace(message, content=f"{SAME}{first[message.seq]} above: {len(message.text):,} characters]")


def is_large(entry: Entry) -> bool:
    """Whether an entry is a tool output that is worth a line of its own."""
    return entry.message.role == "tool" and entry.cost.tokens > LARGE_TOKENS


def masked(raw: Message, shown: Message) -> Message:
    """Return a message as it is shown when it is swapped out; `shown`: without secrets."""
    return replace(shown, content=stub(raw, shown.text))
