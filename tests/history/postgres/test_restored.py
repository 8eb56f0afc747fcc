"""A database that was restored from a backup: what it lacks is kept aside, and what others stored since is fetched."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from history.postgres.workers import LONG, Workers, check_same, fill, logs, replay_all, texts

from daypack.errors import DamageWarning
from daypack.history.home import find_home
from daypack.session import Session
from daypack.upkeep.erase.apply import apply as erase
from daypack.upkeep.erase.plan import Request


def _backup(url: str) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(url) as connection:
        return {
            table: connection.execute(f"SELECT * FROM daypack.{table}".encode()).fetchall()
            for table in ("session_lines", "session_blobs")
        }


def _restore(url: str, tables: dict[str, list[tuple[Any, ...]]]) -> None:
    with psycopg.connect(url) as connection:
        for table, rows in tables.items():
            connection.execute(f"DELETE FROM daypack.{table}".encode())
            marks = ", ".join(["%s"] * len(rows[0])) if rows else ""
            for row in rows:
                connection.execute(f"INSERT INTO daypack.{table} VALUES ({marks})".encode(), row)


def _look(workers: Workers, session: Session, running: bool) -> Session:
    if not running:
        return workers.open("a")
    session.history.refresh()
    return session


@pytest.mark.parametrize("running", [False, True], ids=["closed", "running"])
def test_lines_that_a_restored_database_lacks_are_kept_aside(workers: Workers, running: bool) -> None:
    one = workers.open("a")
    fill(one, 2)
    backup = _backup(workers.url)
    restored = logs(one)
    one.append("user", "lost")
    one.pin("late", "lost too")
    ahead = logs(one)
    _restore(workers.url, backup)
    if not running:
        one.close()
    with pytest.warns(DamageWarning, match=r"kept as .*\.jsonl\.ahead-1") as warned:
        one = _look(workers, one, running)
    assert len(warned) == 2
    assert logs(one) == restored
    kept = [Path(f"{path}.ahead-1").read_bytes() for path in (one.layout.messages, one.layout.events)]
    assert tuple(kept) == ahead
    assert one.pins == {"plan.md": LONG}
    one.append("user", "new")
    one.prepare()
    check_same(one, workers.open("b"))
    assert replay_all(one) == replay_all(workers.open("b"))


@pytest.mark.parametrize("running", [False, True], ids=["closed", "running"])
def test_lines_that_others_have_written_over_since_a_restore_are_kept_aside(workers: Workers, running: bool) -> None:
    one = workers.open("a")
    fill(one, 2)
    backup = _backup(workers.url)
    one.append("user", "lost")
    ahead = logs(one)[0]
    _restore(workers.url, backup)
    if not running:
        one.close()
    other = workers.open("b")
    for number in range(5):
        other.append("user", f"after the restore, a longer text {number}")
    with pytest.warns(DamageWarning, match=r"messages\.jsonl.*kept as .*messages\.jsonl\.ahead-1"):
        one = _look(workers, one, running)
    assert Path(f"{one.layout.messages}.ahead-1").read_bytes() == ahead
    assert texts(one)[-5:] == texts(other)[-5:]
    check_same(one, other)


@pytest.mark.parametrize("running", [False, True], ids=["closed", "running"])
def test_lines_that_were_appended_after_an_erasure_are_kept_aside_when_it_is_restored_to_before(
    workers: Workers, running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_STORE_URL", workers.url)
    one = workers.open("a")
    fill(one, 2)
    backup = _backup(workers.url)
    assert erase(find_home(workers.folder / "eraser"), Request(literal="question 1", session="work")).sessions
    one.append("user", "lost")
    ahead = logs(one)[0]
    _restore(workers.url, backup)
    with psycopg.connect(workers.url) as connection:
        connection.execute("UPDATE daypack.sessions SET generation = 0")
    if not running:
        one.close()
    workers.open("b").append("user", "after the restore")
    with pytest.warns(DamageWarning, match=r"kept as .*\.jsonl\.ahead-1"):
        one = _look(workers, one, running)
    assert Path(f"{one.layout.messages}.ahead-1").read_bytes() == ahead
    assert b"question 1" not in ahead
    assert texts(one)[-1] == "after the restore"
    check_same(one, workers.open("b"))


@pytest.mark.parametrize("running", [False, True], ids=["closed", "running"])
def test_settings_are_those_of_the_database_after_as_many_changes_as_before(workers: Workers, running: bool) -> None:
    one = workers.open("a")
    one.append("user", "Hello.")
    backup = _meta(workers.url)
    one.history.facets.write_meta({"note": "lost"})
    if not running:
        one.close()
    with psycopg.connect(workers.url) as connection:
        connection.execute("UPDATE daypack.sessions SET meta = %s", (backup,))
    other = workers.open("b")
    other.history.facets.write_meta({"note": "after the restore"})
    one = _look(workers, one, running)
    assert one.meta == other.meta
    assert one.meta["note"] == "after the restore"


def _meta(url: str) -> bytes:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT meta FROM daypack.sessions").fetchone()
    assert row is not None
    return row[0]
