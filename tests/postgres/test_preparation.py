"""What a database and its account may bring along: settings, encodings, rights, and what others made there."""

import postgres_server
import psycopg
import pytest

from daypack.errors import BadConfig
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

pytestmark = postgres_server.needs_postgres
ME = Scope("me")


def _run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _write_and_read(transaction: Transaction) -> list[tuple[object, ...]]:
    transaction.execute("INSERT INTO tags VALUES (%s, 1, 'a', 1)", (transaction.tenant,))
    return transaction.rows(r"SELECT label.*, '\x41'::bytea, '\', 0.1::float8 FROM (SELECT count(*) FROM tags) label")


@pytest.mark.parametrize("empty", [True, False])
def test_settings_of_the_account_change_nothing(empty: bool) -> None:
    url = postgres_server.new_database(empty=empty)
    server, name = postgres_server.running_server(), f"set{int(empty)}"
    settings = {
        "standard_conforming_strings": "off", "row_security": "off", "bytea_output": "escape",
        "extra_float_digits": "-15", "default_transaction_read_only": "on",
    }  # fmt: skip
    _run(server.url(), f"CREATE ROLE {name} LOGIN SUPERUSER")
    _run(server.url(), *(f"ALTER ROLE {name} SET {setting} = '{value}'" for setting, value in settings.items()))
    database = Database(url.replace("postgres@", f"{name}@"))
    assert database.run("test", _write_and_read, ME) == [(1, b"A", "\\", 0.1)]
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
