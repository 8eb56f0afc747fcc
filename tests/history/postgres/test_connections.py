"""Connections that are lost, processes that are paused or forked, and databases that do not answer."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from campaigns import Campaign
from history.postgres.workers import Workers, check_same, logs, replay_all, texts
from memory.store.postgres_proxy import Cut, Proxy, proxied

import daypack
from daypack.errors import AccessDenied, BadConfig, CommitUnknown, DaypackError, SessionMissing, StorageFailed
from daypack.history.postgres.cache import store_of
from daypack.history.postgres.store import close_databases
from daypack.history.postgres.stored import StoredSession
from daypack.postgres.database import Database
from daypack.session import Session

CUTS: tuple[Cut, ...] = ("before", "after", "meanwhile")


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    with proxied(database_url) as proxy:
        yield proxy
        close_databases()


def _count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM daypack.session_lines WHERE log = 0").fetchone()
    assert row is not None
    return row[0]


def test_a_lost_connection_neither_loses_nor_doubles_an_append(
    workers: Workers, proxy: Proxy, database_url: str, campaign: Campaign
) -> None:
    one, other = workers.open("a", store=proxy.url), workers.open("b", store=database_url)
    appends = campaign.size("faults", 300, least=30)
    for number in range(appends):
        proxy.arm(CUTS[number % 3], b"")
        key = f"k{number}" if number % 2 else None
        stored = one.append("user", f"message {number}", client_key=key)
        assert stored.seq == number + 1
    assert proxy.cuts == appends
    assert _count(database_url) == appends
    assert texts(other) == [f"message {number}" for number in range(appends)]
    check_same(one, other)


@pytest.mark.parametrize("cut", CUTS)
def test_a_lost_connection_harms_nothing_else_either(
    workers: Workers, proxy: Proxy, database_url: str, cut: Cut
) -> None:
    one, other = workers.open("a", store=proxy.url), workers.open("b", store=database_url)
    one.append("user", "Hello.")
    steps: list[Callable[[], object]] = [
        lambda: one.pin("goal", "A long text. " * 1000),
        lambda: one.put_child("scout", result="A long text. " * 1000),
        lambda: one.set_budget(9_000),
        lambda: one.prepare(items=[{"context_kind": "manual_note", "content": "A long text. " * 1000}]),
        lambda: one.accept("Bye."),
        lambda: one.set_state("idle"),
        lambda: one.unpin("goal"),
        lambda: texts(one),
        lambda: one.history.facets.write_meta({"note": "x"}),
        lambda: workers.open("c", "new", store=proxy.url),
    ]
    for step in steps:
        proxy.arm(cut, b"")
        step()
    assert proxy.cuts == len(steps)
    kinds = [event.type for event in other.events()]
    assert len(kinds) == len(set(kinds)) == 6
    assert texts(other) == ["Hello.", "Bye."]
    assert other.meta["note"] == "x"
    check_same(one, other)
    assert replay_all(one) == replay_all(other)


def test_a_terminated_backend_is_replaced(workers: Workers) -> None:
    one, other = workers.pair()
    for number in range(10):
        with psycopg.connect(workers.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'daypack'"
                " AND datname = current_database()"
            )
        one.append("user", f"message {number}")
        assert len(other.messages()) == number + 1
    check_same(one, other)


_PAUSED = """
import sys, daypack
session = daypack.open_session("work", home=sys.argv[1], store=sys.argv[2], model="gpt-4o", workspace="")
session.append("user", "before the pause")
session.pin("goal", "before the pause")
print("open", flush=True)
sys.stdin.readline()
print(session.append("user", "after the pause").seq, flush=True)
session.pin("mine", "after the pause")
session.prepare()
session.close()
"""


def test_a_paused_worker_never_writes_at_a_stale_place(workers: Workers) -> None:
    command = [sys.executable, "-c", _PAUSED, str(workers.folder / "a"), workers.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        process.send_signal(signal.SIGSTOP)
        other = workers.open("b")
        for number in range(20):
            other.append("user", f"meanwhile {number}")
        other.pin("goal", "meanwhile")
        process.stdin.write("\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)
        assert process.stdout.read() == "22\n"
    assert process.returncode == 0
    assert other.pins == {"goal.md": "meanwhile", "mine.md": "after the pause"}
    check_same(other, workers.open("a"))


def test_a_forked_child_appends_beside_its_parent(workers: Workers) -> None:
    one = workers.open("a")
    one.append("user", "before")
    one.prepare()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for number in range(20):
                one.append("user", f"child {number}")
            one.pin("goal", "of the child")
            one.prepare()
            code = 0
        finally:
            os._exit(code)
    for number in range(20):
        one.append("user", f"parent {number}")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    one.prepare()
    assert sorted(texts(one)) == sorted(["before", *(f"{who} {n}" for who in ("child", "parent") for n in range(20))])
    assert one.pins == {"goal.md": "of the child"}
    other = workers.open("b")
    check_same(one, other)
    assert len(replay_all(other)) == 3


def test_threads_share_a_session(workers: Workers) -> None:
    one, other = workers.pair()
    both = (one, one, one, other, other)

    def work(number: int) -> None:
        session = both[number]
        for turn in range(8):
            session.append("user", f"{number}.{turn}", client_key=f"{number}.{turn}" if turn % 2 else None)
            session.append("user", "shared", client_key=f"shared {turn}")
            if turn % 4 == 0:
                session.pin(f"pin-{number}", f"{turn} " * 3000)
                session.prepare(target="reviewer")
            assert len(session.messages()) > turn

    with ThreadPoolExecutor(len(both)) as pool:
        list(pool.map(work, range(len(both))))
    expected = [f"{number}.{turn}" for number in range(len(both)) for turn in range(8)] + ["shared"] * 8
    assert sorted(texts(one)) == sorted(expected)
    check_same(one, other)
    assert len(replay_all(one)) == len(replay_all(other)) == 10


def test_threads_of_many_sessions_store_together(workers: Workers) -> None:
    sessions = [workers.open("a", f"work-{number}", uid=f"user-{number % 3}") for number in range(6)]
    ready = threading.Barrier(len(sessions))

    def work(session: Session) -> None:
        ready.wait()
        for number in range(20):
            session.append("user", f"{session.name} {number}")

    with ThreadPoolExecutor(len(sessions)) as pool:
        list(pool.map(work, sessions))
    for number, session in enumerate(sessions):
        assert texts(session) == [f"{session.name} {turn}" for turn in range(20)]
        assert logs(session) == logs(workers.open("b", session.name, uid=f"user-{number % 3}"))


# Databases that do not answer


def _patient(session: Session, seconds: float) -> None:
    database = session.layout.home.database
    assert database is not None
    database.wait_at_most(seconds)


def test_a_database_that_is_closed_is_reported_in_bounded_time(workers: Workers, database_url: str) -> None:
    with proxied(database_url) as proxy:
        one = workers.open("a", store=proxy.url)
        one.append("user", "Hello.")
        _patient(one, 1)
    calls: list[Callable[[], object]] = [
        lambda: one.append("user", "Lost."),
        lambda: one.tail(1),
        one.prepare,
        lambda: one.pin("goal", "Ship it."),
    ]
    for call in calls:
        with pytest.raises(StorageFailed) as raised:
            call()
        assert raised.value.place.startswith("postgresql://")
        assert raised.value.hint
    one.close()
    other = workers.open("b", store=database_url)
    assert texts(other) == ["Hello."]
    assert other.pins == {}
    close_databases()


BAD = {
    "mysql://localhost/x": BadConfig,
    "postgresql://localhost:notaport/x": BadConfig,
    "postgresql:///x?host=/nonexistent": StorageFailed,
    "postgresql://nobody@/missing?host={host}&port=5432": (StorageFailed, AccessDenied),
    "postgresql://user:s3cr3t@/missing?host={host}&port=5432": (StorageFailed, AccessDenied),
    "postgresql:///x?frobnicate=1": BadConfig,
}


@pytest.mark.parametrize("address", BAD)
def test_a_bad_address_is_reported(
    tmp_path: Path, database_url: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = database_url.partition("host=")[2].partition("&")[0]
    monkeypatch.setattr(Database.__init__, "__kwdefaults__", {**_DEFAULTS, "patience": 1.0})
    with pytest.raises(BAD[address]) as raised:
        daypack.open_session("work", home=tmp_path, store=address.format(host=host))
    assert "s3cr3t" not in f"{raised.value!r} {raised.value}"
    assert isinstance(raised.value, DaypackError)
    assert raised.value.hint
    assert not list(tmp_path.rglob("messages.jsonl"))


_DEFAULTS = {"origin": "", "most": 2, "prepared": True}


def test_a_session_of_a_deleted_row_says_so(workers: Workers) -> None:
    one = workers.open("a")
    one.append("user", "Hello.")
    with psycopg.connect(workers.url, autocommit=True) as connection:
        connection.execute("DELETE FROM daypack.sessions")
    with pytest.raises(SessionMissing, match="the session is gone"):
        one.append("user", "Lost.")
    with pytest.raises(SessionMissing, match="the session is gone"):
        one.tail(1)


def test_a_session_that_is_not_there_is_not_created_unasked(workers: Workers) -> None:
    with pytest.raises(SessionMissing):
        workers.open("a", create=False)
    assert workers.open("a").layout.home.list("default") == ["work"]


def test_a_stored_session_of_a_number_nobody_has_is_gone(workers: Workers) -> None:
    one = workers.open("a")
    home = one.layout.home
    stored = StoredSession(store_of(one.layout).database, home.uid, 10**12)
    with pytest.raises(SessionMissing):
        stored.fetch([], 0, 0)
    assert stored.blob_names() == []


def test_a_commit_in_doubt_is_said_to_be_in_doubt_when_the_server_stays_away(workers: Workers, proxy: Proxy) -> None:
    session = workers.open("a", store=proxy.url)
    session.append("user", "one")
    store_of(session.layout).database.patience = 0.5
    proxy.arm("after", b"")
    proxy.stop_accepting()
    with pytest.raises(CommitUnknown, match="not known whether it was stored"):
        session.append("user", "two")
