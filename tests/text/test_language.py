"""The language of a text, by its function words."""

import pytest

from daypack.text.language import is_english, language_of


@pytest.mark.parametrize(
    "text",
    [
        "Ich habe den Termin auf den 17. August verschoben.",
        "我把发布日期改到了2025年8月17日。",
        "Je vais le faire pour la fin du mois.",
        "",
        "xyzzy",
    ],
)
def test_other_languages_are_not_taken_for_english(text: str) -> None:
    assert not is_english(text)


def test_plain_english_is_recognised() -> None:
    assert is_english("We moved the launch to August.")
    assert is_english("It’s in the café near us")


@pytest.mark.parametrize(
    ("text", "language"),
    [("wir haben das nicht", "de"), ("je ne le fais pas", "fr"), ("los datos y las tablas", "es"), ("xyzzy", "en")],
)
def test_the_language_with_most_function_words_wins(text: str, language: str) -> None:
    assert language_of(text.split()) == language
