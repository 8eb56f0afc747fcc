"""Rates that several servers share: the sum obeys the limit, and a database that is gone does not stop anybody."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import postgres_server
import psycopg
import pytest

from daypack.postgres.database import Database
from daypack.serve.http.limits import Rates
from daypack.serve.shared import rates as module
from daypack.serve.shared.rates import Kind, SharedRates

pytestmark = postgres_server.needs_postgres


@contextmanager
def servers(url: str, per_minute: int, count: int = 2, kind: Kind = "requests") -> Generator[list[SharedRates]]:
    """Rates of several servers, each with connections of its own."""
    databases = [Database(url, patience=0.2) for _ in range(count)]
    rates = [SharedRates(database, kind, per_minute) for database in databases]
    for each in rates:
        each.start()
    try:
        yield rates
    finally:
        for each in rates:
            each.stop()
        for database in databases:
            database.close()


def spent(url: str, key: str) -> float:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT spent FROM daypack.rates WHERE key = %s", (key.encode(),)).fetchone()
    assert row is not None
    return row[0]


async def accepted(rates: Rates, key: str, requests: int) -> int:
    """Return how many of so many requests, one after the other, are let through."""
    passed = 0
    for _ in range(requests):
        await rates.ready(key)
        if not rates.wait_seconds(key):
            rates.count(key)
            passed += 1
    return passed


async def hammer(rates: list[SharedRates], key: str, requests: int, at_once: int) -> int:
    """Return how many requests are let through when each server gets so many, from several callers at a time."""
    callers = [accepted(each, key, requests) for each in rates for _ in range(at_once)]
    return sum(await asyncio.gather(*callers))


@pytest.mark.parametrize(("per_minute", "count"), [(60, 2), (60, 5), (6_000, 2), (60_000, 3)])
def test_all_servers_together_obey_the_limit(database_url: str, per_minute: int, count: int) -> None:
    with servers(database_url, per_minute, count) as rates:
        burst = per_minute // 6
        started = time.monotonic()
        passed = asyncio.run(hammer(rates, "ada", burst // 4 + 20, 5))
        seconds = time.monotonic() - started
        assert burst <= passed <= burst + per_minute / 60 * seconds + count * rates[0].ahead
        assert rates[0].ahead == max(1, burst // 50)
        assert asyncio.run(accepted(rates[0], "eve", 1)) == 1


def test_what_one_server_has_counted_the_others_know(database_url: str) -> None:
    with servers(database_url, 6, kind="bad tokens") as (one, other):
        assert asyncio.run(accepted(one, "192.0.2.7", 5)) == 1
        assert one.wait_seconds("192.0.2.7") > 5
        asyncio.run(accepted(other, "192.0.2.7", 2))  # the first is let through before it knows better
        assert other.wait_seconds("192.0.2.7") > 5
        assert asyncio.run(accepted(other, "192.0.2.8", 1)) == 1
    with servers(database_url, 6, kind="requests") as (one, _):
        assert asyncio.run(accepted(one, "192.0.2.7", 2)) == 1  # another limit


def test_what_a_server_with_a_higher_limit_let_through_is_owed_for_a_minute_at_most(database_url: str) -> None:
    with servers(database_url, 60_000, 1) as (high,):
        assert asyncio.run(accepted(high, "ada", 3_000)) == 3_000
    with servers(database_url, 60, 1) as (low,):
        asyncio.run(accepted(low, "ada", 3))
        assert 10 < low.wait_seconds("ada") <= 60  # a limit of its own, and what fifty servers may be ahead
    assert spent(database_url, "ada") <= 70


def test_what_a_server_counted_last_is_reported_when_it_ends(database_url: str) -> None:
    with servers(database_url, 6_000, 1) as (one,):
        assert asyncio.run(accepted(one, "ada", 7)) == 7
    assert 0 < spent(database_url, "ada") <= 7


def test_without_the_database_each_server_applies_the_limit_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.2)
    with servers(f"postgresql://nobody@/none?host={tmp_path}", 60) as (one, other):
        started = time.monotonic()
        passed = asyncio.run(accepted(one, "ada", 30))
        assert 10 <= passed <= 10 + time.monotonic() - started
        assert asyncio.run(accepted(other, "ada", 5)) == 5


def test_after_an_outage_nobody_is_charged_for_requests_that_are_long_gone(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(database_url)
    rates, late, clock = SharedRates(database, "requests", 600), [0.0], time.monotonic
    monkeypatch.setattr("daypack.serve.http.limits.time.monotonic", lambda: clock() + late[0])
    for _ in range(40):  # as many as are allowed, for minutes, and nothing is reported
        late[0] += 10
        for _ in range(100):
            rates.count("ada")
    rates.start()
    rates.stop()
    database.close()
    assert 90 <= spent(database_url, "ada") <= 101


def test_buckets_that_nobody_uses_are_removed(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FORGET_SECONDS", 0.0)
    with psycopg.connect(database_url, autocommit=True) as connection:
        old = "INSERT INTO daypack.rates SELECT 'requests', '\\x' || n::text::bytea, 1, now() - interval '1 hour'"
        connection.execute(f"{old} FROM generate_series(10, 99) AS n".encode())
        with servers(database_url, 60, 1) as (one,):
            asyncio.run(accepted(one, "ada", 3))
        row = connection.execute("SELECT count(*) FROM daypack.rates WHERE key <> 'ada'").fetchone()
        assert row == (0,)


def test_a_limit_of_zero_is_none_and_asks_nobody(tmp_path: Path) -> None:
    with servers(f"postgresql://nobody@/none?host={tmp_path}", 0, 1) as (one,):
        assert asyncio.run(accepted(one, "ada", 10_000)) == 10_000
        assert len(one) == 0
