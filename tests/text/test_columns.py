"""Texts in columns of a terminal."""

import pytest

from daypack.text.columns import age, columns, fit, short_count


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 10, "short"),
        ("exactly10!", 10, "exactly10!"),
        ("eleven chars", 10, "eleven ch…"),
        ("a\tb\nc", 20, "a\\tb\\nc"),
        ("猫猫猫猫", 8, "猫猫猫猫"),
        ("猫猫猫猫", 7, "猫猫猫…"),
        ("e\u0301" * 5, 5, "e\u0301" * 5),
        ("word more", 6, "word…"),
        ("x", 0, ""),
    ],
)
def test_a_text_is_cut_to_its_columns(text: str, width: int, shown: str) -> None:
    assert fit(text, width) == shown
    assert columns(fit(text, width)) <= width


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (47 * 3600, "47 h"),
        (48 * 3600, "2 d"),
        (59 * 86400, "59 d"),
        (61 * 86400, "2 mo"),
        (800 * 86400, "2 y"),
        (-50, "0 s"),
    ],
)
def test_an_age_has_one_unit(seconds: int, shown: str) -> None:
    moment = 1_700_000_000
    assert age("2023-11-14T22:13:20Z", moment + seconds) == shown
    assert age("no time", moment) == ""


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (1_249, "1.2k"),
        (9_999, "9.9k"),
        (10_000, "10k"),
        (258_400, "258k"),
        (1_000_000, "1M"),
        (1_550_000, "1.5M"),
    ],
)
def test_a_count_takes_few_characters(number: int, shown: str) -> None:
    assert short_count(number) == shown
