"""From matching entries to a ranking: what stands near a match, in a good stretch, or was said by the right one.

An answer is often the message after the one that holds the words of the question, so neighbours of a match get a share
of its score and can be found without a word in common. All parts of a score add up to it; the best match is about 1.
"""

from collections.abc import Iterable, Mapping
from heapq import nlargest
from typing import NamedTuple

AFTER, SECOND_AFTER, BEFORE = 0.4, 0.2, 0.3  # the shares of an entry's score its neighbours get
STRETCH = 0.4  # for the stretch whose best entries match best; others in proportion
STRETCH_BEST = 3  # entries that speak for a stretch
USER = 1.5  # what a user said, against what anybody else did
NAMED = 0.1  # of the best score, for entries of the author the query names


class Place(NamedTuple):
    """Where an entry stands: its stretch, its neighbours in the conversation (0: none), who spoke."""

    id: int
    stretch: int
    before: int
    after: int
    speaker: int  # see `speaker`


def speaker(author: int, *, is_user: bool) -> int:
    """Return one number for an author (0: not known; negative: read off the text) and whether it is the user."""
    return author * 2 + is_user


class Ranked(NamedTuple):
    """An entry with its score and what the score is made of."""

    score: float
    id: int
    parts: dict[str, float]


class Cast(NamedTuple):
    """Who takes part: the author a query names (0: nobody, or several), and whom to take for a person."""

    named: int = 0
    persons: bool = False  # authors that were given are persons
    guessed: frozenset[int] = frozenset()  # authors read off the text that are

    def prefers(self, speaker: int) -> bool:
        """Whether this is the user, and not a person among persons: there, roles mean nothing."""
        author = speaker >> 1
        return bool(speaker & 1) and not ((author > 0 and self.persons) or (author < 0 and -author in self.guessed))

    def names(self, speaker: int) -> bool:
        """Whether the query names this speaker."""
        return self.named != 0 and abs(speaker >> 1) == self.named


def rank(scores: Mapping[int, float], places: Mapping[int, Place], cast: Cast, limit: int) -> list[Ranked]:
    """Rank entries by their own score and their surroundings, best first; of equal ones the newest first.

    `places` holds the entries in `scores` and those of their neighbours that shall be found too.
    """
    return _Ranking(scores, places, cast).best(limit) if scores else []


class _Ranking:
    """The parts of all scores; sums are made for every entry, parts shown only for those that are wanted."""

    def __init__(self, scores: Mapping[int, float], places: Mapping[int, Place], cast: Cast) -> None:
        self._scores = scores
        self._places = places
        self._cast = cast
        self._near = _spread(scores, places)
        sums = {one: self._near.get(one, 0.0) + score for one, score in scores.items() if one in places}
        sums |= {one: score for one, score in self._near.items() if one in places and one not in sums}
        self._top = top = max(sums.values(), default=0.0) or 1.0
        self._stretches = _rate_stretches((places[one][1], score) for one, score in sums.items())
        self._totals: dict[int, float] = {}
        preferred: dict[int, bool] = {}  # by speaker: there are few
        for one, score in sums.items():
            _, stretch, _, _, speaker = places[one]
            if speaker not in preferred:
                preferred[speaker] = cast.prefers(speaker)
            total = score / top + self._stretches[stretch]
            self._totals[one] = total * USER if preferred[speaker] else total
        self._gain = NAMED * max(self._totals.values(), default=0.0)
        if cast.named:
            for one in self._totals:
                if cast.names(places[one][4]):
                    self._totals[one] += self._gain

    def best(self, limit: int) -> list[Ranked]:
        """Return the best entries with their parts."""
        ranked = nlargest(limit, [(total, one) for one, total in self._totals.items()])
        return [Ranked(total, one, self._parts(one)) for total, one in ranked]

    def _parts(self, one: int) -> dict[str, float]:
        _, stretch, _, _, speaker = self._places[one]
        parts = {"lexical": self._scores.get(one, 0.0) / self._top, "near": self._near.get(one, 0.0) / self._top}
        parts["group"] = self._stretches[stretch]
        if self._cast.prefers(speaker):
            parts["role"] = sum(parts.values()) * (USER - 1)
        if self._cast.names(speaker):
            parts["author"] = self._gain
        return parts


def _spread(scores: Mapping[int, float], places: Mapping[int, Place]) -> dict[int, float]:
    near: dict[int, float] = {}
    for one, score in scores.items():
        if one not in places:
            continue
        _, _, before, after, _ = places[one]
        if before:
            near[before] = near.get(before, 0.0) + BEFORE * score
        if after:
            near[after] = near.get(after, 0.0) + AFTER * score
            second = places[after][3] if after in places else 0
            if second:
                near[second] = near.get(second, 0.0) + SECOND_AFTER * score
    return near


def _rate_stretches(entries: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Rate each stretch by its best entries, in proportion to the best stretch."""
    members: dict[int, list[float]] = {}
    for stretch, score in entries:
        members.setdefault(stretch, []).append(score)
    rates = {stretch: sum(sorted(scores)[-STRETCH_BEST:]) for stretch, scores in members.items()}
    best = max(rates.values(), default=0.0) or 1.0
    return {stretch: STRETCH * rate / best for stretch, rate in rates.items()}
