"""Taking in: neighbours, stretches and authors as they come, however the entries are batched."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daypack.errors import BadInput
from daypack.search.indexing import STRETCH_ENTRIES, Doc
from daypack.search.lexical import Lexical
from daypack.search.postings import MAX_ID
from daypack.search.words import MAX_CHUNKS


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Lexical]:
    index = Lexical(str(tmp_path / "index.db"))
    yield index
    index.close()


def rows(index: Lexical, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(index.path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def links(index: Lexical) -> list[tuple[int, int, int]]:
    return rows(index, "SELECT id, before, after FROM entries ORDER BY id")


def stretches(index: Lexical) -> list[int]:
    return [row[0] for row in rows(index, "SELECT stretch FROM entries ORDER BY id")]


def at(hour: int, minute: int = 0) -> str:
    return f"2026-11-15T{hour:02}:{minute:02}:00.123Z"


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_entries_of_a_group_are_linked_also_when_groups_alternate(index: Lexical, batch: int) -> None:
    docs = [Doc(number, "words", group="ab"[number % 2]) for number in range(1, 7)]
    for start in range(0, 6, batch):
        index.add(docs[start : start + batch])
    assert links(index) == [(1, 0, 3), (2, 0, 4), (3, 1, 5), (4, 2, 6), (5, 3, 0), (6, 4, 0)]
    assert stretches(index) == [1, 2, 1, 2, 1, 2]


def test_a_gap_in_time_ends_a_stretch_and_midnight_does_not(index: Lexical) -> None:
    times = [at(10), at(10, 59), at(12), at(23, 50), "2026-11-16T00:10:00Z", "2026-11-16T00:10:00+00:00", "", "later"]
    index.add(Doc(number, "words", when=when) for number, when in enumerate(times, 1))
    assert stretches(index) == [1, 1, 2, 3, 3, 3, 3, 3]
    assert links(index)[1:4] == [(2, 1, 0), (3, 0, 0), (4, 0, 5)]


def test_without_times_a_stretch_ends_after_some_entries_and_links_go_on(index: Lexical) -> None:
    index.add(Doc(number, "words") for number in range(1, 2 * STRETCH_ENTRIES + 1))
    assert stretches(index) == [1] * STRETCH_ENTRIES + [2] * STRETCH_ENTRIES
    assert links(index)[STRETCH_ENTRIES] == (STRETCH_ENTRIES + 1, STRETCH_ENTRIES, STRETCH_ENTRIES + 2)


def test_a_group_is_one_stretch_however_long(index: Lexical) -> None:
    index.add(Doc(number, "words", group="monday") for number in range(1, 2 * STRETCH_ENTRIES + 1))
    assert set(stretches(index)) == {1}


def test_a_summary_is_a_chunk_more(index: Lexical) -> None:
    index.add([Doc(1, "she went there", summary="Ana visited Lisbon"), Doc(2, "other words")])
    assert rows(index, "SELECT chunks, words FROM totals") == [(3, 8)]
    assert rows(index, "SELECT length(cuts) FROM entries") == [(16,), (8,)]
    long = "A sentence of a text that is far too long to be one chunk. " * 3_000
    index.add([Doc(3, long, summary="zebra")])
    assert rows(index, "SELECT length(cuts) FROM entries WHERE id = 3") == [(8 * MAX_CHUNKS,)]


def test_entries_without_words_count_as_seen_and_stand_between_nobody(index: Lexical) -> None:
    index.add([Doc(1, "question"), Doc(2, ""), Doc(3, " \n"), Doc(4, "answer"), Doc(5, "")])
    assert links(index) == [(1, 0, 4), (4, 1, 0)]
    assert index.newest == 5


def test_ids_must_ascend(index: Lexical) -> None:
    with pytest.raises(BadInput, match="ascend"):
        index.add([Doc(1, "one"), Doc(3, "three"), Doc(2, "two")])
    with pytest.raises(BadInput, match="ascend"):
        index.add([Doc(0, "none")])
    with pytest.raises(BadInput, match="large"):
        index.add([Doc(MAX_ID + 1, "far")])
    assert index.newest == 0


def test_authors_are_counted_over_batches_and_spellings(index: Lexical) -> None:
    index.add([Doc(1, "hello", "Ana López"), Doc(2, "hi", "assistant"), Doc(3, "Note: this")])
    index.add([Doc(4, "again", "ANA LOPEZ"), Doc(5, "Ana López: third")])
    assert rows(index, "SELECT name, given, entries FROM authors ORDER BY number") == [
        ("ana lopez", 1, 3),
        ("note", 0, 1),
    ]
    assert rows(index, "SELECT persons FROM totals") == [(1,)]


def test_a_tool_result_is_not_searched_for_a_speaker(index: Lexical) -> None:
    index.add([Doc(1, "Error: no such file", role="tool")])
    assert rows(index, "SELECT name FROM authors") == []


def test_names_that_utf8_cannot_spell_are_stored(index: Lexical) -> None:
    index.add([Doc(1, "words \ud800 here", "A\udfff", when="\ud800", group="g\ud800")])
    index.add([Doc(2, "more words", "A\udfff", group="g\ud800")])
    assert links(index) == [(1, 0, 2), (2, 1, 0)]
