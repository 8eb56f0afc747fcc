from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.sentences import sentences


def texts(text: str) -> list[str]:
    return [one.text for one in sentences(text)]


def test_prose_is_split_at_the_ends_of_sentences() -> None:
    assert texts("Fix it. then run! Really? Yes… Done.") == ["Fix it.", "then run!", "Really?", "Yes…", "Done."]
    assert texts('He said "stop." Then left.') == ['He said "stop."', "Then left."]


@pytest.mark.parametrize(
    "text",
    [
        "Read src/a.py and .env for v1.2.3 at 3.14 of example.com now.",
        "See https://x.io/a.b?c=d.e for more.",
        "Use it, e.g. here, i.e. there, vs. that, etc. and so on.",
        "Asked by J. Smith and Dr. Brown at approx. noon.",
        "It runs at 5 a.m. on Jan. 3.",
    ],
)
def test_a_full_stop_inside_a_word_or_abbreviation_ends_nothing(text: str) -> None:
    assert texts(text) == [text]


def test_markers_of_lines_are_not_part_of_the_sentence() -> None:
    text = "# Title\n- first\n* second\n1. third\n2) fourth\n> quoted\n- [ ] open\n- [x] done\n  - nested\n• dot"
    assert texts(text) == ["Title", "first", "second", "third", "fourth", "quoted", "open", "done", "nested", "dot"]


def test_a_bullet_with_two_sentences_gives_two() -> None:
    assert texts("- Keep boto3. Drop s3fs.") == ["Keep boto3.", "Drop s3fs."]


def test_lines_of_code_and_logs_are_one_each() -> None:
    text = '2026-11-15 21:10:20 ERROR it failed. Retrying.\nx = "One. Two."\n$ run it. now\n```\nAny. Thing. here\n```'
    lines = [line for line in text.split("\n") if line != "```"]
    assert texts(text) == lines


def test_a_wrapped_line_goes_on() -> None:
    first = "This sentence was written by somebody whose editor wraps all lines at about"
    text = f"{first}\neighty columns. Next one."
    assert texts(text) == [f"{first}\neighty columns.", "Next one."]


def test_lines_of_programs_are_not_joined() -> None:
    line = "npm warn deprecated this module is not supported and it leaks memory in version {}"
    assert texts(f"{line.format(1)}\n{line.format(2)}") == [line.format(1), line.format(2)]


def test_a_blank_line_ends_a_sentence() -> None:
    first = "This sentence was written by somebody whose editor wraps all lines at about"
    assert len(texts(f"{first}\n\neighty columns.")) == 2


def test_chinese_and_japanese_punctuation_ends_sentences() -> None:
    assert texts("修复错误。然后运行测试！好吗？") == ["修复错误。", "然后运行测试！", "好吗？"]
    assert texts("「終わった。」次。") == ["「終わった。」", "次。"]


def test_lines_without_words_are_none() -> None:
    assert texts("---\n***\n\n| | |\n...\n") == []


@given(st.text(alphabet=st.sampled_from("aA1.!?。 \n\t-*#>`~\"')(_…文")))
def test_sentences_stand_where_they_say_and_nothing_with_letters_is_left_out(text: str) -> None:
    found = sentences(text)
    assert all(one.text == text[one.start : one.stop] for one in found)
    assert all(one.stop <= other.start for one, other in pairwise(found))
    if "```" not in text and "~~~" not in text:
        kept = "".join(one.text for one in found)
        assert kept.count("A") == text.count("A")
        assert kept.count("文") == text.count("文")


@pytest.mark.parametrize(
    "pattern", ["a. ", ".", "...", "a\n", "\n", "。", "- ", "1. ", "> ", "#", "...)", "a b c\n", "'"]
)
def test_long_hostile_texts_come_to_an_end(pattern: str) -> None:
    text = pattern * (300_000 // len(pattern))
    assert sum(len(one.text) for one in sentences(text)) <= len(text)
