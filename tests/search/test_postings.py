"""Postings: a bounded number is read, rare terms first, and what is left unread is found where terms meet."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from daypack.search import postings
from daypack.search.lexical import Doc, Lexical
from daypack.search.postings import CHUNK_BITS, ENTRY_BITS, LENGTH_BITS, Extent, choose, match, posting

WORDS = 10


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE VIRTUAL TABLE postings USING fts5(w, content='', detail=none, tokenize='porter ascii')")
    yield connection
    connection.close()


def fill(connection: sqlite3.Connection, texts: list[str]) -> Extent:
    rows = ((posting(number, 0, WORDS), text) for number, text in enumerate(texts, 1))
    connection.executemany("INSERT INTO postings(rowid, w) VALUES (?, ?)", rows)
    return Extent(1, len(texts) + 1, len(texts), WORDS * len(texts))


def entries(scores: dict[int, float]) -> list[int]:
    return [row >> ENTRY_BITS for _, row in choose(scores, 1_000_000)]


def test_a_posting_says_entry_and_chunk_and_sorts_by_them() -> None:
    row = posting(12_345, 200, 100)
    assert row >> ENTRY_BITS == 12_345
    assert (row >> LENGTH_BITS) & ((1 << CHUNK_BITS) - 1) == 200
    assert posting(1, 255, 10**6) < posting(2, 0, 1)


def test_a_rare_term_weighs_more_and_a_short_chunk_too(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["common rare"] + ["common"] * 9)
    scores = match(connection, ["common", "rare"], extent)
    assert entries(scores)[0] == 1
    rare = match(connection, ["rare"], extent)
    common = match(connection, ["common"], extent)
    assert max(rare.values()) > max(common.values())
    connection.execute("INSERT INTO postings(rowid, w) VALUES (?, 'brief')", (posting(20, 0, 4),))
    connection.execute("INSERT INTO postings(rowid, w) VALUES (?, 'brief')", (posting(21, 0, 100),))
    assert entries(match(connection, ["brief"], Extent(1, 22, 12, 120))) == [20, 21]


def test_words_of_one_stem_count_once(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["painting", "other", "more"])
    assert match(connection, ["painting", "paintings", "painted"], extent) == match(connection, ["painting"], extent)


def test_two_words_that_always_stand_together_both_count(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["golden retriever", "other", "more"])
    both = match(connection, ["golden", "retriever"], extent)
    assert max(both.values()) > max(match(connection, ["golden"], extent).values())


def test_of_a_common_term_the_newest_postings_are_read(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "POSTINGS", 50)
    extent = fill(connection, ["common"] * 500)
    assert entries(match(connection, ["common"], extent)) == list(range(500, 450, -1))


def test_what_is_not_below_the_end_is_not_read(connection: sqlite3.Connection) -> None:
    fill(connection, ["common"] * 9)
    assert entries(match(connection, ["common"], Extent(1, 4, 9, 90))) == [3, 2, 1]


def test_an_old_chunk_with_a_rare_term_gets_its_common_terms_too(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "POSTINGS", 60)
    extent = fill(connection, ["rare", "rare common", "rare"] + ["common", *["other"] * 9] * 200)
    assert entries(match(connection, ["common", "rare"], extent))[0] == 2


def test_an_old_chunk_where_two_common_terms_meet_is_found(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "POSTINGS", 60)
    monkeypatch.setattr(postings, "MEETINGS", 1_000)
    extent = fill(connection, ["birthday cake"] + ["birthday", "cake", *["other"] * 18] * 200)
    assert entries(match(connection, ["birthday", "cake"], extent))[0] == 1


def test_a_term_in_every_other_chunk_is_not_looked_for_farther_back(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "POSTINGS", 60)
    extent = fill(connection, ["rare", "rare common", "rare"] + ["common", "other"] * 200)
    assert entries(match(connection, ["common", "rare"], extent))[:3] == [3, 2, 1]


@pytest.mark.parametrize("count", [2_000, 20_000])
def test_what_is_read_does_not_grow_with_the_index(
    connection: sqlite3.Connection, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "POSTINGS", 300)
    monkeypatch.setattr(postings, "MEETINGS", 300)
    extent = fill(connection, [("red green", "green blue", "blue red")[number % 3] for number in range(count)])
    steps = 0

    def count_steps() -> None:
        nonlocal steps
        steps += 1

    connection.set_progress_handler(count_steps, 1)  # of SQLite's own machine: a few for each row it hands over
    scores = match(connection, ["red", "green", "blue"], extent)
    assert len(scores) <= 600
    assert steps < 8_000


def test_of_many_terms_the_rarest_score(connection: sqlite3.Connection) -> None:
    many = [f"word{number}" for number in range(40)]
    extent = fill(connection, [" ".join(many)] * 20 + ["needle"])
    assert entries(match(connection, [*many, "needle"], extent))[0] == 21
    assert len(match(connection, [f"absent{number}" for number in range(500)], extent)) == 0


def test_a_search_in_a_large_index_finds_what_is_old(tmp_path: Path) -> None:
    index = Lexical(str(tmp_path / "index.db"))
    old = [Doc(1, "We agreed that the birthday cake is made of hazelnut and rhubarb")]
    filler = (Doc(2 + n, f"the cake of day {n} and the birthday of day {n + 1}") for n in range(20_000))
    index.add([*old, *filler])
    assert index.search("hazelnut birthday cake", limit=3)[0].id == 1
    index.close()
