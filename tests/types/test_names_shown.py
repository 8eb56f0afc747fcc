"""A name writes no line of its own, and one that cannot be seen is no name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import daypack
from daypack.errors import BadInput, BadName
from daypack.session import Session
from daypack.types.names import CONTROLS, escape_controls, one_line

INVISIBLE = [
    "\u200b",
    "\u202eabc",
    "\u3164",
    "a\u3164",
    "\u2800",
    "\u115f",
    "\uffa0",
    "\u0301",
    "\ufe0f",
    "\u034f",
    "\u00a0",
    "\U000e0041",
    "x\u2028y",
]


@given(st.text())
def test_a_name_is_one_line_whatever_is_in_it(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1
    assert not CONTROLS.search(one_line(text))
    assert escape_controls(text).count("\n") == text.count("\n")


def test_what_is_visible_stays_as_it_is() -> None:
    for text in ("src/a b.py", "Zoë", "👩\u200d🚀", "نام\u200cها", "日本語"):
        assert one_line(text) == text
    assert one_line("a\nb\t\x1b[31m\u202e") == "a\\nb\\t\\x1b[31m\\u202e"


@pytest.mark.parametrize("name", INVISIBLE)
def test_a_name_that_cannot_be_seen_is_refused(session: Session, home: str, name: str) -> None:
    with pytest.raises(BadName):
        daypack.open_session(name, home=home)
    with pytest.raises(BadName):
        session.pin(name, "text")
    with pytest.raises(BadName):
        session.put_child(name, result="done")
    with pytest.raises(BadName):
        daypack.open_memory(home=home, user=name)


@pytest.mark.parametrize("name", [name for name in INVISIBLE if "a" not in name])
def test_a_title_author_or_tag_that_cannot_be_seen_is_refused(home: str, name: str) -> None:
    with daypack.open_memory(home=home) as memories:
        with pytest.raises(BadInput):
            memories.create_memory(name)
        memory_id = memories.create_memory("pages").memory_id
        for about in ({"author": name}, {"tags": [name]}):
            with pytest.raises(BadInput):
                memories.add_entry(memory_id, "words", about=about)  # pyright: ignore[reportArgumentType]
        assert memories.list_entries(memory_id).entries == ()
