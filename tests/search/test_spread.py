"""Ranking: what stands near a match is found, and the parts of a score add up."""

import pytest

from daypack.search.spread import AFTER, BEFORE, SECOND_AFTER, Cast, Place, rank, speaker


def row(count: int, stretch: int = 1, who: int = 0) -> dict[int, Place]:
    """A conversation of `count` entries, 1 to `count`."""
    return {one: Place(one, stretch, one - 1, one + 1 if one < count else 0, who) for one in range(1, count + 1)}


def test_neighbours_are_found_in_the_order_of_their_shares() -> None:
    ranked = rank({5: 2.0}, row(9), Cast(), 9)
    assert [one.id for one in ranked] == [5, 6, 4, 7]
    assert [one.parts["near"] for one in ranked] == [0, AFTER, BEFORE, SECOND_AFTER]


def test_neighbours_that_were_not_read_are_not_found() -> None:
    assert [one.id for one in rank({5: 2.0}, {5: row(9)[5]}, Cast(), 9)] == [5]


def test_an_entry_the_index_does_not_know_is_passed_over() -> None:
    assert rank({5: 2.0}, {}, Cast(), 9) == []
    assert rank({}, row(3), Cast(), 9) == []


def test_two_matches_lift_what_stands_between_them() -> None:
    ranked = rank({4: 1.0, 6: 1.0, 9: 1.0}, row(12), Cast(), 12)
    assert ranked[0].id == 6
    assert next(one for one in ranked if one.id == 5).score > next(one for one in ranked if one.id == 10).score


def test_a_stretch_with_more_matches_wins() -> None:
    alone = {one: place._replace(before=0, after=0) for one, place in row(9).items()}
    places = {one: place._replace(stretch=1 if one < 5 else 2) for one, place in alone.items()}
    ranked = rank({1: 1.0, 6: 1.0, 8: 0.9}, places, Cast(), 9)
    assert [one.id for one in ranked] == [6, 8, 1]


def test_what_the_user_said_counts_more_unless_persons_speak() -> None:
    places = row(9)
    places[2] = places[2]._replace(speaker=speaker(0, is_user=True))
    assert rank({2: 0.8, 6: 1.0}, places, Cast(), 9)[0].id == 2
    places[2] = places[2]._replace(speaker=speaker(7, is_user=True))
    assert rank({2: 0.8, 6: 1.0}, places, Cast(persons=False), 9)[0].id == 2
    assert rank({2: 0.8, 6: 1.0}, places, Cast(persons=True), 9)[0].id == 6
    places[2] = places[2]._replace(speaker=speaker(-7, is_user=True))
    assert rank({2: 0.8, 6: 1.0}, places, Cast(persons=True), 9)[0].id == 2
    assert rank({2: 0.8, 6: 1.0}, places, Cast(guessed=frozenset([7])), 9)[0].id == 6


@pytest.mark.parametrize("author", [3, -3])
def test_the_author_a_query_names_gains(author: int) -> None:
    places = row(9)
    places[2] = places[2]._replace(speaker=speaker(author, is_user=False))
    assert rank({2: 0.95, 6: 1.0}, places, Cast(), 9)[0].id == 6
    ranked = rank({2: 0.95, 6: 1.0}, places, Cast(named=3), 9)
    assert ranked[0].id == 2
    assert ranked[0].parts["author"] > 0


def test_parts_add_up_and_equal_scores_put_the_newest_first() -> None:
    places = row(30, who=speaker(2, is_user=True))
    ranked = rank({5: 1.0, 15: 1.0, 25: 1.0}, places, Cast(named=2), 30)
    assert [one.id for one in ranked[:3]] == [25, 15, 5]
    for one in ranked:
        assert sum(one.parts.values()) == pytest.approx(one.score)


def test_no_more_than_asked_for() -> None:
    assert len(rank({5: 1.0, 15: 1.0, 25: 1.0}, row(30), Cast(), 4)) == 4
