"""The account of a range: every sentence ends as kept, covered by a record, or lost for a reason.

All sentences of a message are entered before any of them is judged, and each is settled exactly once when the account
is closed. What no stage claims is lost for the reason of its message, so no stage can drop a sentence silently.
Losses are counts with a range, not one entry per sentence.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from daypack.text.sentences import sentences
from daypack.types.compaction import Loss, LossReason
from daypack.types.history import Message
from daypack.types.source import Messages

# What a later stage says about a sentence counts more than what an earlier one did.
_RANKS: dict[LossReason, int] = {"unremarkable": 1, "fragment": 1, "question": 2, "narration": 2, "outdated": 3}
_HIGHEST = 4
_FILLED_LINE = re.compile(r"\S[^\n]*")  # counted without splitting an output, which may be long
_MAX_COMPARED = 400  # sentences of a message that are searched for a sentence that cleaning has changed


class Settled(Struct, frozen=True):
    """The sum of an account: `sentences` is `kept` + `covered` + the sentences of all losses."""

    sentences: int
    kept: int
    covered: int
    output_lines: int
    losses: tuple[Loss, ...]


class _Offer(NamedTuple):
    """A sentence that was offered for the records under a text, or that repeats an offered text."""

    seq: int
    text: str
    repeats: bool = False


class _Entry:
    """A sentence of a message, how often the message has it, and its fate so far."""

    __slots__ = ("offer", "rank", "reason", "text", "times")

    def __init__(self, text: str, reason: LossReason) -> None:
        self.text = text
        self.reason: LossReason = reason
        self.rank = 0
        self.times = 0
        self.offer: _Offer | None = None


class _Count:
    """How often a reason was given, and in which messages."""

    def __init__(self, seq: int) -> None:
        self.sentences = 0
        self.first = self.last = seq

    def add(self, seq: int, sentences: int = 1) -> None:
        self.sentences += sentences
        self.first, self.last = min(self.first, seq), max(self.last, seq)


class Account:
    """Enters the sentences of messages, takes what the stages say about them, and adds it up."""

    def __init__(self) -> None:
        self._entries: dict[int, list[_Entry]] = {}  # of the messages that are being read
        self._by_text: dict[tuple[int, str], _Entry | None] = {}
        self._offers: list[_Offer] = []
        self._lost: dict[str, _Count] = {}
        self._lines: _Count | None = None
        self._sentences = 0

    def enter(self, message: Message, reason: LossReason) -> None:
        """Enter the sentences of a message; `reason`: why those are lost that no stage claims."""
        if message.role == "tool":
            lines = sum(1 for _ in _FILLED_LINE.finditer(message.text))
            self._lines = self._lines or _Count(message.seq)
            self._lines.add(message.seq, lines)
            return
        entries: dict[str, _Entry] = {}
        for sentence in sentences(message.text):
            text = plain(sentence.text)
            entry = entries.setdefault(text, _Entry(text, reason))
            entry.times += 1
            self._sentences += 1
            self._by_text[message.seq, text] = entry
        self._entries[message.seq] = list(entries.values())

    def lose(self, seq: int, sentence: str, reason: LossReason) -> None:
        """Record why a sentence is not offered; a reason of a later stage replaces that of an earlier one."""
        rank = _RANKS.get(reason, _HIGHEST)
        entry = self._find(seq, sentence)
        if entry and rank >= entry.rank:
            entry.reason, entry.rank = reason, rank

    def offer(self, seq: int, sentence: str, text: str, *, repeats: bool = False) -> None:
        """Record that a sentence is offered for the records under a text, or that it says the same as one."""
        entry = self._find(seq, sentence)
        if entry and (entry.offer is None or entry.offer.repeats):
            entry.offer = _Offer(seq, plain(text), repeats)

    def settle(self) -> None:
        """Add up the messages read so far; only what was offered waits for the records."""
        for seq, entries in self._entries.items():
            for entry in entries:
                if entry.offer:
                    self._offers += [entry.offer] * entry.times
                else:
                    self._lose(seq, entry.reason, entry.times)
        self._entries.clear()
        self._by_text.clear()

    def close(self, records: Iterable[tuple[str, str]], dropped: Mapping[str, str]) -> Settled:
        """Return the sum, given source and text of every record, and why other texts were dropped."""
        self.settle()
        sources: dict[str, set[str]] = {}
        for source, text in records:
            sources.setdefault(plain(text), set()).add(source)
        reasons = {plain(text): reason for text, reason in dropped.items()}
        kept = covered = 0
        for offer in self._offers:
            found = sources.get(offer.text)
            if found and not offer.repeats and f"messages:{offer.seq}" in found:
                kept += 1
            elif found:
                covered += 1
            else:
                self._lose(offer.seq, "repeated" if offer.repeats else reasons.get(offer.text, "over_limit"))
        lines = self._lines.sentences if self._lines else 0
        return Settled(self._sentences, kept, covered, lines, tuple(self._losses()))

    def _losses(self) -> Iterable[Loss]:
        for reason, count in sorted(self._lost.items(), key=lambda item: -item[1].sentences):
            what = f"{count.sentences:,} {'sentence' if count.sentences == 1 else 'sentences'}"
            yield Loss(what, reason, str(Messages(count.first, count.last)), sentences=count.sentences)
        if self._lines:
            source = str(Messages(self._lines.first, self._lines.last))
            yield Loss(f"{self._lines.sentences:,} lines", "tool_output", source)

    def _lose(self, seq: int, reason: str, sentences: int = 1) -> None:
        self._lost.setdefault(reason, _Count(seq)).add(seq, sentences)

    def _find(self, seq: int, sentence: str) -> _Entry | None:
        """Return the entry of a sentence; cleaning may have taken tags and signs off its ends."""
        text = plain(sentence)
        if (seq, text) not in self._by_text:
            entries = self._entries.get(seq, [])[:_MAX_COMPARED]
            found = (entry for entry in entries if text and (text in entry.text or entry.text in text))
            self._by_text[seq, text] = next(found, None)
        return self._by_text[seq, text]


def plain(text: str) -> str:
    """Return a sentence on one line, for comparison."""
    return " ".join(text.split())
