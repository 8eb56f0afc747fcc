"""The page about memories in a database: their search, and the health of the store."""

from collections.abc import Iterator

import psycopg
import pytest
from postgres_server import needs_postgres
from serve.page.views.looking import look

from daypack.memory.indexer import Indexer
from daypack.memory.tools import open_memory
from daypack.serve.page.views.opened import OpenedHome

pytestmark = needs_postgres


@pytest.fixture
def page(home: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenedHome]:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    with open_memory(home=home) as memories:
        opened = OpenedHome(home, None, memories)
        yield opened
        opened.close()


def test_health_names_the_database_and_the_jobs_that_were_given_up(page: OpenedHome, database_url: str) -> None:
    assert page.memories is not None
    memory = page.memories.create_memory("Harbour")
    page.memories.add_entry(memory.memory_id, "The tide gauge listens on port 8080.")
    behind = look(page, "health")
    assert behind["store"]["ok"] is True
    assert behind["store"]["place"] == page.memories.place
    states = {row["what"]: row["state"] for row in behind["indexes"]}
    assert states["search indexes of memories"] == "behind"
    Indexer(page.memories.backend).run()
    states = {row["what"]: row["state"] for row in look(page, "health")["indexes"]}
    assert states["search indexes of memories"] == "current"
    page.memories.backend.index_problem = "StorageFailed: the disk is full"
    assert "the disk is full" in look(page, "health")["store"]["problem"]
    page.memories.add_entry(memory.memory_id, "The ferry leaves at nine.")
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE daypack.jobs SET dead = now(), problem = 'no model'::bytea")
    store = look(page, "health")["store"]
    assert (store["ok"], "given up" in store["problem"]) == (False, True)
    answer = look(page, "doctor")
    while answer["next"] is not None:
        answer = look(page, "doctor", cursor=answer["next"])
    assert any("given up after" in found["problem"] for found in answer["findings"])


def test_entries_below_the_floor_come_from_the_index_in_the_database(page: OpenedHome) -> None:
    assert page.memories is not None
    memory = page.memories.create_memory("Harbour")
    for text in ("The launch is on the third of March.", "Tessa paints the boat red.", "The cellar is dry."):
        page.memories.add_entry(memory.memory_id, text)
    query = "Who repaired the boat engine in Lisbon with Marta and Ivo?"
    found = look(page, "memory-search", id=memory.memory_id, q=query)
    assert found["hits"] == []
    assert "Tessa paints the boat red." in [entry["raw"] for entry in found["below"]]
