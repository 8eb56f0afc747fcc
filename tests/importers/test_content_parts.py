"""Parts of foreign messages: what is taken for base64 and what is only text."""

import base64
from typing import Any

import pytest

from daypack.importers.readers.content_parts import claude_parts, openai_parts, replace_repeated, strip_base64

DATA = base64.b64encode(b"some bytes " * 20).decode()


def keep(data: bytes) -> str:
    return f"kept-{len(data)}"


@pytest.mark.parametrize("words", ["data: one,two", "data:text/plain,hello", "", f"see data:image/png;base64,{DATA}"])
def test_text_that_looks_like_an_address_stays_text(words: str) -> None:
    assert claude_parts([{"type": "text", "text": words}], keep) == words
    assert openai_parts([{"type": "text", "text": words}], keep) == words


def test_bytes_are_found_at_any_depth() -> None:
    value: Any = {
        "a": [{"type": "base64", "data": DATA}, f"data:image/png;base64,{DATA}"],
        "b": {"base64": DATA, "n": 1},
    }
    assert strip_base64(value, keep) == {
        "a": [{"type": "base64", "data": {"sha256": "kept-220"}}, {"sha256": "kept-220", "media_type": "image/png"}],
        "b": {"base64": {"sha256": "kept-220"}, "n": 1},
    }


@pytest.mark.parametrize("data", ["not base64 at all!" * 10, "", 7, None])
def test_what_is_not_base64_is_left_alone(data: object) -> None:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    assert claude_parts([block], keep) == [block]
    assert strip_base64(block, keep) == block


def test_repeated_text_is_replaced_by_its_place_and_only_when_it_is_long() -> None:
    long = "a line of output\n" * 10
    assert replace_repeated({"stdout": long, "n": 1, "more": [long, "short"]}, f"<{long}>") == {
        "stdout": {"content_chars": [1, 170]},
        "n": 1,
        "more": [{"content_chars": [1, 170]}, "short"],
    }
    assert replace_repeated(long, "something else") == long
