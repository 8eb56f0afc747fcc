"""What of a log is indexed: every word, name and number, whatever else is in the log."""

import os
from pathlib import Path

import msgspec
import pytest

from daypack.files.jsonl import seal
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.upkeep.find import find
from daypack.upkeep.find.log_words import identifier_parts, index_text


@pytest.fixture
def place(home: str) -> Home:
    """The home of the sessions."""
    return find_home(home)


def _line(seq: int, text: object, **fields: object) -> bytes:
    message = {"seq": seq, "id": f"msg-{seq}", "ts": "2026-05-01T10:00:00.000Z", "role": "user", "content": text}
    return seal(msgspec.json.encode({**message, **fields}))[0]


def _store(home: Home, *lines: bytes) -> None:
    layout = home.session("codex", "work")
    os.makedirs(layout.folder, exist_ok=True)
    Path(layout.messages).write_bytes(b"".join(lines))


def _seqs(home: Home, query: str) -> list[int]:
    return [hit.seq for hit in find(home, query).hits]


def test_damaged_torn_and_foreign_lines_do_not_hide_the_others(place: Home) -> None:
    damaged = bytearray(_line(2, "the zeppelin is over Bremen"))
    damaged[60] ^= 1
    _store(
        place,
        _line(1, "the lens is cracked"),
        bytes(damaged),
        b"\0" * 5_000 + b"\n",
        b"\xff\xfe not UTF-8 \x80\n",
        b'{"role":"user","content":"written by hand: the brass screw"}\n',
        b'{"role":["wrong"],"content":7}\n',
        b"[" * 100_000 + b"\n",
        b"\n",
        b'{"seq":3,"role":"user","content":"\\ud800 lone"}\n',
        _line(20, "the anchor rope is frayed"),
        _line(21, "never finished")[:40],
    )
    assert _seqs(place, "cracked lens") == [1]
    assert _seqs(place, "anchor rope") == [20]
    assert len(_seqs(place, "brass screw")) == 1
    assert _seqs(place, "zeppelin over Bremen") == []


def test_control_characters_are_stored_and_searched_as_text(place: Home) -> None:
    hostile = "\x1b[2Jport\x1b]0;owned\x07 is \u202etaken\u202c by\0the \u200bproxy \x9b31m"
    _store(place, _line(1, hostile))
    assert _seqs(place, "port of the proxy") == [1]


@pytest.mark.parametrize("middle", ["deploy/lamp-37.toml", "0xdeadbeef77", "listen_port", "192.168.44.7"])
def test_names_and_numbers_in_the_middle_of_a_huge_output_are_found(place: Home, middle: str) -> None:
    filler = "all is well here and there\n" * 20_000
    _store(place, _line(1, "hello"), _line(2, f"{filler}{middle} failed\n{filler}", role="tool"))
    assert _seqs(place, middle) == [2]


def test_a_line_of_sixty_megabytes_is_indexed(place: Home) -> None:
    _store(place, _line(1, f"the zeppelin {'QUJD' * 15_000_000}"), _line(2, "the anchor"))
    assert _seqs(place, "zeppelin") == [1]
    assert _seqs(place, "anchor") == [2]
    assert os.path.getsize(place.find_index) < 1_000_000


def test_context_that_hooks_added_and_searches_are_not_places_where_it_was_said(place: Home) -> None:
    calls = [{"id": "c1", "name": "search_history", "arguments": '{"query":"zeppelin"}'}]
    _store(
        place,
        _line(1, "the zeppelin", meta={"writer": "hook"}),
        _line(
            2, [{"type": "text", "text": "the zeppelin", "meta": {"writer": "hook"}}, {"type": "text", "text": "hi"}]
        ),
        _line(3, "", role="assistant", tool_calls=calls),
        _line(4, "", role="assistant", tool_calls=[{"id": "c2", "name": "bash", "arguments": "moor the zeppelin"}]),
    )
    assert _seqs(place, "zeppelin") == [4]


def test_identifiers_are_split_at_their_capitals() -> None:
    assert set(identifier_parts("call fixPortNow, HTMLParser and plain words").split()) == {
        "fix",
        "Port",
        "Now",
        "Parser",
    }
    assert identifier_parts("only plain Words HERE") == ""


def test_arrows_and_boxes_separate_words_without_folding_the_text() -> None:
    assert index_text("12→port│lamp ✓").split() == ["12?port?lamp", "?"]
    assert "Cafe" in index_text("Café → port").split()
