"""What daypack puts into a window is told from what somebody said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.injected import RECALLED, SAME, SWAPPED, strip_injected, wrap

BLOCK = wrap("note", "1f3a9c02", "the port is 8080", ' name="memory 2025-05-08"')


@pytest.mark.parametrize("fence", ["instructions", "note", "data", "past"])
def test_a_fenced_block_goes_and_the_words_around_it_stay(fence: str) -> None:
    block = wrap(fence, "00ff00ff", "old news\n\n<note>quoted</note>", ' name="x"')  # pyright: ignore[reportArgumentType]
    assert strip_injected(f"Before.\n\n{block}\n\nAfter.") == "Before.\n\nAfter."
    assert strip_injected(block) == ""


def test_several_blocks_go() -> None:
    other = wrap("past", "abcdef01", "[12 user] hello")
    assert strip_injected(f"{BLOCK}\n\n{other}\n\nWhat is the port?") == "What is the port?"


@pytest.mark.parametrize(
    "text",
    [
        f"{RECALLED}messages:12]\nThe port is 8080.",
        f"{RECALLED}a search for 'port']\nmessages:3: x",
        f"{RECALLED}nowhere] there is no such id",
        f'{SWAPPED}sha256-1f3a9c02d4e5, 5,400 characters, 301 lines; recall returns it. It begins "x"]',
        f"{SAME}12 above: 5,400 characters]",
        "Current time: 2025-05-08T10:00:00Z",
    ],
)
def test_what_our_tools_answer_and_our_lines_say_is_nobodys_words(text: str) -> None:
    assert strip_injected(text) == ""


def test_the_line_with_the_time_goes_from_the_end_of_a_message() -> None:
    assert strip_injected("When is it?\n\nCurrent time: 2025-05-08T10:00:00Z") == "When is it?"


@pytest.mark.parametrize(
    "text",
    [
        f"{RECALLED}messages:1] is what a user may write.",
        '<note id="1f3a9c02" name="x">\na block that never ends',
        '<note id="mine">my own tag</note>',
        '<data id="1f3a9c02" name="x">\nends with another mark\n</data 99999999>',
        "Current time: late.",
        "  white space stays  \n\n\n\nall of it ",
    ],
)
def test_what_only_looks_like_it_stays_byte_for_byte(text: str) -> None:
    assert strip_injected(text) == text


@given(st.text(), st.text())
def test_whatever_stands_in_a_block_none_of_it_is_left(before: str, inside: str) -> None:
    mark = "1f3a9c02" if "1f3a9c02" not in inside else "d00dfeed"
    text = strip_injected(f"{before}\n{wrap('data', mark, inside + 'SECRET')}")
    assert "SECRET" not in text or "SECRET" in before


def test_blocks_that_never_end_cost_no_more_than_their_length() -> None:
    text = "".join(f'<note id="{number:08x}">' for number in range(40_000)) + "</note 00000000>"
    assert strip_injected(text) == ""
    assert strip_injected(text[24:]) == text[24:]
