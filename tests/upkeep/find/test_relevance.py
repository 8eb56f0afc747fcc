"""What is about a query: words that occur nowhere are its rarest, and nothing is found because something had to be."""

import pytest

import daypack
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.upkeep.find import find
from daypack.upkeep.find.relevance import FLOOR, Relevance, answers


@pytest.fixture
def place(home: str) -> Home:
    """A home with 200 messages about builds, of which some say "nothing" and "fix"."""
    with daypack.open_session("build", home=home, durability="os") as session:
        for number in range(200):
            session.append("user", f"Step {number} of the build compiled module m{number} in silence.")
            if number % 10 == 0:
                session.append("assistant", f"Nothing to fix in stage s{number}, the tests pass.")
        session.append("assistant", "The gateway listens on 8093 now.")
    return find_home(home)


@pytest.mark.parametrize(
    ("query", "absent"), [("zxqv nothing", ("zxqv",)), ("where did we fix the port?", ("port",)), ("zxqv", ("zxqv",))]
)
def test_the_rest_of_a_query_is_no_answer_where_its_subject_occurs_nowhere(
    place: Home, query: str, absent: tuple[str, ...]
) -> None:
    found = find(place, query)
    assert (found.hits, found.absent) == ((), absent)


def test_a_common_word_alone_is_found(place: Home) -> None:
    found = find(place, "nothing")
    assert found.hits
    assert (found.absent, found.weak) == ((), False)


def test_a_year_that_no_message_mentions_does_not_hide_the_answer(place: Home) -> None:
    found = find(place, "which port has the gateway in 1997?")
    assert "gateway" in found.hits[0].line
    assert found.absent == ("port", "1997")


def test_few_results_are_shown_if_all_are_weak(place: Home) -> None:
    with daypack.open_session("quay", home=place.root, uid=place.uid, durability="os") as session:
        for number in range(7):
            session.append("user", f"Pier {number} was painted on day d{number}.")
    assert len(find(place, "pier", per_session=9).hits) == 7
    few = find(place, "harbour pier", per_session=9)
    assert few.weak
    assert (len(few.hits), few.absent) == (5, ("harbour",))


@pytest.mark.parametrize("query", ["", "?!", "the of and", "🚀", "( ) * ^ \" '", "\0"])
def test_a_query_without_words_is_refused(place: Home, query: str) -> None:
    with pytest.raises(BadInput, match="no words to search for"):
        find(place, query)


class _Result:
    def __init__(self, own: float, total: float) -> None:
        self.relevance = Relevance(own / FLOOR, total / FLOOR)


def test_results_far_below_the_best_are_left_out() -> None:
    best, near, far = _Result(1.0, 1.0), _Result(0.1, 0.45), _Result(0.35, 0.35)
    assert answers([best, near, far]) == ([best, near], False)
    assert answers([far, near]) == ([far, near], True)
    assert answers([near]) == ([], False)
    assert answers([]) == ([], False)
