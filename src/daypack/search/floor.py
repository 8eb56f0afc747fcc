"""The relevance floor: how much of a query an entry accounts for, and below what the answer is "nothing relevant".

Scores rank entries against each other, so the best of them has a high score even if none is about the query. Relevance
is absolute: 1 is the floor. By words it is the share of the query's information in an entry and its neighbours, by
vectors the similarity compared with that of the memory's entries among each other.

    relevance = max(share / FLOOR, deviations / SIMILAR) / strictness

A search answers if one of its best entries reaches 1; then it returns the entries that reach KEPT. The constants were
chosen on the development parts of LoCoMo and BEAM: `python -m bench floor` measures them.

A share says nothing about the whole: of "we fail build" one common word is a third. So an entry also has an amount of
information, for callers that add text without a question: how unlikely it is that it has these words by chance.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from math import log, sqrt
from typing import NamedTuple, Protocol, TypeVar

from daypack.search.words import clip_query, is_unspaced, query_terms
from daypack.text.english import ASKING_WORDS

FLOOR = 0.44  # of the query's information; from 0.40 to 0.46 less than 0.2 points of recall are lost
SIMILAR = 2.0  # standard deviations above the mean similarity of two entries
KEPT = 0.5  # the relevance of the entries that accompany a relevant one; at 0.7 recall suffers
EXAMINED = 20  # best entries that decide whether there is an answer, whatever the limit of the search

NAME = 2.0  # weight of a name, a number or an identifier, against 1 for other words
ASKING = 0.3  # weight of a word that asks instead of naming a subject
NEAR = 0.5  # weight of a word that only a neighbour contains
COMMON = 0.5  # weight of a word that all other entries contain; rarer words in proportion to the logarithm
STRADDLING = 0.5  # weight of an unknown pair of characters: half of the pairs lie across two words
WHOLE = 16  # terms up to which a query is judged as a whole; a longer one by its best sentence …
PASSAGE = 10  # … or, in a long sentence, by so many terms …
LEAST = 4.0  # … where a short sentence weighs at least this much: "Thanks, Tessa!" asks for nothing
SETTLED = 100  # entries from which the floor is full: among fewer, less is found by chance

_PRIOR_PAIRS, _PRIOR_MEAN, _PRIOR_DEVIATION = 6, 0.2, 0.15  # until a memory has pairs of its own
_LEAST_DEVIATION = 0.05
_CONNECTING = frozenset({"of", "the", "de", "la", "von", "van"})
_PUNCTUATION = " \t\r\n.,;:!?\"'()[]{}<>«»“”‘’`*…-–—/"
_SENTENCE_ENDS = (".", "!", "?", ":")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


class Rated(Protocol):
    """A search hit with its relevance."""

    @property
    def relevance(self) -> float:
        """1 is the floor."""
        ...


_Rated = TypeVar("_Rated", bound=Rated)


class Similarity(NamedTuple):
    """The cosines of pairs of entries in one memory: how many pairs, their mean and standard deviation."""

    pairs: int = 0
    mean: float = 0.0
    deviation: float = 0.0

    def rate(self, cosine: float, entries: int) -> float:
        """Return the relevance of an entry that is so close to a query, in a memory of so many entries."""
        pairs = self.pairs + _PRIOR_PAIRS
        mean = (self.pairs * self.mean + _PRIOR_PAIRS * _PRIOR_MEAN) / pairs
        variance = (self.pairs * self.deviation**2 + _PRIOR_PAIRS * _PRIOR_DEVIATION**2) / pairs
        return (cosine - mean) / max(sqrt(variance), _LEAST_DEVIATION) / (SIMILAR * strictness(entries))


class Query(NamedTuple):
    """The terms of a query, in its order, with what they weigh, and the passages it is judged by."""

    weights: dict[str, float]
    passages: list[list[str]]


class _Passage(NamedTuple):
    """A part of a query: the weight of its terms, what of it any entry has, and what each term in an entry adds."""

    weight: float
    common: float
    gains: tuple[tuple[int, float], ...]  # bit of the term, weight


class QueryWords:
    """The words of a query and what they weigh in one index."""

    def __init__(
        self, query: Query, counts: Sequence[tuple[str, int]], absent: Collection[str], *, chunks: int, entries: int
    ) -> None:
        """`counts`: the terms that occur, in the order of a mask's bits. Further terms are other forms of these."""
        self._floor = FLOOR * strictness(entries)
        self._known: dict[tuple[int, int], float] = {}
        others = max(chunks, 1) + SETTLED  # in a small index no word is rare, and none is common yet
        self._information = [
            query.weights[term] * log(1 + (max(others, count) - count + 0.5) / (count + 0.5)) for term, count in counts
        ]
        terms = {term: _weigh_absent(term, query.weights[term]) for term in absent}
        for number, (term, count) in enumerate(counts):
            weight = query.weights[term]
            terms[term] = weight, weight * COMMON * log(1 + count) / log(1 + max(chunks, count)), 1 << number
        parts = [[terms[term] for term in passage if term in terms] for passage in query.passages]
        least = LEAST if len(parts) > 1 else 0.0
        self._passages = [_passage(part, least) for part in parts if part]

    def rate(self, own: int, near: int) -> float:
        """Return the relevance of an entry with these terms; `near` are those of its neighbours.

        Without any of them it is 0: that other entries contain the words is no evidence for this one.
        """
        key = own, near & ~own
        if not any(key):
            return 0.0
        known = self._known.get(key)
        if known is None:
            shares = (_share(passage, *key) for passage in self._passages)
            known = self._known[key] = max(shares, default=0.0) / self._floor
        return known

    def information(self, own: int) -> float:
        """Return how much the terms of an entry say together: each the more, the fewer entries have it; in nats."""
        return sum(amount for number, amount in enumerate(self._information) if own >> number & 1)


def relevant(hits: Sequence[_Rated]) -> list[_Rated]:
    """Return the hits that clear the floor, in their order; none if the best of them are not about the query.

    `hits` are at least the EXAMINED best ones, so that a small limit does not change the answer.
    """
    if max((hit.relevance for hit in hits[:EXAMINED]), default=0.0) < 1:
        return []
    return [hit for hit in hits if hit.relevance >= KEPT]


def strictness(entries: int) -> float:
    """Return the share of the floor that applies among so many entries."""
    return min(1.0, log(1 + max(1, entries)) / log(1 + SETTLED))


def read_query(query: str) -> Query:
    """Return the distinct terms of a query with what they weigh: names more, words of asking less.

    A name of several words is one piece of information, and so is a sentence in capitals.
    """
    weights = {term: ASKING if term in ASKING_WORDS else 1.0 for term in query_terms(query)}
    query = clip_query(query)
    for name in _find_names(query):
        terms = [term for term in dict.fromkeys(name) if term in weights]
        for term in terms:
            weights[term] = NAME / len(terms)
    return Query(weights, list(_split(query, weights)))


def _find_names(query: str) -> Iterator[list[str]]:
    """Yield the terms of each name, date, number and identifier; adjacent ones are one, as in "3 June, 2023"."""
    run: list[str] = []
    starting = True
    for piece in query.split():
        word = piece.strip(_PUNCTUATION)
        marked = any(char.isdigit() or char == "_" for char in word) or word[1:] != word[1:].lower()
        named = marked or (word[:1].isupper() and not starting)
        if run and (starting or not (named or word in _CONNECTING)):
            yield run
            run = []
        if named:
            run += query_terms(word)
        # An initial ends no sentence, and a comma no date.
        starting = piece.endswith(_SENTENCE_ENDS) and len(word) > 2
        if piece.endswith((",", ";")) and not any(term.isdigit() for term in run):
            yield run
            run = []
    if run:
        yield run


def _split(query: str, weights: Collection[str]) -> Iterator[list[str]]:
    if len(weights) <= WHOLE:
        yield list(weights)
        return
    for sentence in _SENTENCE.split(query):
        terms = query_terms(sentence)
        if len(terms) <= WHOLE:
            yield terms
        else:
            last = len(terms) - PASSAGE
            yield from (terms[start : start + PASSAGE] for start in (*range(0, last, PASSAGE // 2), last))


def _weigh_absent(term: str, weight: float) -> tuple[float, float, int]:
    return weight * STRADDLING if is_unspaced(term) else weight, 0.0, 0


def _passage(terms: Sequence[tuple[float, float, int]], least: float) -> _Passage:
    gains = tuple((bit, weight - common) for weight, common, bit in terms if bit)
    return _Passage(max(least, sum(term[0] for term in terms)), sum(term[1] for term in terms), gains)


def _share(passage: _Passage, own: int, near: int) -> float:
    gained = passage.common
    for bit, gain in passage.gains:
        if own & bit:
            gained += gain
        elif near & bit:
            gained += gain * NEAR
    return gained / passage.weight
