"""What a search finds in a database is what it finds in files: the same ids, order and scores."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memory.search.feeds import ListFeed, document
from memory.search.places import close_at, parts_at
from memory.search.tongues import make_entries, make_question
from msgspec.structs import replace
from postgres_server import needs_postgres

from daypack.memory.search import index as module
from daypack.memory.search.index import Index, IndexParts
from daypack.search import resident
from daypack.search.lexical import Lexical, WordMatches

pytestmark = needs_postgres


@pytest.fixture
def places(database_url: str, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A folder and a memory in a database."""
    yield str(tmp_path / "index"), f"{database_url}#index"
    close_at(f"{database_url}#index")


def _everything(found: WordMatches) -> list[Any]:
    rows = [(entry, rated, tuple(found.places[entry])) for entry, rated in found.rated.items()]
    return [rows, found.participants, found.chunks, found.worth, found.entries, found.masks]


@pytest.mark.parametrize(("seed", "batches"), [(1, (2_000,)), (2, (1, 7, 300))])
def test_answers_are_those_of_the_files(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch, seed: int, batches: tuple[int, ...]
) -> None:
    rng = random.Random(seed)
    entries = make_entries(2_500, rng)
    feed = ListFeed([], [document(1, "The painting of the river"), document(2, "The invoice of the meeting")])
    parts: list[IndexParts] = [parts_at(place) for place in places]
    indexes = [Index(part, feed) for part in parts]
    added = 0
    while added < len(entries):
        size = rng.choice(batches)
        monkeypatch.setattr(module, "_BATCH", size)
        feed.stored += entries[added : added + max(size, 200)]
        added = len(feed.stored)
        assert indexes[0].catch_up() == indexes[1].catch_up()
    monkeypatch.setattr(resident, "FROM_SEARCHES", 10**9)
    ids = [entry.seq for entry in entries]
    few, many = frozenset(rng.sample(ids, 300)), frozenset(rng.sample(ids, 2_000))
    for number in range(120):
        if number == 40:  # until then tables are read, from then on the index is in memory
            monkeypatch.setattr(resident, "FROM_SEARCHES", 0)
        query, allowed = make_question(rng), rng.choice((None, None, few, many))
        limit, below = rng.choice((1, 10, 60)), rng.choice((None, None, ids[1_500]))
        found = [
            (
                index.search(query, limit, allowed=allowed),
                part.words.search(query, limit=limit, allowed=allowed, below=below),
                _everything(part.words.match(query, allowed=allowed, also=ids[5:9])),
                part.words.names_in(query),
                index.best_document(query),
            )
            for index, part in zip(indexes, parts, strict=True)
        ]
        assert found[0] == found[1], query
    for index in indexes:
        index.close()


def test_a_search_that_may_read_little_reads_the_same(places: tuple[str, str]) -> None:
    rng = random.Random(3)
    feed = ListFeed(make_entries(2_000, rng))
    words: list[Lexical] = []
    for place in places:
        parts = parts_at(place)
        Index(parts, feed).catch_up()
        where = vars(parts.words)["_place"]
        words += [Lexical(where, postings=postings) for postings in (40, 150, 700)]
    for _ in range(60):
        query = make_question(rng)
        allowed = rng.choice((None, frozenset(rng.sample(range(1, 4_000), 500))))
        found = [lexical.search(query, limit=15, allowed=allowed) for lexical in words]
        assert found[:3] == found[3:], query
    for lexical in words:
        lexical.close()


def test_blocks_of_entries_are_read_until_enough_is_found(places: tuple[str, str]) -> None:
    """Entries with large numbers are in many blocks, as those of a large memory are."""
    rng = random.Random(4)
    entries = make_entries(1_500, rng)
    spread = [replace(one, seq=1 + one.seq * 97) for one in entries]
    feed = ListFeed(spread)
    indexes = [Index(parts_at(place), feed) for place in places]
    assert spread[-1].seq >> 12 > 100
    for _ in range(40):
        query = make_question(rng)
        allowed = rng.choice((None, frozenset(one.seq for one in rng.sample(spread, 400))))
        first, second = (index.search(query, 20, allowed=allowed) for index in indexes)
        assert first == second, query
    for index in indexes:
        index.close()
