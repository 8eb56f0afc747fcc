"""Copies of a long message are found by their words, however they are escaped, in one pass over a file."""

import json
import unicodedata

from upkeep.erase.secrets import holding, place

import daypack
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.copies import Copies, spellings_of
from daypack.upkeep.erase.plan import Request
from daypack.upkeep.erase.spellings import Spellings

LINES = tuple(f'reading {number} of the "gauge" in Größe\\new: {number * 7919} metres' for number in range(6000))


def test_copies_are_found_in_every_spelling() -> None:
    copies = Copies((LINES[3], LINES[5]))
    once = json.dumps(f"before\n{LINES[3]}\nafter", ensure_ascii=True)
    for text in (LINES[3], once, json.dumps(once), unicodedata.normalize("NFD", LINES[3])):
        changed = copies.replace(text, "[x]")
        assert (copies.count(text), copies.found_in(text.encode())) == (1, True), text
        assert "reading" not in changed
        assert "metres" not in changed
    assert copies.is_whole(f"- {LINES[5]}.")
    assert not copies.is_whole(f"{LINES[5]} more")
    assert copies.replace(f"the {LINES[4]} stays", "[x]") == f"the {LINES[4]} stays"


def test_the_longest_copy_is_replaced_and_words_that_occur_by_chance_are_not() -> None:
    whole = "\n".join(LINES[:40])
    copies = Copies((whole, *LINES[:40], "--- ok, yes ---"))
    assert copies.replace(f"see: {whole}!", "[x]") == "see: [x]!"
    assert copies.replace(f"{LINES[2]}\nok, yes", "[x]") == "[x]\nok, yes"
    assert copies.replace("", "[x]") == ""


def test_few_texts_are_found_by_their_characters() -> None:
    assert isinstance(spellings_of(LINES[:10]), Spellings)
    assert isinstance(spellings_of(LINES), Copies)


def test_a_message_of_thousands_of_lines_is_erased_with_its_copies(home: str) -> None:
    """With a pattern of all lines and sentences, this would take many minutes."""
    with daypack.open_session("long", home=home, durability="os", workspace="") as session:
        session.append("user", "\n".join(LINES))
        session.append("assistant", "Noted.")
        session.pin("part.md", "Keep this:\n" + "\n".join(LINES[70:80]))
        session.put_child("rev-1", result=json.dumps({"seen": "\n".join(LINES[500:510])}))
        apply(place(home), Request(message=1, session="long"))
        assert session.messages()[0].text.startswith("[erased:")
        assert session.pins["part.md"].startswith("Keep this:\n[erased:")
    assert holding(home, LINES[75]) == []
    assert holding(home, LINES[505]) == []
