"""Memories in a SQLite file: what every store must do, and what is special about the file."""

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from memory.ownership import OwnershipConformance
from memory.store.conformance import StoreConformance
from memory.store.sharing import Sharing
from memory.store.stores import ME, TEXTS, everything, fill, make, new_entry, usage

from daypack.errors import Damaged, StorageFailed
from daypack.memory.store.erasure import clean
from daypack.memory.store.port import split_damaged
from daypack.memory.store.sqlite import SqliteStore
from daypack.memory.store.tables import GUARDED
from daypack.types.memory import Where

SECRET = "the-launch-code-is-xyzzy-4711"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(str(path))
    yield store
    store.close()


class TestSqliteStore(StoreConformance, OwnershipConformance, Sharing):
    """The store in a file is a store."""


def raw(path: Path, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute(statement).fetchall()
        connection.commit()
    finally:
        connection.close()
    return rows


def test_raw_is_stored_as_its_exact_bytes_and_a_summary_only_when_it_differs(store: SqliteStore, path: Path) -> None:
    memory = make(store)
    store.add(ME, memory, [new_entry(text, text) for text in TEXTS] + [new_entry("one", "two")])
    rows = raw(path, "SELECT raw, summary FROM texts ORDER BY number")
    assert rows == [*((text.encode(), None) for text in TEXTS), (b"one", "two")]


def test_a_full_disk_is_refused_and_nothing_of_it_is_stored(
    store: SqliteStore,
) -> None:
    memory = make(store)
    fill(store, memory, "one")
    before = store.memory(ME, memory), usage(store)
    writer = store._writer  # pyright: ignore[reportPrivateUsage]
    pages = writer.run("ask", lambda file: file.execute("PRAGMA page_count").fetchone()[0])
    writer.run("limit", lambda file: file.execute(f"PRAGMA max_page_count={pages}").fetchall())
    with pytest.raises(StorageFailed, match="full") as caught:
        fill(store, memory, *["x" * 9000] * 50)
    assert caught.value.hint == "free space; the memory store is unchanged"
    assert (store.memory(ME, memory), usage(store)) == before
    writer.run("limit", lambda file: file.execute("PRAGMA max_page_count=1000000").fetchall())
    fill(store, memory, *["x" * 9000] * 50)
    assert [entry.seq for entry in everything(store, memory)] == list(range(1, 52))


def test_a_store_that_another_process_keeps_locked_is_refused_after_a_while(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.files.database.BUSY_SECONDS", 0.05)
    memory = make(store)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageFailed, match="locked"):
        fill(store, memory, "one")
    other.execute("ROLLBACK")
    other.close()
    fill(store, memory, "two")
    assert [entry.raw_entry for entry in everything(store, memory)] == ["two"]


def test_an_entry_of_300_bytes_takes_less_than_600(store: SqliteStore, path: Path) -> None:
    memory = make(store)
    about = {"role": "user", "author": "Caroline", "session": "session-12", "at": "2025-08-17T10:00:00Z"}
    store.add(ME, memory, [new_entry(f"{number:05}" + "x" * 295, "x", **about) for number in range(2_000)])
    store.close()
    assert path.stat().st_size / 2_000 < 600


def test_an_acknowledged_entry_is_in_the_file_before_anything_is_closed(store: SqliteStore, path: Path) -> None:
    memory = make(store)
    fill(store, memory, SECRET)
    assert any(SECRET.encode() in one.read_bytes() for one in path.parent.iterdir())
    other = SqliteStore(str(path))
    assert [entry.raw_entry for entry in everything(other, memory)] == [SECRET]
    other.close()


def test_only_the_owner_can_read_the_files(store: SqliteStore, path: Path) -> None:
    make(store)
    for one in path.parent.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600, one
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("table", GUARDED)
def test_nothing_can_change_or_remove_what_is_stored(store: SqliteStore, path: Path, table: str) -> None:
    memory = make(store)
    fill(store, memory, "kept")
    column = raw(path, f"SELECT name FROM pragma_table_info('{table}')")[-1][0]
    for statement in (f"UPDATE {table} SET {column} = 1", f"DELETE FROM {table}"):
        with pytest.raises(sqlite3.IntegrityError, match=f"{table} are"):
            raw(path, statement)
    assert [entry.raw_entry for entry in everything(store, memory)] == ["kept"]


def test_bytes_that_were_changed_in_the_file_are_damage(store: SqliteStore, path: Path) -> None:
    memory = make(store)
    fill(store, memory, "good", SECRET)
    store.put_document(ME, memory, SECRET * 2)
    store.close()
    data = path.read_bytes()
    assert SECRET.encode() in data
    path.write_bytes(data.replace(b"xyzzy", b"xYzzy"))
    entries, damaged = split_damaged(store.after(ME, memory, 0, 9))
    assert [entry.raw_entry for entry in entries] == ["good"]
    assert [(record.kind, record.seq, record.problem) for record in damaged] == [("entry", 2, "checksum mismatch")]
    with pytest.raises(Damaged, match="checksum mismatch"):
        store.document(ME, memory, 2)
    document = store.document(ME, memory)
    assert (document.version, document.content) == (1, "first")
    assert [(record.kind, record.version) for record in document.damaged] == [("document", 2)]


def test_a_broken_store_is_damage_and_is_never_begun_anew(store: SqliteStore, path: Path) -> None:
    memory = make(store)
    fill(store, memory, *(f"{number} " + "x" * 500 for number in range(500)))
    store.close()
    whole = path.read_bytes()
    for broken in (b"", whole[:5000], whole[:4096] + b"\xff" * (len(whole) - 4096)):
        path.write_bytes(broken)
        other = SqliteStore(str(path))
        with pytest.raises(Damaged) as caught:
            other.add(ME, memory, (new_entry("new"),))
        assert "backup" in caught.value.hint
        other.close()
    path.write_bytes(whole)
    assert len(everything(SqliteStore(str(path)), memory)) == 500


def test_no_byte_of_what_was_erased_is_left_in_any_file(store: SqliteStore, path: Path) -> None:
    keep, gone = make(store), make(store)
    for number in range(300):  # pages are shared, split and written back in between
        fill(store, keep, f"keep {number} " + "y" * 100)
        about = {"author": SECRET, "session": SECRET, "source": SECRET, "at": SECRET, "tags": (SECRET,)}
        one = new_entry(f"{SECRET} {number} " * 20, SECRET + "!", client_key=f"{SECRET} {number}", **about)
        store.add(ME, gone, (one,))
        store.put_document(ME, gone, f"{SECRET} {number}")
    reader = SqliteStore(str(path))
    assert len(everything(reader, gone)) == 300
    assert SECRET.encode() in path.read_bytes()
    store.erase(ME, gone)
    assert [one.name for one in path.parent.iterdir() if SECRET.encode() in one.read_bytes()] == []
    assert len(everything(store, keep)) == len(everything(reader, keep)) == 300
    reader.close()
    store.close()
    assert [one.name for one in path.parent.iterdir() if SECRET.encode() in one.read_bytes()] == []


def test_no_byte_of_an_erased_entry_is_left_in_any_file(store: SqliteStore, path: Path) -> None:
    memory = make(store)
    fill(store, memory, *(f"{number} " + "y" * 100 for number in range(200)))
    (entry,) = fill(store, memory, SECRET)
    fill(store, memory, *(f"{number} " + "y" * 100 for number in range(200)))
    store.erase_entry(ME, memory, entry)
    assert [one.name for one in path.parent.iterdir() if SECRET.encode() in one.read_bytes()] == []
    assert len(everything(store, memory)) == 400


def test_whoever_opens_next_finishes_an_erasure_that_was_stopped(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make(store)
    fill(store, memory, SECRET)

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("daypack.memory.store.sqlite.clean", stop)  # between the rows and the bytes
        with pytest.raises(KeyboardInterrupt):
            store.erase(ME, memory)
    assert [one.name for one in path.parent.iterdir() if SECRET.encode() in one.read_bytes()] != []
    other = SqliteStore(str(path))
    assert other.memories(ME) == ()
    assert [one.name for one in path.parent.iterdir() if SECRET.encode() in one.read_bytes()] == []
    assert raw(path, "SELECT unclean FROM store") == [(0,)]
    other.close()


def test_an_erasure_says_when_a_reader_keeps_the_bytes_in_the_journal(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.files.database.BUSY_SECONDS", 0.05)
    memory = make(store)
    fill(store, memory, SECRET)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM texts").fetchall()
    with pytest.raises(StorageFailed, match="still in the journal"):
        store.erase(ME, memory)
    assert store.memories(ME) == ()
    reader.close()
    store.erase(ME, make(store))
    assert [one.name for one in path.parent.iterdir() if SECRET.encode() in one.read_bytes()] == []


def test_readers_do_not_wait_for_a_writer(store: SqliteStore, path: Path) -> None:
    memory = make(store)
    fill(store, memory, "there")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert store.find(ME, memory, Where()) == {1}
    writer.execute("COMMIT")
    writer.close()


def test_two_processes_add_entries_and_all_are_there(store: SqliteStore, path: Path, campaign: Campaign) -> None:
    each = campaign.size("concurrent writes", 500)
    memory = make(store)
    code = (
        "import sys\n"
        "from daypack.memory.store.sqlite import SqliteStore\n"
        "from daypack.memory.store.port import NewEntry\n"
        "store = SqliteStore(sys.argv[1])\n"
        "for number in range(int(sys.argv[4])):\n"
        f"    store.add({ME!r}, sys.argv[2], (NewEntry(raw=f'{{sys.argv[3]}} {{number}}', summary='s'),))\n"
    )
    command = [sys.executable, "-c", code, str(path), memory]
    children = [subprocess.Popen([*command, str(writer), str(each)]) for writer in range(2)]
    assert [child.wait(timeout=300) for child in children] == [0, 0]
    read = everything(store, memory)
    assert [entry.seq for entry in read] == list(range(1, 2 * each + 1))
    for writer in range(2):
        mine = [entry.raw_entry for entry in read if entry.raw_entry.startswith(f"{writer} ")]
        assert mine == [f"{writer} {number}" for number in range(each)]
    assert usage(store).entries == 2 * each


def test_bytes_that_another_process_erased_meanwhile_are_still_to_be_cleaned(path: Path) -> None:
    store = SqliteStore(str(path))
    memory_id = make(store)
    ids = [one.entry_id for one in store.add(ME, memory_id, [new_entry("one"), new_entry("two")])]
    asked: list[str] = []

    class Between:
        """A connection before whose last statement another process erases and is killed before it cleans."""

        def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
            if query.startswith("UPDATE store"):
                asked.append(query)
                other = sqlite3.connect(path, isolation_level=None)
                other.execute("UPDATE store SET unclean = unclean + 1")
                other.close()
            return connection.execute(query, *values)

    store.erase_entry(ME, memory_id, ids[0])
    connection = sqlite3.connect(path, isolation_level=None)
    clean(Between())  # type: ignore[arg-type]
    connection.close()
    assert asked
    assert raw(path, "SELECT unclean FROM store") == [(1,)]
    store.close()
    SqliteStore(str(path)).memories(ME)
    assert raw(path, "SELECT unclean FROM store") == [(0,)]
