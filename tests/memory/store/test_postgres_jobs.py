"""Index work shared by several indexers: no job is lost, none is done twice at once, and what fails is shown."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from campaigns import Campaign
from postgres_server import needs_postgres

from daypack.errors import BadInput, StorageFailed
from daypack.history.home import find_home
from daypack.memory.backend import Backend, Server, open_backend
from daypack.memory.indexer import Indexer
from daypack.memory.search.index import Index, IndexProgress
from daypack.memory.store.postgres.jobs import Job, Jobs
from daypack.memory.tools import Memories
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope

pytestmark = needs_postgres

OPERATOR = Scope(role="daypack_operator")
WORKER = """
import os, random, signal, sys
from daypack.history.home import find_home
from daypack.memory.backend import open_backend
from daypack.memory.indexer import Indexer
from daypack.memory.search.index import Index
from daypack.memory.store.postgres.jobs import Jobs
home, url, seed, lives = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
backend = open_backend(find_home(home, "0"), url)
jobs = Jobs(backend.server.database, lease=0.6, attempts=1000)
backend.server = backend.server._replace(jobs=jobs)
chance, catch_up, finish = random.Random(seed), Index.catch_up, Jobs.finish
def dying(work):
    def call(*arguments, **options):
        if lives and chance.random() < 0.04:
            os.kill(os.getpid(), signal.SIGKILL)
        done = work(*arguments, **options)
        if lives and chance.random() < 0.04:
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    return call
Index.catch_up, Jobs.finish = dying(catch_up), dying(finish)
indexer = Indexer(backend)
print("ready", flush=True)
with indexer.running():
    sys.stdin.read()
"""


@pytest.fixture
def backend(database_url: str, home: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    backend = open_backend(find_home(home, "0"), database_url)
    yield backend
    backend.close()


@pytest.fixture
def server(backend: Backend) -> Server:
    assert backend.server is not None
    return backend.server


def new_memory(backend: Backend, user: str, *texts: str) -> str:
    memories = Memories(backend, user)
    memory_id = memories.create_memory("Launch").memory_id
    for text in texts:
        memories.add_entry(memory_id, text, text)
    return memory_id


def indexed(database: Database, user: str) -> list[tuple[Any, ...]]:
    """Return for each memory of a user the entries stored, indexed, and posted."""
    query = """
        SELECT m.entries, i.entries, (SELECT count(*) FROM places p
            WHERE p.tenant = m.tenant AND p.memory = m.number AND p.kind = 0)
        FROM memories m LEFT JOIN indexes i ON i.tenant = m.tenant AND i.memory = m.number AND i.kind = 0
        WHERE m.tenant = %s ORDER BY m.number
    """
    return database.run("look", lambda transaction: transaction.rows(query, (user,)), Scope(user, reading=True))


def make_due(database: Database) -> None:
    """Let time pass for jobs that wait and for leases."""
    database.run("wait", lambda transaction: transaction.execute("UPDATE jobs SET not_before = now()"), OPERATOR)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception | None], None]:
    """Have indexing fail with an error, or not any more."""
    catch_up = Index.catch_up

    def fail_with(error: Exception | None) -> None:
        def failed(_: Index, **__: object) -> IndexProgress:
            assert error is not None
            raise error

        monkeypatch.setattr(Index, "catch_up", catch_up if error is None else failed)

    return fail_with


def test_an_indexer_indexes_every_memory_and_leaves_no_job(backend: Backend, server: Server) -> None:
    for user in ("ada", "bea"):
        new_memory(backend, user, "one rocket", "two rockets")
    assert server.jobs.counts().due >= 2
    assert Indexer(backend).run() == 2  # one for each memory: the oldest job stands for all
    assert (server.jobs.counts().due, server.jobs.counts().leased) == (0, 0)
    assert indexed(server.database, "ada") == indexed(server.database, "bea") == [(2, 2, 2)]


def test_a_document_is_index_work_too(backend: Backend, server: Server) -> None:
    memory_id = new_memory(backend, "ada")
    Indexer(backend).run()
    Memories(backend, "ada").put_context(memory_id, "- the rocket is red")
    assert server.jobs.counts().due == 1
    Indexer(backend).run()
    assert server.jobs.counts().due == 0


def test_a_memory_is_claimed_by_one_indexer_at_a_time(backend: Backend, server: Server) -> None:
    for number in range(4):
        new_memory(backend, f"user{number}", "one", "two")
    with ThreadPoolExecutor(8) as pool:
        claims = [pool.submit(server.jobs.claim) for _ in range(8)]
    held = [job for claim in claims if (job := claim.result()) is not None]
    assert len({job.memory_id for job in held}) == len(held)
    while job := server.jobs.claim():  # those whose claims were in each other's way
        held.append(job)
    assert sorted(job.user for job in held) == [f"user{number}" for number in range(4)]
    Memories(backend, held[0].user).add_entry(held[0].memory_id or "", "three", "three")
    assert server.jobs.claim() is None
    assert server.jobs.counts().leased == 4


def test_work_that_comes_during_the_work_is_not_lost(backend: Backend, server: Server) -> None:
    memory_id = new_memory(backend, "ada", "one")
    job = server.jobs.claim()
    assert job is not None
    Memories(backend, "ada").add_entry(memory_id, "two", "two")
    server.jobs.finish(job, 1, 1)
    assert server.jobs.counts().due == 1
    following = server.jobs.claim()
    assert following is not None
    server.jobs.finish(following, 2, 1)
    assert server.jobs.counts().due == 0


def test_an_indexer_that_died_is_replaced_when_its_lease_ends(backend: Backend, server: Server) -> None:
    new_memory(backend, "ada", "one")
    lost = server.jobs.claim()
    assert lost is not None
    assert server.jobs.claim() is None
    assert server.jobs.renew(lost)
    make_due(server.database)
    found = server.jobs.claim()
    assert found is not None
    assert (found.job_id, found.attempts) == (lost.job_id, 2)
    assert not server.jobs.renew(lost)
    server.jobs.finish(lost, 9, 9)  # too late: the job is another's
    server.jobs.fail(lost, "too late")
    server.jobs.release(lost)
    assert server.jobs.renew(found)


def test_a_job_that_kills_its_indexers_is_dead_in_the_end(backend: Backend, server: Server) -> None:
    memory_id = new_memory(backend, "ada", "one")
    for _ in range(5):
        assert server.jobs.claim() is not None
        make_due(server.database)
    assert server.jobs.claim() is None
    (dead,) = server.jobs.list_dead()
    assert (dead.memory_id, dead.attempts) == (memory_id, 5)
    assert "ended" in dead.problem


def test_failures_wait_longer_each_time_then_are_shown_and_can_be_retried(
    backend: Backend, server: Server, failing: Callable[[Exception | None], None]
) -> None:
    memory_id = new_memory(backend, "ada", "one", "two")
    failing(StorageFailed("the disk is full", operation="index"))
    waits = list[float]()
    query = "SELECT extract(epoch FROM not_before - now()) FROM jobs ORDER BY id LIMIT 1"
    for attempt in range(5):
        indexer = Indexer(backend)
        assert indexer.run() == 1
        assert (indexer.done, indexer.failed) == (0, 1)
        if attempt < 4:
            assert server.jobs.counts().retrying == 1
            row = server.database.run("look", lambda transaction: transaction.row(query), OPERATOR)
            assert row is not None
            waits.append(float(row[0]))
            make_due(server.database)
    assert waits == sorted(waits)
    assert waits[-1] > 10
    counts = server.jobs.counts()
    assert (counts.due, counts.leased, counts.retrying, counts.dead) == (0, 0, 0, 1)
    (dead,) = server.jobs.list_dead()
    assert (dead.user, dead.memory_id, dead.attempts) == ("ada", memory_id, 5)
    assert dead.problem == "StorageFailed: the disk is full"
    assert Indexer(backend).run() == 0
    assert server.jobs.retry_dead([dead.job_id + 1000]) == 0
    assert server.jobs.retry_dead() == 1
    failing(None)
    indexer = Indexer(backend)
    assert indexer.run() == 1
    assert (indexer.done, indexer.failed) == (1, 0)
    assert server.jobs.counts().dead == 0
    assert indexed(server.database, "ada") == [(2, 2, 2)]


def test_a_later_write_has_a_dead_memory_tried_again(
    backend: Backend, server: Server, failing: Callable[[Exception | None], None]
) -> None:
    memory_id = new_memory(backend, "ada", "one")
    failing(ValueError("secret contents"))
    for _ in range(5):
        Indexer(backend).run()
        make_due(server.database)
    Indexer(backend).run()
    assert [dead.problem for dead in server.jobs.list_dead()] == ["ValueError"]
    failing(None)
    Memories(backend, "ada").add_entry(memory_id, "two", "two")
    Indexer(backend).run()
    assert server.jobs.list_dead() == []


def test_an_erased_memory_leaves_nothing_to_do(backend: Backend, server: Server) -> None:
    memory_id = new_memory(backend, "ada", "one")
    Memories(backend, "ada").delete_memory(memory_id)
    Indexer(backend).run()
    assert (server.jobs.counts().due, server.jobs.counts().dead) == (0, 0)


def test_a_stopped_indexer_gives_its_work_back(
    backend: Backend, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_memory(backend, "ada", "one")
    indexer, reached = Indexer(backend), iter(range(1000))

    def slow(_: Index, **__: object) -> IndexProgress:
        indexer.stop()  # as a signal would meanwhile
        return IndexProgress(0, -1 - next(reached))

    monkeypatch.setattr(Index, "catch_up", slow)
    assert indexer.run() == 1
    assert server.jobs.counts().leased == 0
    job = server.jobs.claim()
    assert job is not None
    assert job.attempts == 1


def test_a_lease_is_renewed_while_the_work_lasts(
    backend: Backend, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_memory(backend, "ada", "one")
    jobs = Jobs(server.database, lease=0.3)
    backend.server = server._replace(jobs=jobs)
    catch_up, others = Index.catch_up, list[Job | None]()

    def slow(index: Index, **options: float) -> IndexProgress:
        for _ in range(10):
            time.sleep(0.1)
            others.append(jobs.claim())
        return catch_up(index, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Index, "catch_up", slow)
    assert Indexer(backend).run() == 1
    assert set(others) == {None}


def test_a_thread_works_until_it_is_stopped(backend: Backend, server: Server) -> None:
    indexer = Indexer(backend)
    with indexer.running():
        new_memory(backend, "ada", "one rocket")
        while server.jobs.counts().due or server.jobs.counts().leased:
            time.sleep(0.02)
    assert indexed(server.database, "ada") == [(1, 1, 1)]
    new_memory(backend, "bea", "one rocket")
    assert "daypack-indexer" not in [thread.name for thread in threading.enumerate()]
    assert server.jobs.counts().due


def test_threads_outlive_errors_of_every_kind_and_report_them(
    backend: Backend, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, keep_partitions = Jobs.claim, Indexer.keep_partitions
    reported, shown, kept = list[tuple[str, str]](), list[str](), threading.Event()
    failing = {"index", "index vectors"}

    def report(operation: str, error: BaseException) -> None:
        reported.append((operation, str(error)))

    def fail_once(operation: str) -> None:
        if operation in failing:
            failing.remove(operation)
            raise ValueError(operation)
        shown.append(backend.index_problem)

    def claim_later(jobs: Jobs) -> Job | None:
        fail_once("index")
        return claim(jobs)

    def keep_later(indexer: Indexer) -> None:
        fail_once("index vectors")
        keep_partitions(indexer)
        kept.set()

    monkeypatch.setattr("daypack.memory.indexer._PARTITIONS_SECONDS", 0.01)
    monkeypatch.setattr(Jobs, "claim", claim_later)
    monkeypatch.setattr(Indexer, "keep_partitions", keep_later)
    new_memory(backend, "ada", "one rocket")
    with Indexer(backend, report).running():
        while server.jobs.counts().due or server.jobs.counts().leased:
            time.sleep(0.02)
        assert kept.wait(60)
    assert sorted(reported) == [("index", "index"), ("index vectors", "index vectors")]
    assert "ValueError" in shown[0]
    assert indexed(server.database, "ada") == [(1, 1, 1)]


def test_files_have_no_jobs(home: str) -> None:
    with pytest.raises(BadInput, match="no index jobs"):
        Indexer(open_backend(find_home(home, "0")))


def test_indexers_that_are_killed_leave_no_memory_behind_and_index_none_twice(
    backend: Backend, server: Server, home: str, database_url: str, campaign: Campaign
) -> None:
    """Four processes work while entries are written; each is killed at any moment and started again."""
    chance, memories, kills = random.Random(campaign.seed), 40, campaign.size("kills", 200, 20)
    workers: list[subprocess.Popen[str]] = []

    def start(*, dying: bool = True) -> subprocess.Popen[str]:
        seed = str(chance.randrange(1 << 30))
        command = [sys.executable, "-c", WORKER, home, database_url, seed, str(int(dying))]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    try:
        workers = [start() for _ in range(4)]
        ids = [new_memory(backend, f"user{number % 8}") for number in range(memories)]
        added, ended = [0] * memories, 0
        while ended < kills:
            for _ in range(20):
                number = chance.randrange(memories)
                text = f"rocket {added[number]} of memory {number}"
                Memories(backend, f"user{number % 8}").add_entry(ids[number], text, text)
                added[number] += 1
            for at, worker in enumerate(workers):
                if worker.poll() is None and chance.random() < 0.1:
                    os.kill(worker.pid, signal.SIGKILL)
                    worker.wait()
                if worker.poll() is not None:
                    worker.communicate()
                    ended += 1
                    workers[at] = start()
        for worker in workers:
            worker.kill()
            worker.communicate()
        workers = [start(dying=False) for _ in range(2)]
        until = time.monotonic() + 120
        while (counts := server.jobs.counts()).due + counts.leased + counts.retrying:
            assert time.monotonic() < until, counts
            time.sleep(0.05)
        assert counts.dead == 0
        for user in range(8):
            own = [added[number] for number in range(memories) if number % 8 == user]
            assert indexed(server.database, f"user{user}") == [(count, count, count) for count in own]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
