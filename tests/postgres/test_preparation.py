"""What a database and its account may bring along: settings, encodings, rights, and what others made there."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

import postgres_server
import psycopg
import pytest

from daypack.errors import AccessDenied, BadConfig, StorageFailed
from daypack.postgres import database as module
from daypack.postgres import migrations
from daypack.postgres.database import Database
from daypack.postgres.migrations import UPGRADE_LOCK, Migration, list_migrations
from daypack.postgres.transaction import Scope, Transaction

pytestmark = postgres_server.needs_postgres
ME = Scope("me")


def _run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _write_and_read(transaction: Transaction) -> list[tuple[object, ...]]:
    transaction.execute("INSERT INTO tags VALUES (%s, 1, 'a', 1)", (transaction.tenant,))
    query = (
        r"SELECT label.*, %s, '\x41'::bytea, '\', 0.1::float8, '{NULL}'::text[], '2026-02-01 UTC'::timestamptz,"
        " current_setting('gin_fuzzy_search_limit') FROM (SELECT count(*) FROM tags) label"
    )
    return transaction.rows(query, ("zoë☃",))


@pytest.mark.parametrize(("empty", "encoding"), [(True, "LATIN1"), (False, "SQL_ASCII"), (False, "")])
def test_settings_of_the_account_change_nothing(empty: bool, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres_server.new_database(empty=empty)
    server, name = postgres_server.running_server(), f"set{int(empty)}{encoding.lower()}"
    settings = {
        "standard_conforming_strings": "off", "row_security": "off", "bytea_output": "escape",
        "extra_float_digits": "-15", "default_transaction_read_only": "on", "datestyle": "SQL, DMY",
        "array_nulls": "off", "gin_fuzzy_search_limit": "5", "client_encoding": encoding or "UTF8",
        "idle_in_transaction_session_timeout": "5ms",
    }  # fmt: skip
    _run(server.url(), f"CREATE ROLE {name} LOGIN SUPERUSER")
    _run(server.url(), *(f"ALTER ROLE {name} SET {setting} = '{value}'" for setting, value in settings.items()))
    if not encoding:
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    database = Database(url.replace("postgres@", f"{name}@"))
    date = datetime(2026, 2, 1, tzinfo=UTC)
    assert database.run("test", _write_and_read, ME) == [(1, "zoë☃", b"A", "\\", 0.1, [None], date, "0")]
    assert database.check("test") == (1,)
    database.run_as_owner("test", "VACUUM tags", "COMMENT ON TABLE tags IS NULL")
    database.close()
    postgres_server.drop_database(url)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_is_not_utf8_is_refused(encoding: str) -> None:
    server, name = postgres_server.running_server(), f"other_{encoding.lower()}"
    _run(server.url(), f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(BadConfig, match=f"the encoding of the database is {encoding}, not UTF8") as error:
        Database(server.url(name)).check("test")
    assert "ENCODING 'UTF8' TEMPLATE template0" in error.value.hint
    _run(server.url(), f"DROP DATABASE {name}")


@pytest.mark.parametrize("inside", ["CREATE TABLE daypack.mine(a int)", "CREATE TABLE daypack.migrations(id int)"])
def test_a_schema_of_that_name_that_others_made_is_refused(inside: str) -> None:
    url = postgres_server.new_database(empty=True)
    _run(url, "CREATE SCHEMA daypack", inside)
    with pytest.raises(BadConfig, match="a schema daypack that is not of daypack"):
        Database(url).check("test")
    postgres_server.drop_database(url)


def test_a_schema_of_another_owner_is_refused_before_anything_is_created() -> None:
    url = postgres_server.new_database(empty=True)
    columns = "number int, name text, requires int"
    _run(url, "CREATE SCHEMA daypack", f"CREATE TABLE daypack.migrations({columns})")
    with pytest.raises(BadConfig, match="not of daypack: its owner is postgres"):
        Database(url).check("test")
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        assert connection.execute(query).fetchone() == (0,)
    postgres_server.drop_database(url)


def test_an_extension_in_a_schema_that_others_may_not_use_is_named_with_the_statement_that_lets_them() -> None:
    url = postgres_server.new_database(empty=True)
    _run(url, 'CREATE SCHEMA "its own"', 'CREATE EXTENSION vector SCHEMA "its own"')
    with pytest.raises(AccessDenied, match='the extension vector is in the schema "its own"') as refused:
        Database(url).check("test")
    _run(url, refused.value.hint.partition(": ")[2])
    database = Database(url)
    assert database.check("test", "SELECT '[1]'::\"its own\".halfvec::text") == ("[1]",)
    database.close()
    postgres_server.drop_database(url)


def test_an_account_that_may_not_become_the_roles_is_refused_at_once(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_POOL_SECONDS", 0.2)
    _run(database_url, 'CREATE ROLE "out sider" LOGIN')
    database = Database(database_url.replace("postgres@", "out%20sider@"), patience=3600)
    with pytest.raises(AccessDenied, match="out sider is not a member of daypack_app") as refused:
        database.check("test")
    statement = refused.value.hint.partition(": ")[2]
    assert statement == 'GRANT daypack_owner, daypack_app, daypack_eraser, daypack_operator TO "out sider";'
    _run(database_url, statement)
    database.run("test", _write_and_read, ME)
    database.close()
    _run(database_url, 'REVOKE daypack_app FROM "out sider"')
    with pytest.raises(AccessDenied, match='permission denied to set role "daypack_app"'):
        database.run("test", _write_and_read, ME)
    database.close()
    _run(database_url, 'DROP ROLE "out sider"')


@pytest.fixture
def slow_step(monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of a step that takes longer than a check waits, and than the account lets a statement take."""
    steps = list_migrations()
    number = steps[-1].number + 1
    steps.append(Migration(number, "slow", 0, "SELECT pg_sleep(0.5)"))
    monkeypatch.setattr(module, "list_migrations", lambda: steps)
    monkeypatch.setattr(migrations, "list_migrations", lambda: steps)
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.1)
    return number


def _schema(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT max(number) FROM daypack.migrations").fetchone()
    assert row
    return row[0]


def test_a_step_that_takes_longer_than_a_check_waits_is_applied_by_the_check(database_url: str, slow_step: int) -> None:
    server = postgres_server.running_server()
    _run(server.url(), "CREATE ROLE hasty LOGIN SUPERUSER", "ALTER ROLE hasty SET statement_timeout = '100ms'")
    database = Database(database_url.replace("postgres@", "hasty@"))
    assert database.check("test") == (1,)
    assert _schema(database_url) == slow_step
    database.close()


@contextmanager
def _upgrading(url: str) -> Generator[psycopg.Connection[tuple[object, ...]]]:
    """Be a process that upgrades the schema."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (UPGRADE_LOCK,))
        yield connection


def test_a_first_use_waits_while_another_process_upgrades_the_schema(database_url: str, slow_step: int) -> None:
    database = Database(database_url)
    with _upgrading(database_url) as other:
        with pytest.raises(StorageFailed, match="another process is upgrading the schema"):
            database.require_no_upgrade("test")
        ending = threading.Timer(0.5, other.rollback)
        ending.start()
        assert database.check("test") == (1,)
        ending.join()
    database.require_no_upgrade("test")
    assert _schema(database_url) == slow_step
    database.close()
