"""A primary and a replica: tokens, barriers and reads that are never older than what their user has seen."""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import psycopg
import pytest
from campaigns import Campaign
from memory.search.feeds import Knowing
from postgres_server import needs_postgres

from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.memory.backend import open_backend
from daypack.memory.indexer import Indexer
from daypack.memory.store.postgres.replica import Reads, Replica, end_of_record
from daypack.memory.tools import Memories
from daypack.postgres.database import Database
from daypack.serve.checks import Plan, check_database, run_checks
from daypack.serve.http.address import Policy
from tools.postgres import Server

pytestmark = needs_postgres

WRITER = """
import json, sys
from daypack.history.home import find_home
from daypack.memory.backend import open_backend
from daypack.memory.tools import Memories
home, url, user, memory_id = sys.argv[1:]
memories = Memories(open_backend(find_home(home, "0"), url), user)
for line in sys.stdin:
    added = memories.add_entry(memory_id, line.strip(), line.strip())
    print(json.dumps([added.seq, added.token]), flush=True)
"""


class Pair(NamedTuple):
    """A primary and its replica."""

    primary: Server
    replica: Server


@contextmanager
def two_servers() -> Generator[Pair]:
    folder = Path(tempfile.mkdtemp(prefix="daypack-pg-"))
    try:
        with Server.start(folder / "primary", {"fsync": "off"}) as primary:
            Database(primary.url()).check("prepare")
            with primary.replica(folder / "replica") as replica:
                yield Pair(primary, replica)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def shared() -> Iterator[Pair]:
    with two_servers() as pair:
        yield pair


@pytest.fixture
def own() -> Iterator[Pair]:
    """Two servers that a test may promote or stop."""
    with two_servers() as pair:
        yield pair


@pytest.fixture(autouse=True)
def _words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")


def connect(pair: Pair, home: str, user: str, *, replica: bool = True) -> Memories:
    """Open the memories of a user as another process would: nothing is known about earlier writes."""
    url = pair.replica.url() if replica else ""
    return Memories(open_backend(find_home(home, "0"), pair.primary.url(), url), user)


def replica_of(memories: Memories) -> Replica:
    assert memories.backend.server is not None
    assert memories.backend.server.copy is not None
    return memories.backend.server.copy.reads.replica


@contextmanager
def paused(pair: Pair) -> Generator[None]:
    with psycopg.connect(pair.replica.url(), autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        while connection.execute("SELECT pg_get_wal_replay_pause_state()").fetchone() != ("paused",):
            time.sleep(0.001)
        try:
            yield
        finally:
            connection.execute("SELECT pg_wal_replay_resume()")


def newest(memories: Memories, memory_id: str) -> int:
    entries = memories.list_entries(memory_id, limit=1).entries
    return entries[0].seq if entries else 0


def seen_by_replica(pair: Pair, home: str, user: str) -> str:
    """Return a new memory with one entry, which the replica has, with its index."""
    with connect(pair, home, user) as memories:
        memory_id = memories.create_memory("Launch").memory_id
        added = memories.add_entry(memory_id, "the first rocket", "the first rocket")
        Indexer(memories.backend).run()
        assert memories.await_consistency(token=added.token).status == "consistent"
    return memory_id


def test_a_paused_replica_answers_with_the_past_unless_a_token_says_what_is_needed(shared: Pair, home: str) -> None:
    memory_id = seen_by_replica(shared, home, "ada")
    with connect(shared, home, "ada") as writer, connect(shared, home, "ada") as reader, paused(shared):
        added = writer.add_entry(memory_id, "the second rocket", "the second rocket")
        assert newest(writer, memory_id) == 2  # its own write
        assert newest(reader, memory_id) == 1  # the replica: stale, and nobody asked for more
        assert replica_of(reader).answered
        assert [hit.seq for hit in reader.search_memories(memory_id, "rocket").entries] == [1]
        assert newest(reader.since(added.token), memory_id) == 2
        assert reader.search_memories(memory_id, "second").entries[0].seq == 2


def test_a_barrier_that_a_replica_does_not_reach_is_a_timeout(shared: Pair, home: str) -> None:
    memory_id = seen_by_replica(shared, home, "bea")
    with connect(shared, home, "bea") as writer, connect(shared, home, "bea") as reader:
        with paused(shared):
            token = writer.add_entry(memory_id, "the second rocket", "the second rocket").token
            for level in ("visible", "searchable"):
                found = reader.await_consistency(token=token, timeout_ms=60, level=level)
                assert (found.status, found.problem) == ("timeout", "the replica has not caught up")
            assert reader.await_consistency(token=token, timeout_ms=60, level="durable").status == "consistent"
            assert writer.await_consistency(timeout_ms=60, level="visible").status == "timeout"
            assert newest(reader, memory_id) == 2  # it has the token: the primary answers
        assert reader.await_consistency(token=token).status == "consistent"
        before = replica_of(reader).answered
        assert newest(reader, memory_id) == 2
        assert replica_of(reader).answered > before


def test_a_barrier_without_any_write_waits_for_what_the_primary_has(shared: Pair, home: str) -> None:
    memory_id = seen_by_replica(shared, home, "cleo")
    with connect(shared, home, "cleo", replica=False) as writer, connect(shared, home, "cleo") as reader:
        with paused(shared):
            writer.add_entry(memory_id, "the second rocket", "the second rocket")
            assert reader.await_consistency(memory_id, timeout_ms=60, level="visible").status == "timeout"
        assert reader.await_consistency(memory_id, level="visible").status == "consistent"


def test_a_memory_that_the_replica_does_not_have_yet_is_found_on_the_primary(shared: Pair, home: str) -> None:
    with connect(shared, home, "dora") as writer, connect(shared, home, "dora") as reader, paused(shared):
        memory_id = writer.create_memory("Launch").memory_id
        assert reader.get_memory(memory_id).title == "Launch"


def test_what_the_replica_has_but_nobody_indexed_is_found_on_the_primary(shared: Pair, home: str) -> None:
    memory_id = seen_by_replica(shared, home, "edna")
    with connect(shared, home, "edna") as writer, connect(shared, home, "edna") as reader:
        token = writer.add_entry(memory_id, "the second rocket", "the second rocket").token
        assert writer.await_consistency(token=token, level="visible").status == "consistent"
        assert newest(reader, memory_id) == 2
        assert reader.search_memories(memory_id, "second").entries[0].seq == 2


def test_a_search_by_vectors_is_answered_by_the_replica(
    shared: Pair, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_embedder(_: str, *, models: str) -> Knowing:
        assert models
        return Knowing()

    monkeypatch.setattr("daypack.llm.embedders.open_embedder", open_embedder)
    with connect(shared, home, "flo") as memories:
        memory_id = memories.create_memory("Pets").memory_id
        for text in ("the dog sleeps", "a car drives by", "bread is baked"):
            memories.add_entry(memory_id, text, text)
        Indexer(memories.backend).run()
        assert memories.await_consistency().status == "consistent"
        before = replica_of(memories).answered
        found = memories.search_memories(memory_id, "puppy", explain=True)
        assert replica_of(memories).answered == before + 1
        assert found.entries[0].raw_entry == "the dog sleeps"
        assert (found.entries[0].score_parts or {}).get("dense")


@pytest.mark.parametrize(("ending", "is_used"), [("pg_cancel_backend", True), ("pg_terminate_backend", False)])
def test_a_query_that_the_replica_ends_is_answered_by_the_primary(shared: Pair, ending: str, *, is_used: bool) -> None:
    """Replaying the log cancels queries that are in its way, or ends their connections."""
    replica = Replica(shared.replica.url(), Database(shared.primary.url()))
    query = f"SELECT {ending}(pid) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(60)'"

    def end() -> None:
        with psycopg.connect(shared.replica.url(), autocommit=True) as connection:
            while connection.execute(query.encode()).fetchone() != (True,):
                time.sleep(0.01)

    ending_it = threading.Thread(target=end)
    try:
        reads = Reads(replica)
        ending_it.start()
        found = reads.choose(
            "gil", lambda: replica.run("read", lambda at: at.row("SELECT pg_sleep(60)")), lambda: ("primary",)
        )
        ending_it.join()
        assert found == ("primary",)
        assert (replica.problem == "") is is_used
        while replica.problem:  # looked at in the background
            time.sleep(0.02)
        assert reads.choose("gil", lambda: replica.run("read", lambda at: at.row("SELECT 1")), lambda: (2,)) == (1,)
    finally:
        replica.close()


def test_a_token_of_another_user_requires_nothing(shared: Pair, home: str) -> None:
    memory_id = seen_by_replica(shared, home, "fay")
    with connect(shared, home, "fay") as writer, connect(shared, home, "eve") as reader:
        token = writer.add_entry(memory_id, "one", "one").token
        with pytest.raises(BadInput, match="of this user"):
            reader.since(token)


def test_a_promoted_replica_is_not_read_any_more(own: Pair, home: str) -> None:
    memory_id = seen_by_replica(own, home, "gus")
    with connect(own, home, "gus") as reader, connect(own, home, "gus") as writer:
        assert newest(reader, memory_id) == 1
        own.replica.promote()
        token = writer.add_entry(memory_id, "the second rocket", "the second rocket").token
        assert newest(reader, memory_id) == 2
        assert replica_of(reader).problem == "it is no replica, or was promoted"
        assert reader.await_consistency(token=token, timeout_ms=5_000).status == "consistent"
        assert reader.search_memories(memory_id, "second").entries[0].seq == 2


def test_a_replica_of_another_server_is_not_read(shared: Pair, own: Pair, home: str) -> None:
    """Also if it has the same id, as after a restore, and has replayed a longer log."""
    memory_id = seen_by_replica(shared, home, "gwen")
    with psycopg.connect(shared.primary.url()) as one, psycopg.connect(own.primary.url()) as other:
        for store in one.execute("SELECT id, signing_key FROM daypack.store"):
            other.execute("UPDATE daypack.store SET id = %s, signing_key = %s", store)
        other.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 20000000))")
    with connect(Pair(own.primary, own.replica), home, "gwen") as memories:
        assert memories.await_consistency(level="visible").status == "consistent"
    with connect(Pair(shared.primary, own.replica), home, "gwen") as memories:
        assert newest(memories, memory_id) == 1
        token = memories.add_entry(memory_id, "the second rocket", "the second rocket").token
        for level in ("visible", "searchable"):
            found = memories.await_consistency(token=token, timeout_ms=60, level=level)
            assert (found.status, found.problem) == ("timeout", "the replica cannot be used: it has another store")
        assert newest(memories, memory_id) == 2
        assert (replica_of(memories).answered, replica_of(memories).problem) == (0, "it has another store")


@pytest.mark.parametrize(
    ("database", "at_replica", "problem"),
    [
        ("another", True, "it has another store"),
        ("another", False, "it is no replica, and has another store"),
        ("empty", True, "it has no daypack store"),
        ("empty", False, "it is no replica, and has no daypack store"),
    ],
)
def test_another_database_is_no_replica(
    shared: Pair, home: str, monkeypatch: pytest.MonkeyPatch, database: str, problem: str, *, at_replica: bool
) -> None:
    memory_id = seen_by_replica(shared, home, "greta")
    name = f"{database}_{at_replica}".lower()
    with psycopg.connect(shared.primary.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    if database == "another":
        Database(shared.primary.url(name)).check("prepare")
    replica = Replica(shared.replica.url(), Database(shared.primary.url()))
    while replica.lag(Database(shared.primary.url()).wal_position()):
        time.sleep(0.01)
    replica.close()
    url = (shared.replica if at_replica else shared.primary).url(name)
    with Memories(open_backend(find_home(home, "0"), shared.primary.url(), url), "greta") as memories:
        assert newest(memories, memory_id) == 1
        assert (replica_of(memories).answered, replica_of(memories).problem) == (0, problem)
        found = memories.await_consistency(timeout_ms=60, level="visible")
        assert (found.status, found.problem) == ("timeout", f"the replica cannot be used: {problem}")
    monkeypatch.setenv("DAYPACK_STORE_URL", shared.primary.url())
    monkeypatch.setenv("DAYPACK_STORE_REPLICA_URL", url)
    place = find_home(home, "0")
    plan = Plan(place, lambda: Memories(open_backend(place), "greta"), Policy(), "127.0.0.1", 0)
    found = [finding for finding in run_checks(plan, [check_database]) if finding.check == "replica"]
    assert [(finding.state, finding.text.endswith(f": {problem}")) for finding in found] == [("problem", True)]
    assert "replica_url" in found[0].hint


def test_a_replica_that_gets_the_store_of_its_primary_later_is_used(shared: Pair, home: str) -> None:
    memory_id = seen_by_replica(shared, home, "gina")
    with connect(shared, home, "gina") as memories:
        assert newest(memories, memory_id) == 1
        with paused(shared):
            with psycopg.connect(shared.primary.url()) as connection:
                connection.execute("UPDATE daypack.store SET id = reverse(id)")
            replica_of(memories).close()
            fresh = Replica(shared.replica.url(), Database(shared.primary.url()))
            assert fresh.lag(0) == "the replica cannot be used: it has another store"
        while fresh.problem:  # looked at in the background
            time.sleep(0.02)
        fresh.close()
        while replica_of(memories).lag(0):  # it knows the former id
            time.sleep(0.02)
        before = replica_of(memories).answered
        while replica_of(memories).problem:
            time.sleep(0.02)
        assert newest(memories, memory_id) == 1
        assert replica_of(memories).answered > before


def test_an_unreachable_replica_is_named_and_the_primary_answers(own: Pair, home: str) -> None:
    memory_id = seen_by_replica(own, home, "hal")
    with connect(own, home, "hal") as reader:
        assert newest(reader, memory_id) == 1
        own.replica.down(immediate=True)
        token = reader.add_entry(memory_id, "the second rocket", "the second rocket").token
        assert newest(reader, memory_id) == 2
        found = reader.await_consistency(token=token, timeout_ms=60, level="visible")
        assert found.status == "timeout"
        assert "the replica cannot be reached" in (found.problem or "")
        own.replica.up()
        assert reader.await_consistency(token=token, timeout_ms=60_000).status == "consistent"
        while replica_of(reader).problem:  # looked at in the background
            time.sleep(0.02)
        before = replica_of(reader).answered
        assert newest(reader, memory_id) == 2
        assert replica_of(reader).answered > before


@pytest.mark.requirement("G13")
def test_no_read_after_a_write_is_stale(shared: Pair, home: str, campaign: Campaign) -> None:
    """A process writes; another reads with the token, alternately through `since` and after a barrier."""
    memory_id, random, stop = seen_by_replica(shared, home, "ivy"), Random(campaign.seed), threading.Event()

    def interrupt() -> None:
        while not stop.wait(random.uniform(0.05, 0.4)):
            with paused(shared):
                stop.wait(random.uniform(0.0, 0.15))

    command = [sys.executable, "-c", WRITER, home, shared.primary.url(), "ivy", memory_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        stale, reader = list[int](), connect(shared, home, "ivy")
        replica = replica_of(reader)
        try:
            for number in range(campaign.size("barriers", 5_000)):
                print(f"rocket number {number}", file=writer.stdin, flush=True)
                seq, token = json.loads(writer.stdout.readline())
                if number % 2:
                    reader.since(token)
                else:
                    found = reader.await_consistency(token=token, level="visible", timeout_ms=60_000)
                    assert found.status == "consistent", found.problem
                if newest(reader, memory_id) < seq:
                    stale.append(seq)
                if number % 100 == 0:
                    hits = reader.search_memories(memory_id, f"number {number}").entries
                    assert seq in [hit.seq for hit in hits]
        finally:
            stop.set()
            interrupting.join()
            writer.stdin.close()
            reader.close()
    assert stale == []
    assert replica.answered > 0


def test_a_position_at_the_begin_of_a_page_is_reached_at_the_end_of_the_page_before() -> None:
    assert end_of_record(8192 * 7 + 24) == 8192 * 7
    assert end_of_record(8192 * 7 + 32) == 8192 * 7 + 32
    assert end_of_record(0) == 0


def test_users_that_are_forgotten_need_what_the_newest_of_them_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daypack.memory.store.postgres.replica.MAX_USERS", 2)
    reads = Reads(Replica("postgresql://nowhere/x", Database("postgresql://nowhere/y")))
    for user, position in (("a", 30), ("b", 10), ("c", 20), ("a", 5)):
        reads.require(user, position)
    assert (reads.wanted("c"), reads.wanted("a"), reads.wanted("b"), reads.wanted("new")) == (30, 30, 30, 30)
