"""Forms of a word that a stemmer does not join."""

import pytest

from daypack.search.forms import spell_forms


@pytest.mark.parametrize("term", ["buy", "bought", "buys", "buying"])
def test_every_form_leads_to_all_others(term: str) -> None:
    assert {"buy", "bought", term} == set(spell_forms(term))
    assert spell_forms(term)[0] == term


@pytest.mark.parametrize(("term", "form"), [("taking", "took"), ("goes", "went"), ("children", "child")])
def test_endings_are_seen_through(term: str, form: str) -> None:
    assert form in spell_forms(term)


def test_a_form_of_two_words_leads_to_both() -> None:
    assert {"laid", "lie", "lain"} <= set(spell_forms("lay"))


@pytest.mark.parametrize("term", ["painting", "s", "ing", "es", "東京", "wing", "something", ""])
def test_other_words_are_left_to_the_stemmer(term: str) -> None:
    assert spell_forms(term) == (term,)
