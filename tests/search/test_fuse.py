"""Fusion: who said it, how close it is, which are allowed; and the parts of a score add up."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.search.fuse import Closeness, Participants, Ranked, rank, without_names
from daypack.search.indexing import Doc
from daypack.search.lexical import Lexical
from daypack.search.neighbours import Place, Rated, speaker


def row(count: int, stretch: int = 1, who: int = 0) -> dict[int, Place]:
    """A conversation of `count` entries, 1 to `count`."""
    return {one: Place(one, stretch, one - 1, one + 1 if one < count else 0, who) for one in range(1, count + 1)}


def own(**scores: float) -> dict[int, Rated]:
    return {int(name[1:]): Rated(score, score) for name, score in scores.items()}


def ids(ranked: list[Ranked]) -> list[int]:
    return [one.id for one in ranked]


def test_entries_stand_in_the_order_of_their_scores_the_newest_first_of_equal_ones() -> None:
    assert ids(rank(own(e2=1.0, e5=3.0, e7=1.0), row(9), Participants(), 9)) == [5, 7, 2]
    assert ids(rank(own(e2=1.0, e5=3.0, e7=1.0), row(9), Participants(), 2)) == [5, 7]
    assert rank({}, row(3), Participants(), 9) == []


def test_a_stretch_with_more_matches_wins() -> None:
    places = {one: place._replace(stretch=1 if one < 5 else 2) for one, place in row(9).items()}
    assert ids(rank(own(e1=1.0, e6=1.0, e8=0.9), places, Participants(), 9)) == [6, 8, 1]


def test_what_the_user_said_counts_more_unless_persons_speak() -> None:
    places, rated = row(9), own(e2=0.8, e6=1.0)
    places[2] = places[2]._replace(speaker=speaker(0, is_user=True))
    assert ids(rank(rated, places, Participants(), 1)) == [2]
    places[2] = places[2]._replace(speaker=speaker(7, is_user=True))
    assert ids(rank(rated, places, Participants(persons=False), 1)) == [2]
    assert ids(rank(rated, places, Participants(persons=True), 1)) == [6]
    places[2] = places[2]._replace(speaker=speaker(-7, is_user=True))
    assert ids(rank(rated, places, Participants(persons=True), 1)) == [2]
    assert ids(rank(rated, places, Participants(guessed=frozenset([7])), 1)) == [6]


@pytest.mark.parametrize("author", [3, -3])
def test_the_author_a_query_names_gains(author: int) -> None:
    places = row(9)
    places[2] = places[2]._replace(speaker=speaker(author, is_user=False))
    assert ids(rank(own(e2=0.95, e6=1.0), places, Participants(), 1)) == [6]
    (best,) = rank(own(e2=0.95, e6=1.0), places, Participants(named=3), 1)
    assert best.id == 2
    assert best.parts["author"] > 0


def test_what_is_close_is_found_without_a_word() -> None:
    close = Closeness({2: 0.9, 4: 0.1, 6: 0.2}, low=0.1, high=0.9, weight=0.8)
    ranked = rank({}, row(9), Participants(), 3, closeness=close)
    assert ids(ranked)[0] == 2
    assert ranked[0].parts["dense"] == pytest.approx(0.8)
    both = rank(own(e6=1.0, e4=1.0), row(9), Participants(), 9, closeness=close)
    assert ids(both)[:2] == [6, 4]
    assert "dense" not in rank(own(e6=1.0), row(9), Participants(), 1)[0].parts


def test_closeness_does_not_depend_on_which_candidates_there_are() -> None:
    few = Closeness({2: 0.5}, low=0.0, high=1.0, weight=1.0).scale([2])
    many = Closeness({2: 0.5, 3: 0.9, 4: 0.1}, low=0.0, high=1.0, weight=1.0).scale([2, 3, 4])
    assert few[2] == many[2] == 0.5


def test_an_entry_without_a_vector_is_taken_for_an_average_one() -> None:
    scaled = Closeness({2: 0.2, 3: 0.6}, low=0.0, high=1.0, weight=1.0).scale([2, 3, 4])
    assert scaled[4] == pytest.approx(0.4)


def test_cosines_without_a_range_say_nothing() -> None:
    assert Closeness({2: 0.5}, low=0.5, high=0.5, weight=1.0).scale([2]) == {}
    assert Closeness({}, low=0.0, high=1.0, weight=1.0).scale([2]) == {}


def test_only_what_is_allowed_is_returned_and_its_score_stays() -> None:
    places, rated = row(9), own(e2=1.0, e5=3.0, e7=1.5)
    every = {one.id: one for one in rank(rated, places, Participants(), 9)}
    assert [every[2]] == rank(rated, places, Participants(), 9, allowed={2, 3})


@given(
    scores=st.dictionaries(st.integers(1, 30), st.tuples(st.floats(0, 9), st.floats(0, 9)), max_size=12),
    cosines=st.dictionaries(st.integers(1, 30), st.floats(-1, 1), max_size=12),
    speakers=st.lists(st.integers(-5, 5), min_size=30, max_size=30),
    named=st.integers(0, 2),
)
def test_parts_add_up(
    scores: dict[int, tuple[float, float]], cosines: dict[int, float], speakers: list[int], named: int
) -> None:
    places = {one: place._replace(speaker=speakers[one - 1], stretch=one // 4) for one, place in row(30).items()}
    rated = {one: Rated(own, own + near) for one, (own, near) in scores.items()}
    close = Closeness(cosines, -1.0, 1.0, 0.7)
    ranked = rank(rated, places, Participants(named, persons=True), 30, closeness=close)
    assert {one.id for one in ranked} >= scores.keys()
    for one in ranked:
        assert sum(one.parts.values()) == pytest.approx(one.score)
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("What is Caroline's hobby?", "What is hobby?"),
        ("When did Melanie and Caroline meet?", "When did and meet?"),
        ("Carolines hobby", "Carolines hobby"),
        ("caroline’s cat", "cat"),
        ("Caroline", "Caroline"),
        ("Caroline?", "Caroline?"),
    ],
)
def test_names_are_taken_out_of_a_query_that_is_more_than_names(query: str, rest: str) -> None:
    assert without_names(query, ["caroline", "melanie"]) == rest
    assert without_names(query, []) == query


def test_a_neighbour_of_the_user_does_not_outrank_the_only_match(tmp_path: Path) -> None:
    index = Lexical(str(tmp_path / "words.sqlite"))
    paid = [Doc(number, f"Hi, invoice {number} is paid.", role="user") for number in (2, 3, 4)]
    index.add([Doc(1, "The caterer is Nadia's bakery.", role="assistant"), *paid])
    assert index.search("caterer", limit=4)[0].id == 1
    index.close()
