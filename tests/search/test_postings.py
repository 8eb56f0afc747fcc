"""Postings: a bounded number is read, rare terms first; what is left unread is looked for where it is wanted."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from daypack.search import postings
from daypack.search.fts_tables import FtsTables
from daypack.search.indexing import Doc
from daypack.search.lexical import Lexical
from daypack.search.matches import Matches
from daypack.search.postings import CHUNK_BITS, ENTRY_BITS, LENGTH_BITS, Extent, posting, read_terms, read_within

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


def match(connection: sqlite3.Connection, terms: list[str], extent: Extent) -> Matches:
    return Matches(read_terms(FtsTables(connection), terms, extent)[0], extent)


def entries(matches: Matches) -> list[int]:
    return matches.choose(1_000_000)


def score(matches: Matches, entry: int) -> float:
    return matches.find([entry])[entry].score


def test_a_posting_says_entry_and_chunk_and_sorts_by_them() -> None:
    row = posting(12_345, 200, 100)
    assert row >> ENTRY_BITS == 12_345
    assert (row >> LENGTH_BITS) & ((1 << CHUNK_BITS) - 1) == 200
    assert posting(1, 255, 10**6) < posting(2, 0, 1)


def test_a_rare_term_weighs_more_and_a_short_chunk_too(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["common rare"] + ["common"] * 9)
    assert entries(match(connection, ["common", "rare"], extent))[0] == 1
    assert score(match(connection, ["rare"], extent), 1) > score(match(connection, ["common"], extent), 1)
    connection.execute("INSERT INTO postings(rowid, w) VALUES (?, 'brief')", (posting(20, 0, 4),))
    connection.execute("INSERT INTO postings(rowid, w) VALUES (?, 'brief')", (posting(21, 0, 100),))
    assert entries(match(connection, ["brief"], Extent(1, 22, 12, 120))) == [20, 21]


def test_words_of_one_stem_count_once(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["painting", "other", "more"])
    several = match(connection, ["painting", "paintings", "painted"], extent)
    assert score(several, 1) == score(match(connection, ["painting"], extent), 1)


def test_forms_that_no_stemmer_joins_are_one_term(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["I bought it", "we buy it", "buying again", "other", "more", "else"])
    found = match(connection, ["buy", "bought"], extent)
    assert set(entries(found)) == {1, 2, 3}
    assert score(found, 1) == score(found, 2) == score(match(connection, ["bought"], extent), 3)


def test_two_words_that_always_stand_together_both_count(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["golden retriever", "other", "more"])
    both = match(connection, ["golden", "retriever"], extent)
    assert score(both, 1) > score(match(connection, ["golden"], extent), 1)


def test_words_that_no_entry_contains_are_returned(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["golden retriever", "other", "more"])
    found, absent = read_terms(FtsTables(connection), ["golden", "unicorn", "retriever", "griffin"], extent)
    assert [one.term for one in found] == ["golden", "retriever"]
    assert absent == ["unicorn", "griffin"]


def test_of_a_term_that_is_too_common_the_newest_postings_are_read(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["common"] * 500)
    extent.postings = 80
    assert entries(match(connection, ["common"], extent)) == list(range(500, 420, -1))


def test_what_is_not_below_the_end_is_not_read(connection: sqlite3.Connection) -> None:
    fill(connection, ["common"] * 9)
    assert entries(match(connection, ["common"], Extent(1, 4, 9, 90))) == [3, 2, 1]


def test_terms_are_read_whole_the_rarest_first_and_the_others_where_they_are_wanted(
    connection: sqlite3.Connection,
) -> None:
    extent = fill(connection, ["rare", "rare common", "rare"] + ["common", *["other"] * 9] * 200)
    extent.postings = 60
    terms = read_terms(FtsTables(connection), ["common", "rare"], extent)[0]
    assert [(one.term, one.whole) for one in terms] == [("rare", True), ("common", False)]
    assert terms[1].count == 201
    found = Matches(terms, extent)
    found.add(read_within(FtsTables(connection), terms, [1, 2, 3]))
    assert score(found, 2) > score(found, 1) == score(found, 3)


def test_what_is_wanted_is_read_exactly(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["common"] * 900 + ["other"] * 100)
    extent.postings = 70
    terms = read_terms(FtsTables(connection), ["common"], extent)[0]
    assert [
        row >> ENTRY_BITS for row in sorted(read_within(FtsTables(connection), terms, [3, 500, 880, 950, 5000])[0])
    ] == [
        3,
        500,
    ]
    assert read_within(FtsTables(connection), terms, [3, 500], visits=100) == [[]]
    assert read_within(FtsTables(connection), terms, []) == [[]]


def test_an_old_chunk_where_two_common_terms_meet_is_found(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "CO_OCCURRENCES", 2_000)
    extent = fill(connection, ["birthday cake"] + ["birthday", "cake", *["other"] * 18] * 200)
    extent.postings = 60
    assert entries(match(connection, ["birthday", "cake"], extent))[0] == 1


@pytest.mark.parametrize("count", [2_000, 20_000])
def test_what_is_read_does_not_grow_with_the_index(connection: sqlite3.Connection, count: int) -> None:
    extent = fill(connection, [("red green", "green blue", "blue red")[number % 3] for number in range(count)])
    extent.postings, extent.visits = 300, 1_200
    steps = 0

    def count_steps() -> None:
        nonlocal steps
        steps += 1

    connection.set_progress_handler(count_steps, 1)  # of SQLite's own machine: a few for each row it hands over
    terms = read_terms(FtsTables(connection), ["red", "green", "blue"], extent)[0]
    read_within(FtsTables(connection), terms, range(1, count), extent.visits)
    assert sum(len(one.rows) for one in terms) <= 600
    assert steps < 20_000


def test_a_term_is_estimated_where_it_is_too_common_to_be_counted(connection: sqlite3.Connection) -> None:
    extent = fill(connection, ["red", "other"] * 5_000)
    extent.postings, extent.visits = 300, 1_200
    (term,) = read_terms(FtsTables(connection), ["red"], extent)[0]
    assert 4_500 <= term.count <= 5_500


def test_of_many_terms_the_rarest_score(connection: sqlite3.Connection) -> None:
    many = [f"word{number}" for number in range(40)]
    extent = fill(connection, [" ".join(many)] * 20 + ["needle"])
    assert entries(match(connection, [*many, "needle"], extent))[0] == 21
    assert entries(match(connection, [f"absent{number}" for number in range(500)], extent)) == []


def test_a_search_in_a_large_index_finds_what_is_old(tmp_path: Path) -> None:
    index = Lexical(str(tmp_path / "index.db"))
    old = [Doc(1, "We agreed that the birthday cake is made of hazelnut and rhubarb")]
    filler = (Doc(2 + n, f"the cake of day {n} and the birthday of day {n + 1}") for n in range(20_000))
    index.add([*old, *filler])
    assert index.search("hazelnut birthday cake", limit=3)[0].id == 1
    index.close()
