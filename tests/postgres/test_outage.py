"""A database that does not answer: all calls of a process share one patience with it."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest

from daypack import postgres
from daypack.cli.main import run
from daypack.errors import StorageFailed
from daypack.history.layout import Home
from daypack.history.postgres.store import close_databases
from daypack.memory.audit_log.postgres import PostgresAuditLog
from daypack.memory.audit_log.record import Deed
from daypack.memory.store.port import NewDocument, NewEntry, NewMemory
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres import database as module
from daypack.postgres import silence
from daypack.postgres.calls import Call
from daypack.postgres.database import Database
from daypack.postgres.outage import Outage
from daypack.postgres.transaction import Scope
from daypack.session.opening import open_session
from daypack.turn import memory_binding
from daypack.upkeep.database import find_database
from daypack.upkeep.store_doctor.database import examine_store
from tools.postgres import Server

pytestmark = postgres_server.needs_postgres
NOWHERE = "postgresql://ada@127.0.0.1:1/memories"
REFUSED = psycopg.OperationalError("connection refused")


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    with Server.start(tmp_path / "pg") as server:
        yield server


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The connections that were tried outside of pools."""
    tried: list[str] = []
    for place in (psycopg, silence):

        def counted(*given: Any, connect: Callable[..., Any] = place.connect, **options: Any) -> Any:
            tried.append("connect")
            return connect(*given, **options)

        monkeypatch.setattr(place, "connect", counted)
    return tried


def _read(database: Database) -> None:
    database.run("read", lambda transaction: transaction.row("SELECT 1"), Scope("me", reading=True))


def _call(database: Database) -> None:
    database.call("append", Call("SELECT %s", ("x",)), Scope("me"))


WAYS = pytest.mark.parametrize("use", [_read, _call], ids=["transaction", "call"])
Use = Callable[[Database], None]


class Clock:
    """A clock that is moved by hand."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_patience_counts_from_the_first_failure_until_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, outage = Clock(), Outage()
    monkeypatch.setattr("daypack.postgres.outage.time", clock)
    assert outage.until(5) == 105
    outage.note(REFUSED)
    clock.now = 103
    outage.note(REFUSED)
    assert outage.until(5) == 105
    assert (outage.has_lasted(5), outage.has_lasted(2)) == (False, True)
    clock.now = 106
    assert outage.has_lasted(5)
    outage.end()
    assert outage.until(5) == 111
    assert not outage.has_lasted(0)


def test_after_a_while_without_attempts_a_failure_is_a_new_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, outage = Clock(), Outage()
    monkeypatch.setattr("daypack.postgres.outage.time", clock)
    outage.note(REFUSED)
    clock.now = 160
    assert not outage.has_lasted(5)
    outage.note(REFUSED)
    clock.now = 162
    assert outage.until(5) == 165


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.SerializationFailure(),
        psycopg.errors.TooManyConnections(),
        psycopg.errors.ReadOnlySqlTransaction(),
        psycopg.errors.SyntaxError(),
        psycopg.OperationalError("all 16 connections are in use"),
    ],
)
def test_a_refusal_of_a_server_that_answers_is_no_outage(error: Exception) -> None:
    outage = Outage()
    outage.note(error)
    assert not outage.has_lasted(-1)


def test_when_the_patience_is_used_up_the_next_call_tries_once(attempts: list[str]) -> None:
    database = Database(NOWHERE, patience=0.3)
    with pytest.raises(StorageFailed, match="refused"):
        _read(database)
    assert len(attempts) > 2
    attempts.clear()
    for _ in range(3):
        with pytest.raises(StorageFailed, match="refused"):
            _read(database)
    assert not PostgresAuditLog(database).record(Deed(action="read", tool="get_user", user="ada", result="ok"))
    assert len(attempts) == 4


def test_what_follows_a_failed_call_does_not_wait_for_the_pool_either(own_server: Server, attempts: list[str]) -> None:
    database = Database(own_server.url(), patience=0.3)
    _read(database)
    own_server.down()
    with pytest.raises(StorageFailed):
        _read(database)
    attempts.clear()
    with pytest.raises(StorageFailed), database.together("read", "me"):
        _read(database)
    assert len(attempts) == 1
    own_server.up()
    _read(database)
    database.close()


def test_an_add_waits_for_a_restart_that_a_check_has_given_up(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.05)
    database = Database(own_server.url())
    store = PostgresStore(database)
    memory = store.load("ada", NewMemory(title="Harbour"), (), ()).memory_id
    own_server.down(immediate=True)
    for _ in range(2):
        with pytest.raises(StorageFailed):
            store.check()
    starting = threading.Timer(0.5, own_server.up)
    starting.start()
    [stored] = store.add("ada", memory, [NewEntry(raw="The ferry leaves at nine.", summary="")])
    starting.join()
    assert stored.seq == 1
    database.close()


def test_a_session_is_closed_soon_though_the_database_of_its_memory_is_away(
    own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempts: list[str]
) -> None:
    monkeypatch.setenv("DAYPACK_STORE_URL", own_server.url())
    monkeypatch.setattr(memory_binding, "CLOSING_SECONDS", 0.05)
    store = PostgresStore(Database(own_server.url()))
    memory = store.load("local", NewMemory(title="Harbour"), (NewDocument("# Harbour"),), ()).memory_id
    store.close()
    session = open_session("work", home=str(tmp_path / "home"))
    session.bind_memory(memory)
    session.append("user", "The ferry leaves at nine from the north pier.")
    assert len(session.capture()) == 1
    own_server.down()
    attempts.clear()
    with pytest.raises(StorageFailed):
        session.close()
    assert len(attempts) < 4  # with all the patience it tries for a minute


def test_a_command_waits_a_few_seconds_for_a_database_that_never_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempts: list[str]
) -> None:
    monkeypatch.setenv("DAYPACK_STORE_URL", NOWHERE)
    monkeypatch.setattr(postgres, "SHORT_SECONDS", 0.0)
    home = Home(str(tmp_path), "ada")
    with pytest.raises(StorageFailed, match="refused"):
        examine_store(home)
    assert len(attempts) == 1
    found = find_database(home)
    assert found is not None
    assert found.patience == module.PATIENCE_SECONDS  # for a restart while it works


@pytest.mark.parametrize(
    "command",
    ["memory list", "memory search ferry", "audit-log list", "user list", "token list", "index --memories",
     "find ferry", "log work", "session list"],
)  # fmt: skip
def test_every_command_waits_a_few_seconds_for_a_database_that_never_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempts: list[str], capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("DAYPACK_STORE_URL", NOWHERE)
    monkeypatch.setattr(postgres, "SHORT_SECONDS", 0.0)
    assert run([*command.split(), "--home", str(tmp_path)]) == 1
    close_databases()  # else another command of this process would share one
    error = capsys.readouterr().err
    assert f"cannot be reached: Connection refused [{NOWHERE}]" in error
    assert "daypack serve --check" in error
    assert len(attempts) < 4  # with all the patience it tries for half a minute
    assert Database(NOWHERE).first_patience == module.PATIENCE_SECONDS  # of programs


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "SILENCE_SECONDS", 0.2)


@pytest.fixture
def frozen(own_server: Server) -> Iterator[list[int]]:
    """Processes that a test has stopped; the server ends when they are ended."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def _backend(database: Database) -> int:
    row = database.run("read", lambda transaction: transaction.row("SELECT pg_backend_pid()"), Scope(reading=True))
    assert row
    return row[0]


@WAYS
@pytest.mark.usefixtures("impatient")
def test_a_call_ends_though_a_process_of_a_killed_server_holds_its_connection(
    own_server: Server, frozen: list[int], use: Use
) -> None:
    database = Database(own_server.url(), most=1, patience=0.5)
    use(database)
    frozen.append(_backend(database))
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    own_server.kill(but=frozen)
    with pytest.raises(StorageFailed, match=r"cannot be reached|not known whether it was stored"):
        use(database)
    database.close()


@pytest.mark.usefixtures("impatient")
def test_a_call_goes_on_elsewhere_when_its_server_has_vanished(
    own_server: Server, frozen: list[int], tmp_path: Path
) -> None:
    with own_server.replica(tmp_path / "standby") as replica:
        database = Database(own_server.url(), most=1)
        memory = PostgresStore(database).load("ada", NewMemory(title="Harbour"), (), ()).memory_id
        database.close()
        hosts = [url.partition("host=")[2].partition("&")[0] for url in (own_server.url(), replica.url())]
        both = f"postgresql://postgres@/postgres?host={','.join(hosts)}&port=5432,5432&target_session_attrs=read-write"
        database = Database(both, most=1)
        frozen.append(_backend(database))
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        own_server.kill(but=frozen)
        replica.promote()
        [stored] = PostgresStore(database).add("ada", memory, [NewEntry(raw="The ferry leaves at nine.", summary="")])
        assert stored.seq == 1
        database.close()


@WAYS
@pytest.mark.usefixtures("impatient")
def test_a_call_ends_though_the_server_takes_connections_and_answers_nothing(
    own_server: Server, frozen: list[int], use: Use
) -> None:
    database = Database(own_server.url(), most=1, patience=0.5)
    use(database)
    frozen += [own_server.pid, *own_server.children()]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    with pytest.raises(StorageFailed, match=r"timeout|not known whether it was stored"):
        use(database)
    with pytest.raises(StorageFailed):
        database.check("check store")
    database.close()


@pytest.mark.usefixtures("impatient")
def test_a_statement_that_takes_long_is_waited_for_as_long_as_the_server_is_there(
    database_url: str, attempts: list[str]
) -> None:
    database = Database(database_url, patience=0)
    _read(database)
    attempts.clear()
    answer = database.run("read", lambda at: at.row("SELECT pg_sleep(1), 7"), Scope(reading=True))
    assert answer == ("", 7)
    assert len(attempts) > 1  # it has looked
    attempts.clear()
    assert database.call("append", Call("SELECT pg_sleep(1) || %s", ("x",)), Scope("me")) == "x"
    assert len(attempts) > 1
    database.close()


def test_a_check_does_not_wait_for_a_statement_that_takes_long(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.1)
    database = Database(database_url)
    _read(database)
    with pytest.raises(StorageFailed, match="no answer in time"):
        database.check("check store", "SELECT pg_sleep(60)")
    _read(database)
    with database.limited(0.1), pytest.raises(StorageFailed, match="not known whether it was stored"):
        database.call("append", Call("SELECT pg_sleep(60) || %s", ("x",)), Scope("me"))
    _read(database)
    database.close()


def test_keepalives_find_out_about_a_lost_network_unless_the_address_says_otherwise() -> None:
    assert silence.options_of("postgresql://ada@db/memories")["keepalives_idle"] == 10
    assert "keepalives_idle" not in silence.options_of("postgresql://ada@db/memories?keepalives_idle=60")
