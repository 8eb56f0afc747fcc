"""Damaged, locked, huge and forged stores: a clear error or a named record, nothing run, nothing written."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from importers.stores.conftest import build, digest, memories, read_all, unreadable

from daypack.errors import BadInput, Damaged, DaypackError, LockUnavailable, NotFound
from daypack.importers.stores.plain_pickle import BadPickle, read_plain
from daypack.importers.stores.systems import SYSTEMS, open_store


def test_a_missing_path_and_an_unknown_file_are_refused_with_the_systems(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        open_store(str(tmp_path / "none"))
    (tmp_path / "x.bin").write_bytes(b"\x00\x01")
    with pytest.raises(BadInput) as refused:
        open_store(str(tmp_path / "x.bin"))
    assert "--as" in refused.value.hint
    with pytest.raises(BadInput) as unknown:
        open_store(str(tmp_path / "x.bin"), "memo")
    assert "mem0" in unknown.value.hint


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_random_bytes_named_as_a_system_are_an_error_or_unreadable(system: str, tmp_path: Path) -> None:
    path = tmp_path / "store.json"
    path.write_bytes(b"{\xff\xfe\x00" * 100)
    try:
        records = read_all(path, system)
    except DaypackError:
        return
    assert not memories(records)


def test_a_damaged_database_is_reported_with_a_way_to_recover(tmp_path: Path) -> None:
    path = build(tmp_path / "history.db", "mem0/history.sql")
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)
    before = digest(path)
    with pytest.raises(Damaged) as damaged:
        open_store(str(path))
    assert ".recover" in damaged.value.hint
    assert digest(path) == before


def test_rows_on_a_damaged_page_are_named_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    build(path, "mem0/history.sql")
    with closing(sqlite3.connect(path)) as connection, connection:
        for number in range(200):
            row = (str(number), str(number), "x" * 500, "ADD", f"2026-01-01T00:00:{number % 60:02}")
            connection.execute(
                "INSERT INTO history(id, memory_id, new_memory, event, created_at) VALUES (?,?,?,?,?)", row
            )
    data = bytearray(path.read_bytes())
    at = data.index(b"x" * 500)
    page = at // 4096 * 4096
    data[page : page + 64] = b"\xff" * 64
    path.write_bytes(data)
    try:
        records = read_all(path)
    except Damaged:
        return
    assert memories(records)
    assert unreadable(records)


def test_a_locked_database_says_which_program_to_close(tmp_path: Path) -> None:
    path = build(tmp_path / "history.db", "mem0/history.sql")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LockUnavailable) as locked:
            open_store(str(path))
    assert "close the program" in locked.value.hint


def test_a_view_in_place_of_a_table_is_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS memory_id FROM n"
        connection.execute(f"CREATE VIEW history AS {endless}")
    with pytest.raises(BadInput):
        open_store(str(path))


def test_a_huge_column_is_skipped_and_a_long_text_is_named(tmp_path: Path) -> None:
    path = build(tmp_path / "history.db", "mem0/history.sql")
    with closing(sqlite3.connect(path)) as connection, connection:
        insert = "INSERT INTO history(id, memory_id, new_memory, event, created_at) VALUES (?, ?, ?, 'ADD', '2026')"
        connection.execute(insert, ("a", "a", "x" * (17 << 20)))
        connection.execute(insert, ("b", "b", "y" * 1_000_001))
    records = read_all(path)
    assert len(memories(records)) == 6
    assert len(unreadable(records)) == 2


def test_deeply_nested_json_and_a_database_of_another_version_are_refused(tmp_path: Path) -> None:
    nested = tmp_path / "agent.af"
    nested.write_text('{"agents":' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(BadInput):
        read_all(nested)
    other = tmp_path / "claude-mem.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE observations(id, body)")
        connection.execute("CREATE TABLE sdk_sessions(id)")
    with pytest.raises(BadInput):
        open_store(str(other))
    assert read_all(other, "claude-mem") == []


def test_invalid_utf8_is_read_with_replacements_and_links_in_a_circle_end(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    lines = [
        b'{"type":"entity","name":"A","entityType":"x","observations":["caf\xe9"]}',
        b'{"type":"entity","name":"C","entityType":"x","observations":["lone \\ud800 half"]}',
        b'{"type":"entity","name":"B","entityType":"x","observations":["b"]}',
        b'{"type":"relation","from":"A","to":"B","relationType":"r"}',
        b'{"type":"relation","from":"B","to":"A","relationType":"r"}',
    ]
    path.write_bytes(b"\n".join(lines))
    records = read_all(path)
    assert [memory.text for memory in memories(records)] == ["caf\ufffd", "b"]
    assert [record.place for record in unreadable(records)] == [f"{path}:2"]


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "agent.af"
    os.mkfifo(pipe)
    with pytest.raises(DaypackError):
        read_all(pipe, "letta")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04",
        b"\x80\x04.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x04K\x01r\xff\xff\xff\x7f]" + b"h\x00" * 10 + b"u.",
        b"(" * 1_000 + b"t" * 2_000 + b".",
        b"csubprocess\nPopen\n(S'id'\ntR.",
        b"\x80\x04G\x00",
        b"\x80\x04\x85\x86.",
    ],
)
def test_a_forged_pickle_is_refused(data: bytes) -> None:
    with pytest.raises(BadPickle):
        read_plain(data)


def test_a_pickle_that_contains_itself_is_plain_data() -> None:
    value = read_plain(b"\x80\x04]\x94h\x00a.")
    assert value[0] is value
