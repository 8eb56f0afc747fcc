"""Where in a text the terms of a query are: how close together, and the line that has most of them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from re import compile as pattern
from typing import NamedTuple

from daypack.search.words import is_unspaced
from daypack.text.english import irregular_forms, stem

WINDOW_CHARS = 300
EXAMINED_CHARS = 200_000  # of a text that is examined
_MOST_PLACES = 200  # of a form of a term
_LINE_CHARS = 240  # of a long line, the part that is shown
_LEAST_CHARS = 2
_BESIDE_CHARS = 2  # between two words side by side
_REST = pattern(r"\w*")


class Place(NamedTuple):
    """An occurrence of a term."""

    start: int
    stop: int
    term: int


class Passage(NamedTuple):
    """The best line of a text, from `start` to `stop`, the places of terms in it, and what the passage around is worth.

    `mask` has the terms of the whole text, `near` those of the passage, which are worth `close`; `pairs` is what
    terms side by side are worth.
    """

    start: int
    stop: int
    places: tuple[Place, ...]
    mask: int
    near: int
    close: float
    pairs: float


class _Forms(NamedTuple):
    """How a term is spelled: what its words begin with, and how a word is recognised."""

    prefixes: tuple[str, ...]
    words: frozenset[str]
    stems: frozenset[str]


class TermPlaces:
    """Finds the terms of a query in texts; `worths` are their weights."""

    def __init__(self, terms: Sequence[str], worths: Sequence[float], parts: Mapping[str, Sequence[str]] = {}) -> None:
        """`parts` has the words of identifiers: each of them counts as the term."""
        self._forms = [_forms_of((term, *parts.get(term, ()))) for term in terms]
        self._worths = worths
        self._known: dict[tuple[str, int], bool] = {}

    def examine(self, text: str) -> Passage:
        """Return the best line of a text, and how close together the terms are."""
        text = text[:EXAMINED_CHARS]
        places = sorted(self._places(text))
        mask = 0
        for place in places:
            mask |= 1 << place.term
        if not places:
            start, stop = _line_at(text, 0, 0)
            return Passage(start, stop, (), 0, 0, 0.0, 0.0)
        close, centre, near = self._closest(places)
        start, stop = self._best_line(text, places, centre)
        shown = tuple(place for place in places if start <= place.start and place.stop <= stop)
        return Passage(start, stop, shown, mask, near, close, self._pairs(places))

    def marks(self, line: str) -> tuple[tuple[int, int], ...]:
        """Return the places of terms in a line, from start to before stop, without overlaps."""
        found: list[tuple[int, int]] = []
        for place in sorted(self._places(line)):
            if not found or place.start >= found[-1][1]:
                found.append((place.start, place.stop))
        return tuple(found)

    def _places(self, text: str) -> Iterator[Place]:
        folded = text.lower()
        if len(folded) != len(text):
            folded = text  # some letters get longer: positions must not move
        for number, forms in enumerate(self._forms):
            for prefix in forms.prefixes:
                at = folded.find(prefix)
                for _ in range(_MOST_PLACES):
                    if at < 0:
                        break
                    stop = at + len(prefix)
                    if not prefix.isascii() and is_unspaced(prefix):
                        yield Place(at, stop, number)
                    elif _begins(text, at):
                        stop = _end(text, folded, stop)
                        if self._is_form(folded[at:stop], number):
                            yield Place(at, stop, number)
                    at = folded.find(prefix, stop)

    def _is_form(self, word: str, number: int) -> bool:
        known = self._known.get((word, number))
        if known is None:
            forms = self._forms[number]
            known = self._known[word, number] = word in forms.words or stem(word) in forms.stems
        return known

    def _closest(self, places: Sequence[Place]) -> tuple[float, int, int]:
        """Return the worth of the passage with most terms, where it is, and these terms."""
        best, centre, mask = 0.0, places[0].start, 0
        counts: dict[int, int] = {}
        worth, first = 0.0, 0
        for place in places:
            if not counts.get(place.term):
                worth += self._worths[place.term]
            counts[place.term] = counts.get(place.term, 0) + 1
            while place.stop - places[first].start > WINDOW_CHARS:
                term = places[first].term
                counts[term] -= 1
                if not counts[term]:
                    worth -= self._worths[term]
                first += 1
            if worth > best + 1e-9:
                best, centre = worth, (places[first].start + place.stop) // 2
                mask = sum(1 << term for term, count in counts.items() if count)
        return best, centre, mask

    def _pairs(self, places: Sequence[Place]) -> float:
        """Return the worth of different terms side by side; each pair counts once."""
        found = {
            (place.term, following.term): min(self._worths[place.term], self._worths[following.term])
            for place, following in pairwise(places)
            if following.term != place.term and 0 <= following.start - place.stop <= _BESIDE_CHARS
        }
        return sum(found.values())

    def _best_line(self, text: str, places: Sequence[Place], centre: int) -> tuple[int, int]:
        best, chosen = (-1.0, 0), (0, 0)
        start = stop = -1
        terms: set[int] = set()
        for place in places:
            if place.start >= stop or start < 0:
                start, stop = _line_at(text, place.start, place.stop)
                terms = set()
            terms.add(place.term)
            worth = sum(self._worths[term] for term in terms), -abs(place.start - centre)
            if worth > best:
                best, chosen = worth, (start, stop)
        return chosen


def _forms_of(terms: Sequence[str]) -> _Forms:
    words = [word for term in terms for word in irregular_forms(term)]
    stems = frozenset(stem(word) for word in words)
    prefixes = {word: _shared_start(word, stem(word)) for word in words}
    usable = sorted({prefix if len(prefix) >= _LEAST_CHARS else word for word, prefix in prefixes.items()})
    # "fix" finds all that "fixing" would.
    shortest = [
        prefix for prefix in usable if not any(prefix != other and prefix.startswith(other) for other in usable)
    ]
    return _Forms(tuple(shortest), frozenset(words), stems)


def _shared_start(word: str, other: str) -> str:
    for at, (letter, other_letter) in enumerate(zip(word, other, strict=False)):
        if letter != other_letter:
            return word[:at]
    return min(word, other, key=len)


def _begins(text: str, at: int) -> bool:
    """Return True where a word begins: after what is no letter or digit, or at the capital in fixPort."""
    if not at:
        return True
    before = text[at - 1]
    return not before.isalnum() or (text[at].isupper() and not before.isupper())


def _end(text: str, folded: str, stop: int) -> int:
    """Return where a word ends: before what is no letter or digit, or before a capital."""
    rest = _REST.match(folded, stop)
    end = rest.end() if rest else stop
    for at in range(stop, end):
        if text[at] == "_" or (text[at].isupper() and text[at - 1].islower()):
            return at
    return end


def _line_at(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return the line around a place; of a long one, the part around it."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", stop)
    last = len(text) if last < 0 else last
    if last - first > _LINE_CHARS:
        first = max(first, start - _LINE_CHARS // 3)
        space = text.find(" ", first, start) if first and not text[first - 1].isspace() else -1
        first = space + 1 if space >= 0 else first
        last = min(last, first + _LINE_CHARS)
    return first, last
