"""Matches: the best chunk of an entry, and the same choice however few postings are looked at."""

import random
import sqlite3
from collections.abc import Iterator

import pytest

from daypack.search import matches
from daypack.search.fts_tables import FtsTables
from daypack.search.matches import Matches
from daypack.search.postings import ENTRY_BITS, Extent, posting, read_terms


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE VIRTUAL TABLE postings USING fts5(w, content='', detail=none, tokenize='porter ascii')")
    yield connection
    connection.close()


def fill(connection: sqlite3.Connection, chunks: list[tuple[int, int, str]]) -> Extent:
    """Enter chunks: entry, number, words."""
    rows = [(posting(entry, number, len(words.split())), words) for entry, number, words in chunks]
    connection.executemany("INSERT INTO postings(rowid, w) VALUES (?, ?)", rows)
    words = sum(len(words.split()) for _, _, words in chunks)
    return Extent(chunks[0][0], chunks[-1][0] + 1, len(chunks), words)


def match(connection: sqlite3.Connection, query: str, extent: Extent) -> Matches:
    return Matches(read_terms(FtsTables(connection), query.split(), extent)[0], extent)


def test_the_best_chunk_stands_for_its_entry(connection: sqlite3.Connection) -> None:
    chunks = [(1, 0, "red and blue"), (1, 1, "red green blue"), (2, 0, "green and blue"), (3, 0, "nothing")]
    found = match(connection, "red green blue", fill(connection, chunks))
    assert found.choose(5) == [1, 2]
    assert found.find([1])[1].number == 1
    assert found.find([1, 2, 3]).keys() == {1, 2}


def test_only_what_is_allowed_is_chosen(connection: sqlite3.Connection) -> None:
    found = match(connection, "red", fill(connection, [(entry, 0, "red") for entry in range(1, 9)]))
    assert found.choose(3) == [8, 7, 6]
    assert found.choose(3, {2, 5, 40}) == [5, 2]


def test_postings_that_are_added_count(connection: sqlite3.Connection) -> None:
    extent = fill(connection, [(1, 0, "red"), (2, 0, "red"), (3, 0, "blue")])
    found = match(connection, "red blue", extent)
    assert found.choose(1) == [3]
    blue = [posting(1, 0, 1)]
    found.add([blue, []])  # the rarer term comes first
    assert found.choose(1) == [1]
    assert found.find([1])[1].score == pytest.approx(found.scores.all_worth * found.scores.factor(found.find([1])[1]))


def test_the_choice_is_the_same_however_few_postings_are_looked_at(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    words = ["rare", *["some"] * 8, *["many"] * 40, *["most"] * 150, *["noise"] * 400]
    chunks = [(entry, 0, " ".join(chance.choices(words, k=chance.randrange(2, 30)))) for entry in range(1, 2_001)]
    found = match(connection, "rare some many most", fill(connection, chunks))
    few = found.choose(40)
    monkeypatch.setattr(matches, "RAREST", 1_000_000)
    assert few == found.choose(40)
    monkeypatch.setattr(matches, "RAREST", 0)
    assert few == found.choose(40)


def test_a_common_term_alone_is_enough(connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "RAREST", 3)
    found = match(connection, "red", fill(connection, [(entry, 0, "red") for entry in range(1, 50)]))
    assert found.choose(5) == [49, 48, 47, 46, 45]
    assert [chunk.row >> ENTRY_BITS for chunk in found.find([7]).values()] == [7]
