"""Words by which texts are compared."""

import pytest

from daypack.text.english import STOP_WORDS
from daypack.text.words import content_words, count_negations, stems_of


def test_content_words_are_folded_and_without_stop_words() -> None:
    assert content_words("The Export of run_export IS not in src/a.py") == ["export", "run_export", "not", "src", "py"]
    assert not STOP_WORDS & set(content_words("We have the same, and it is only for you"))


def test_chinese_is_read_as_pairs_of_characters() -> None:
    assert content_words("修复错误 in s3桶子") == ["修复", "复错", "错误", "s3", "桶子"]
    assert content_words("修") == ["修"]


def test_stems_leave_out_negations() -> None:
    assert stems_of("Tests don't fail, never failed") == {"test", "fail"}


@pytest.mark.parametrize(
    ("text", "count"), [("It does not work.", 1), ("Don't forget the tests.", 0), ("No, it isn't", 1), ("不要", 1)]
)
def test_negations_are_counted_where_they_deny(text: str, count: int) -> None:
    assert count_negations(text) == count


@pytest.mark.parametrize("pattern", ["a. ", "...", "a b c\n", "'", "。", "文", "a_"])
def test_long_hostile_texts_are_read_in_time(pattern: str) -> None:
    text = pattern * (300_000 // len(pattern))
    assert len(content_words(text)) <= len(text)
