"""A later rule replaces an earlier one on the same matter, and no other."""

import pytest

from daypack.derived.rules.supersession import repeats, superseded_by
from daypack.types.records import Rule


def rule(number: int, text: str, *, pinned: bool = False) -> Rule:
    return Rule(id=f"rule-{number}", text=text, source=f"messages:{number}", position=number, pinned=pinned)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Use tabs instead of spaces.", "Use spaces instead of tabs."),
        ("Keep your answers under 150 words.", "From now on, keep your answers under 50 words."),
        ("Always answer in Spanish.", "Please reply in German from now on."),
        ("Call me Captain.", "Call me Jo, please."),
        ("No emojis.", "You can use emojis again."),
    ],
)
def test_a_later_rule_on_the_same_matter_supersedes(earlier: str, later: str) -> None:
    assert superseded_by(rule(9, later), [rule(1, earlier)]) == ["rule-1"]
    assert superseded_by(rule(9, later), [rule(1, earlier, pinned=True)]) == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Never use sudo.", "Never use eval."),
        ("Run the tests before you commit.", "Run the linter before you commit."),
        ("Keep your answers short.", "Keep your answers formal."),
        ("Always answer in Spanish.", "Write commit messages in English."),
        ("Name branches feature/<ticket>.", "Name test files after their module."),
    ],
)
def test_a_rule_on_another_matter_stays(earlier: str, later: str) -> None:
    assert superseded_by(rule(9, later), [rule(1, earlier)]) == []


def test_the_same_words_again_are_no_new_rule() -> None:
    assert repeats(rule(9, "Never push to main!"), [rule(1, "Never push to main.")])
    assert not repeats(rule(9, "Never push to trunk."), [rule(1, "Never push to main.")])
