"""Which large contents of a window are the same."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.derived.repeated_content import content_of, same_as, written
from daypack.history.session import LARGE_BYTES
from daypack.text.injected import RECALLED
from daypack.types.history import Image, Message, Text, ToolCall

FILE = "".join(f"line {number} of the file: {'x' * (number % 7)}\n" for number in range(1, 121))
LINES = FILE.split("\n")
PLAIN_READ = "\n".join(f"{number:6}→{line}" for number, line in enumerate(LINES, 1))
REMINDER = "\n\n<system-reminder>\nBe careful with files.\n</system-reminder>\n"


def output(seq: int, text: Any, **fields: Any) -> Message:
    return Message(seq=seq, role="tool", content=text, tool_call_id=f"c{seq}", **fields)


def write_call(seq: int, **arguments: Any) -> Message:
    return Message(seq=seq, role="assistant", tool_calls=(ToolCall(f"c{seq}", "Write", json.dumps(arguments)),))


@pytest.mark.requirement("S4-DD4")
def test_a_large_output_that_is_repeated_refers_to_the_first() -> None:
    log = "ok " * 1000
    window = [output(2, log), output(4, "other " * 1000), output(6, log), output(8, log)]
    assert same_as(window) == {6: 2, 8: 2}


def test_the_limit_is_in_bytes() -> None:
    for text, expected in (
        ("x" * LARGE_BYTES, {2: 1}),
        ("x" * (LARGE_BYTES - 1), {}),
        ("海" * (LARGE_BYTES // 3 + 1), {2: 1}),
        ("海" * (LARGE_BYTES // 3), {}),
    ):
        assert same_as([output(1, text), output(2, text)]) == expected


def test_outputs_that_differ_anywhere_are_not_the_same() -> None:
    log = "ok " * 1000
    assert same_as([output(1, log), output(2, log + "!"), output(3, "!" + log), output(4, log.upper())]) == {}


@pytest.mark.requirement("S4-DD5")
@pytest.mark.parametrize(
    "shown",
    [
        PLAIN_READ,
        PLAIN_READ + REMINDER,
        "\n".join(f"{number}\t{line}" for number, line in enumerate(LINES, 1)),
        "\n".join(f"{number:6}\t{line}" for number, line in enumerate(LINES[:-1], 1)) + "\n",
        FILE,
        FILE.rstrip("\n"),
    ],
    ids=["arrow", "with a reminder", "tab", "cat -n", "as it is", "without its last line end"],
)
def test_a_file_that_is_read_is_the_file_that_was_written(shown: str) -> None:
    assert same_as([write_call(1, file_path="a.py", content=FILE), output(2, shown)]) == {2: 1}
    assert same_as([output(1, PLAIN_READ), output(2, shown)]) == {2: 1}


@pytest.mark.parametrize(
    "shown",
    [
        "\n".join(f"{number:6}→{line}" for number, line in enumerate(LINES, 11)),
        "\n".join(f"{number:6}→{line}" for number, line in enumerate(LINES[:90], 1)),
        PLAIN_READ.replace("    60→", "    61→"),
        PLAIN_READ + "\n(the file was cut here)",
        FILE.replace("line 7 ", "line 9 "),
    ],
    ids=["from line 11 on", "cut", "misnumbered", "with a note", "changed"],
)
def test_a_part_of_a_file_or_another_version_is_not_the_file(shown: str) -> None:
    assert same_as([write_call(1, file_path="a.py", content=FILE), output(2, shown)]) == {}


def test_two_parts_of_a_file_with_other_line_numbers_are_not_the_same() -> None:
    first, second = ("\n".join(f"{number:6}→{line}" for number, line in enumerate(LINES, start)) for start in (5, 6))
    assert same_as([output(1, first), output(2, second), output(3, first)]) == {3: 1}


def test_what_was_brought_back_on_request_is_never_taken_away_again() -> None:
    recalled: dict[str, Any] = {"daypack": {"recalled": {}}}
    assert same_as([output(1, FILE, meta=recalled), output(2, FILE, meta=recalled)]) == {}
    text = RECALLED + "messages:1]\n" + FILE  # of another tool: it is no answer of daypack
    assert same_as([output(1, text), output(2, text)]) == {2: 1}
    assert same_as([output(1, FILE, meta={"foreign_summary": True}), output(2, FILE)]) == {}


def test_an_output_with_a_picture_is_no_repeat_and_one_of_texts_is() -> None:
    texts = (Text(FILE[:900]), Text(FILE[900:]))
    words = "\n".join(part.text for part in texts)
    assert same_as([output(1, words), output(2, texts), output(3, (*texts, Image("a.png")))]) == {2: 1}


def test_only_tool_outputs_are_repeats() -> None:
    said = [Message(seq=seq, role="user", content=FILE) for seq in (1, 2)]
    calls = [write_call(3, content=FILE), write_call(4, content=FILE)]
    assert same_as([*said, *calls]) == {}


def test_contents_are_found_in_nested_arguments_and_each_once() -> None:
    edits = [{"old": "x", "new": FILE}, {"old": "y", "new": FILE}]
    assert list(written(write_call(1, edits=edits))) == [FILE.rstrip("\n")]
    assert list(written(write_call(1, a={"b": {"c": {"d": FILE}}}))) == []


@pytest.mark.parametrize("arguments", ["", "{" + FILE, "[" * 3000, f'"{"a" * 3000}'])
def test_arguments_that_are_not_json_hold_no_content(arguments: str) -> None:
    message = Message(seq=1, role="assistant", tool_calls=(ToolCall("c", "patch", arguments),))
    assert list(written(message)) == []


@given(st.text(alphabet=st.characters(exclude_characters="\r", exclude_categories=("Cs",)), max_size=200))
def test_line_numbers_are_taken_off_whatever_the_file_says(text: str) -> None:
    for mark in ("→", "\t"):
        numbered = "\n".join(f"{number:6}{mark}{line}" for number, line in enumerate(text.split("\n"), 1))
        assert content_of(numbered) == text.rstrip("\n")


@given(st.lists(st.sampled_from(["a", "b", "c", "W", "s"]), max_size=12), st.integers(0, 12))
def test_the_answer_for_a_message_stays_when_the_window_grows(kinds: list[str], size: int) -> None:
    window = [
        write_call(seq, content="a" * 3000) if kind == "W" else output(seq, kind * (10 if kind == "s" else 3000))
        for seq, kind in enumerate(kinds, 1)
    ]
    whole = same_as(window)
    assert same_as(window[:size]) == {seq: first for seq, first in whole.items() if seq <= size}
    assert all(first < seq and first not in whole for seq, first in whole.items())
