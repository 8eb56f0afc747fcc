"""Statements are compared by stems in any order, and told apart by negation, number, name, order and condition."""

import pytest

from daypack.text.statements.wording import terms_of, wording_of


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Before committing, always run tests.", "Run the tests before every commit."),
        ("Quotations need page numbers.", "Quote page numbers."),
        ("Both prefer footnotes.", "Footnotes are preferred by both."),
        ("Responses are in English.", "Respond in English."),
        ("She wrote the letters.", "Letters are written."),
        ("**Never** push to `main`.", "Pushing to main is forbidden!"),
        ("Use [the index](a.md).", "The index is used."),
        ("Label the source of every photo.", "Every photo needs a label of its source."),
        ("Cancel the order.", "Cancellation of the order."),
        ("Publish the guidance.", "The guide needs publication."),
        ("Decide on the extension.", "Extend the decision."),
        ("Keep the lid shut.", "Do not open the lid, keep it."),
    ],
)
def test_the_same_words_in_other_forms_have_the_same_terms(one: str, two: str) -> None:
    assert terms_of(one) == terms_of(two)
    assert wording_of(one).differs(wording_of(two)) == ""


@pytest.mark.parametrize(
    ("one", "two", "difference"),
    [
        ("Deploy on Friday.", "Do not deploy on Friday.", "negation"),
        ("Deploy on Friday.", "Avoid deploying on Friday.", "negation"),
        ("Never delete without asking.", "Ask before you delete.", ""),
        ("Do not merge until the review is done.", "Merge after the review is done.", ""),
        ("Do not cite what you have not read.", "Read before you cite.", ""),
        ("Never deploy before CI passed.", "Deploy only after CI passed.", ""),
        ("Keep it under 400 lines.", "It must not exceed 400 lines.", ""),
        ("Use at most two colours.", "Use at least two colours.", "order"),
        ("Wash before the meal.", "Wash after the meal.", "order"),
        ("Wait 10 minutes.", "Wait ten minutes.", ""),
        ("Wait 10 minutes.", "Wait 20 minutes.", "number, path or name"),
        ("Ask Anna about rent.", "Ask Ben about rent.", "number, path or name"),
        ("Post it to #sales.", "Post it to #ops.", "number, path or name"),
        ("Lock the door.", "Lock the door if the alarm rings.", "condition"),
        ("Play music while a guest is in.", "Music is off while no guest is in.", "negation"),
        ("Raise the rent.", "Reduce the rent.", "negation"),
        ("Keep it locked.", "Keep it unlocked.", "negation"),
        ("Ring if you know the way.", "Ring if you do not know the way.", "condition"),
        ("Ring while the door is open.", "Ring while the door is closed.", "condition"),
        ("Ada likes tea better than milk.", "Ada prefers milk over tea.", "order"),
        ("Sweep, then mop.", "Mop, then sweep.", "order"),
        ("Use tabs, not spaces.", "Use spaces, not tabs.", "order"),
        ("Never send more than two letters.", "Send at most two letters.", ""),
    ],
)
def test_what_makes_similar_statements_different(one: str, two: str, difference: str) -> None:
    assert wording_of(one).differs(wording_of(two)) == difference
    assert wording_of(two).differs(wording_of(one)) == difference


def test_a_file_is_one_word_and_scripts_without_spaces_have_terms() -> None:
    assert terms_of("MEMORY.md") != terms_of("memory md")
    assert terms_of("每次提交之前必须运行全部测试。")
