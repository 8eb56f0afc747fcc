"""The metrics of several servers on one database, as the official parser reads them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import postgres_server
import psycopg
import pytest

from daypack.errors import StorageFailed
from daypack.postgres.database import Database
from daypack.serve.observe.metrics import Metrics, render
from daypack.serve.shared import metrics as module
from daypack.serve.shared.metrics import SharedMetrics

pytestmark = postgres_server.needs_postgres
PROCESS = """
import sys
from daypack.postgres.database import Database
from daypack.serve.observe.metrics import Metrics
from daypack.serve.shared.metrics import SharedMetrics
metrics = Metrics(["get_user"])
metrics.connections.read = lambda: 5
shared = SharedMetrics(Database(sys.argv[1]), metrics, seconds=3600)
for line in sys.stdin:
    for _ in range(int(line)):
        metrics.damage.add()
        metrics.seconds.observe(0.001, "/api", "get_user")
    shared.families()
    print("published", flush=True)
shared.start()
shared.stop()
"""


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, patience=1)
    yield database
    database.close()


class Process:
    """A server without requests: it counts what it is told to."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-c", PROCESS, url]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def count(self, events: int) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{events}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "published\n"

    def end(self, *, kill: bool) -> None:
        if kill:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=60)


def new_server(database: Database) -> tuple[Metrics, SharedMetrics]:
    metrics = Metrics(["get_user"])
    return metrics, SharedMetrics(database, metrics)


def value(shared: SharedMetrics, name: str, **labels: str) -> float:
    from prometheus_client.parser import text_string_to_metric_families

    families: list[Any] = list(text_string_to_metric_families(render(shared.families())))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    samples = [sample for family in families for sample in family.samples]
    found = [sample.value for sample in samples if sample.name == name and sample.labels == labels]
    assert len(found) == 1, (name, found)
    return found[0]


def make_old(url: str) -> None:
    """Have all processes been seen an hour ago."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE daypack.processes SET seen = now() - interval '1 hour'")


def count_rows(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM daypack.processes").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize("kill", [False, True])
def test_counters_are_sums_and_never_fall_whoever_ends(database: Database, database_url: str, *, kill: bool) -> None:
    metrics, shared = new_server(database)
    metrics.connections.read = lambda: 3
    one, two = Process(database_url), Process(database_url)
    one.count(100)
    two.count(10)
    metrics.damage.add()
    assert value(shared, "daypack_damage_total") == 111
    assert value(shared, "daypack_request_seconds_count", route="/api", tool="get_user") == 110
    assert value(shared, "daypack_request_seconds_bucket", route="/api", tool="get_user", le="0.001") == 110
    assert value(shared, "daypack_open_connections") == 13
    assert value(shared, "daypack_processes") == 3
    two.count(5)
    one.end(kill=kill)
    assert value(shared, "daypack_damage_total") == 116
    if kill:
        make_old(database_url)
        shared.start()  # it looks at once for processes that are gone
        two.count(1)
        assert value(shared, "daypack_damage_total") == 117
        shared.stop()
        assert value(new_server(database)[1], "daypack_damage_total") == 117
        two.end(kill=True)
        return
    assert value(shared, "daypack_open_connections") == 8
    assert value(shared, "daypack_processes") == 2
    two.end(kill=False)
    assert value(shared, "daypack_damage_total") == 116
    assert count_rows(database_url) == 2
    assert value(shared, "daypack_processes") == 1


def test_a_process_that_is_gone_is_counted_once_whoever_notices(database: Database, database_url: str) -> None:
    gone, counted = new_server(database)
    gone.damage.add(count=7)
    counted.families()
    make_old(database_url)
    others = [new_server(database)[1] for _ in range(4)]
    for other in others:
        other.start()
    for other in others:
        other.stop()
    assert count_rows(database_url) == 1
    assert value(new_server(database)[1], "daypack_damage_total") == 7


def test_a_process_that_was_suspended_goes_on_where_it_was(database: Database, database_url: str) -> None:
    metrics, suspended = new_server(database)
    metrics.damage.add(count=7)
    metrics.queued.observe(0.01, "work")
    assert value(suspended, "daypack_damage_total") == 7
    metrics.damage.add(count=2)  # not published yet
    make_old(database_url)
    other = new_server(database)[1]
    other.start()
    other.stop()
    assert value(new_server(database)[1], "daypack_damage_total") == 7
    assert value(suspended, "daypack_damage_total") == 9
    metrics.damage.add()
    metrics.queued.observe(0.01, "work")
    assert value(suspended, "daypack_damage_total") == 10
    assert value(suspended, "daypack_queue_seconds_count", queue="work") == 2


def test_the_answer_of_each_server_has_all_that_another_has_answered(database: Database) -> None:
    (one, first), (two, second) = new_server(database), new_server(database)
    before = 0.0
    for number in range(20):
        (one if number % 3 else two).damage.add()
        found = value(first if number % 2 else second, "daypack_damage_total")
        assert found >= before
        before = found
    assert value(first, "daypack_damage_total") + value(second, "daypack_damage_total") == 40


def test_gauges_are_added_unless_a_sum_means_nothing(database: Database) -> None:
    (one, first), (two, second) = new_server(database), new_server(database)
    one.lag.read, two.lag.read = lambda: 4, lambda: 9
    one.barriers.read, two.barriers.read = lambda: 4, lambda: 9
    started = value(first, "process_start_time_seconds")
    second.families()
    assert value(first, "daypack_index_lag_entries") == 9
    assert value(first, "daypack_waiting_barriers") == 13
    assert value(first, "process_start_time_seconds") == started


def test_gauges_of_a_server_that_is_not_seen_are_left_out(database: Database, database_url: str) -> None:
    (one, first), (two, second) = new_server(database), new_server(database)
    one.barriers.read = two.barriers.read = lambda: 4
    one.damage.add()
    first.families()
    make_old(database_url)
    assert value(second, "daypack_waiting_barriers") == 4
    assert value(second, "daypack_processes") == 1
    assert value(second, "daypack_damage_total") == 1


def test_without_the_database_there_is_no_answer_rather_than_a_small_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics, shared = new_server(database)
    metrics.shared = shared.families
    assert "daypack_processes 1" in metrics.text()
    monkeypatch.setattr(module, "_READ", "SELECT no such table")
    with pytest.raises(StorageFailed):
        metrics.text()
