"""The questions of public conversations have the same answers in both stores: the same entries in the same order."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest
from campaigns import Campaign
from llm.embedding.embedders import find_embedder
from postgres_server import needs_postgres

from bench import data
from bench.corpora import Talk, read_corpora
from daypack.llm.embedding.port import Embedder
from daypack.memory.backend import Backend
from daypack.memory.limits import Limits
from daypack.memory.search.index_cache import IndexCache
from daypack.memory.search.postgres.indexes import PostgresIndexes
from daypack.memory.store.postgres.store import PostgresStore
from daypack.memory.store.sqlite import SqliteStore
from daypack.memory.tools import Memories
from daypack.postgres.database import Database
from daypack.types.memory import About

pytestmark = needs_postgres
_DEPTH = 50
_LIMITS = Limits(entry_bytes=1_000_000)  # corpora have pages pasted into a message
_WAIT_MS = 600_000


@pytest.fixture(scope="module")
def talks() -> list[Talk]:
    places = [data.find("locomo", "locomo_dev5.json"), data.find("beam", "100K")]
    found = [talk for place in places if place for talk in read_corpora(place)]
    if not all(places):
        pytest.skip("the conversations are not here: name their folder in DAYPACK_DATA")
    return found


def _choose(talks: list[Talk], campaign: Campaign) -> Iterator[tuple[Talk, list[str]]]:
    """Yield whole conversations, beginning with another one each day, until there are enough questions."""
    left = campaign.size("questions", sum(len(talk.questions) for talk in talks))
    first = campaign.seed % len(talks)
    for talk in talks[first:] + talks[:first]:
        if questions := [question.text for question in talk.questions][:left]:
            left -= len(questions)
            yield talk, questions


def _fill(files: Memories, database: Memories, talk: Talk) -> str:
    """Add what was said to a memory, copy it with all its ids, and wait until both can be searched."""
    memory_id = files.create_memory(talk.name.replace("/", "-")[:50]).memory_id
    for said in talk.entries:
        about = About(session=said.session, role=said.role, author=said.author, at=said.when or None)
        files.add_entry(memory_id, said.text, about=about)
    assert database.import_memory(files.export_memory(memory_id)).memory_id == memory_id
    for memories in (files, database):
        assert memories.await_consistency(memory_id, timeout_ms=_WAIT_MS).status == "consistent"
    return memory_id


@pytest.mark.parametrize("vectors", ["none", "static"])
def test_both_stores_find_the_same_entries(
    talks: list[Talk], database_url: str, tmp_path: Path, campaign: Campaign, vectors: Literal["none", "static"]
) -> None:
    embedder: Embedder | None = find_embedder("static") if vectors == "static" else None
    place = Database(database_url)
    files = Memories(
        Backend(
            SqliteStore(str(tmp_path / "store.sqlite")), IndexCache(str(tmp_path / "index"), lambda: embedder), _LIMITS
        )
    )
    database = Memories(Backend(PostgresStore(place), IndexCache(PostgresIndexes(place), lambda: embedder), _LIMITS))
    different: list[str] = []
    asked = found = 0
    with closing(place), closing(files), closing(database):
        for talk, questions in _choose(talks, campaign):
            memory_id = _fill(files, database, talk)
            for question in questions:
                ours, theirs = (_ask(one, memory_id, question) for one in (files, database))
                asked, found = asked + 1, found + len(ours)
                if ours != theirs:
                    different.append(f"{talk.name}: {question}")
    assert different == []
    assert found > 10 * asked  # not equal because both are empty


def _ask(memories: Memories, memory_id: str, question: str) -> list[tuple[str, float]]:
    return [(hit.entry_id, hit.score) for hit in memories.search_memories(memory_id, question, top_k=_DEPTH).entries]
