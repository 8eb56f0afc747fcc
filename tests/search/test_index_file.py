"""The file behind an index: begun anew when it cannot be used, refused when the file system says no."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from daypack.errors import StorageFailed, UnsafePath
from daypack.search.index_file import IndexFile

SCHEMA = "CREATE TABLE kept(value INT)"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[IndexFile]:
    table = IndexFile(str(tmp_path / "deep" / "index.db"), SCHEMA, 3)
    yield table
    table.close()


def put(table: IndexFile, value: int) -> None:
    table.run("put", lambda connection: connection.execute("INSERT INTO kept VALUES (?)", (value,)), writing=True)


def fill(table: IndexFile, count: int) -> None:
    rows = ((value,) for value in range(count))
    table.run("fill", lambda connection: connection.executemany("INSERT INTO kept VALUES (?)", rows), writing=True)


def values(table: IndexFile) -> list[int] | None:
    query = "SELECT value FROM kept ORDER BY value"
    return table.run("read", lambda connection: [row[0] for row in connection.execute(query)])


def test_what_was_written_is_there_after_closing(table: IndexFile) -> None:
    put(table, 1)
    table.close()
    assert values(table) == [1]


def test_the_file_is_private(table: IndexFile) -> None:
    put(table, 1)
    for path in Path(table.path).parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_work_that_fails_leaves_nothing(table: IndexFile) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO kept VALUES (1)")
        raise KeyError

    with pytest.raises(KeyError):
        table.run("put", fail, writing=True)
    assert values(table) == []


def test_work_inside_of_work_sees_the_same(table: IndexFile) -> None:
    def nest(connection: sqlite3.Connection) -> list[int] | None:
        connection.execute("INSERT INTO kept VALUES (5)")
        return values(table)

    assert table.run("put", nest, writing=True) == [5]


def test_an_index_of_another_format_is_begun_anew(table: IndexFile) -> None:
    put(table, 1)
    table.close()
    newer = IndexFile(table.path, "CREATE TABLE kept(value INT, more INT)", 4)
    assert values(newer) == []
    newer.run("put", lambda connection: connection.execute("INSERT INTO kept VALUES (2, 2)"), writing=True)
    newer.close()
    assert values(table) == []


@pytest.mark.parametrize("content", [b"", b"no database, but long enough to look at" * 100, b"SQLite format 3\0" * 500])
def test_a_foreign_file_is_replaced(table: IndexFile, content: bytes) -> None:
    os.makedirs(os.path.dirname(table.path))
    Path(table.path).write_bytes(content)
    put(table, 1)
    assert values(table) == [1]


def test_a_foreign_database_is_replaced(table: IndexFile) -> None:
    os.makedirs(os.path.dirname(table.path))
    other = sqlite3.connect(table.path)
    other.execute("CREATE TABLE theirs(value)")
    other.commit()
    other.close()
    assert values(table) == []


def test_a_file_that_breaks_in_use_is_begun_anew_once_it_is_noticed(table: IndexFile) -> None:
    fill(table, 50_000)
    table.close()
    with open(table.path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.path.getsize(table.path) - 4096))
    assert values(table) is None
    assert values(table) == []
    put(table, 1)
    assert values(table) == [1]


def test_a_file_that_breaks_again_and_again_is_an_error(table: IndexFile) -> None:
    def breaking(_: sqlite3.Connection) -> None:
        raise sqlite3.DatabaseError("file is not a database")

    for _ in range(3):
        assert table.run("search", breaking) is None
    with pytest.raises(StorageFailed, match="not a database"):
        table.run("search", breaking)


def test_a_deleted_file_is_begun_anew(table: IndexFile) -> None:
    put(table, 1)
    os.unlink(table.path)
    assert values(table) == []
    put(table, 2)
    assert values(table) == [2]


def test_two_users_of_a_replaced_file_go_on_in_the_new_one(table: IndexFile) -> None:
    put(table, 1)
    other = IndexFile(table.path, SCHEMA, 3)
    assert values(other) == [1]
    os.unlink(table.path)
    put(other, 2)
    put(table, 3)
    assert values(other) == values(table) == [2, 3]
    other.close()


def test_a_full_disk_is_an_error_with_place_and_hint(table: IndexFile) -> None:
    put(table, 1)
    table.run("limit", lambda connection: connection.execute("PRAGMA max_page_count=3").fetchall())
    with pytest.raises(StorageFailed) as caught:
        fill(table, 50_000)
    assert caught.value.place == table.path
    assert caught.value.operation == "fill"
    assert "free space" in caught.value.hint
    assert values(table) == [1]


def test_a_file_that_cannot_be_written_is_an_error_with_place_and_hint(table: IndexFile) -> None:
    put(table, 1)
    table.run("limit", lambda connection: connection.execute("PRAGMA query_only=1").fetchall())
    with pytest.raises(StorageFailed) as caught:
        put(table, 2)
    assert caught.value.place == table.path
    assert "permissions" in caught.value.hint
    assert values(table) == [1]


def test_a_place_where_no_file_can_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageFailed) as caught:
        values(IndexFile(str(tmp_path / "file" / "index.db"), SCHEMA, 1))
    assert str(tmp_path / "file") in caught.value.place
    os.mkdir(tmp_path / "index.db")
    with pytest.raises(StorageFailed):
        values(IndexFile(str(tmp_path / "index.db"), SCHEMA, 1))
    assert os.path.isdir(tmp_path / "index.db")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("precious")
    os.symlink(tmp_path / "theirs", tmp_path / "index.db")
    with pytest.raises(UnsafePath):
        values(IndexFile(str(tmp_path / "index.db"), SCHEMA, 1))
    assert (tmp_path / "theirs").read_text() == "precious"


def test_a_writer_elsewhere_is_waited_for_and_then_named(table: IndexFile, monkeypatch: pytest.MonkeyPatch) -> None:
    put(table, 1)
    table.close()
    monkeypatch.setattr("daypack.files.database.BUSY_SECONDS", 0.05)
    other = sqlite3.connect(table.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert values(table) == [1]
    with pytest.raises(StorageFailed, match="locked") as caught:
        put(table, 2)
    assert "another process" in caught.value.hint
    other.execute("COMMIT")
    other.close()
    put(table, 2)
    assert values(table) == [1, 2]


def test_a_forked_child_has_a_connection_of_its_own(table: IndexFile) -> None:
    put(table, 1)
    child = os.fork()
    if child == 0:
        try:
            put(table, 2)
            os._exit(0 if values(table) == [1, 2] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert values(table) == [1, 2]
