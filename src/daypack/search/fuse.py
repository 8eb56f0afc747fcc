"""From the parts of a score to a ranking: words, what is near, the stretch, closeness in meaning, who spoke.

    score = (lexical + group + dense) · role + near + author

Words and surroundings are in proportion to the best match of the query, closeness to the range of cosines over the
whole memory: neither depends on how many candidates were looked at. All parts of a score add up to it.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from heapq import nlargest
from typing import NamedTuple

from daypack.search.spread import Place, Rated, rate_stretches

STRETCH = 0.5  # for the stretch whose best entries match best; others in proportion
USER = 1.5  # what a user said, against what anybody else did
NAMED = 0.1  # of the best score, for entries of the author the query names

_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")


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


class Ranked(NamedTuple):
    """An entry with its score and what the score is made of."""

    score: float
    id: int
    parts: dict[str, float]


class Closeness(NamedTuple):
    """How close entries are to a query in meaning: cosines, the range of all of them, and what closeness weighs."""

    cosines: Mapping[int, float]
    low: float
    high: float
    weight: float

    def scale(self, ids: Collection[int]) -> dict[int, float]:
        """Return what it adds to the score of each: the weight for the closest of all, nothing for the farthest.

        An entry that has no vector yet is taken for an average one: neither found by it nor hidden by it.
        """
        reach = self.high - self.low
        if reach <= 0 or not self.cosines:
            return {}
        known = {one: self.weight * max(0.0, cosine - self.low) / reach for one, cosine in self.cosines.items()}
        mean = sum(known.values()) / len(known)
        return {one: known.get(one, mean) for one in ids}


def rank(
    rated: Mapping[int, Rated],
    places: Mapping[int, Place],
    cast: Cast,
    limit: int,
    *,
    closeness: Closeness | None = None,
    allowed: Collection[int] | None = None,
) -> list[Ranked]:
    """Rank entries, best first, of equal ones the newest first; what is not allowed only speaks for its stretch."""
    ranking = _Ranking(rated, places, cast, closeness.scale(places) if closeness else {})
    return ranking.best(limit, allowed)


class _Ranking:
    """The parts of all scores; sums are made for every entry, parts shown only for those that are wanted."""

    def __init__(
        self, rated: Mapping[int, Rated], places: Mapping[int, Place], cast: Cast, dense: Mapping[int, float]
    ) -> None:
        self._rated = rated
        self._places = places
        self._cast = cast
        self._dense = dense
        self._top = top = max((total for _, total in rated.values()), default=0.0) or 1.0
        self._stretches = rate_stretches((places[one][1], total) for one, (_, total) in rated.items())
        self._totals: dict[int, float] = {}
        preferred: dict[int, bool] = {}  # by speaker: there are few
        for one, (_, stretch, _, _, speaker) in places.items():
            if one not in rated and one not in dense:
                continue
            if speaker not in preferred:
                preferred[speaker] = cast.prefers(speaker)
            own, total = rated.get(one, (0.0, 0.0))
            said = own / top + STRETCH * self._stretches.get(stretch, 0.0) + dense.get(one, 0.0)
            self._totals[one] = (said * USER if preferred[speaker] else said) + (total - own) / top
        self._gain = NAMED * max(self._totals.values(), default=0.0)
        if cast.named:
            for one in self._totals:
                if cast.names(places[one][4]):
                    self._totals[one] += self._gain

    def best(self, limit: int, allowed: Collection[int] | None) -> list[Ranked]:
        """Return the best entries with their parts."""
        totals = self._totals.items()
        ranked = nlargest(limit, [(total, one) for one, total in totals if allowed is None or one in allowed])
        return [Ranked(total, one, self._parts(one)) for total, one in ranked]

    def _parts(self, one: int) -> dict[str, float]:
        _, stretch, _, _, speaker = self._places[one]
        own, total = self._rated.get(one, (0.0, 0.0))
        parts = {"lexical": own / self._top, "near": (total - own) / self._top}
        parts["group"] = STRETCH * self._stretches.get(stretch, 0.0)
        if self._dense:
            parts["dense"] = self._dense.get(one, 0.0)
        if self._cast.prefers(speaker):
            parts["role"] = (sum(parts.values()) - parts["near"]) * (USER - 1)
        if self._cast.names(speaker):
            parts["author"] = self._gain
        return parts


def without_names(query: str, names: Iterable[str]) -> str:
    """Return a query without the names of those who take part: to a small encoder, a name outweighs all the rest."""
    unwanted = frozenset(name.casefold() for name in names)
    if not unwanted:
        return query
    rest = _WORD.sub(lambda word: "" if _stem(word[0]) in unwanted else word[0], query)
    rest = " ".join(rest.split())
    return rest if _WORD.search(rest) else query


def _stem(word: str) -> str:
    return re.sub("['’]s$", "", word).casefold()
