"""Whether a message is about a query: the share of the query's information that it contains.

A word counts the more, the fewer messages contain it, and a word that no message contains counts most: a message with
"nothing" is no answer to "zxqv nothing". Words of neighbours count half, and only beside a message that is one.

The constants were chosen on questions of LoCoMo, BEAM and recorded sessions, each asked of 30,000 messages of its own
corpus and of the two others: `python -m bench find` measures both.
"""

from collections.abc import Collection, Mapping, Sequence
from math import log
from typing import NamedTuple, Protocol, TypeVar

from daypack.search.floor import EXAMINED, WHOLE, QueryWords, strictness

FLOOR = 0.34  # of the query's information in the best message, below which nothing is an answer
SURE = 0.45  # below it all results are weak, and only the first are shown
KEPT = 0.3  # of the query's information in a result and its neighbours …
KEPT_OF_BEST = 0.4  # … and of what the best result has of it
NEAR = 0.5  # weight of a word that only a neighbour contains
WEAK_RESULTS = 5
_YEAR_WEIGHT = 0.3  # of a year that no message contains: it says when, not what


class Relevance(NamedTuple):
    """How much a message has of a query, in its own words and with its neighbours; 1 is the floor of an answer."""

    own: float
    total: float


class Judged(Protocol):
    """A result with its relevance."""

    @property
    def relevance(self) -> Relevance:
        """How much it has of the query."""
        ...


_Judged = TypeVar("_Judged", bound=Judged)


class Judge:
    """Rates messages by the terms of a query they contain: `worths` in the order of a mask's bits."""

    def __init__(self, worths: Sequence[float], absent: Collection[float], words: QueryWords, messages: int) -> None:
        """`absent` are the worths of terms that no message contains. A long query is judged by its best passage."""
        self._worths = worths
        self._whole = (sum(worths) + sum(absent)) * strictness(messages) or 1.0
        self._words = words if len(worths) + len(absent) > WHOLE else None

    def rate(self, own: int, near: int) -> Relevance:
        """Return the relevance of a message with these terms, between neighbours with those of `near`."""
        if self._words is not None:
            return Relevance(self._words.rate(own, 0), self._words.rate(own, near & ~own))
        share = self._share(own)
        return Relevance(share / FLOOR, (share + NEAR * self._share(near & ~own)) / FLOOR)

    def _share(self, mask: int) -> float:
        return sum(worth for number, worth in enumerate(self._worths) if mask >> number & 1) / self._whole


def absent_worths(absent: Collection[str], weights: Mapping[str, float], messages: int) -> list[float]:
    """Return what terms weigh that no message contains."""
    most = log(1 + (messages + 0.5) / 0.5)
    return [most * (_YEAR_WEIGHT if is_year(term) else min(1.0, weights[term])) for term in absent]


def is_year(term: str) -> bool:
    """Return True for a year of these two centuries."""
    return len(term) == len("2026") and term.isdigit() and term.startswith(("19", "20"))


def answers(results: Sequence[_Judged]) -> tuple[list[_Judged], bool]:
    """Return the results that are about the query, in their order, and whether all of them are weak."""
    best = max((result.relevance.own for result in results[:EXAMINED]), default=0.0)
    if best < 1:
        return [], False
    least = max(KEPT / FLOOR, KEPT_OF_BEST * best)
    return [result for result in results if result.relevance.total >= least], best * FLOOR < SURE
