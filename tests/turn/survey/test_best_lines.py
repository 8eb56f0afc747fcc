"""Which line of a message says most about a query."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.turn.survey.best_lines import Words

LOG = "Starting the server\nlistening on port 8080\nthe harbour lamp burns seven hours\nstopped"


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("listening on port", "listening on port 8080"),
        ("HARBOUR LAMP hours", "the harbour lamp burns seven hours"),
    ],
)
def test_the_line_with_most_of_the_words_is_found(query: str, line: str) -> None:
    best = Words(query).best_line(LOG)
    assert LOG[best.start : best.stop] == line
    assert best.score > 0


def test_words_side_by_side_count_more_than_words_apart() -> None:
    text = "port of the harbour and its lamp\nthe harbour lamp"
    best = Words("harbour lamp").best_line(text)
    assert text[best.start : best.stop] == "the harbour lamp"


def test_nothing_in_common_is_no_line() -> None:
    assert Words("glacier").best_line(LOG) == (0, 0, 0.0)


def test_a_long_line_is_looked_at_piece_by_piece() -> None:
    text = "x " * 2000 + "the harbour lamp " + "y " * 2000
    best = Words("harbour lamp").best_line(text)
    assert "harbour lamp" in text[best.start : best.stop]
    assert best.stop - best.start <= 600


@given(st.text(), st.text(min_size=1))
def test_whatever_is_asked_the_place_is_inside_the_text(text: str, query: str) -> None:
    best = Words(query).best_line(text)
    assert 0 <= best.start <= best.stop <= len(text)
    assert "\n" not in text[best.start : best.stop]
