"""The tables of an index in SQLite do what all tables must do, and are another index once the file is replaced."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from search.tables_conformance import TablesConformance

from daypack.search.fts_tables import FtsFile, match_text
from daypack.search.tables import IndexPlace, TermQuery


@pytest.fixture
def place(tmp_path: Path) -> Iterator[FtsFile]:
    place = FtsFile(str(tmp_path / "index.db"))
    yield place
    place.close()


class TestFtsTables(TablesConformance):
    """SQLite."""


def test_queries_are_written_in_the_syntax_of_fts5() -> None:
    assert match_text(TermQuery(("buy", "bought"))) == '"buy" OR "bought"'
    assert match_text(TermQuery(("buy", "bought"), ("cake",))) == '("buy" OR "bought") AND ("cake")'


def test_a_file_that_was_replaced_is_another_index(place: IndexPlace, tmp_path: Path) -> None:
    first = place.run("search", lambda tables: tables.identity)
    assert place.run("search", lambda tables: tables.identity) == first
    opened = place.times_opened
    for part in tmp_path.iterdir():
        part.unlink()
    assert place.run("search", lambda tables: tables.identity) != first
    assert place.times_opened != opened
