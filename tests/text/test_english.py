"""English words: stems, roots and irregular forms."""

import pytest

from daypack.text.english import irregular_forms, root, stem


@pytest.mark.parametrize("term", ["buy", "bought", "buys", "buying"])
def test_every_form_leads_to_all_others(term: str) -> None:
    assert {"buy", "bought", term} == set(irregular_forms(term))
    assert irregular_forms(term)[0] == term


@pytest.mark.parametrize(("term", "form"), [("taking", "took"), ("goes", "went"), ("children", "child")])
def test_regular_endings_of_irregular_words_are_understood(term: str, form: str) -> None:
    assert form in irregular_forms(term)


def test_a_form_of_two_words_leads_to_both() -> None:
    assert {"laid", "lie", "lain"} <= set(irregular_forms("lay"))


@pytest.mark.parametrize("term", ["painting", "s", "ing", "es", "東京", "wing", "something", ""])
def test_other_words_are_left_to_the_stemmer(term: str) -> None:
    assert irregular_forms(term) == (term,)


@pytest.mark.parametrize(
    ("first", "second"),
    [("fails", "failed"), ("file", "files"), ("tries", "tried"), ("running", "run"), ("run", "runs")],
)
def test_inflected_forms_have_one_stem(first: str, second: str) -> None:
    assert stem(first) == stem(second)


@pytest.mark.parametrize(("first", "second"), [("narrates", "narration"), ("verify", "verification")])
def test_derived_words_have_one_root_and_stems_of_their_own(first: str, second: str) -> None:
    assert root(first) == root(second)
    assert stem(first) != stem(second)


@pytest.mark.parametrize("word", ["bus", "this", "less", "3rd", "ös", "ing", ""])
def test_words_that_only_look_inflected_keep_their_ending(word: str) -> None:
    assert stem(word) == word
