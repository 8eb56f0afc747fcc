"""The audit log in a database: the promises of the file, for several servers at once."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest

from daypack.errors import AccessDenied, BadInput, Damaged, WriteFailed
from daypack.files import jsonl
from daypack.memory.audit_log import port
from daypack.memory.audit_log.cut import apply_cut, plan_cut
from daypack.memory.audit_log.postgres import PostgresAuditLog
from daypack.memory.audit_log.reading import Selection, select, verify
from daypack.memory.audit_log.record import Actor, Deed, actor
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

pytestmark = postgres_server.needs_postgres
START = 1_767_225_600  # 2026-01-01


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, patience=3)
    yield database
    database.close()


@pytest.fixture
def log(database: Database) -> PostgresAuditLog:
    return PostgresAuditLog(database)


def fill(log: PostgresAuditLog, monkeypatch: pytest.MonkeyPatch, hours: int = 24) -> None:
    """Record one line per hour of a day."""
    with monkeypatch.context() as clock:
        for hour in range(hours):
            clock.setattr(time, "time", lambda hour=hour: START + hour * 3600.0)
            log.record(Deed(action="erase" if hour == 23 else "read", user=f"u{hour % 3}"), durable=hour % 2 == 0)


def seqs(log: PostgresAuditLog) -> list[int]:
    return [record.seq for record in select(log.lines(), Selection())]


def execute(url: str, statement: str) -> None:
    """Do what somebody with all rights could do."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_a_line_has_the_same_bytes_as_in_a_file(log: PostgresAuditLog) -> None:
    assert not log.exists()
    token = actor.set(Actor("http", "t-1", "r-1"))
    assert log.record(Deed(action="read", tool="search_memories", user="ada\0é", entries=("e1", "e2")))
    actor.reset(token)
    (line,) = log.lines()
    assert jsonl.check(line.data) == "sealed"
    told = json.loads(line.data)
    del told["time"], told["crc"]
    assert told == {
        "seq": 1, "action": "read", "door": "http", "result": "ok", "tool": "search_memories", "user": "ada\0é",
        "token": "t-1", "request": "r-1", "entries": ["e1", "e2"],
    }  # fmt: skip
    assert log.exists()


def test_threads_and_processes_share_it_without_gaps(log: PostgresAuditLog, database_url: str) -> None:
    code = (
        "import sys\nfrom daypack.memory.audit_log.postgres import PostgresAuditLog\n"
        "from daypack.memory.audit_log.record import Deed\nfrom daypack.postgres.database import Database\n"
        "log = PostgresAuditLog(Database(sys.argv[1]))\n"
        "for n in range(100): assert log.record(Deed(action='read', user=sys.argv[2]), durable=n % 20 == 0)"
    )
    others = [subprocess.Popen([sys.executable, "-c", code, database_url, f"process{at}"]) for at in range(2)]

    def record(name: str) -> None:
        for number in range(100):
            assert log.record(Deed(action="read", user=name), durable=number % 20 == 0)

    threads = [threading.Thread(target=record, args=(f"thread{at}",)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait(60) for other in others] == [0, 0]
    told = list(select(log.lines(), Selection()))
    assert [record.seq for record in told] == list(range(1, 601))
    assert set(Counter(record.user for record in told).values()) == {100}
    assert log.verify() == []


def test_a_transaction_that_is_rolled_back_leaves_no_gap(log: PostgresAuditLog, database: Database) -> None:
    log.record(Deed(action="read"))

    def fail(transaction: Transaction) -> None:
        transaction.row("UPDATE audit_end SET last = last + 5 RETURNING last")
        raise ValueError

    with pytest.raises(ValueError):
        database.run("test", fail)
    log.record(Deed(action="read"))
    assert seqs(log) == [1, 2]
    assert log.verify() == []


@pytest.mark.parametrize(
    "statement",
    ["SELECT line FROM audit", "SELECT count(*) FROM audit", "DELETE FROM audit", "UPDATE audit SET line = ''"],
)
def test_those_who_append_can_neither_read_nor_change_lines(log: PostgresAuditLog, statement: str) -> None:
    log.record(Deed(action="read"))
    database = log._database  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(AccessDenied):
        database.run("test", lambda transaction: transaction.execute(statement.encode()).rowcount, Scope())
    changing = "UPDATE audit SET line = ''"
    for role in ("daypack_operator", "daypack_eraser"):
        with pytest.raises(AccessDenied):
            database.run("test", lambda transaction: transaction.execute(changing).rowcount, Scope(role=role))
    reading = "SELECT line FROM audit"
    with pytest.raises(AccessDenied):
        database.run("test", lambda transaction: transaction.rows(reading), Scope(role="daypack_eraser"))
    assert seqs(log) == [1]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM daypack.audit WHERE seq = 6", "number 7, expected 6"),
        ("DELETE FROM daypack.audit WHERE seq < 4", "the first line has number 4, and no cut is recorded"),
        ("DELETE FROM daypack.audit WHERE seq > 22", "the lines 23 to 24 at the end are missing"),
        ("DELETE FROM daypack.audit", "the lines 1 to 24 at the end are missing"),
        ("UPDATE daypack.audit SET line = overlay(line placing '\\x39' from 60) WHERE seq = 5", "damaged"),
    ],
)
def test_a_removed_or_changed_line_is_found(
    log: PostgresAuditLog, database_url: str, statement: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, monkeypatch)
    assert log.verify() == []
    execute(database_url, statement)
    assert [found.problem for found in log.verify() if problem in found.problem]
    with pytest.raises(Damaged):
        plan_cut(log, "2026-01-02")


def test_lines_are_read_in_pages_and_filtered(log: PostgresAuditLog, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(log, monkeypatch)
    monkeypatch.setattr("daypack.memory.audit_log.postgres._PAGE", 5)
    assert seqs(log) == list(range(1, 25))
    found = select(log.lines(), Selection(user="u2", since="2026-01-01T20:00"))
    assert [record.seq for record in found] == [21, 24]
    monkeypatch.setattr("daypack.memory.audit_log.postgres._PAGE", 24)
    assert len(seqs(log)) == 24


def test_a_cut_is_planned_then_applied_and_recorded(
    log: PostgresAuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, monkeypatch)
    archive, whole = tmp_path / "older.jsonl", [line.data + b"\n" for line in log.lines()]
    planned = plan_cut(log, "2026-01-01T12:00")
    assert (planned.lines, planned.first, planned.last, planned.kept) == (12, 1, 12, 12)
    assert planned.bytes == len(b"".join(whole[:12]))
    assert apply_cut(log, "2026-01-01T12:00", str(archive)) == planned
    assert archive.read_bytes() == b"".join(whole[:12])
    assert (verify(str(archive)), log.verify()) == ([], [])
    log.record(Deed(action="read"))
    told = list(select(log.lines(), Selection()))
    assert [record.seq for record in told] == list(range(13, 27))
    assert (told[-2].action, told[-2].seqs) == ("audit.cut", (1, 12))
    assert apply_cut(log, "2026-01-01T18:00", str(tmp_path / "newer.jsonl")).lines == 6
    assert log.verify() == []
    assert apply_cut(log, "2026-01-01", str(tmp_path / "none")).lines == 0
    assert not (tmp_path / "none").exists()


def test_a_cut_loses_nothing_if_it_fails(
    log: PostgresAuditLog, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, monkeypatch)
    (tmp_path / "taken").write_text("x")
    with pytest.raises(BadInput, match="exists"):
        apply_cut(log, "2026-01-01T12:00", str(tmp_path / "taken"))
    with pytest.raises(WriteFailed):
        apply_cut(log, "2026-01-01T12:00", str(tmp_path / "no folder" / "file"))
    execute(database_url, "REVOKE DELETE ON daypack.audit FROM daypack_eraser")
    with pytest.raises(AccessDenied):
        apply_cut(log, "2026-01-01T12:00", str(tmp_path / "archive"))
    assert seqs(log) == list(range(1, 25))
    assert log.verify() == []


def test_a_cut_that_another_has_done_meanwhile_is_refused(
    log: PostgresAuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, monkeypatch)
    planned = plan_cut(log, "2026-01-01T12:00")
    apply_cut(log, "2026-01-01T06:00", str(tmp_path / "first"))
    with pytest.raises(Damaged, match="since the plan"):
        log.cut(lambda: planned, str(tmp_path / "second"))
    assert seqs(log) == list(range(7, 26))


@pytest.mark.parametrize("times", [1, 3])
def test_an_unknown_commit_is_neither_lost_nor_doubled(
    log: PostgresAuditLog, tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost when COMMIT was sent: the next attempt finds out whether it was done."""
    from psycopg import Connection, Cursor

    fill(log, monkeypatch, hours=4)
    execute_before, left = Connection.execute, [times]

    def lose(self: "Connection[Any]", query: Any, *more: Any, **options: Any) -> "Cursor[Any]":
        cursor = execute_before(self, query, *more, **options)
        if query == "COMMIT" and left[0] and not self.closed:
            left[0] -= 1
            assert self._pipeline is not None  # pyright: ignore[reportPrivateUsage]
            if left[0] % 2 == 0:
                self._pipeline.sync()  # pyright: ignore[reportPrivateUsage]
            self.close()
            raise psycopg.OperationalError("lost")
        return cursor

    monkeypatch.setattr(Connection, "execute", lose)
    assert log.record(Deed(action="write", user="ada"), durable=True)
    assert left == [0]
    assert log.record(Deed(action="write", user="bob"))
    assert seqs(log) == [1, 2, 3, 4, 5, 6]
    left[0] = times
    assert apply_cut(log, "2026-01-01T02:00", str(tmp_path / "older")).lines == 2
    assert seqs(log) == [3, 4, 5, 6, 7]
    assert log.verify() == []


def test_lines_wait_while_the_database_cannot_be_written(
    log: PostgresAuditLog, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "MAX_PENDING", 3)
    log.record(Deed(action="read", user="before"))
    execute(database_url, "REVOKE INSERT ON daypack.audit FROM daypack_app")
    for number in range(5):
        assert not log.record(Deed(action="read", user=f"u{number}"), durable=True)
    assert log.pending == 5
    with pytest.raises(WriteFailed):
        log.require()
    with pytest.raises(WriteFailed):
        log.check()
    began = False
    with pytest.raises(WriteFailed), log.recording(Deed(action="erase", user="ada")):
        began = True
    assert not began
    execute(database_url, "GRANT INSERT ON daypack.audit TO daypack_app")
    log.require()
    assert log.pending == 0
    log.check()
    with log.recording(Deed(action="erase", user="after")):
        assert log.pending == 0
    told = [(record.action, record.user, record.count, record.result) for record in select(log.lines(), Selection())]
    assert [(action, user) for action, user, _, _ in told] == [
        ("read", "before"), ("read", "u0"), ("read", "u1"), ("read", "u2"), ("audit.lost", ""),
        ("erase", "after"), ("erase", "after"),
    ]  # fmt: skip
    assert told[4][2] == 2
    assert [result for *_, result in told[5:]] == ["started", "ok"]
    assert log.verify() == []
