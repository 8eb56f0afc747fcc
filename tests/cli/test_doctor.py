"""`daypack doctor` reports failed hooks; `--repair` says what cannot be read after a repair, and no list hides that."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli.conftest import Command

from daypack.hooks import failures

TITLES = ("Harbour", "Tides", "Ferries")


@pytest.fixture
def store(command: Command, home: str) -> Path:
    """A store of three memories, as one file."""
    for title in TITLES:
        assert command("memory", "new", title).returncode == 0
        assert command("memory", "add", title, f"A fact about {title}").returncode == 0
    path = Path(home, "home", str(os.getuid()), "memory", "store.sqlite")
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def destroy(path: Path, *names: str) -> None:
    """Overwrite the first page of tables or indexes."""
    with closing(sqlite3.connect(path)) as file:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        pages = [file.execute(query, (name,)).fetchone()[0] for name in names]
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * 4096)
            file.write(bytes(range(256)) * 16)


def test_a_repair_that_loses_memories_from_lists_says_so_before_and_after(command: Command, store: Path) -> None:
    destroy(store, "users", "sqlite_autoindex_users_1")
    planned = command("doctor", "--repair")
    assert planned.returncode == 3
    assert "3 memories not listed any more: Harbour, Tides, Ferries" in planned.stdout
    assert "nothing is lost" not in planned.stdout
    assert "run `daypack doctor --repair`" not in planned.stdout + planned.stderr
    assert "restore FILE --replace memory" in planned.stderr
    done = command("doctor", "--repair", "--apply")
    assert "3 problems left" in done.stdout
    assert "run `daypack doctor --repair`" not in done.stdout + done.stderr
    assert done.stdout.count("→") == 1
    listed = command("memory", "list")
    assert "has no memories" not in listed.stderr
    assert "3 memories without a known owner" in listed.stderr
    assert "store.sqlite.damaged-" in listed.stderr
    assert "restore FILE --replace memory" in listed.stderr


def test_users_are_read_from_their_index_if_their_table_is_destroyed(command: Command, store: Path) -> None:
    destroy(store, "users")
    planned = command("doctor", "--repair")
    assert "not listed any more" not in planned.stdout
    assert "1 user or memory to check" in planned.stdout
    done = command("doctor", "--repair", "--apply")
    assert (done.returncode, "no problems left" in done.stdout) == (0, True)
    listed = command("memory", "list")
    assert all(title in listed.stdout for title in TITLES)
    assert "damaged" not in listed.stderr


def test_moved_entries_are_counted_in_the_plan(command: Command, store: Path) -> None:
    with closing(sqlite3.connect(store)) as file:
        file.execute("DROP TRIGGER entries_unchanged")
        file.execute("UPDATE entries SET author = 'Eve' WHERE memory = 1")
        file.commit()
    planned = command("doctor", "--repair")
    assert "afterwards: 1 record in quarantine" in planned.stdout
    assert "not listed" not in planned.stdout


def test_a_repair_after_which_everything_is_readable_says_that(command: Command, store: Path) -> None:
    with closing(sqlite3.connect(store)) as file:
        file.execute("UPDATE memories SET entries = 9")
        file.commit()
    before = store.read_bytes()
    assert "everything that can be read now can still be read" in command("doctor", "--repair").stdout
    assert store.read_bytes() == before


def test_failed_hooks_are_reported_with_the_newest(
    command: Command, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_HOME", home)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert "no problems" in command("doctor").stdout
    for problem in ("first", "second"):
        failures.record(failures.Place("claude", "Stop", "s-1"), ValueError(problem))
    lines = command("doctor").stdout.splitlines()
    assert "2 hook failures since 20" in lines[0]
    assert lines[0].endswith("claude Stop s-1 ValueError: second")
    assert lines[-1].endswith("1 problem")
    Path(home, "home", str(os.getuid()), "hook.log").unlink()
    assert "no problems" in command("doctor").stdout


def test_failures_of_hooks_without_a_home_are_reported_too(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_HOME", "/proc/none")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    failures.record(failures.Place("codex", "Stop", "s-1"), ValueError("no home"))
    assert f"{tmp_path}/daypack-hook-{os.getuid()}.log: 1 hook failure" in command("doctor").stdout
