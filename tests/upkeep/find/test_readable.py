"""Texts as results show them."""

import pytest

from daypack.types.history import Message, ToolCall
from daypack.upkeep.find.readable import call_in_words, readable


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"command":"git push","description":"Push fixes"}', "Bash: git push · Push fixes"),
        (
            '{"pattern":"port","limit":3,"all":true,"paths":["a","b"]}',
            'Bash: port · limit=3 · all=True · paths=["a","b"]',
        ),
        ('{"command":"cat <<EOF\\none\\ntwo"}', "Bash: cat <<EOF\none\ntwo"),
        ("{}", "Bash"),
        ('{"command":null}', "Bash"),
        ("not json", "Bash not json"),
        ('["a"]', 'Bash ["a"]'),
        ('{"a":' + "[" * 5_000 + "]" * 5_000 + "}", None),
    ],
)
def test_a_call_is_shown_with_its_values(arguments: str, shown: str | None) -> None:
    text = call_in_words(ToolCall(id="1", name="Bash", arguments=arguments))
    assert text == shown if shown is not None else text.startswith("Bash")


def test_calls_follow_the_text_and_those_that_search_are_left_out() -> None:
    calls = (
        ToolCall(id="1", name="Bash", arguments='{"command":"ls"}'),
        ToolCall(id="2", name="recall", arguments='{"query":"ls"}'),
    )
    assert readable(Message(role="assistant", content="Listing.", tool_calls=calls)) == "Listing.\nBash: ls"
    assert readable(Message(role="assistant", content="Listing.")) == "Listing."
