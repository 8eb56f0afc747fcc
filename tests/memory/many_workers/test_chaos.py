"""Sixteen processes add entries for fifty users while workers, connections and servers are killed: nothing is lost.

Everything that was acknowledged is stored, once, in the order of its number; what was not acknowledged is stored once
or not at all.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import postgres_server
import psycopg
import pytest
from campaigns import Campaign
from memory.store.stores import everything, make
from worker_processes import WorkerProcesses

from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres.database import Database
from tools.postgres import Server

pytestmark = postgres_server.needs_postgres
WORKERS, ADDS, USERS = 16, 500, 50
_SCRIPT = Path(__file__).with_name("adding_worker.py")


def _start(folder: Path, url: str, campaign: Campaign) -> WorkerProcesses:
    adds = campaign.size("concurrent writes", WORKERS * ADDS) // WORKERS
    arguments = [[url, str(number), str(adds), str(folder / f"worker-{number}")] for number in range(WORKERS)]
    return WorkerProcesses(_SCRIPT, arguments, campaign.seed)


def _acknowledged(folder: Path) -> dict[tuple[int, int], int]:
    """Return the seq of every acknowledged entry, by worker and number."""
    found: dict[tuple[int, int], int] = {}
    for worker in range(WORKERS):
        for line in (folder / f"worker-{worker}").read_text().splitlines():
            number, seq = line.split()
            if seq != "tried":
                found[worker, int(number)] = int(seq)
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server.start(tmp_path / "primary") as server:
        yield server


def _prepare(url: str, folder: Path) -> None:
    store = PostgresStore(Database(url))
    users = [f"user-{number}" for number in range(USERS)]
    (folder / "memories").write_text("".join(f"{user} {make(store, user)}\n" for user in users))
    store.close()


def _check(url: str, folder: Path) -> None:
    acknowledged = _acknowledged(folder)
    assert len(acknowledged) > WORKERS
    store = PostgresStore(Database(url))
    stored = Counter[tuple[int, int]]()
    places: dict[tuple[int, int], int] = {}
    for line in (folder / "memories").read_text().splitlines():
        user, memory = line.split()
        entries = everything(store, memory, user)
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        assert store.memory(user, memory).stats.entries == len(entries)
        for entry in entries:
            _, worker, _, number = entry.raw_entry.split()
            stored[int(worker), int(number)] += 1
            places[int(worker), int(number)] = entry.seq
    store.close()
    assert [key for key, count in stored.items() if count > 1] == []
    assert {key: places.get(key) for key in acknowledged} == acknowledged


def test_nothing_acknowledged_is_lost_or_doubled_whatever_is_killed(
    server: Server, tmp_path: Path, campaign: Campaign
) -> None:
    _prepare(server.url(), tmp_path)
    workers = _start(tmp_path, server.url(), campaign)
    events: list[Callable[[], object]] = []
    for _ in range(campaign.size("kills", 60, least=6)):
        events += [workers.kill_one, lambda: workers.end_a_connection(server.url())]
    for _ in range(campaign.size("kills", 6, least=1)):
        events.insert(workers.chance.randrange(len(events)), server.restart)
    workers.run(events, 0.1)
    _check(server.url(), tmp_path)


def test_nothing_acknowledged_is_lost_when_a_paused_replica_takes_over(tmp_path: Path, campaign: Campaign) -> None:
    with Server.start(tmp_path / "primary") as server, server.replica(tmp_path / "standby") as replica:
        _prepare(server.url(), tmp_path)
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
        workers = _start(tmp_path, _either(server.url(), replica.url()), campaign)

        def pause_replay(statement: str) -> Callable[[], object]:
            def run() -> None:
                with psycopg.connect(replica.url(), autocommit=True) as connection:
                    connection.execute(statement.encode())

            return run

        def fail_over() -> None:
            server.kill()
            replica.promote()
            with psycopg.connect(replica.url(), autocommit=True) as connection:  # it has no standby of its own
                connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
                connection.execute("SELECT pg_reload_conf()")

        events = [
            workers.kill_one,
            pause_replay("SELECT pg_wal_replay_pause()"),
            workers.kill_one,
            pause_replay("SELECT pg_wal_replay_resume()"),
            fail_over,
            workers.kill_one,
        ]
        workers.run(events, 0.3)
        _check(replica.url(), tmp_path)


def _either(first: str, second: str) -> str:
    """Return an address with two hosts, of which the one that can be written is meant."""
    hosts = [url.partition("host=")[2].partition("&")[0] for url in (first, second)]
    return f"postgresql://postgres@/postgres?host={','.join(hosts)}&port=5432,5432&target_session_attrs=read-write"
