"""`doctor`, `gc`, `rebuild` and `backup` for sessions in a database."""

import json
import os
import re
import shlex
from pathlib import Path

import psycopg
import pytest
from cli.conftest import Command
from postgres_server import needs_postgres
from upkeep.copy.copies import UID, fill

import daypack
from daypack.history.home import find_home
from daypack.history.postgres.store import open_store

pytestmark = needs_postgres


@pytest.fixture
def stored(home: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session in the database that the environment names; the address of the database."""
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    monkeypatch.setenv("DAYPACK_UID", UID)
    with daypack.open_session("work", home=home, workspace="") as session:
        fill(session)
    return database_url


def test_doctor_examines_the_database(stored: str, bare_command: Command) -> None:
    sound = bare_command("doctor", "work")
    assert (sound.returncode, sound.stdout) == (0, "1 session checked, no problems\n")
    with psycopg.connect(stored, autocommit=True) as connection:
        connection.execute("UPDATE daypack.session_lines SET crc = crc + 1 WHERE log = 0 AND start = 0")
    damaged = bare_command("doctor")
    assert damaged.returncode == 3
    assert "a row does not match its checksum" in damaged.stdout


def test_rebuild_verify_does_not_miss_what_only_another_worker_wrote(
    stored: str, home: str, bare_command: Command
) -> None:
    assert bare_command("rebuild", "work", "--verify").returncode == 0
    with daypack.open_session("work", home=f"{home}-2", workspace="") as session:
        session.append("user", "And at low tide?")
        session.prepare(budget=8000, items=[{"content": "a table of tides " * 900, "context_kind": "manual_note"}])
        session.accept("Half a metre.")
    verified = bare_command("rebuild", "work", "--verify")
    assert (verified.returncode, verified.stdout) == (0, "all files match the history\n")
    assert bare_command("rebuild", "work").returncode == 0
    pack = Path(find_home(home).session("default", "work").derived("pack"))
    assert pack.exists()
    pack.write_text("{}")
    assert bare_command("rebuild", "work", "--verify").returncode == 3


def test_gc_of_a_session_keeps_what_is_in_the_database(stored: str, home: str, bare_command: Command) -> None:
    layout = find_home(home).session("default", "work")
    for name in os.listdir(layout.blob):
        os.unlink(os.path.join(layout.blob, name))  # fetched when they are read
    for name in ("pack", "pack_text"):
        os.utime(layout.derived(name), (0, 0))
    collected = bare_command("gc", "work", "--apply")
    assert collected.returncode == 0, collected.stdout
    assert "2 files removed" in collected.stdout
    with daypack.open_session("work", home=f"{home}-2", create=False, workspace="") as session:
        assert len(session.tail(100)) == 6
        assert session.pins


def test_caches_are_listed_and_removed_and_sessions_in_files_are_not(
    stored: str, home: str, bare_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    daypack.open_session("plain", home=home, store="").close()
    caches = find_home(home).caches
    kept = json.loads(bare_command("gc", "--caches", "--json").stdout)
    assert [cache["reason"] for cache in kept["plan"]["caches"]] == ["kept"]
    assert bare_command("gc", "--caches", "--apply").stdout == "0 caches removed, 0 bytes; 1 cache kept\n"
    listed = bare_command("gc", "--caches", "--older", "0d")
    assert "1 cache removable" in listed.stdout
    assert re.search(r"default/work: last used \d+ s ago$", listed.stdout, re.MULTILINE)
    assert os.path.isdir(caches)
    removed = bare_command("gc", "--caches", "--older", "0d", "--apply")
    assert "1 cache removed" in removed.stdout
    assert not os.path.exists(caches)
    with daypack.open_session("work", home=home, create=False) as session:
        assert len(session.tail(100)) == 6
    with daypack.open_session("plain", home=home, store="", create=False):
        pass


def test_the_command_that_is_named_removes_the_caches_that_were_listed(
    stored: str, home: str, bare_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAYPACK_STORE_URL")
    monkeypatch.delenv("DAYPACK_UID")
    monkeypatch.setenv("DAYPACK_HOME", f"{home}-2")
    listed = bare_command("gc", "--caches", "--older", "0d", "--home", home, "--uid", UID, "--store", stored).stdout
    named = shlex.split(listed.partition("`daypack ")[2].partition("`")[0])
    done = bare_command(*(stored if word == "URL" else word for word in named))
    assert "1 cache removed" in done.stdout, done.stderr
    assert not os.path.exists(find_home(home, UID).caches)


def test_caches_of_other_databases_and_of_deleted_sessions_may_go(
    stored: str, home: str, bare_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(stored, autocommit=True) as connection:
        connection.execute("DELETE FROM daypack.sessions")
    gone = bare_command("gc", "--caches")
    assert "default/work: the session is gone" in gone.stdout
    monkeypatch.delenv("DAYPACK_STORE_URL")
    other = bare_command("gc", "--caches", "--apply")
    assert "default/work: of a database that is not configured" in other.stdout
    assert not os.path.exists(find_home(home).caches)


def test_a_cache_that_is_in_use_may_be_removed(stored: str, home: str, bare_command: Command) -> None:
    with daypack.open_session("work", home=home, create=False) as session:
        assert "1 cache removed" in bare_command("gc", "--caches", "--older", "0d", "--apply").stdout
        with daypack.open_session("work", home=home, create=False) as again:
            again.append("user", "It goes on.")
    with daypack.open_session("work", home=home, create=False) as session:
        assert session.tail(1)[0].text == "It goes on."


def test_a_session_in_a_database_is_not_archived_and_is_deleted_when_its_policy_allows_it(
    stored: str, home: str, bare_command: Command
) -> None:
    refused = bare_command("gc", "work", "--archive", "--force")
    assert refused.returncode == 2
    assert "daypack copy" in refused.stderr
    assert bare_command("gc", "work", "--restore").returncode == 2
    kept = bare_command("gc", "work", "--delete", "--yes", "--force")
    assert kept.returncode == 2
    assert "policy" in kept.stderr
    assert "daypack copy URL DIR --session default/work" in kept.stderr
    assert "--archive" not in kept.stderr
    policy = Path(find_home(home).session("default", "work").derived("gc_policy"))
    policy.write_text("keep_messages=0\nkeep_events=0\n")
    deleted = bare_command("gc", "work", "--delete", "--yes", "--force")
    assert deleted.returncode == 0, deleted.stderr
    assert open_store(stored, UID).find("default", "work") is None
    with psycopg.connect(stored) as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM daypack.session_lines), (SELECT count(*) FROM daypack.session_blobs)"
        ).fetchone()
    assert counts == (0, 0)


def test_arguments_of_caches_that_do_not_fit_are_refused(stored: str, bare_command: Command) -> None:
    for words in (("--older", "3d"), ("work", "--caches"), ("--all", "--caches"), ("--caches", "--children")):
        assert bare_command("gc", *words).returncode == 2
