"""Sentences are put into the third person where that is certain to be right, and quoted where it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.literals import literals, occurs
from daypack.text.reported_speech import Voices, report

ANA = Voices("Ana", "Sam", "Maria")


@pytest.mark.parametrize(
    ("sentence", "kind", "expected"),
    [
        ("I moved the launch to 17 Aug.", "deed", "Ana moved the launch to 17 Aug."),
        ("We decided to go with Postgres 16.", "deed", "Ana and others decided to go with Postgres 16."),
        ("I'm allergic to nuts.", "claim", "Ana is allergic to nuts."),
        ("I'm inspired by music.", "claim", "Ana is inspired by music."),
        ("I have two dogs.", "claim", "Ana has two dogs."),
        ("I don't eat meat.", "claim", "Ana doesn't eat meat."),
        ("Our Q3 launch date moved to 17 Aug 2025.", "claim", "the Q3 launch date moved to 17 Aug 2025."),
        ("Our daughter is seven.", "claim", "Ana's daughter is seven."),
        ("You should use Postgres.", "claim", "Sam should use Postgres."),
        ("You are right about `I`.", "claim", "Sam is right about `I`."),
        ('He said "I am tired".', "claim", 'Maria said "I am tired".'),
        ("She moved her car.", "claim", "Maria moved Maria's car."),
        ("Please update the tracker.", "request", "asked Sam to update the tracker"),
        ("Can you send me the report by Friday?", "request", "asked Sam to send Ana the report by Friday"),
        ("Fix the parser in src/app.py:12, please.", "request", "asked Sam to fix the parser in src/app.py:12"),
        ("Please don't touch src/app.py.", "request", "asked Sam not to touch src/app.py"),
        ("Never commit to main.", "request", "asked Sam to never commit to main"),
        ("Let's use tabs.", "request", "proposed to use tabs"),
        ("When is my flight?", "question", "When is my flight?"),
        # Not certain: a second subject or verb would have to change, or the words may be another person's.
        ("I sent you the file yesterday.", "quote", "I sent you the file yesterday."),
        ("If it rains we use hall B.", "quote", "If it rains we use hall B."),
        ("Everyone we love was there.", "quote", "Everyone we love was there."),
        ("Please call me when you can.", "quote", "Please call me when you can."),
        ("I live in Berlin and work at Acme.", "quote", "I live in Berlin and work at Acme."),
        ("Bob and I are going to Paris.", "quote", "Bob and I are going to Paris."),
        ('He said "I am tired.', "quote", 'He said "I am tired.'),
        ("I put it there.", "quote", "I put it there."),
        ("That one is mine.", "quote", "That one is mine."),
        ("So do I.", "quote", "So do I."),
        ("we fail build 😭", "quote", "we fail build 😭"),
        ("We use Postgres 16.", "claim", "Ana and others use Postgres 16."),
        ("17 Aug 2025.", "quote", "17 Aug 2025."),
    ],
)
def test_a_sentence_is_reported_or_quoted(sentence: str, kind: str, expected: str) -> None:
    assert report(sentence, ANA) == (kind, expected)


def test_without_a_listener_you_is_not_resolved() -> None:
    assert report("You should use Postgres.", Voices("Ana")) == ("quote", "You should use Postgres.")
    assert report("Please update the tracker.", Voices("Ana")).kind == "quote"


def test_without_a_third_person_she_stays() -> None:
    assert report("She moved to Berlin.", Voices("Ana", "Sam")) == ("claim", "she moved to Berlin.")


_WORDS = st.sampled_from(
    [
        "I",
        "me",
        "my",
        "you",
        "we",
        "our",
        "she",
        ",",
        ".",
        "?",
        "please",
        "moved",
        "is",
        "8080",
        "src/app.py",
        "Bob",
        '"',
        "`",
    ]
)


@given(st.lists(_WORDS))
def test_no_word_order_makes_up_a_literal(words: list[str]) -> None:
    sentence = " ".join(words)
    reported = report(sentence, ANA).text
    assert all(occurs(literal.text, sentence) for literal in literals(reported) if literal.kind != "quoted")
