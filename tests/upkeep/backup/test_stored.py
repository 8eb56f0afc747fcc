"""Sessions in a database: a backup has the bytes that their files would have, and a restore brings them back."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres_server import drop_database, needs_postgres, new_database
from upkeep.copy.copies import UID, bytes_of_database, fill

import daypack
from daypack.errors import BadInput, DaypackError
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.upkeep.backup.apply import apply as back_up
from daypack.upkeep.backup.contents import Request as BackupRequest
from daypack.upkeep.backup.database import copying
from daypack.upkeep.backup.plan import plan as plan_backup
from daypack.upkeep.backup.restore import apply as restore
from daypack.upkeep.backup.restore_plan import Request
from daypack.upkeep.backup.restore_plan import plan as plan_restore
from daypack.upkeep.backup.verify import verify
from daypack.upkeep.erase.apply import apply as erase
from daypack.upkeep.erase.plan import Request as EraseRequest

pytestmark = needs_postgres


@pytest.fixture
def other_url() -> Iterator[str]:
    """An empty database to restore to."""
    url = new_database()
    yield url
    drop_database(url)


@pytest.fixture
def place(home: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home whose sessions are in a database: one with everything, one with lines that are not UTF-8."""
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    for name in ("work", "other"):
        with daypack.open_session(name, home=home, uid=UID, workspace="") as session:
            fill(session)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE daypack.sessions SET cwd = '\\xff00fe' WHERE name = 'other'")
    return find_home(home, UID)


def test_a_restored_database_has_the_same_sessions(
    place: Home, database_url: str, other_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_BATCH_BYTES", 5000)
    monkeypatch.setattr(copying, "_KEYS", 7)
    path = str(tmp_path / "b.tar")
    assert not any("store" in item.name for item in plan_backup(place, BackupRequest()).items)
    written = back_up(place, BackupRequest(), path)
    assert (written.verified.sessions, written.verified.findings) == (2, ())
    with psycopg.connect(database_url) as connection:
        query = "SELECT convert_from(data, 'latin1') FROM daypack.session_lines WHERE log = %s"
        lines = [sum(row[0].count("\n") for row in connection.execute(query, (log,))) for log in (0, 1)]
    assert min(lines) > 0
    assert [written.verified.messages, written.verified.events] == lines
    assert [item.state for item in plan_restore(place.root, path, Request()).items if item.kind == "database"] == [
        "same"
    ]
    monkeypatch.setenv("DAYPACK_STORE_URL", other_url)
    new_root = str(tmp_path / "new")
    restore(new_root, path, Request())
    for name in ("work", "other"):
        assert bytes_of_database(other_url, name) == bytes_of_database(database_url, name)
    with daypack.open_session("work", home=new_root, uid=UID, create=False, workspace="") as session:
        assert len(session.tail(100)) == 6
        session.append("user", "It goes on.")
    with daypack.open_session("new", home=new_root, uid=UID) as session:  # its number is not taken
        session.append("user", "Hello.")
    with pytest.raises(BadInput):
        restore(str(tmp_path / "third"), path, Request())


def test_a_session_that_an_erasure_has_rewritten_is_restored(
    place: Home, database_url: str, other_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase(place, EraseRequest(literal="chart 2", session="work"))
    path = str(tmp_path / "b.tar")
    back_up(place, BackupRequest(), path)
    monkeypatch.setenv("DAYPACK_STORE_URL", other_url)
    restore(str(tmp_path / "new"), path, Request())
    assert bytes_of_database(other_url, "work") == bytes_of_database(database_url, "work")


def test_a_flipped_bit_in_the_backup_is_found(place: Home, tmp_path: Path) -> None:
    path = tmp_path / "b.tar"
    back_up(place, BackupRequest(), str(path))
    data = bytearray(path.read_bytes())
    for text in (b"buoy 1", b"chart 2"):
        at = data.find(text)
        assert at > 0
        damaged = bytearray(data)
        damaged[at] ^= 1
        spoiled = tmp_path / "spoiled.tar"
        spoiled.write_bytes(damaged)
        with pytest.raises(DaypackError):
            verify(str(spoiled))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE session_lines SET data = set_byte(data, 40, 33) WHERE log = 0 AND start = 0",
        "UPDATE session_blobs SET data = set_byte(data, 0, 33)",
        "DELETE FROM session_lines WHERE log = 1 AND start = 0",
    ],
)
def test_damage_in_the_database_is_backed_up_and_reported(
    place: Home, database_url: str, tmp_path: Path, statement: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET search_path = daypack")
        connection.execute(statement.encode())
    written = back_up(place, BackupRequest(), str(tmp_path / "b.tar"))
    assert written.verified.is_damaged
    assert "session_" in written.verified.findings[0].problem


def test_one_session_of_a_database_is_refused_with_the_way_to_copy_it(place: Home, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="in a database") as refused:
        plan_backup(place, BackupRequest(scope="session", session="work"))
    assert "daypack copy" in refused.value.hint


def test_a_restore_of_sessions_of_a_database_names_no_option_that_does_not_help(
    place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "b.tar")
    back_up(place, BackupRequest(), path)
    with pytest.raises(BadInput, match="no session default/work") as alone:
        plan_restore(place.root, path, Request(session="work"))
    assert "restored together" in alone.value.hint
    monkeypatch.delenv("DAYPACK_STORE_URL")
    with pytest.raises(BadInput, match="memories and sessions of a database, and none is named") as unnamed:
        plan_restore(place.root, path, Request())
    assert "--store" in unnamed.value.hint
    assert "--session" not in unnamed.value.hint


def test_what_was_erased_since_does_not_come_back_unnoticed(
    place: Home, other_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "b.tar")
    back_up(place, BackupRequest(), path)
    done = erase(place, EraseRequest(literal="buoy 1", session="work"))
    assert any(found.path == path and found.is_certain for found in done.remaining)
    assert os.path.exists(path)
    monkeypatch.setenv("DAYPACK_STORE_URL", other_url)
    with pytest.raises(BadInput, match="erased since"):
        restore(place.root, path, Request())
