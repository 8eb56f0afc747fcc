"""The doctor finds damage in the rows of a session in a database, and says that a wrong cache may be deleted."""

import shutil
from pathlib import Path

import psycopg
import pytest
from postgres_server import needs_postgres
from upkeep.copy.copies import UID, fill

import daypack
from daypack.errors import SessionMissing
from daypack.history.home import find_home
from daypack.history.layout import Layout
from daypack.upkeep.doctor import Finding
from daypack.upkeep.stored_doctor import examine_stored

pytestmark = needs_postgres


@pytest.fixture
def layout(home: str, database_url: str) -> Layout:
    """A session in a database, with its cache."""
    with daypack.open_session("work", home=home, uid=UID, store=database_url, workspace="") as session:
        fill(session)
    return find_home(home, UID, database_url).session("default", "work")


def findings(layout: Layout) -> list[Finding]:
    return list(examine_stored(layout))


def change(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = daypack")
        assert connection.execute(statement.encode()).rowcount > 0


def test_a_sound_session_has_no_findings_with_and_without_a_cache(layout: Layout) -> None:
    assert findings(layout) == []
    shutil.rmtree(layout.folder)
    assert findings(layout) == []


_SECOND = "(SELECT min(start) FROM session_lines WHERE log = 0 AND start > 0)"
_SHIFTED = "SELECT tenant, session, log, start + 1, stop + 1, crc, writer, data FROM session_lines"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (f"DELETE FROM session_lines WHERE log = 0 AND start = {_SECOND}", "a row is missing"),
        ("UPDATE session_lines SET data = set_byte(data, 40, 33) WHERE log = 1 AND start = 0", "match its checksum"),
        ("UPDATE session_lines SET crc = crc + 1 WHERE log = 0 AND start = 0", "match its checksum"),
        ("UPDATE session_lines SET data = set_byte(data, length(data) - 1, 33) WHERE log = 0 AND start = 0",
         "does not end with a line"),
        ("UPDATE session_lines SET data = set_byte(data, 40, 33) WHERE log = 0 AND start = 0",
         "checksum does not match"),
        (f"INSERT INTO session_lines {_SHIFTED} WHERE log = 1 AND start = 0", "two rows have the bytes"),
        ("DELETE FROM session_blobs", "missing, but referenced by"),
        ("UPDATE session_blobs SET data = set_byte(data, 0, 1)", "does not match its digest name"),
        ("UPDATE sessions SET meta = 'no json'", "not a JSON object"),
        ("""UPDATE sessions SET meta = '{"protocols":{"history":"99"}}'""", "history format"),
    ],
)  # fmt: skip
def test_damage_in_the_rows_is_found(layout: Layout, database_url: str, statement: str, problem: str) -> None:
    change(database_url, statement)
    shutil.rmtree(layout.folder)
    found = [finding for finding in findings(layout) if problem in finding.problem]
    assert found
    assert all(finding.severity == "damage" and finding.advice for finding in found)
    assert all("postgresql://" in finding.path and "default/work" in finding.path for finding in found)


def spoil_log(layout: Layout) -> None:
    data = Path(layout.messages).read_bytes()
    Path(layout.messages).write_bytes(data.replace(b"buoy 1", b"buoy 9"))


def lengthen_log(layout: Layout) -> None:
    with open(layout.events, "ab") as log:
        log.write(b'{"type":"mine"}\n')


def spoil_meta(layout: Layout) -> None:
    Path(layout.meta).write_bytes(b'{"model":"other"}')


def spoil_blob(layout: Layout) -> None:
    next(Path(layout.blob).iterdir()).write_bytes(b"other")


@pytest.mark.parametrize("spoil", [spoil_log, lengthen_log, spoil_meta, spoil_blob])
def test_a_wrong_cache_is_a_warning_and_deleting_it_repairs_it(
    layout: Layout, spoil: object, database_url: str
) -> None:
    spoil(layout)  # type: ignore[operator]
    [found] = findings(layout)
    assert found.severity == "warning"
    assert "the cache is wrong" in found.problem
    assert "deleting it is safe" in found.advice
    assert layout.folder in found.advice
    shutil.rmtree(layout.folder)
    with daypack.open_session("work", home=layout.root, uid=UID, store=database_url, create=False) as session:
        assert len(session.tail(100)) == 6
    assert findings(layout) == []


def test_a_cache_that_is_behind_is_no_finding(layout: Layout, home: str, database_url: str) -> None:
    with daypack.open_session("work", home=f"{home}-2", uid=UID, store=database_url, create=False) as session:
        session.append("user", "And now?")
    assert findings(layout) == []


def test_a_session_that_is_gone_is_missing(home: str, database_url: str) -> None:
    with pytest.raises(SessionMissing):
        findings(find_home(home, UID, database_url).session("default", "none"))
