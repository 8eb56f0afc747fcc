"""Courtesies are told from news."""

import pytest

from daypack.text.filler import is_filler, strip_lead_in


@pytest.mark.parametrize(
    "text",
    [
        "Hi!",
        "Thanks a lot!",
        "Good morning",
        "Great question!",
        "You're welcome.",
        "Hope this helps you with it!",
        "你好！",
        "谢谢",
    ],
)
def test_a_courtesy_is_filler(text: str) -> None:
    assert is_filler(text)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks to Maria we found the bug in the parser.",
        "Great work on the API redesign by Tom and Ana.",
        "Ok, 8080.",
        "How are you planning to deploy the service?",
        "好的，我们决定用红色。",
        "The launch moved.",
        "",
    ],
)
def test_news_are_no_filler(text: str) -> None:
    assert not is_filler(text)


@pytest.mark.parametrize(
    ("text", "rest", "name"),
    [
        ("Hi Sam, our launch moved.", "our launch moved.", "Sam"),
        ("Well, so, thanks Ana! I went.", "I went.", "Ana"),
        ("Sam, please update it.", "please update it.", "Sam"),
        ("So I went.", "I went.", ""),
        ("So cool you found it.", "So cool you found it.", ""),
        ("Highly unusual.", "Highly unusual.", ""),
    ],
)
def test_what_stands_before_the_news_goes_and_tells_who_is_spoken_to(text: str, rest: str, name: str) -> None:
    assert strip_lead_in(text) == (rest, name)


@pytest.mark.parametrize(
    "text",
    [
        "No Redis please.",
        "No wait, it's teal.",
        "Absolutely not!",
        "Sure delete the repo",
        "If you have any doubts, do not deploy.",
        "Nice to meet you, I'm the new CFO.",
        "Feel free to delete my account.",
        "Thanks for nothing, the fix broke production.",
        "好的，不要",
    ],
)
def test_a_courtesy_that_says_something_is_no_filler(text: str) -> None:
    assert not is_filler(text)
