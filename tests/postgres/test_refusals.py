"""What a caller is told about a database that cannot be used, and when waiting for it is pointless."""

import sys
from collections.abc import Iterator
from pathlib import Path

import postgres_server
import psycopg
import pytest

from daypack.errors import AccessDenied, BadConfig, DaypackError, ExtraMissing, StorageFailed
from daypack.postgres import silence
from daypack.postgres.database import Database
from daypack.postgres.refusals import is_passing, refusal
from daypack.postgres.transaction import Scope
from tools.postgres import Server

LONG = 3600.0  # a test that waits for it does not end


@pytest.fixture
def asking_server(tmp_path: Path) -> Iterator[Server]:
    """A server whose account `ada` has a password."""
    with Server.start(tmp_path / "pg") as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE ROLE ada LOGIN PASSWORD 'right'")
        rules = server.folder / "data" / "pg_hba.conf"
        rules.write_text("local all ada scram-sha-256\n" + rules.read_text())
        server.restart()
        yield server


def test_without_psycopg_every_call_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    database = Database("postgresql://ada@127.0.0.1:1/memories")
    calls = (
        lambda: database.check("read memory"),
        lambda: database.run("read memory", lambda _: None, Scope("me", reading=True)),
        lambda: database.run_as_owner("read memory", "VACUUM"),
        lambda: database.together("read memory", "me").__enter__(),
    )
    for call in calls:
        with pytest.raises(ExtraMissing, match=r"psycopg is not installed .*daypack\[postgres\]"):
            call()


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("S3CRET", "percent-encode"),
        ("password=a&S3CRET=1", "percent-encode"),
        ("bogus=S3CRET", "bogus is no parameter of an address"),
        ("port=S3CRET", "the value of port is not valid"),
        ("keepalives_idle=S3CRET", "the value of keepalives_idle is not valid"),
        ("sslmode=S3CRET", "the value of sslmode is not valid"),
        ("ssl_min_protocol_version=S3CRET", "the value of ssl_min_protocol_version is not valid"),
    ],
)
def test_what_libpq_cannot_read_is_refused_at_once_and_not_quoted(parameters: str, told: str) -> None:
    with pytest.raises(BadConfig, match=f"the address cannot be read.*{told}") as error:
        Database(f"postgresql://ada@127.0.0.1/m?{parameters}", patience=LONG).run("read", lambda _: None)
    assert "S3CRET" not in str(error.value)


@postgres_server.needs_postgres
def test_a_wrong_or_missing_password_is_refused_at_once(
    asking_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    address = asking_server.url("postgres", "ada")
    wrong = address.replace("ada@", "ada:S3CRET@")
    for url, problem in ((wrong, "password authentication failed"), (address, "no password supplied")):
        with pytest.raises(AccessDenied, match=problem) as error:
            Database(url, patience=LONG).run("read", lambda _: None)
        assert "S3CRET" not in str(error.value)
        assert "connection" not in error.value.problem
        assert all(word in error.value.hint for word in ("the address", "PGPASSWORD", "~/.pgpass"))


@postgres_server.needs_postgres
def test_a_password_that_changes_later_is_refused_at_once(asking_server: Server) -> None:
    with psycopg.connect(asking_server.url(), autocommit=True) as connection:
        connection.execute("ALTER ROLE ada SUPERUSER")
        database = Database(asking_server.url("postgres", "ada").replace("ada@", "ada:right@"), patience=LONG)
        database.run("read", lambda _: None)
        connection.execute("ALTER ROLE ada PASSWORD 'other'")
        database.close()
        with pytest.raises(AccessDenied, match="password authentication failed"):
            database.run("read", lambda _: None)
    database.close()


@postgres_server.needs_postgres
def test_a_missing_database_is_named_with_the_statement_that_creates_it() -> None:
    address = postgres_server.running_server().url("no-such")
    with pytest.raises(StorageFailed, match=r'^read: .*: database "no-such" does not exist') as error:
        Database(address, patience=LONG).run("read", lambda _: None)
    assert 'CREATE DATABASE "no-such"' in error.value.hint


@postgres_server.needs_postgres
@pytest.mark.parametrize(
    ("change", "back", "problem"),
    [
        ("SELECT 1", "SELECT 1", 'role "guest" does not exist'),
        ("CREATE ROLE guest", "DROP ROLE guest", 'role "guest" is not permitted to log in'),
        (
            "CREATE ROLE guest LOGIN; REVOKE CONNECT ON DATABASE {0} FROM PUBLIC",
            "DROP ROLE guest",
            "permission denied for database",
        ),
    ],
    ids=["missing", "no login", "no right to connect"],
)
def test_an_account_that_the_server_refuses_is_what_the_hint_is_about(
    database_url: str, change: str, back: str, problem: str
) -> None:
    name = database_url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(change.format(name).encode())
        with pytest.raises(AccessDenied, match=problem) as error:
            Database(database_url.replace("postgres@", "guest@"), patience=LONG).run("read", lambda _: None)
        connection.execute(back.encode())
    assert error.value.hint.startswith("check the account")


def test_a_host_that_is_not_known_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("failed to resolve host 'nowhere': [Errno -2] Name or service not known")

    monkeypatch.setattr(silence, "connect", connect)
    with pytest.raises(StorageFailed, match="check the host of the address"):
        Database("postgresql://ada@nowhere/m", patience=LONG).run("read", lambda _: None)


_AT = 'connection failed: connection to server at "127.0.0.1", port 5432 failed: '
_REFUSED = "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?"
_UNREACHED = "the server cannot be reached: Connection refused"
_NO_SSL = "server does not support SSL, but SSL was required"


def _several(*texts: str) -> str:
    tried = [f"- host: 'a', port: '5432', hostaddr: '127.0.0.1': {text}" for text in texts]
    return "\n".join([texts[-1], "Multiple connection attempts failed. All failures were:", *tried])


@pytest.mark.parametrize(
    ("text", "passing", "kind", "problem", "hint"),
    [
        (_AT + _REFUSED, True, StorageFailed, _UNREACHED, "server runs"),
        (_AT + _NO_SSL, False, StorageFailed, _NO_SSL, "sslmode"),
        ("SSL connection has been closed unexpectedly", True, StorageFailed, "SSL connection", "server runs"),
        ("failed to resolve host 'a': [Errno -3] Temporary failure", True, StorageFailed, "failed", "server runs"),
        (_AT + "FATAL:  the database system is starting up", True, StorageFailed, "the database system", "runs"),
        (_several(_AT + _NO_SSL, _AT + _REFUSED), True, StorageFailed, _UNREACHED, "server runs"),
        (
            _several(_AT + "fe_sendauth: no password supplied", _AT + _REFUSED),
            False, AccessDenied, "fe_sendauth", "PGPASSWORD",
        ),
    ],
)  # fmt: skip
def test_only_what_may_pass_is_waited_for(
    text: str, passing: bool, kind: type[DaypackError], problem: str, hint: str
) -> None:
    error = psycopg.OperationalError(text)
    refused = refusal(error, "read", "here")
    assert is_passing(error) == passing
    assert type(refused) is kind
    assert refused.problem.startswith(problem)
    assert hint in refused.hint
