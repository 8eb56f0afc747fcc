"""Scores entries by their own words and by those of their neighbours: the answer is often the message after a match.

Each term of the query counts once for an entry: fully if the entry contains it, partly if only a neighbour does. So two
neighbours with the same words add no more than one, and an entry with the missing words of its neighbour gets both.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

AFTER, SECOND_AFTER, BEFORE = 0.6, 0.3, 0.5  # share of an entry's terms that counts for the entries after and before it
_SHARES = (1.0, AFTER, BEFORE, SECOND_AFTER)
STRETCH_BEST = 3  # entries that count for their stretch


class Place(NamedTuple):
    """An entry's position: its stretch, its neighbours in the conversation (0: none), its speaker."""

    id: int
    stretch: int
    before: int
    after: int
    speaker: int  # see `speaker`


def speaker(author: int, *, is_user: bool) -> int:
    """Encode an author (0: unknown; negative: found in the text) and whether it is the user as one number."""
    return author * 2 + is_user


class EntryTerms(NamedTuple):
    """The terms in an entry's best chunk, as a bit mask, and the chunk's length factor."""

    mask: int
    factor: float


class Rated(NamedTuple):
    """An entry's word score: from its own words, and in total with those of its neighbours."""

    own: float
    total: float


def rate_entries(
    terms: Mapping[int, EntryTerms], places: Mapping[int, Place], worth: Callable[[int], float]
) -> dict[int, Rated]:
    """Score the entries at `places`; entries without any term are left out.

    `worth` returns the weight of the terms in a mask.
    """
    rated: dict[int, Rated] = {}
    known: dict[tuple[EntryTerms | None, ...], Rated] = {}
    terms_of, place_of = terms.get, places.get
    for entry, _, before, after, _ in places.values():
        earlier = place_of(before)
        there = terms_of(entry), terms_of(before), terms_of(after), terms_of(earlier[2]) if earlier else None
        score = known.get(there)
        if score is None:
            score = known[there] = _rate(there, worth)
        if score[1]:
            rated[entry] = score
    return rated


def _rate(there: tuple[EntryTerms | None, ...], worth: Callable[[int], float]) -> Rated:
    """Score an entry by its terms and those of the entries before, after, and two before it."""
    shares = [(share * terms[1], terms[0]) for share, terms in zip(_SHARES, there, strict=True) if terms]
    own = shares[0][0] * worth(shares[0][1]) if there[0] else 0.0
    return Rated(own, _sum_once(shares, worth) if len(shares) > 1 or not there[0] else own)


def _sum_once(terms: list[tuple[float, int]], worth: Callable[[int], float]) -> float:
    """Add up the weights, each term once, where it counts most."""
    if len(terms) > 1:
        terms.sort(reverse=True)
    total, counted = 0.0, 0
    for factor, mask in terms:
        new = mask & ~counted
        if new:
            total += factor * worth(new)
            counted |= mask
    return total


def rate_stretches(entries: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Score each stretch by its best entries, relative to the best stretch."""
    members: dict[int, list[float]] = {}
    for stretch, score in entries:
        members.setdefault(stretch, []).append(score)
    rates = {stretch: sum(sorted(scores)[-STRETCH_BEST:]) for stretch, scores in members.items()}
    best = max(rates.values(), default=0.0) or 1.0
    return {stretch: rate / best for stretch, rate in rates.items()}
