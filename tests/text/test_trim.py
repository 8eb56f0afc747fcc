"""Texts made short enough."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daypack.text.trim import is_cut_within_a_word, trim

TEXT = "The server listens on port 8081. The client, which is old, expects 8080; nobody changed it."


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert trim(f"  {TEXT}\n", len(TEXT)) == TEXT


def test_it_ends_with_a_sentence_where_one_fits() -> None:
    assert trim(TEXT, 60) == "The server listens on port 8081."


def test_it_ends_with_a_clause_where_no_sentence_fits() -> None:
    assert trim("We keep the parser as it is, because the new one is slow and nobody asked for it", 60) == (
        "We keep the parser as it is"
    )


def test_it_ends_with_a_word_where_no_clause_fits() -> None:
    assert trim("Nobody ever asked for a parser of any kind", 20) == "Nobody ever asked"


def test_a_bracket_or_code_span_is_not_left_open_at_a_clause() -> None:
    text = "Call the function twice (with one argument, or with two, or three) and look at the output"
    assert trim(text, 50) == "Call the function twice"


def test_a_single_long_word_is_cut_and_said_to_be() -> None:
    word = "x" * 50
    assert trim(word, 20) == "x" * 20
    assert is_cut_within_a_word(trim(word, 20), word)
    assert not is_cut_within_a_word("Nobody", "Nobody asked")


def test_text_without_spaces_ends_at_its_own_full_stops() -> None:
    assert trim("我们决定使用数据库。然后我们写测试，最后部署。", 14) == "我们决定使用数据库。"


@pytest.mark.parametrize("text", ["e\u0301" * 9, "👩\u200d💻" * 6, "👍🏽" * 9])
def test_characters_made_of_several_are_not_parted(text: str) -> None:
    for size in range(3, len(text)):
        kept = trim(text, size)
        assert not unicodedata.combining(text[len(kept)])
        assert not kept.endswith("\u200d")
        assert text[len(kept)] not in "\u200d🏽"


def test_no_room_leaves_nothing() -> None:
    assert trim(TEXT, 0) == ""
    assert trim(TEXT, -3) == ""


WORDS = st.text(alphabet=st.sampled_from("ab1. ,;:()`-\n。、🏽e\u0301\u200d"), max_size=300) | st.text(max_size=200)


@given(WORDS, st.integers(-2, 120))
@example("\u0301\u0301\u0301", 1)
@example("....", 2)
def test_trimming_again_changes_nothing_and_nothing_is_added(text: str, size: int) -> None:
    kept = trim(text, size)
    assert len(kept) <= max(size, 0)
    assert text.strip().startswith(kept)
    assert trim(kept, size) == kept
