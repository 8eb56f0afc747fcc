"""Surroundings: what stands near a match is found, and each term counts once."""

import pytest

from daypack.search.neighbours import (
    AFTER,
    BEFORE,
    SECOND_AFTER,
    EntryTerms,
    Place,
    Rated,
    rate_entries,
    rate_stretches,
    speaker,
)

RED, GREEN, BLUE = 1, 2, 4


def worth(mask: int) -> float:
    return float(mask.bit_count())


def row(count: int, stretch: int = 1, who: int = 0) -> dict[int, Place]:
    """A conversation of `count` entries, 1 to `count`."""
    return {one: Place(one, stretch, one - 1, one + 1 if one < count else 0, who) for one in range(1, count + 1)}


def test_neighbours_get_a_share_of_what_an_entry_holds() -> None:
    rated = rate_entries({5: EntryTerms(RED, 1.0)}, row(9), worth)
    assert rated == {5: Rated(1, 1), 6: Rated(0, AFTER), 4: Rated(0, BEFORE), 7: Rated(0, SECOND_AFTER)}


def test_neighbours_that_were_not_read_are_not_found() -> None:
    assert rate_entries({5: EntryTerms(RED, 1.0)}, {5: row(9)[5]}, worth) == {5: Rated(1, 1)}
    assert rate_entries({5: EntryTerms(RED, 1.0)}, {}, worth) == {}
    assert rate_entries({}, row(3), worth) == {}


def test_a_neighbour_that_is_no_candidate_adds_its_words_all_the_same() -> None:
    assert rate_entries({4: EntryTerms(RED, 1.0), 6: EntryTerms(BLUE, 1.0)}, {5: row(9)[5]}, worth) == {
        5: Rated(0, AFTER + BEFORE)
    }


def test_a_term_counts_once_where_it_counts_most() -> None:
    same = rate_entries({4: EntryTerms(RED, 1.0), 5: EntryTerms(RED, 1.0), 6: EntryTerms(RED, 1.0)}, row(9), worth)
    assert same[5] == Rated(1, 1)
    other = rate_entries(
        {4: EntryTerms(RED | GREEN, 1.0), 5: EntryTerms(GREEN, 1.0), 6: EntryTerms(BLUE, 1.0)}, row(9), worth
    )
    assert other[5] == Rated(1, 1 + AFTER + BEFORE)
    short = rate_entries({4: EntryTerms(RED, 2.0), 5: EntryTerms(RED, 1.0)}, row(9), worth)
    assert short[5].total == pytest.approx(2 * AFTER)  # a short neighbour outweighs the entry's own words


def test_stretches_are_rated_by_their_best_entries() -> None:
    rates = rate_stretches([(1, 1.0), (2, 1.0), (2, 0.5), (3, 0.5), (3, 0.5), (3, 0.5), (3, 0.5)])
    assert rates == {1: pytest.approx(2 / 3), 2: 1.0, 3: 1.0}
    assert rate_stretches([]) == {}


def test_a_speaker_is_one_number() -> None:
    numbers = {speaker(author, is_user=user) for author in (-2, -1, 0, 1, 2) for user in (False, True)}
    assert len(numbers) == 10
    assert all(speaker(author, is_user=True) >> 1 == author for author in (-2, 0, 2))
