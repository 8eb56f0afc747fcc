"""Bringing the folders of all sessions of a database up to date: what changed is fetched, what is gone is removed."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from postgres_server import needs_postgres

import daypack
from daypack.errors import DaypackError, StorageFailed
from daypack.history import caches
from daypack.history.caches import Caches, refresh_all
from daypack.history.home import find_home
from daypack.history.layout import Home, Layout
from daypack.history.session import History

pytestmark = needs_postgres
NOBODY = "postgresql://ada:s3cret@127.0.0.1:1/sessions?connect_timeout=1"


@pytest.fixture
def homes(tmp_path: Path, database_url: str) -> tuple[Home, Home]:
    """Two workers of one user and one database."""
    here, there = (find_home(tmp_path / name, "ada", database_url) for name in ("here", "there"))
    return here, there


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the sessions that were fetched."""
    names: list[str] = []

    def noted(layout: Layout, *args: Any, **options: Any) -> History:
        names.append(layout.name)
        return History(layout, *args, **options)

    monkeypatch.setattr(caches, "History", noted)
    return names


def say(home: Home, name: str, text: str) -> None:
    store = home.database.url if home.database else ""
    with daypack.open_session(name, home=home.root, uid=home.uid, store=store, durability="os") as session:
        session.append("user", text)


def log(home: Home, name: str) -> bytes:
    return Path(home.session("default", name).messages).read_bytes()


def test_folders_are_made_and_only_those_of_changed_sessions_are_fetched_again(
    homes: tuple[Home, Home], fetched: list[str]
) -> None:
    here, there = homes
    for name in ("one", "two", "three"):
        say(here, name, f"the {name} log")
    assert (there.here.agents(), there.here.list("default")) == ([], [])
    assert there.has("default", "one")
    assert not there.here.has("default", "one")
    assert refresh_all(there) == []
    assert sorted(fetched) == ["one", "three", "two"]
    assert all(log(here, name) == log(there, name) for name in ("one", "two", "three"))
    assert there.here.list("default") == there.list("default") == ["one", "three", "two"]
    fetched.clear()
    say(here, "two", "more of it")
    folders = Caches(there)
    folders.refresh()
    folders.refresh()
    assert fetched == ["two"]
    assert log(here, "two") == log(there, "two")
    shutil.rmtree(there.session("default", "two").folder)
    folders.refresh()
    assert log(here, "two") == log(there, "two")


def test_a_folder_has_the_time_of_its_newest_message_not_of_the_fetch(homes: tuple[Home, Home]) -> None:
    here, there = homes
    say(here, "one", "the log")
    path = here.session("default", "one").messages
    refresh_all(there)
    fetched = os.stat(there.session("default", "one").messages).st_mtime
    assert abs(fetched - os.stat(path).st_mtime) < 1


def test_folders_of_sessions_that_are_gone_are_removed(homes: tuple[Home, Home], database_url: str) -> None:
    import psycopg

    here, there = homes
    for name in ("one", "two"):
        say(here, name, "the log")
    refresh_all(there)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM daypack.sessions WHERE name = 'one'")
    assert refresh_all(there) == []
    assert there.here.list("default") == ["two"]
    assert not os.path.exists(there.session("default", "one").folder)


def test_a_session_that_cannot_be_fetched_does_not_stop_the_others(homes: tuple[Home, Home]) -> None:
    here, there = homes
    for name in ("one", "two"):
        say(here, name, "the log")
    folder = Path(there.session("default", "one").folder)
    folder.parent.mkdir(parents=True)
    folder.symlink_to(folder.parent)
    failures = refresh_all(there)
    assert [(failure.agent, failure.session) for failure in failures] == [("default", "one")]
    assert log(here, "two") == log(there, "two")


def test_another_user_sees_nothing(homes: tuple[Home, Home], tmp_path: Path, database_url: str) -> None:
    say(homes[0], "one", "the log")
    other = find_home(tmp_path / "here", "grace", database_url)
    assert refresh_all(other) == []
    assert (other.agents(), other.has("default", "one")) == ([], False)


def test_a_database_that_is_down_is_an_error_without_its_password(tmp_path: Path) -> None:
    home = find_home(tmp_path, "ada", NOBODY)
    assert home.database
    home.database.wait_at_most(0.1)
    with pytest.raises(StorageFailed) as refused:
        refresh_all(home)
    assert "s3cret" not in str(refused.value)


def test_a_server_looks_at_most_once_a_second(homes: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = homes
    say(here, "one", "the log")
    now = [100.0]
    monkeypatch.setattr(caches, "time", SimpleNamespace(monotonic=lambda: now[0]))
    folders = Caches(there)
    folders.refresh_if_due()
    say(here, "one", "more of it")
    folders.refresh_if_due()
    assert log(there, "one") != log(here, "one")
    now[0] += 1.1
    folders.refresh_if_due()
    assert log(there, "one") == log(here, "one")


def test_files_need_no_refresh(tmp_path: Path) -> None:
    home = find_home(tmp_path, "ada", "")
    assert refresh_all(home) == []
    assert home.here is home
    with pytest.raises(DaypackError):
        home.has("default", "..")
