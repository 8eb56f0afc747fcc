"""What stands near a match, or in a good stretch: an answer is often the message after the one with the words.

Each term of the query counts once for an entry: in full where the entry holds it, by a share where only a neighbour
does. So two neighbours with the same words lift what is between them no more than one, and an entry that completes what
the one before it left out is worth both.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

AFTER, SECOND_AFTER, BEFORE = 0.6, 0.3, 0.5  # of what an entry holds, for the entries after and before it
STRETCH_BEST = 3  # entries that speak for a stretch


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


class Held(NamedTuple):
    """What the best chunk of an entry holds: a mask of terms, and the factor of its length."""

    mask: int
    factor: float


class Rated(NamedTuple):
    """What words are worth to an entry: its own, and all with those of its neighbours."""

    own: float
    total: float


def spread(held: Mapping[int, Held], places: Mapping[int, Place], worth: Callable[[int], float]) -> dict[int, Rated]:
    """Rate the entries at `places` by what they and their neighbours hold; those without any word are left out.

    `worth` says what the terms of a mask are worth together.
    """
    rated: dict[int, Rated] = {}
    held_by = held.get
    for one, _, before, after, _ in places.values():
        own, near = held_by(one), [(AFTER, held_by(before)), (BEFORE, held_by(after))]
        if before in places:
            near.append((SECOND_AFTER, held_by(places[before][2])))
        shares = [(share * there[1], there[0]) for share, there in near if there]
        if own:
            mask, factor = own
            score = factor * worth(mask)
            rated[one] = Rated(score, _add_up([(factor, mask), *shares], worth) if shares else score)
        elif shares:
            rated[one] = Rated(0.0, _add_up(shares, worth))
    return rated


def _add_up(held: list[tuple[float, int]], worth: Callable[[int], float]) -> float:
    """Count each term once, where it counts most."""
    if len(held) > 1:
        held.sort(reverse=True)
    total, counted = 0.0, 0
    for factor, mask in held:
        new = mask & ~counted
        if new:
            total += factor * worth(new)
            counted |= mask
    return total


def rate_stretches(entries: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Rate each stretch by its best entries, in proportion to the best stretch."""
    members: dict[int, list[float]] = {}
    for stretch, score in entries:
        members.setdefault(stretch, []).append(score)
    rates = {stretch: sum(sorted(scores)[-STRETCH_BEST:]) for stretch, scores in members.items()}
    best = max(rates.values(), default=0.0) or 1.0
    return {stretch: rate / best for stretch, rate in rates.items()}
