"""Ranks entries by a score of several parts: words, neighbours, conversation stretch, vectors, speaker.

    score = (lexical + group + dense) · role + near + author

Word and neighbour scores are relative to the best match of the query, vector scores to the range of cosines over the
whole memory: neither depends on how many candidates were examined. The parts of a score add up to it.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from heapq import nlargest
from typing import NamedTuple

from daypack.search.floor import Similarity
from daypack.search.neighbours import Place, Rated, rate_stretches

STRETCH = 0.5  # for the best stretch; others in proportion
USER = 1.5  # weight of a user's message relative to other roles
NAMED = 0.1  # of the best score, for entries of the author the query names

_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")


class Participants(NamedTuple):
    """The author a query names (0: none, or several), and which authors are persons."""

    named: int = 0
    persons: bool = False  # authors set by the caller are persons
    guessed: frozenset[int] = frozenset()  # authors found in texts that are persons

    def prefers(self, speaker: int) -> bool:
        """Return True for the user, unless authors are persons: among persons, roles have no meaning."""
        author = speaker >> 1
        return bool(speaker & 1) and not ((author > 0 and self.persons) or (author < 0 and -author in self.guessed))

    def names(self, speaker: int) -> bool:
        """Return True if the query names this speaker."""
        return self.named != 0 and abs(speaker >> 1) == self.named


class Ranked(NamedTuple):
    """An entry with its score and the parts of the score."""

    score: float
    id: int
    parts: dict[str, float]


class Closeness(NamedTuple):
    """Vector similarity of entries to a query: cosines, the range of all cosines, and the weight of similarity.

    `similarity` is that of the entries to each other.
    """

    cosines: Mapping[int, float]
    low: float
    high: float
    weight: float
    similarity: Similarity = Similarity()

    def scale(self, ids: Collection[int]) -> dict[int, float]:
        """Return what similarity adds to each score: the weight for the closest of all, 0 for the farthest.

        An entry without a vector gets the average, so that it is neither favoured nor hidden.
        """
        reach = self.high - self.low
        if reach <= 0 or not self.cosines:
            return {}
        known = {entry: self.weight * max(0.0, cosine - self.low) / reach for entry, cosine in self.cosines.items()}
        mean = sum(known.values()) / len(known)
        return {entry: known.get(entry, mean) for entry in ids}


def rank(
    rated: Mapping[int, Rated],
    places: Mapping[int, Place],
    participants: Participants,
    limit: int,
    *,
    closeness: Closeness | None = None,
    allowed: Collection[int] | None = None,
) -> list[Ranked]:
    """Rank entries, best first, then newest first; entries that are not allowed only count for their stretch."""
    ranking = _Ranking(rated, places, participants, closeness.scale(places) if closeness else {})
    return ranking.best(limit, allowed)


class _Ranking:
    """The scores of all entries; parts are computed only for the entries that are returned."""

    def __init__(
        self,
        rated: Mapping[int, Rated],
        places: Mapping[int, Place],
        participants: Participants,
        dense: Mapping[int, float],
    ) -> None:
        self._rated = rated
        self._places = places
        self._find_participants = participants
        self._dense = dense
        self._top = top = max((total for _, total in rated.values()), default=0.0) or 1.0
        self._stretches = rate_stretches((places[entry][1], total) for entry, (_, total) in rated.items())
        self._totals: dict[int, float] = {}
        preferred: dict[int, bool] = {}  # by speaker
        for entry, (_, stretch, _, _, speaker) in places.items():
            if entry not in rated and entry not in dense:
                continue
            if speaker not in preferred:
                preferred[speaker] = participants.prefers(speaker)
            own, total = rated.get(entry, (0.0, 0.0))
            weighted = own / top + STRETCH * self._stretches.get(stretch, 0.0) + dense.get(entry, 0.0)
            self._totals[entry] = (weighted * USER if preferred[speaker] else weighted) + (total - own) / top
        self._gain = NAMED * max(self._totals.values(), default=0.0)
        if participants.named:
            for entry in self._totals:
                if participants.names(places[entry][4]):
                    self._totals[entry] += self._gain

    def best(self, limit: int, allowed: Collection[int] | None) -> list[Ranked]:
        """Return the best entries with the parts of their scores."""
        totals = self._totals.items()
        ranked = nlargest(limit, [(total, entry) for entry, total in totals if allowed is None or entry in allowed])
        return [Ranked(total, entry, self._parts(entry)) for total, entry in ranked]

    def _parts(self, entry: int) -> dict[str, float]:
        _, stretch, _, _, speaker = self._places[entry]
        own, total = self._rated.get(entry, (0.0, 0.0))
        parts = {"lexical": own / self._top, "near": (total - own) / self._top}
        parts["group"] = STRETCH * self._stretches.get(stretch, 0.0)
        if self._dense:
            parts["dense"] = self._dense.get(entry, 0.0)
        if self._find_participants.prefers(speaker):
            parts["role"] = (sum(parts.values()) - parts["near"]) * (USER - 1)
        if self._find_participants.names(speaker):
            parts["author"] = self._gain
        return parts


def without_names(query: str, names: Iterable[str]) -> str:
    """Return a query without participants' names: for a small encoder, a name outweighs everything else."""
    unwanted = frozenset(name.casefold() for name in names)
    if not unwanted:
        return query
    rest = _WORD.sub(lambda word: "" if _without_possessive(word[0]) in unwanted else word[0], query)
    rest = " ".join(rest.split())
    return rest if _WORD.search(rest) else query


def _without_possessive(word: str) -> str:
    return re.sub("['’]s$", "", word).casefold()
