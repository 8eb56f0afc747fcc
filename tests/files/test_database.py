"""A SQLite file that is the truth: made whole, private, durable, never begun anew, safe across forks."""

import os
import signal
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected

from daypack.errors import Damaged, StorageFailed, UnsafePath
from daypack.files.database import Database, Format
from daypack.types.deadline import Deadline

FORMAT = Format("store", 0x61626364, 3, "CREATE TABLE kept(value INT)", "restore it from a backup", kept=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "store.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(str(path), FORMAT)
    yield database
    database.close()


def put(database: Database, value: int) -> None:
    database.run("put", lambda file: file.execute("INSERT INTO kept VALUES (?)", (value,)).rowcount, writing=True)


def values(database: Database) -> list[int]:
    query = "SELECT value FROM kept ORDER BY value"
    return database.run("read", lambda file: [row[0] for row in file.execute(query)])


def test_what_was_written_is_there_after_closing(database: Database) -> None:
    put(database, 1)
    database.close()
    assert values(database) == [1]


def test_a_commit_waits_for_the_disk(database: Database) -> None:
    assert database.run("ask", lambda file: file.execute("PRAGMA synchronous").fetchone()) == (2,)
    assert database.run("ask", lambda file: file.execute("PRAGMA journal_mode").fetchone()) == ("wal",)


def test_only_the_owner_can_read_it(database: Database, path: Path) -> None:
    put(database, 1)
    names = {one.name for one in path.parent.iterdir()}
    assert names == {"store.db", "store.db-wal", "store.db-shm"}
    for one in path.parent.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600, one


def test_work_that_fails_leaves_nothing(database: Database) -> None:
    def fail(file: sqlite3.Connection) -> None:
        file.execute("INSERT INTO kept VALUES (1)")
        raise KeyError

    with pytest.raises(KeyError):
        database.run("put", fail, writing=True)
    assert values(database) == []


@pytest.mark.parametrize("content", [b"", b"no database, but long enough to look at" * 100, b"SQLite format 3\0" * 500])
def test_a_file_that_is_no_database_is_damage_and_stays(database: Database, path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(Damaged) as caught:
            values(database)
        assert caught.value.place == str(path)
        assert caught.value.hint == "restore it from a backup"
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_damage_and_stays(database: Database, path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs(value)")
    other.commit()
    other.close()
    with pytest.raises(Damaged, match="not a daypack store"):
        put(database, 1)
    again = sqlite3.connect(path)
    assert again.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    again.close()


def test_another_format_is_named_and_left_alone(database: Database, path: Path) -> None:
    put(database, 1)
    database.close()
    newer = Database(str(path), FORMAT._replace(version=4))
    with pytest.raises(Damaged, match="format 3; this version of daypack reads 4"):
        values(newer)
    assert values(database) == [1]


def test_a_file_that_is_overwritten_is_damage(database: Database, path: Path) -> None:
    rows = [(value,) for value in range(50_000)]
    database.run("fill", lambda file: file.executemany("INSERT INTO kept VALUES (?)", rows).rowcount, writing=True)
    database.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(Damaged, match="malformed"):
        values(database)


def test_a_file_that_was_there_and_is_gone_is_damage(database: Database, path: Path) -> None:
    put(database, 1)
    path.unlink()
    with pytest.raises(Damaged, match="is missing"):
        put(database, 2)
    with pytest.raises(Damaged, match="is missing"):
        values(database)
    assert not path.exists()


def test_a_journal_without_its_file_is_damage(database: Database, path: Path) -> None:
    path.parent.mkdir()
    Path(f"{path}-wal").write_bytes(b"what was acknowledged last")
    with pytest.raises(Damaged, match="is missing"):
        values(database)


def test_a_file_put_back_from_a_backup_is_read(database: Database, path: Path) -> None:
    put(database, 1)
    database.close()
    backup = path.read_bytes()
    put(database, 2)
    other = path.with_name("backup")
    other.write_bytes(backup)
    other.replace(path)
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink()
    assert values(database) == [1]


def test_a_link_is_not_followed(database: Database, path: Path) -> None:
    path.parent.mkdir()
    (path.parent / "theirs").write_text("precious")
    path.symlink_to(path.parent / "theirs")
    with pytest.raises(UnsafePath):
        values(database)
    assert (path.parent / "theirs").read_text() == "precious"


def test_a_full_disk_is_an_error_with_place_and_hint(database: Database, path: Path) -> None:
    put(database, 1)
    database.run("limit", lambda file: file.execute("PRAGMA max_page_count=3").fetchall())
    rows = [(value,) for value in range(50_000)]
    with pytest.raises(StorageFailed) as caught:
        database.run("fill", lambda file: file.executemany("INSERT INTO kept VALUES (?)", rows).rowcount, writing=True)
    assert (caught.value.place, caught.value.operation) == (str(path), "fill")
    assert caught.value.hint == "free space; the store is unchanged"
    assert values(database) == [1]


def test_a_writer_elsewhere_is_waited_for_and_then_named(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.files.database.BUSY_SECONDS", 0.05)
    put(database, 1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert values(database) == [1]
    with pytest.raises(StorageFailed, match="locked") as caught:
        put(database, 2)
    assert "another process is writing to the store" in caught.value.hint
    other.execute("COMMIT")
    other.close()
    put(database, 2)


def test_a_wait_lasts_at_least_until_its_deadline(database: Database) -> None:
    deadline = Deadline(begin=0.0, seconds=0.0503, clock=lambda: 0.0)
    with database.waiting("read", deadline):
        [milliseconds] = database.open("read").execute("PRAGMA busy_timeout").fetchone()
    assert milliseconds >= deadline.remaining() * 1000


def test_what_cannot_be_done_in_a_transaction_is_done_alone(database: Database) -> None:
    put(database, 1)
    assert database.alone("shrink", lambda file: file.execute("VACUUM").fetchall()) == []
    with pytest.raises(Damaged, match="no such table"):
        database.alone("shrink", lambda file: file.execute("SELECT * FROM absent"))


def test_a_forked_child_has_a_connection_of_its_own(database: Database) -> None:
    put(database, 1)
    child = os.fork()
    if child == 0:
        try:
            put(database, 2)
            os._exit(0 if values(database) == [1, 2] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    put(database, 3)
    assert values(database) == [1, 2, 3]


def test_a_maker_killed_at_any_call_leaves_a_place_where_the_file_can_be_made(path: Path, campaign: Campaign) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)  # or the first maker would make one more folder than the others
    calls = calls_of(lambda: put(Database(str(path.parent / "counting" / "store.db"), FORMAT), 1))
    assert len(calls) > 10
    kills = 0
    for at in campaign.calls("kills", calls):
        home = path.parent / str(at)
        child = os.fork()
        if child == 0:
            with injected(Faults(at, "kill")):
                put(Database(str(home / "store.db"), FORMAT), 1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        after = Database(str(home / "store.db"), FORMAT)
        put(after, 2)
        assert values(after) in ([2], [1, 2])
        after.close()
        assert [one.name for one in home.iterdir()] == ["store.db"]
        assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL
        kills += status != 0
    assert kills > 5


def test_two_processes_make_one_file(path: Path) -> None:
    children: list[int] = []
    for value in range(4):
        child = os.fork()
        if child == 0:
            put(Database(str(path), FORMAT), value)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert values(Database(str(path), FORMAT)) == [0, 1, 2, 3]


def test_a_child_forked_in_the_midst_of_a_transaction_can_write(database: Database) -> None:
    put(database, 1)
    begun, done = threading.Event(), threading.Event()

    def work(file: sqlite3.Connection) -> None:
        file.execute("INSERT INTO kept VALUES (2)")
        begun.set()
        done.wait(0.3)

    thread = threading.Thread(target=lambda: database.run("put", work, writing=True))
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        put(database, 3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert values(database) == [1, 2, 3]
