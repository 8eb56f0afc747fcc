"""The tokens of excerpts: a turn records where they are in history, and not what they cost."""

from collections.abc import Sequence

from daypack.errors import DaypackError
from daypack.history.session import History
from daypack.text.tokens import counter_named
from daypack.turn.evidence.record import ExcerptRef
from daypack.turn.items import TokenMeter
from daypack.turn.survey.history_search import excerpt

_MOST_KNOWN = 20_000
_Key = tuple[int, int, int, str, bool]


class ExcerptTokens:
    """Counts excerpts as their turn did, each once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._meters: dict[str, TokenMeter | None] = {}
        self._known: dict[_Key, int] = {}

    def count(self, refs: Sequence[ExcerptRef], tokenizer: str, *, redacting: bool) -> int:
        """Return the tokens of excerpts together; those of messages that cannot be read count nothing."""
        meter = self._meter(tokenizer)
        if meter is None:
            return 0
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        keys: list[_Key] = [(seq, start, stop, tokenizer, redacting) for seq, start, stop, _ in refs]
        unknown = {key for key in keys if key not in self._known}
        messages = {message.seq: message for message in self._history.messages.reader.pick([key[0] for key in unknown])}
        for key in unknown:
            seq, start, stop, *_ = key
            found = messages.get(seq)
            self._known[key] = excerpt(found, (start, stop), None, meter, redacting=redacting).tokens if found else 0
        return sum(self._known[key] for key in keys)

    def _meter(self, tokenizer: str) -> TokenMeter | None:
        if tokenizer not in self._meters:
            try:
                self._meters[tokenizer] = TokenMeter(counter_named(tokenizer))
            except DaypackError:  # of a version that had another counter
                self._meters[tokenizer] = None
        return self._meters[tokenizer]
