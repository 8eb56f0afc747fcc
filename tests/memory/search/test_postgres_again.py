"""A memory that is erased and imported again with its id, while other processes have its index open."""

from pathlib import Path

import psycopg
from memory.search.feeds import Knowing
from postgres_server import needs_postgres

from daypack.history.home import find_home
from daypack.memory.backend import open_backend
from daypack.memory.tools import Memories

pytestmark = needs_postgres


class Quick(Knowing):
    """A search embeds what is missing."""

    instant = True


def test_an_open_index_follows_a_memory_that_was_erased_and_imported_again(tmp_path: Path, database_url: str) -> None:
    first, second = (Memories(open_backend(find_home(str(tmp_path), "0"), database_url), "ana") for _ in range(2))
    for memories in (first, second):
        vars(memories.backend.indexes)["_open_embedder"] = Quick
    memory = first.create_memory("Launch").memory_id
    first.add_entry(memory, "the boat is red", "boat")
    for memories in (first, second):
        assert memories.search_memories(memory, "boat").entries
    archive = list(first.export_memory(memory))
    first.erase_memory(memory)
    assert first.import_memory(archive).memory_id == memory
    second.add_entry(memory, "the river is blue", "river")
    for memories in (second, first):
        assert memories.search_memories(memory, "river").entries[0].raw_entry == "the river is blue"
    with psycopg.connect(database_url) as connection:
        for table in ("embeddings", "vectors"):
            query = f"SELECT DISTINCT memory FROM daypack.{table}"
            numbers = connection.execute(query.encode()).fetchall()
            assert numbers == connection.execute("SELECT number FROM daypack.memories").fetchall(), table
    first.close()
    second.close()
