"""PgBouncer in transaction mode: each transaction may have another connection to the server."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import postgres_server
import psycopg
import pytest

from daypack.memory.tools import Memories, open_memory
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

_PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_PORT = 6432  # of the socket's name
# More than there are threads: a search holds a transaction while it waits for another thread of its process, which may
# wait for a connection of the pooler.
_CONNECTIONS, _THREADS = 5, 4
pytestmark = [
    postgres_server.needs_postgres,
    pytest.mark.skipif(_PROGRAM is None, reason="PgBouncer is not installed: apt-get install pgbouncer"),
]


@pytest.fixture
def pooler_url(database_url: str) -> Iterator[str]:
    """The address of a pooler with a few connections to a database."""
    assert _PROGRAM is not None
    place, _, options = database_url.partition("?")
    name = place.rpartition("/")[2]
    host = dict(option.split("=") for option in options.split("&"))["host"]
    folder = Path(tempfile.mkdtemp(prefix="daypack-pooler-"))
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "ini").write_text(
        f"[databases]\n{name} = host={host} port=5432 user=postgres\n"
        f"[pgbouncer]\npool_mode = transaction\ndefault_pool_size = {_CONNECTIONS}\n"
        f"auth_type = trust\nauth_file = {folder}/users\n"
        f"unix_socket_dir = {folder}\nlisten_addr =\nlisten_port = {_PORT}\nlogfile = {folder}/log\n"
    )
    command = [_PROGRAM, "-q", str(folder / "ini")]
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for path in (folder, *folder.iterdir()):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        command[1:1] = ["-u", "nobody"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"postgresql://postgres@/{name}?host={folder}&port={_PORT}"
    try:
        _wait_for(url, process, folder / "log")
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        else:
            return


def test_memories_are_used_through_a_pooler_in_transaction_mode(pooler_url: str, tmp_path: Path) -> None:
    """Often enough that psycopg would prepare statements, and by several threads."""
    with open_memory(home=tmp_path, url=pooler_url) as memories:
        assert isinstance(memories, Memories)
        memory_id = memories.create_memory("Harbour").memory_id
        problems: list[str] = []

        def use(worker: int) -> None:
            try:
                for number in range(12):
                    memories.add_entry(memory_id, f"Ferry {worker}-{number} leaves from pier {number}.")
                    memories.list_entries(memory_id)
                    memories.search_memories(memory_id, "which pier has the ferry")
                    memories.put_context(memory_id, f"# Harbour {worker} {number}")
            except Exception as error:
                problems.append(f"{type(error).__name__}: {error}")

        threads = [threading.Thread(target=use, args=(worker,)) for worker in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert memories.await_consistency(memory_id).status == "consistent"
        assert len(memories.list_entries(memory_id, limit=100).entries) == 48


def test_users_are_separate_through_a_pooler(pooler_url: str) -> None:
    first, second = Database(pooler_url), Database(pooler_url)
    for number in range(20):
        database, user = (first, "ada") if number % 2 else (second, "bob")
        database.run(
            "test",
            lambda at, n=number: at.execute("INSERT INTO tags VALUES (%s, 1, 'a', %s)", (at.tenant, n)),
            Scope(user),
        )

    def seen(transaction: Transaction) -> list[tuple[object, ...]]:
        return transaction.rows("SELECT DISTINCT tenant, current_user FROM tags")

    for database in (first, second):
        assert database.run("test", seen, Scope("ada", reading=True)) == [("ada", "daypack_app")]
        assert database.run("test", seen, Scope("bob", reading=True)) == [("bob", "daypack_app")]
        assert database.run("test", seen, Scope(reading=True)) == []
        database.close()


@pytest.mark.parametrize("pooled", [False, True])
def test_statements_are_prepared_unless_a_pooler_is_in_between(request: pytest.FixtureRequest, *, pooled: bool) -> None:
    database = Database(request.getfixturevalue("pooler_url" if pooled else "database_url"))
    thresholds = database.run("test", lambda at: at.connection.prepare_threshold, Scope("me", reading=True))
    assert (thresholds is None) is pooled
    database.close()
