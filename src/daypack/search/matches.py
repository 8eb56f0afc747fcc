"""Scores postings: finds the entries that match best, and the best chunk of each entry.

Only the postings of the rarest terms, and those that contain several terms, are scored.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from daypack.search.postings import CHUNK_BITS, ENTRY_BITS, LENGTH_BITS, LENGTHS, Extent, Term

RAREST = 2_000  # postings of the rarest terms that are always scored
LENGTH_WEIGHT = 0.3  # BM25 with k1 = 1.2 and b = 0.42 for terms that occur once; repetition adds almost nothing


class Chunk(NamedTuple):
    """A chunk of an entry: its score, its posting, a bit mask of its terms."""

    score: float
    row: int
    mask: int

    @property
    def number(self) -> int:
        """Its position in its entry."""
        return (self.row >> LENGTH_BITS) & ((1 << CHUNK_BITS) - 1)


class Scores:
    """What the terms of a query are worth, and how much the length of a chunk counts."""

    def __init__(self, counts: Sequence[int], extent: Extent) -> None:
        """`counts`: in how many chunks each term is."""
        self.rarities = [extent.rarity(count) for count in counts]
        self.factors = _length_factors(extent.mean_words)
        self.all_worth = sum(self.rarities)
        self._worths: dict[int, float] = {0: 0.0}

    def worth(self, mask: int) -> float:
        """Return the weight of the terms in a mask."""
        known = self._worths.get(mask)
        if known is None:
            known = sum(rarity for number, rarity in enumerate(self.rarities) if mask >> number & 1)
            self._worths[mask] = known
        return known

    def rate(self, mask: int, length: int) -> float:
        """Return the score of a chunk with these terms and of this length class."""
        return self.worth(mask) * self.factors[length]

    def factor(self, chunk: Chunk) -> float:
        """Return the length factor of a chunk."""
        return self.factors[chunk.row & (LENGTHS - 1)]


class Matches:
    """The terms of a query, rarest first, and the chunks that contain them."""

    def __init__(self, terms: Sequence[Term], extent: Extent) -> None:
        self.scores = Scores([term.count for term in terms], extent)
        self._rows = [term.rows for term in terms]

    def add(self, postings: Iterable[Iterable[int]]) -> None:
        """Add more postings, one list for each term."""
        self._rows = [[*known, *rows] for known, rows in zip(self._rows, postings, strict=True)]

    def choose(self, limit: int, allowed: Collection[int] | None = None) -> list[int]:
        """Return the entries that match best, best first, then newest first."""
        wanted = 2 * limit  # chunks: a long entry may have several
        if allowed is None:
            rated = self._rate_likely(wanted)
        else:
            rated = self._rate(row for rows in self._rows for row in rows if row >> ENTRY_BITS in allowed)
        floor = _floor(rated, wanted)
        best = sorted([pair for pair in rated if pair[0] >= floor], reverse=True)
        return list(dict.fromkeys([row >> ENTRY_BITS for _, row in best]))[:limit]

    def _rate_likely(self, wanted: int) -> list[tuple[float, int]]:
        """Score the postings that can be among the best."""
        rarest, read = 0, 0
        for rows in self._rows:
            read += len(rows)
            if read > RAREST:
                break
            rarest += 1
        if rarest == len(self._rows):
            return self._rate(chain.from_iterable(self._rows))
        # Each list is sorted already, so sorting is merging, which is far cheaper than counting.
        several = [row for row, next_row in pairwise(sorted(chain.from_iterable(self._rows))) if row == next_row]
        rated = self._rate(chain(several, *self._rows[:rarest]))
        # A common term may suffice by itself: then all its postings are scored.
        floor = _floor(rated, wanted) / self.scores.factors[0]
        enough = [rows for rows, rarity in zip(self._rows, self.scores.rarities, strict=True) if rarity >= floor]
        return self._rate(chain(several, *enough)) if len(enough) > rarest else rated

    def _rate(self, rows: Iterable[int]) -> list[tuple[float, int]]:
        masks = self._masks(rows)
        scores = {
            mask: [self.scores.worth(mask) * factor for factor in self.scores.factors] for mask in set(masks.values())
        }
        last = LENGTHS - 1
        return [(scores[mask][row & last], row) for row, mask in masks.items()]

    def _masks(self, wanted: Iterable[int]) -> dict[int, int]:
        masks = dict.fromkeys(wanted, 0)
        for number, rows in enumerate(self._rows):
            bit = 1 << number
            for row in filter(masks.__contains__, rows):
                masks[row] |= bit
        return masks

    def find(self, ids: Collection[int]) -> dict[int, Chunk]:
        """Return the best chunk of each of these entries that contains a term; on a tie the later one."""
        best: dict[int, Chunk] = {}
        masks = self._masks([row for rows in self._rows for row in rows if row >> ENTRY_BITS in ids])
        for row, mask in masks.items():
            chunk = Chunk(self.scores.rate(mask, row & (LENGTHS - 1)), row, mask)
            entry = row >> ENTRY_BITS
            if entry not in best or best[entry] < chunk:
                best[entry] = chunk
        return best


def _floor(rated: list[tuple[float, int]], wanted: int) -> float:
    """Return the lowest score among the best."""
    return sorted([score for score, _ in rated])[-wanted] if len(rated) > wanted else 0.0


def _length_factors(mean_words: float) -> list[float]:
    """Return the factor of each length class: a match in a short chunk counts more."""
    middle = (2 ** ((length + 0.5) / 2) for length in range(LENGTHS))
    return [(1 + LENGTH_WEIGHT) / (1 + LENGTH_WEIGHT * words / mean_words) for words in middle]
