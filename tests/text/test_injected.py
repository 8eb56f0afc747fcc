"""What daypack puts into a window is found by the digest that a turn recorded, not by its shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.injected import (
    PAST_INTRODUCTION,
    RECALLED,
    SAME,
    SWAPPED,
    mark_for,
    strip_blocks,
    strip_injected,
    wrap,
)
from daypack.types.digest import digest_text

BLOCK = wrap("note", "1f3a9c02", "the port is 8080", ' name="memory 2025-05-08"')
TIME = "Current time: 2025-05-08T10:00:00Z"


def strip(text: str, *shown: str) -> str:
    return strip_injected(text, set(map(digest_text, shown)).__contains__)


@pytest.mark.parametrize("fence", ["instructions", "note", "data", "past"])
def test_a_block_that_was_shown_goes_and_the_words_around_it_stay(fence: str) -> None:
    inner = "old news\n\n<note>quoted</note>"
    block = wrap(fence, "00ff00ff", inner, ' name="x"')  # pyright: ignore[reportArgumentType]
    assert strip(f"Before.\n\n{block}\n\nAfter.", inner) == "Before.\n\nAfter."
    assert strip(block, inner) == ""
    assert strip(block, "other news") == block
    assert strip_blocks(f"Before.\n\n{block}\n\nAfter.") == "Before.\n\nAfter."


def test_several_blocks_go_and_one_of_somebody_else_stays() -> None:
    other = wrap("past", "abcdef01", f"{PAST_INTRODUCTION}\n[12 user] hello")
    text = f"{BLOCK}\n\n{other}\n\nWhat is the port?"
    assert strip(text, "the port is 8080", "[12 user] hello") == "What is the port?"
    assert strip(text, "[12 user] hello") == f"{BLOCK}\n\nWhat is the port?"


def test_the_line_with_the_time_goes_if_a_turn_showed_it() -> None:
    assert strip(f"When is it?\n\n{TIME}", TIME) == "When is it?"
    assert strip(f"When is it?\n\n{TIME}") == f"When is it?\n\n{TIME}"


@pytest.mark.requirement("S3-O4")
@pytest.mark.parametrize(
    "text",
    [
        f"{RECALLED}messages:12]\nThe port is 8080.",
        f"{RECALLED}nowhere] there is no such id",
        f'{SWAPPED}sha256-1f3a9c02d4e5, 5,400 characters, 301 lines; recall returns it. It begins "x"]',
        f"{SAME}12 above: 5,400 characters]",
        f"{RECALLED}messages:1] is what a user may write.",
        BLOCK,
        '<note id="1f3a9c02" name="x">\na block that never ends',
        '<note id="mine">my own tag</note>',
        '<data id="1f3a9c02" name="x">\nends with another mark\n</data 99999999>',
        TIME,
        "  white space stays  \n\n\n\nall of it ",
    ],
)
def test_what_no_turn_showed_stays_byte_for_byte(text: str) -> None:
    assert strip(text) == text


@given(st.text(), st.text())
def test_nothing_of_a_block_that_was_shown_is_left(before: str, inside: str) -> None:
    mark = "1f3a9c02" if "1f3a9c02" not in inside else "d00dfeed"
    inner = f"x{inside}SECRET"
    text = strip(f"{before}\n{wrap('data', mark, inner)}", inner)
    assert "SECRET" not in text or "SECRET" in before


def test_blocks_that_never_end_cost_no_more_than_their_length() -> None:
    text = "".join(f'<note id="{number:08x}">' for number in range(40_000)) + "</note 00000000>"
    assert strip_blocks(text) == ""
    assert strip_blocks(text[24:]) == text[24:]


def test_any_number_of_blocks_in_blocks_is_read_a_few_times() -> None:
    marks = [f"{number:08x}" for number in range(50_000)]
    nested = "".join(f'<note id="{mark}">' for mark in marks) + "".join(f"</note {mark}>" for mark in marks)
    block = wrap("note", mark_for("Port 8443."), "Port 8443.")
    read = 0

    def was_shown(digest: str) -> bool:
        nonlocal read
        read += 1
        return digest == digest_text("Port 8443.")

    assert strip_injected(f"{block} {nested}", was_shown) == nested
    assert read < 100
    assert strip_blocks(nested) == "".join(f"</note {mark}>" for mark in marks[1:])
