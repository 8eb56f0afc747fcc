"""A real PostgreSQL server for tests: one for each process that runs tests, a new database for each test."""

import atexit
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
import pytest

from daypack.postgres.database import Database
from tools.postgres import Server, problem

_TEMPLATE = "prepared"
_numbers = count(1)

needs_postgres = pytest.mark.skipif(bool(problem()), reason=problem())


@cache
def running_server() -> Server:
    """Start the server at its first use; it ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="daypack-pg-"))
    server = Server.start(folder / "server", {"fsync": "off"})
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.__exit__)
    _execute(server.url(), f"CREATE DATABASE {_TEMPLATE}")
    prepared = Database(server.url(_TEMPLATE))
    prepared.check("prepare")
    prepared.close()
    return server


def new_database(*, empty: bool = False) -> str:
    """Return the address of a new database with the present schema; `empty`: without any."""
    server, name = running_server(), f"test{next(_numbers)}"
    template = "template0" if empty else _TEMPLATE
    _execute(server.url(), f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    return server.url(name)


def drop_database(url: str) -> None:
    """Remove a database that `new_database` returned, and disconnect everybody."""
    name = url.partition("?")[0].rpartition("/")[2]
    _execute(running_server().url(), f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())
