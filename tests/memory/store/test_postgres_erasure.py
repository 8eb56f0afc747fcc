"""What is erased from a PostgreSQL database: no byte in its files, no batch that brings it back, no wait for others."""

from collections.abc import Iterator
from pathlib import Path

import postgres_server
import psycopg
import pytest
from memory.store.stores import ME, everything, fill, make

from daypack.history.home import find_home
from daypack.memory.backend import open_backend
from daypack.memory.search.postgres.words import DOCUMENTS, ENTRIES, WordPlace
from daypack.memory.store.postgres.store import PostgresStore
from daypack.memory.tools import Memories
from daypack.postgres.database import Database
from tools.postgres import Server

pytestmark = postgres_server.needs_postgres
WORD = "xyzzyplugh"


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(Database(f"{database_url}&options=-c%20lock_timeout%3D10s"))  # else it might not end
    yield store
    store.close()


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def files_with(folder: Path, text: str) -> list[str]:
    """Return the files of a server that contain a text, without its log."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "pg_wal" not in path.parts and text.encode() in path.read_bytes()
    ]


def test_the_files_of_the_server_have_no_byte_of_what_was_erased(tmp_path: Path) -> None:
    with Server.start(tmp_path / "pg") as server:
        memories = Memories(open_backend(find_home(str(tmp_path / "home"), "0"), server.url()), ME)
        kept = memories.create_memory("kept").memory_id
        gone = memories.create_memory(f"the {WORD} plan", description=WORD).memory_id
        for memory in (kept, gone):
            for number in range(30):
                memories.add_entry(memory, f"{number} " + "y" * 100, "short")
        secret = memories.add_entry(kept, f"say {WORD} now", f"{WORD}!").entry_id
        memories.add_entry(gone, f"say {WORD} now", f"{WORD}!")
        memories.put_context(gone, f"about {WORD}")
        for memory in (kept, gone):  # the words are in the index too
            assert memories.search_memories(memory, WORD).entries
        execute(server.url(), "CHECKPOINT")
        files = files_with(server.folder / "data", WORD)
        assert len(files) > 3
        memories.erase_entry(kept, secret)
        memories.erase_memory(gone)
        execute(server.url(), "CHECKPOINT")
        assert files_with(server.folder / "data", WORD) == []
        assert memories.get_memory(kept).stats.entries == 30
        memories.close()


@pytest.mark.parametrize("kind", [ENTRIES, DOCUMENTS])
@pytest.mark.parametrize("known", [False, True])
def test_a_batch_that_was_read_before_an_erasure_is_refused(store: PostgresStore, kind: int, *, known: bool) -> None:
    memory = make(store)
    (entry, _) = fill(store, memory, WORD, "two")
    place = WordPlace(store.database, ME, memory, kind)
    if known:
        assert place.run("index", lambda _: True, writing=True)
    store.erase_entry(ME, memory, entry)
    assert place.run("index", lambda _: True, writing=True) is None
    assert place.run("index", lambda _: True, writing=True)


def test_an_erasure_waits_for_no_partition_of_another_memory(store: PostgresStore, database_url: str) -> None:
    memory = make(store)
    (entry, _) = fill(store, memory, "one", "two")
    with psycopg.connect(database_url) as other:
        other.execute("CREATE TABLE daypack.vectors_99 PARTITION OF daypack.vectors FOR VALUES IN (99)")
        other.commit()
        other.execute("LOCK TABLE daypack.vectors_99 IN ACCESS EXCLUSIVE MODE")
        store.erase_entry(ME, memory, entry)
        assert [one.raw_entry for one in everything(store, memory)] == ["two"]
        store.erase(ME, memory)
    assert store.memories(ME, deleted=None) == ()


def test_the_statistics_of_the_planner_hold_no_text(tmp_path: Path, database_url: str) -> None:
    memories = Memories(open_backend(find_home(str(tmp_path / "home"), "0"), database_url), ME)
    memories.users.put(ME, name=WORD, email=f"{WORD}@example.org")
    for _ in range(3):
        memory = memories.create_memory(WORD, description=WORD).memory_id
        about = {"author": WORD, "session": WORD, "source": WORD, "at": WORD, "tags": [WORD]}
        for number in range(40):
            memories.add_entry(memory, f"{WORD} {number % 3}", WORD, about=about, client_key=f"{WORD}-{number}")
        memories.put_context(memory, WORD)
        assert memories.search_memories(memory, WORD).entries
    memories.close()
    execute(database_url, "ANALYZE")
    query = "SELECT tablename, attname, s::text FROM pg_stats s WHERE schemaname = 'daypack'"
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(query).fetchall()
    assert {"entries", "postings", "memories"} <= {table for table, _, _ in rows}
    assert [row[:2] for row in rows if WORD in row[2] or WORD.encode().hex() in row[2]] == []
