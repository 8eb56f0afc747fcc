"""Transactions of one role and one tenant, migrations, and what happens when the server goes away."""

import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest

from daypack.errors import AccessDenied, BadConfig, CommitUnknown, StorageFailed, WriteFailed
from daypack.memory.store.postgres.store import PostgresStore
from daypack.postgres import database as module
from daypack.postgres.calls import Call
from daypack.postgres.database import Database
from daypack.postgres.migrations import list_migrations
from daypack.postgres.transaction import Role, Scope, Transaction
from tools.postgres import Server

pytestmark = postgres_server.needs_postgres
ME, OTHER = Scope("me"), Scope("other")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    with Server.start(tmp_path / "pg") as server:
        yield server


def _tag(transaction: Transaction) -> None:
    transaction.execute("INSERT INTO tags VALUES (%s, 1, 'a', 1)", (transaction.tenant,))


def _tags(transaction: Transaction) -> int:
    row = transaction.row("SELECT count(*) FROM tags")
    assert row
    return row[0]


def test_a_transaction_sees_and_writes_the_rows_of_its_tenant_only(database: Database) -> None:
    database.run("test", _tag, ME)
    assert database.run("test", _tags, ME) == 1
    assert database.run("test", _tags, OTHER) == 0
    assert database.run("test", _tags, Scope()) == 0
    foreign = "INSERT INTO tags VALUES ('me', 1, 'b', 1)"
    with pytest.raises(AccessDenied, match="row-level security"):
        database.run("test", lambda transaction: transaction.execute(foreign).rowcount, OTHER)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries",
        "UPDATE documents SET content = ''",
        "TRUNCATE entries",
        "DROP TABLE entries",
        "SELECT * FROM entries_0",
        "ALTER TABLE entries DISABLE ROW LEVEL SECURITY",
    ],
)
def test_the_role_of_the_tools_can_neither_change_nor_remove_what_is_stored(database: Database, statement: str) -> None:
    with pytest.raises(AccessDenied):
        database.run("test", lambda transaction: transaction.rows(statement), ME)


def test_nothing_of_a_transaction_is_left_on_its_connection(database_url: str) -> None:
    database = Database(database_url, most=1)
    database.run("test", _tag, ME)
    query = "SELECT current_user, current_setting('daypack.tenant', true)"
    with database._connections("test").connection() as connection:  # pyright: ignore[reportPrivateUsage]
        assert connection.execute(query).fetchone() == ("daypack_app", "")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM tags")
    database.close()


def test_an_error_rolls_everything_back_and_the_connection_is_used_again(database_url: str) -> None:
    database = Database(database_url, most=1)

    def fail(transaction: Transaction) -> None:
        _tag(transaction)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        database.run("test", fail, ME)
    with pytest.raises(StorageFailed, match="syntax error"):
        database.run("test", lambda transaction: transaction.execute("SELEC 1").rowcount, ME)
    assert database.run("test", _tags, ME) == 0
    database.close()


def test_a_transaction_that_only_reads_cannot_write(database: Database) -> None:
    with pytest.raises(StorageFailed, match="read-only"):
        database.run("test", _tag, Scope("me", reading=True))


def test_an_empty_database_is_migrated_once_by_many_processes_at_a_time() -> None:
    url = postgres_server.new_database(empty=True)
    problems: list[BaseException] = []

    def open_it() -> None:
        one = Database(url)
        try:
            one.check("test")
        except BaseException as error:
            problems.append(error)
        one.close()

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with psycopg.connect(url) as connection:
        numbers = connection.execute("SELECT number FROM daypack.migrations ORDER BY number").fetchall()
    assert numbers == [(migration.number,) for migration in list_migrations()]
    postgres_server.drop_database(url)


def test_a_database_of_a_later_version_is_used_unless_it_says_otherwise(database_url: str) -> None:
    later = list_migrations()[-1].number + 1
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("INSERT INTO daypack.migrations VALUES (%s, 'more', 0)", (later,))
        Database(database_url).check("test")
        connection.execute("UPDATE daypack.migrations SET requires = %s WHERE number = %s", (later, later))
    with pytest.raises(BadConfig, match=f"of a later version: schema {later}"):
        Database(database_url).check("test")


def test_an_account_without_rights_is_told_what_an_administrator_must_run(own_server: Server) -> None:
    with psycopg.connect(own_server.url(), autocommit=True) as connection:
        connection.execute('CREATE ROLE "plain-user" LOGIN')
        for name in ("their-first", "their-second"):
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
    for name, made in (
        ("their-first", "CREATE EXTENSION vector; CREATE ROLE daypack_owner"),
        ("their-second", "GRANT"),
    ):
        address = own_server.url(name, "plain-user")
        with pytest.raises(AccessDenied, match=made) as refused:
            Database(address).check("test")
        assert ("CREATE ROLE" in refused.value.hint) is (name == "their-first")  # roles belong to the whole server
        with psycopg.connect(own_server.url(name), autocommit=True) as connection:
            for statement in refused.value.hint.partition(": ")[2].split(";")[:-1]:
                connection.execute(statement.encode())
        Database(address).check("test")


def test_a_server_that_comes_back_is_waited_for_and_lost_connections_are_replaced(own_server: Server) -> None:
    database = Database(own_server.url())
    database.run("test", _tag, ME)
    own_server.down(immediate=True)
    starting = threading.Timer(0.5, own_server.up)
    starting.start()
    assert database.run("test", _tags, ME) == 1
    starting.join()
    database.close()


def test_a_server_that_stays_away_is_an_error_with_the_reason_and_without_the_password() -> None:
    with pytest.raises(StorageFailed, match="refused") as failed:
        Database("postgresql://ada:geheim@127.0.0.1:1/memories", patience=0.1).check("read memory")
    assert "geheim" not in str(failed.value)
    assert "postgresql://ada@127.0.0.1:1/memories" in str(failed.value)


def test_a_commit_whose_answer_is_lost_is_reported_or_resolved_by_the_work(own_server: Server) -> None:
    database = Database(own_server.url(), most=1)
    database.check("test")

    def tag_and_lose(transaction: Transaction) -> int:
        if transaction.attempt:
            return _tags(transaction)
        _tag(transaction)
        pid = transaction.connection.info.backend_pid
        _tags(transaction)  # everything before the commit has arrived

        def cut() -> None:
            with psycopg.connect(own_server.url(), autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", (pid,))

        cut()
        time.sleep(0.05)
        return -1

    with pytest.raises(CommitUnknown, match="not known"):
        database.run("test", tag_and_lose, ME)
    assert database.resolve("test", tag_and_lose, ME) == 0  # neither attempt was stored
    database.close()


def test_work_that_resolves_a_commit_has_something_to_commit_itself(own_server: Server) -> None:
    """Else it would not wait until a synchronous replica has what it found."""
    database = Database(own_server.url(), most=1)

    def lose(transaction: Transaction) -> str:
        if transaction.attempt:
            row = transaction.row("SELECT current_user, pg_current_xact_id_if_assigned() IS NOT NULL")
            assert row
            assert row[1]
            return row[0]
        pid = transaction.connection.info.backend_pid
        transaction.row("SELECT 1")
        with psycopg.connect(own_server.url(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        return ""

    roles: tuple[Role, ...] = ("daypack_app", "daypack_eraser", "daypack_operator", "daypack_owner")
    assert [database.resolve("test", lose, Scope("me", role)) for role in roles] == [*roles]
    log = b"".join(path.read_bytes() for path in (own_server.folder / "data" / "pg_wal").iterdir() if path.is_file())
    assert log.count(b"daypack\0resolved") == len(roles)
    database.close()


@contextmanager
def _without_its_replica(server: Server) -> Generator[psycopg.Connection[tuple[object, ...]]]:
    """Have commits wait for a synchronous replica that is not there."""
    prepared = Database(server.url())
    prepared.check("test")
    prepared.close()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        server.restart()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        yield connection


def _cancel_a_wait(connection: psycopg.Connection[tuple[object, ...]], writing: Future[Any]) -> None:
    """Wait until a commit waits for the replica, and cancel that."""
    cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    while not connection.execute(cancel).fetchone():
        assert not writing.done()


def test_a_commit_whose_wait_for_the_replica_is_cancelled_is_not_acknowledged(own_server: Server) -> None:
    database = Database(own_server.url(), most=1)
    with _without_its_replica(own_server) as connection, ThreadPoolExecutor() as threads:
        writing = threads.submit(database.run, "test", _tag, ME)
        _cancel_a_wait(connection, writing)
        with pytest.raises(CommitUnknown, match="not known whether the replica has it"):
            writing.result()
        assert database.run("test", _tags, Scope("me", reading=True)) == 1
    database.close()


_LOGGING = "SELECT pg_logical_emit_message(true, 'test', %s)::text"  # there is something to commit


def _log(database: Database) -> object:
    return database.resolve("test", lambda transaction: transaction.row(_LOGGING, ("x",)), ME)


def _call_log(database: Database) -> object:
    return database.call("test", Call(_LOGGING, ("x",)), ME)


@pytest.mark.parametrize("use", [_log, _call_log])
def test_work_that_resolves_a_commit_waits_for_the_replica_again(
    own_server: Server, use: Callable[[Database], object]
) -> None:
    database = Database(own_server.url(), most=1)
    with _without_its_replica(own_server) as connection, ThreadPoolExecutor() as threads:
        writing = threads.submit(use, database)
        for _ in range(2):
            _cancel_a_wait(connection, writing)
        connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
        connection.execute("SELECT pg_reload_conf()")
        assert writing.result()
    database.close()


def _call(database: Database) -> None:
    database.call("test", Call("SELECT %s", ("x",)), ME)


def _write(database: Database) -> None:
    database.run("test", _tag, ME)


@pytest.mark.parametrize("use", [_call, _write])
def test_a_call_to_a_server_that_was_down_before_it_has_stored_nothing(
    own_server: Server, use: Callable[[Database], None]
) -> None:
    database = Database(own_server.url(), patience=0.1)
    use(database)
    own_server.down()
    with pytest.raises(StorageFailed) as failed:
        use(database)
    assert not isinstance(failed.value, CommitUnknown)
    database.close()


def test_a_write_to_a_replica_is_refused_as_such_after_the_patience_of_a_first_answer(
    own_server: Server, tmp_path: Path
) -> None:
    prepared = Database(own_server.url())
    prepared.check("test")
    prepared.close()
    with own_server.replica(tmp_path / "standby") as replica:
        database = Database(replica.url(), patience=3600)
        database.first_patience = 0.1
        database.check("test")
        with pytest.raises(WriteFailed, match="the server is a replica") as refused:
            database.run("test", _tag, ME)
        assert "address of the primary" in refused.value.hint
        database.close()


def test_a_check_gives_up_early_also_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.1)
    database = Database("postgresql://ada@127.0.0.1:1/memories", patience=20)
    failed: list[str] = []

    def read() -> None:
        with pytest.raises(StorageFailed):
            database.run("read", _tags, ME)
        failed.append("read")

    waiting = threading.Thread(target=read)
    waiting.start()
    for _ in range(2):
        with pytest.raises(StorageFailed, match="refused"):
            database.check("check store")
    failed.append("check")
    with pytest.raises(StorageFailed, match="refused"):
        PostgresStore(database).check()
    failed.append("store")
    waiting.join()
    assert failed == ["check", "store", "read"]


def test_reads_that_belong_together_see_one_snapshot_in_one_transaction(database_url: str) -> None:
    database, other = Database(database_url), Database(database_url)
    reading = Scope("me", reading=True)
    number = "SELECT pg_backend_pid(), now(), count(*) FROM tags"
    with database.together("test", "me"):
        first = database.run("test", lambda transaction: transaction.row(number), reading)
        other.run("test", _tag, ME)
        assert database.run("test", lambda transaction: transaction.row(number), reading) == first
        with pytest.raises(KeyError), database.together("test", "me"):
            raise KeyError
    assert database.run("test", _tags, reading) == 1
    database.close()
    other.close()


def test_reads_that_belong_together_go_on_when_their_connection_is_lost(database_url: str) -> None:
    database = Database(database_url)
    reading = Scope("me", reading=True)
    with database.together("test", "me"):
        found = database.run("test", lambda transaction: transaction.row("SELECT pg_backend_pid()"), reading)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", found)
        assert database.run("test", _tags, reading) == 0
        with pytest.raises(StorageFailed, match="syntax error"):
            database.run("test", lambda transaction: transaction.row("SELEC 1"), reading)
        assert database.run("test", _tags, reading) == 0
    assert database.run("test", _tags, reading) == 0
    database.close()


def test_what_cannot_be_read_together_ends_it_and_needs_no_second_connection(database_url: str) -> None:
    database = Database(database_url, most=1, patience=0)
    reading = Scope("me", reading=True)
    with database.together("test", "me"):
        assert database.run("test", _tags, reading) == 0
        database.run("test", _tag, ME)
        assert database.run("test", _tags, reading) == 1  # not the snapshot any more
        assert database.run("test", _tags, Scope("other", reading=True)) == 0
    with database.together("test", "me"):
        assert database.run("test", _tags, Scope("other", reading=True)) == 0
        assert database.run("test", _tags, reading) == 1
    database.close()
