"""The page about sessions in a database: what other machines append is listed, searched, shown and announced."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from memory_server import run_daypack
from postgres_server import needs_postgres
from serve.page.pages import enter, start_view
from serve.page.test_live import followed, wait_for
from serve.page.views.looking import look

import daypack
from daypack.errors import SessionMissing
from daypack.history import caches
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session

pytestmark = needs_postgres
WORK = {"agent": "default", "session": "work"}


@pytest.fixture(autouse=True)
def _stored(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    monkeypatch.setenv("DAYPACK_UID", "ada")


@pytest.fixture
def page(home: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenedHome]:
    monkeypatch.setattr(caches, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(caches, "_SHARE", 0.0)
    opened = OpenedHome(home, None, None)
    yield opened
    opened.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Session]:
    """The session `work` as another machine has it open."""
    with daypack.open_session("work", home=tmp_path / "elsewhere", durability="os", workspace="") as session:
        session.append("user", "The tide gauge listens on port 8080.")
        yield session


def test_sessions_of_other_machines_are_listed_and_searched_as_they_grow(page: OpenedHome, elsewhere: Session) -> None:
    (row,) = look(page, "sessions")["sessions"]
    assert (row["session"], row["messages"], row["error"]) == ("work", 1, None)
    elsewhere.append("assistant", "The sluice opens at noon.")
    (row,) = look(page, "sessions")["sessions"]
    assert row["messages"] == 2
    (hit,) = look(page, "find", q="sluice noon")["hits"]
    assert hit["line"] == "The sluice opens at noon."


def test_an_opened_session_shows_what_was_appended_since(page: OpenedHome, elsewhere: Session) -> None:
    assert len(look(page, "messages", **WORK)["messages"]) == 1
    elsewhere.append("assistant", "The sluice opens at noon.")
    assert len(look(page, "messages", **WORK)["messages"]) == 2
    elsewhere.prepare(budget=4_000)
    assert look(page, "session", **WORK)["calls"]
    elsewhere.put_child("scout", handoff="Look at the pump.")
    assert [child["name"] for child in look(page, "children", **WORK)["children"]] == ["scout"]


def test_health_names_the_database_and_counts_its_caches(page: OpenedHome, elsewhere: Session) -> None:
    health = look(page, "health")
    assert health["home"].startswith("postgresql://")
    rows = {row["what"]: row["files"] for row in health["disk"]}
    assert rows["caches of sessions in a database"] > 0
    assert rows["logs of sessions"] == 0
    assert look(page, "doctor")["total"] == 2
    assert elsewhere.name == "work"


def test_doctor_examines_the_rows_not_only_their_cache(page: OpenedHome, elsewhere: Session, database_url: str) -> None:
    import psycopg

    assert look(page, "doctor")["findings"] == []
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE daypack.session_lines SET crc = crc + 1 WHERE log = 0")
    (found,) = look(page, "doctor")["findings"]
    assert (found["session"], found["severity"]) == (elsewhere.name, "damage")
    assert found["path"].startswith("postgresql://")
    assert "does not match its checksum" in found["problem"]


def test_a_session_that_is_gone_is_missing(page: OpenedHome, elsewhere: Session, database_url: str) -> None:
    import psycopg

    look(page, "messages", **WORK)
    elsewhere.close()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM daypack.sessions")
    with pytest.raises(SessionMissing):
        look(page, "messages", **WORK)
    assert look(page, "sessions")["sessions"] == []


def test_a_page_learns_that_another_machine_appended(home: str, tmp_path: Path, database_url: str) -> None:
    there, place = str(tmp_path / "elsewhere"), ("--store", database_url, "--uid", "ada")
    assert run_daypack(there, "append", "work", "hello", *place).returncode == 0
    with start_view(home, "--no-open", "--log-level", "info", *place) as view:
        client = enter(view.url)
        with followed(client, **WORK) as events, followed(client) as all_sessions:
            assert next(events) == ("session", {"messages": 1, "events": 0})
            assert run_daypack(there, "append", "work", "more", *place).returncode == 0
            wait_for(events, ("session", {"messages": 2, "events": 0}))
            assert run_daypack(there, "append", "other", "hello", *place).returncode == 0
            assert any(["default", "other"] in data["changed"] for _, data in all_sessions)
