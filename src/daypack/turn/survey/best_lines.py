"""The line of a message that matches a query best: by shared words, and by shared pairs of adjacent words."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from daypack.text.words import content_words

_WORD = re.compile(r"\w+")
_MOST_CHARS = 60_000  # of one message; the rest is found by the index only
_LINE_CHARS = 600  # longer lines are scored in pieces


class Line(NamedTuple):
    """A line of a text and its score: 0 no shared word, 2 the whole query word for word."""

    start: int
    stop: int
    score: float


class Words:
    """A query, split into words once."""

    def __init__(self, text: str) -> None:
        words = _WORD.findall(text.casefold())
        self._words = frozenset(words) & frozenset(content_words(text.casefold())) or frozenset(words)
        self._pairs = frozenset(pairwise(words))

    def best_line(self, text: str) -> Line:
        """Return the best line; the first of equals."""
        best = Line(0, 0, 0.0)
        folded = text[:_MOST_CHARS].casefold()
        if len(folded) != min(len(text), _MOST_CHARS):
            folded = text[:_MOST_CHARS]  # some letters get longer in lower case: positions must not move
        for start, stop in _lines(folded):
            line = folded[start:stop]
            if any(word in line for word in self._words):
                score = self._score(line)
                if score > best.score:
                    best = Line(start, stop, score)
        return best

    def _score(self, line: str) -> float:
        words = _WORD.findall(line)
        shared = len(self._words.intersection(words)) / max(1, len(self._words))
        pairs = len(self._pairs.intersection(pairwise(words))) / max(1, len(self._pairs))
        return shared + pairs


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.split("\n"):
        for at in range(start, start + max(1, len(line)), _LINE_CHARS):
            yield at, min(at + _LINE_CHARS, start + len(line))
        start += len(line) + 1
