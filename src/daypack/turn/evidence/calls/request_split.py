"""The tokens of recorded requests by part: every message is counted once, however many requests contain it."""

from collections.abc import Iterable
from typing import NamedTuple

from daypack.history.session import History
from daypack.text.tokens import Counter, counter_for
from daypack.turn.evidence.calls.parts import PARTS, part_of_source
from daypack.turn.evidence.calls.rows import NO_SPLIT, UNKNOWN, Split, share_out
from daypack.turn.evidence.observed.links import Links
from daypack.turn.evidence.observed.record import ObservedRecord, SentMessage
from daypack.turn.evidence.observed.request import RequestReader
from daypack.turn.evidence.observed.shapes import read_shape
from daypack.turn.evidence.observed.sources import PartText, rebuilt_texts, shape_texts

_MOST_KNOWN = 50_000


class CountedSplit(NamedTuple):
    """The tokens of a request as they were counted; `whole` is False if a part of it is unknown."""

    split: Split = NO_SPLIT
    whole: bool = True

    def plus(self, other: "CountedSplit") -> "CountedSplit":
        """Return the sum."""
        added = tuple(mine + theirs for mine, theirs in zip(self.split, other.split, strict=True))
        return CountedSplit(added, self.whole and other.whole)

    def scaled(self, tokens: int | None) -> tuple[int | None, Split]:
        """Return the tokens of the request, and its split so that it sums to them; what is unknown is the rest."""
        counted = sum(self.split)
        if tokens is None:
            return (counted, self.split) if self.whole else (None, NO_SPLIT)
        if self.whole or counted > tokens:
            return tokens, share_out(self.split, tokens)
        return tokens, (*self.split[:UNKNOWN], self.split[UNKNOWN] + tokens - counted)


class RequestSplits:
    """Counts the requests of one session, in the order of their events."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._reader = RequestReader(history)
        self._links: Links | None = None
        self._messages: dict[tuple[SentMessage, str], CountedSplit] = {}
        self._shapes: dict[tuple[str, str], CountedSplit] = {}
        self._event = ""  # of the request that was counted last
        self._model = ""
        self._sums: list[CountedSplit] = []  # of its first messages: none, one, two …

    def update(self) -> None:
        """Read what the next requests may refer to."""
        if self._links is None:
            self._links = Links(self._history)
        else:
            self._links.update(self._history)

    def count(self, event_id: str, record: ObservedRecord) -> CountedSplit:
        """Return the tokens of a request."""
        if self._links is None:
            self.update()
        follows = self._event == record.follows and self._model == record.model and record.keep < len(self._sums)
        sent = self._reader.sent(record, event_id)
        sums = self._sums[: record.keep + 1] if follows else [CountedSplit()]
        counter = counter_for(record.model)
        for message in sent[len(sums) - 1 :]:
            sums.append(sums[-1].plus(self._count_message(message, record.model, counter)))
        self._event, self._model, self._sums = event_id, record.model, sums
        return sums[-1].plus(self._count_shape(record, counter))

    def _count_message(self, sent: SentMessage, model: str, counter: Counter) -> CountedSplit:
        key = sent, model
        found = self._messages.get(key)
        if found is None:
            assert self._links is not None
            if len(self._messages) >= _MOST_KNOWN:
                self._messages.clear()
            (message,) = self._reader.messages((sent,))
            found = self._messages[key] = _total(rebuilt_texts(message, model, self._links, counter))
        return found

    def _count_shape(self, record: ObservedRecord, counter: Counter) -> CountedSplit:
        key = record.shape, record.model
        if key not in self._shapes:
            shape = None if record.shape_unknown else read_shape(self._history, record.shape)
            self._shapes[key] = _total(shape_texts(shape, counter))
        return self._shapes[key]


def _total(parts: Iterable[PartText]) -> CountedSplit:
    tokens: list[int] = list(NO_SPLIT)
    whole = True
    for found in parts:
        if found.part.tokens is None:
            whole = False
        else:
            tokens[PARTS.index(part_of_source(found.part.source))] += found.part.tokens
    return CountedSplit(tuple(tokens), whole)
