"""Every limit is held to the character, and a refusal names the length it saw."""

from typing import Any

import pytest
from msgspec import convert

from daypack.errors import BadConfig, BadInput, BadName, TooLong
from daypack.memory.limits import (
    Limits,
    check_about,
    check_description,
    check_document,
    check_key,
    check_number,
    check_raw,
    check_summary,
    check_title,
    check_type,
    check_where,
    read_limits,
)
from daypack.types.memory import About, Where

LIMITS = Limits()


@pytest.mark.requirement("G14")
def test_an_entry_has_at_most_9000_bytes_whatever_its_characters() -> None:
    for text in ("x" * 9000, "ü" * 4500, "日" * 3000, "🧳" * 2250):
        assert check_raw(text, LIMITS) == text
        with pytest.raises(TooLong, match=r"raw_entry has 9,00[1-4] bytes, at most 9,000 are allowed"):
            check_raw(text + text[0], LIMITS)
    assert check_raw("x" * 20, Limits(entry_bytes=20)) == "x" * 20
    with pytest.raises(TooLong, match="21 bytes, at most 20"):
        check_raw("x" * 21, Limits(entry_bytes=20))


@pytest.mark.parametrize("text", ["\0", "\r\n", "\x1b[31m", "\ufffe", "\U0010ffff", "e\u0301", " "])
def test_any_character_may_stand_in_an_entry(text: str) -> None:
    assert check_raw(text, LIMITS) == text


@pytest.mark.parametrize("char", ["\0", "\ufdd0", "\ufdef", "\ufffe", "\uffff", "\U0001fffe", "\U0010ffff"])
def test_what_is_no_character_is_refused_in_a_document_with_its_place(char: str) -> None:
    with pytest.raises(BadInput, match=rf"content has U\+{ord(char):04X} \(.*\) at position 3"):
        check_document(f"# A{char}", LIMITS)
    assert check_document("é\ufdcf\ufdf0\ufffd\t\r\n\x1b🧳\U0010fffd", LIMITS)


@pytest.mark.parametrize("check", [check_raw, check_summary, check_document, check_title, check_description, check_key])
def test_half_a_character_is_refused_with_its_place(check: Any) -> None:
    with pytest.raises(BadInput, match="lone surrogate at position 2"):
        check("ab\ud83d", LIMITS)


@pytest.mark.parametrize("check", [check_raw, check_summary, check_document, check_title, check_description])
@pytest.mark.parametrize("value", [None, 1, b"bytes", ["text"], {"a": 1}])
def test_what_is_no_text_is_refused(check: Any, value: object) -> None:
    with pytest.raises(BadInput, match="must be text"):
        check(value, LIMITS)


@pytest.mark.requirement("S2-R3.1", "G14", "X45", "T7")
@pytest.mark.parametrize("letter", ["x", "ü", "日", "🧳"])
def test_a_summary_has_at_most_512_characters(letter: str) -> None:
    for length in (511, 512):
        assert check_summary(letter * length, LIMITS) == letter * length
    with pytest.raises(TooLong, match="summary has 513 characters, at most 512 are allowed"):
        check_summary(letter * 513, LIMITS)


@pytest.mark.requirement("S2-R2.1", "X4", "X45", "T7")
@pytest.mark.parametrize("letter", ["x", "ü", "日", "🧳"])
def test_a_document_has_at_most_5000_characters(letter: str) -> None:
    for length in (4999, 5000):
        assert check_document(letter * length, LIMITS) == letter * length
    with pytest.raises(TooLong, match="content has 5,001 characters, at most 5,000 are allowed"):
        check_document(letter * 5001, LIMITS)


@pytest.mark.parametrize("check", [check_summary, check_document, check_title])
def test_blank_text_is_refused(check: Any) -> None:
    for text in ("", " ", "\n\t "):
        with pytest.raises(BadInput, match="blank"):
            check(text, LIMITS)


@pytest.mark.requirement("G14")
def test_a_title_has_1_to_50_characters_and_no_control_character() -> None:
    for title in ("x", "日" * 50, "Sam’s Q3 launch: “v2”"):
        assert check_title(title, LIMITS) == title
    with pytest.raises(TooLong, match="title has 51 characters"):
        check_title("日" * 51, LIMITS)
    for title in ("a\nb", "a\0", "\x9b", "\x7f"):
        with pytest.raises(BadInput, match="control character"):
            check_title(title, LIMITS)


def test_a_description_and_a_key_have_their_caps_too() -> None:
    assert check_description("x" * 500, LIMITS) == "x" * 500
    with pytest.raises(TooLong):
        check_description("x" * 501, LIMITS)
    assert check_key(None, LIMITS) is None
    assert check_key("x" * 256, LIMITS) == "x" * 256
    with pytest.raises(TooLong):
        check_key("x" * 257, LIMITS)
    with pytest.raises(BadInput):
        check_key("", LIMITS)


@pytest.mark.parametrize("name", ["", "../chat", "a/b", ".hidden", "a\0b", 7, None])
def test_a_memory_type_must_be_the_name_of_a_folder(name: object) -> None:
    assert check_type("chat") == "chat"
    with pytest.raises(BadName):
        check_type(name)


@pytest.mark.parametrize(
    ("about", "problem"),
    [
        ({"tags": ["x"] * 33}, "there are 33 tags, at most 32"),
        ({"tags": ["ü" * 65]}, "tag has 65 characters, at most 64"),
        ({"tags": [" "]}, "tag is blank"),
        ({"tags": ["a\nb"]}, "tag has a control character"),
        ({"author": "x" * 257}, "author has 257 characters, at most 256"),
        ({"session": "a\0"}, "session has a control character"),
        ({"at": "\ud800"}, "at has a lone surrogate"),
    ],
)
def test_what_cannot_be_known_of_an_entry_is_refused(about: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        check_about(convert(about, About), LIMITS)


def test_a_search_is_limited_by_what_can_be_compared() -> None:
    assert check_where(Where(), LIMITS) is None
    where = Where(since="2025-08-17", until="2025-08-18T10:00:00+02:00", tags=("a",), role="user")
    assert check_where(where, LIMITS) == where
    for bad in (Where(since="yesterday"), Where(until=""), Where(tags=("\ud800",))):
        with pytest.raises(BadInput):
            check_where(bad, LIMITS)


@pytest.mark.parametrize("value", [0, -1, 51])
def test_a_number_out_of_range_is_refused(value: int) -> None:
    assert check_number(50, 50, "limit", "list_entries") == 50
    with pytest.raises(BadInput, match=f"limit is {value}"):
        check_number(value, 50, "limit", "list_entries")


def test_the_memory_table_of_a_config_sets_limits() -> None:
    assert read_limits({}) == LIMITS
    assert read_limits({"model": "x", "memory": {"entry_bytes": 100}}).entry_bytes == 100
    chosen = read_limits({"memory": {"flush_every": 10, "create_memory": False}})
    assert (chosen.flush_every, chosen.create_memory, chosen.entry_bytes) == (10, False, 9000)


@pytest.mark.parametrize(
    "table",
    [
        {"entry_bytes": "9000"},
        {"entry_bytes": 0},
        {"entry_bytes": 10**12},
        {"flush_every": 0},
        {"create_memory": 1},
        {"summary_chars": 1000},
        "on",
    ],
)
def test_a_memory_table_that_cannot_be_used_is_refused_with_its_place(table: object) -> None:
    with pytest.raises(BadConfig) as caught:
        read_limits({"memory": table}, "/home/config.toml")
    assert caught.value.place == "/home/config.toml"
