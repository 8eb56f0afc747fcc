"""A database that loses its newest writes, by a failover or a restore, under processes that go on using it."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from memory.many_workers.fifty_users import HashedWords
from postgres_server import needs_postgres, running_server

from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.memory.backend import open_backend
from daypack.memory.tools import Memories
from daypack.postgres.database import Database
from daypack.upkeep.backup.database.copying import copy_records
from daypack.upkeep.backup.database.lines import Reader
from daypack.upkeep.backup.database.restoring import restore_records
from tools.postgres import Server

pytestmark = needs_postgres
Connect = Callable[[str], Memories]


@pytest.fixture
def connect(tmp_path: Path, request: pytest.FixtureRequest) -> Connect:
    """Open the memories of a database as a process of its own would."""

    def connect(url: str) -> Memories:
        memories = Memories(open_backend(find_home(str(tmp_path), "0"), url), "ana")
        vars(memories.backend.indexes)["_open_embedder"] = HashedWords
        request.addfinalizer(memories.close)
        return memories

    return connect


def add(memories: Memories, memory_id: str, *texts: str) -> str:
    """Add entries and have them indexed; return the token of the last one."""
    token = ""
    for text in texts:
        token = memories.add_entry(memory_id, text, text).token
    assert memories.await_consistency(token=token).status == "consistent"
    return token


def found(memories: Memories, memory_id: str, query: str) -> list[tuple[str, float]]:
    return [(hit.raw_entry, hit.score) for hit in memories.search_memories(memory_id, query).entries]


def dogs(count: int) -> list[str]:
    return [f"the dog sleeps in house {number}" for number in range(count)]


def bakers(count: int) -> list[str]:
    return [f"bread is baked in shop {number}" for number in range(count)]


def check_searches(running: Memories, fresh: Memories, memory_id: str) -> None:
    """A process that was there before finds what a new one finds, by words and by vectors."""
    for query in ("bread baked in shop 3", "dog sleeps in house 3", "bread", "dog"):
        assert found(running, memory_id, query) == found(fresh, memory_id, query), query
    assert found(running, memory_id, "bread baked in shop 3")[0][0] == bakers(4)[3]


def copy(url: str) -> list[bytes]:
    """Return the records of a database as a backup has them."""
    database, lines = Database(url), list[bytes]()
    copy_records(database, lines.append, lines.clear)
    database.close()
    return lines


def restore(url: str, lines: list[bytes]) -> None:
    """Drop a database, and restore a backup into a new one with the same name."""
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(running_server().url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY FILE_COPY".encode())
    database = Database(url)
    restore_records(database, lambda: Reader(iter(lines), "backup"))
    database.close()


def test_searches_follow_a_failover_that_lost_the_newest_entries(tmp_path: Path, connect: Connect) -> None:
    with Server.start(tmp_path / "primary", {"fsync": "off"}) as server:
        first = connect(server.url())
        memory_id = first.create_memory("Launch").memory_id
        add(first, memory_id, *(f"a lorry drives by in street {number}" for number in range(20)))
        with server.replica(tmp_path / "standby") as replica:
            replica.down()
            hosts = [url.partition("host=")[2].partition("&")[0] for url in (server.url(), replica.url())]
            either = f"postgresql://postgres@/postgres?host={','.join(hosts)}&port=5432,5432"
            running = connect(f"{either}&target_session_attrs=read-write")
            add(running, memory_id, *dogs(10))
            assert found(running, memory_id, "dog sleeps in house 3")[0][0] == dogs(4)[3]
            server.down(immediate=True)
            replica.up()
            replica.promote()
            add(connect(replica.url()), memory_id, *bakers(12))
            check_searches(running, connect(replica.url()), memory_id)


def test_searches_follow_a_database_that_was_restored(database_url: str, connect: Connect) -> None:
    running = connect(database_url)
    memory_id = running.create_memory("Launch").memory_id
    add(running, memory_id, "a lorry drives by", "the rain has stopped")
    backup = copy(database_url)
    add(running, memory_id, *dogs(10))
    assert found(running, memory_id, "dog sleeps in house 3")[0][0] == dogs(4)[3]
    restore(database_url, backup)
    add(connect(database_url), memory_id, *bakers(12))
    check_searches(running, connect(database_url), memory_id)


def test_a_memory_that_has_another_number_since_a_restore_has_its_own_vectors(
    database_url: str, connect: Connect
) -> None:
    running = connect(database_url)
    backup = copy(database_url)
    first, second = (running.create_memory(title).memory_id for title in ("Pets", "Bread"))
    add(running, first, *dogs(3))
    add(running, second, *bakers(3))
    assert found(running, second, "bread in shop 1")
    archives = [list(running.export_memory(memory_id)) for memory_id in (second, first)]
    restore(database_url, backup)
    fresh = connect(database_url)
    for archive in archives:
        fresh.import_memory(archive)
    fresh.await_consistency()
    for memory_id in (first, second):
        for query in ("bread in shop 1", "dog in house 1"):
            assert found(running, memory_id, query) == found(fresh, memory_id, query)


def test_tokens_follow_a_database_that_was_restored(database_url: str, connect: Connect) -> None:
    running = connect(database_url)
    memory_id = running.create_memory("Launch").memory_id
    add(running, memory_id, "a lorry drives by")
    backup = copy(database_url)
    lost = add(running, memory_id, *dogs(3))
    restore(database_url, backup)
    fresh = connect(database_url)
    kept = add(fresh, memory_id, *bakers(5))
    assert running.await_consistency(token=kept).status == "consistent"
    for memories in (running, fresh):
        with pytest.raises(BadInput, match="different store"):
            memories.await_consistency(token=lost, timeout_ms=0)
        with pytest.raises(BadInput, match="different store"):
            memories.since(lost)
    assert fresh.await_consistency(token=add(running, memory_id, "the rain has stopped")).status == "consistent"


def test_a_token_that_a_restore_invalidates_is_refused_by_a_process_that_did_not_notice(
    database_url: str, connect: Connect
) -> None:
    running = connect(database_url)
    memory_id = running.create_memory("Launch").memory_id
    backup = copy(database_url)
    lost = add(running, memory_id, *dogs(3))
    restore(database_url, backup)
    add(connect(database_url), memory_id, *bakers(5))
    with pytest.raises(BadInput, match="different store"):
        running.await_consistency(token=lost)
    token = running.await_consistency(memory_id).token
    assert connect(database_url).await_consistency(token=token).status == "consistent"


def test_a_write_after_a_restore_returns_a_token_of_the_restored_store(database_url: str, connect: Connect) -> None:
    running = connect(database_url)
    memory_id = running.create_memory("Launch").memory_id
    restore(database_url, copy(database_url))
    token = running.add_entry(memory_id, "a lorry drives by", "a lorry").token
    assert connect(database_url).await_consistency(token=token).status == "consistent"
