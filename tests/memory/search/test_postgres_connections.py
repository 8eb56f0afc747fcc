"""A search needs one connection: as many searches as connections never wait for each other."""

import threading
import time
from pathlib import Path

import postgres_server
import pytest

from daypack.memory.search.postgres.words import ENTRIES, WordPlace
from daypack.memory.store.port import NewMemory
from daypack.memory.store.postgres.store import PostgresStore
from daypack.memory.tools import Memories, open_memory
from daypack.postgres.database import Database

pytestmark = postgres_server.needs_postgres


def _open(home: Path, url: str, most: int) -> Memories:
    memories = open_memory(home=home, url=url)
    assert isinstance(memories, Memories)
    assert memories.backend.server is not None
    database = memories.backend.server.database
    database._most = most  # pyright: ignore[reportPrivateUsage]
    database.patience = 0.0
    return memories


def test_a_search_that_indexes_and_filters_uses_one_connection(database_url: str, tmp_path: Path) -> None:
    with _open(tmp_path, database_url, 1) as memories:
        memory_id = memories.create_memory("Harbour").memory_id
        for number in range(3):
            memories.put_context(memory_id, f"# Ferry {number}\nThe ferry leaves from pier {number}.")
            memories.add_entry(memory_id, f"Ferry {number} leaves from pier {number}.", about={"tags": ["ferry"]})
            assert memories.search_memories(memory_id, "which pier has the ferry").count == number + 1
            assert memories.search_memories(memory_id, "ferry pier", where={"tags": ["ferry"]}).count == number + 1


def test_as_many_threads_as_connections_search_and_add_at_a_time(database_url: str, tmp_path: Path) -> None:
    with _open(tmp_path, database_url, 4) as memories:
        memory_id = memories.create_memory("Harbour").memory_id
        problems: list[str] = []

        def use(worker: int) -> None:
            try:
                for number in range(6):
                    memories.add_entry(memory_id, f"Ferry {worker}-{number} leaves from pier {number}.")
                    memories.search_memories(memory_id, "which pier has the ferry")
            except Exception as error:
                problems.append(f"{type(error).__name__}: {error}")

        threads = [threading.Thread(target=use, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []


@pytest.mark.parametrize("writing", [False, True])
def test_a_search_does_not_wait_for_a_thread_that_waits_for_its_connection(database_url: str, *, writing: bool) -> None:
    database = Database(database_url, most=1)
    memory_id = PostgresStore(database).load("ada", NewMemory(title="Harbour"), (), ()).memory_id
    place = WordPlace(database, "ada", memory_id, ENTRIES)
    done: list[str] = []

    def use() -> None:
        place.run("index", lambda _: None, writing=writing)
        done.append("other")

    other = threading.Thread(target=use)
    with database.together("search", "ada"):
        place.run("search", lambda _: None)
        other.start()
        pool = database._connections("test")  # pyright: ignore[reportPrivateUsage]
        while not pool.get_stats().get("requests_waiting"):
            time.sleep(0.001)
        place.run("search", lambda _: None)
        done.append("search")
    other.join()
    assert done == ["search", "other"]
    database.close()
