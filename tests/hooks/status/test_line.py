"""`daypack status --line` as a program: it always prints one line, ends with 0, and never waits."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hooks.status.host_inputs import host_input
from memory.project.repositories import new_repository

import daypack
from daypack.history.home import find_home
from daypack.memory.project import find_project, project_memory
from daypack.memory.tools import open_memory

COMMAND = (sys.executable, "-m", "daypack", "status", "--line")


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A repository."""
    return new_repository(tmp_path / "app")


def environment(home: str, **more: str) -> dict[str, str]:
    outside = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DAYPACK_") and name not in ("COLUMNS", "NO_COLOR", "TERM")
    }
    return {**outside, "DAYPACK_HOME": home, "PYTHONIOENCODING": "utf-8", **more}


def status_line(home: str, folder: Path, data: bytes = b"", *arguments: str, **more: str) -> str:
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=folder, input=data, capture_output=True, env=environment(home, **more), check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert text.count("\n") == 1
    return text.removesuffix("\n")


def here(folder: Path) -> dict[str, object]:
    return {"workspace": {"current_dir": str(folder)}}


def test_the_state_of_the_host_and_the_memory_of_the_project_are_shown(home: str, app: Path) -> None:
    place, project = find_home(home), find_project(str(app))
    memory_id = project_memory(place, project) or ""
    with open_memory(home=home) as memories:
        for text in ("one", "two"):
            memories.add_entry(memory_id, text)
    text = status_line(home, app, host_input(**here(app)), "--width", "200", NO_COLOR="1")
    assert text.startswith("app · ██████████░░ 80% of 200k · cache 93% warm")
    assert "2 memory entries" in text
    assert text.endswith("not recorded yet")


def test_a_recorded_session_of_the_host_is_counted(home: str, app: Path) -> None:
    name = json.loads(host_input())["session_id"]
    with daypack.open_session(name, agent="claude-code", home=home) as session:
        session.append("user", "hello")
    assert status_line(home, app, host_input(**here(app)), "--width=200").endswith("1 message recorded\x1b[0m")


def test_the_width_is_that_of_the_host_or_as_given(home: str, app: Path) -> None:
    wide = status_line(home, app, host_input(**here(app)), NO_COLOR="1", COLUMNS="150")
    narrow = status_line(home, app, host_input(**here(app)), NO_COLOR="1", COLUMNS="20")
    assert len(wide) > len(narrow)
    assert len(narrow) <= 20
    assert len(status_line(home, app, host_input(**here(app)), "--width", "5", NO_COLOR="1", COLUMNS="150")) <= 5


def test_colours_are_for_hosts_and_not_for_files(home: str, app: Path) -> None:
    assert "\x1b[" in status_line(home, app, host_input(**here(app)))
    assert "\x1b[" not in status_line(home, app, host_input(**here(app)), NO_COLOR="1")
    assert "\x1b[" not in status_line(home, app, host_input(**here(app)), TERM="dumb")
    assert "\x1b[" not in status_line(home, app)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff" * 50, b'{"session_id": 3}', b'{"cwd": "/nowhere"}']
)
def test_input_that_cannot_be_used_gives_a_line_all_the_same(home: str, app: Path, data: bytes) -> None:
    assert "memory empty" in status_line(home, app, data, NO_COLOR="1")


@pytest.mark.parametrize("name", ["../../../etc", "a/b", "x" * 500, ".hidden", "é", "a b", "-", "\u0000"])
def test_a_session_of_any_name_is_harmless(home: str, app: Path, name: str) -> None:
    text = status_line(home, app, host_input(session_id=name, **here(app)), NO_COLOR="1", COLUMNS="200")
    assert text.endswith("not recorded yet")


def test_a_silent_pipe_is_not_waited_for(home: str, app: Path) -> None:
    reader, writer = os.pipe()  # which stays open, and nothing is written
    try:
        done = subprocess.run(
            COMMAND, cwd=app, stdin=reader, capture_output=True, env=environment(home), timeout=30, check=True
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert done.stdout.decode() == "app · memory empty · no session yet\n"


def test_a_terminal_is_not_read(home: str, app: Path) -> None:
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            COMMAND, cwd=app, stdin=slave, capture_output=True, env=environment(home), timeout=30, check=True
        )
    finally:
        os.close(master)
        os.close(slave)
    assert done.stdout.decode() == "app · memory empty · no session yet\n"


def test_closed_streams_are_no_failure(home: str, app: Path) -> None:
    for redirection in ("<&-", ">&-", "2>&-", ">/dev/full"):
        command = f'"$0" -m daypack status --line {redirection}'
        done = subprocess.run(
            ["sh", "-c", command, sys.executable], cwd=app, capture_output=True, env=environment(home), check=False
        )
        assert (done.returncode, done.stderr) == (0, b""), redirection


def test_a_wrong_settings_file_is_shown_in_the_line(home: str, app: Path) -> None:
    (app / ".daypack.toml").write_text("memory = 3")
    text = status_line(home, app, COLUMNS="200")
    assert text.startswith(f"⚠ memory is 3 [{app / '.daypack.toml'}]")


def test_a_home_that_cannot_be_read_is_shown_in_the_line(tmp_path: Path, app: Path) -> None:
    (tmp_path / "file").write_text("")
    text = status_line(str(tmp_path / "file"), app, host_input(**here(app)), NO_COLOR="1", COLUMNS="200")
    assert "80% of 200k" in text


def test_failures_of_hooks_that_the_user_does_not_know_of_are_shown(home: str, app: Path) -> None:
    folder = Path(find_home(home).folder)
    folder.mkdir(parents=True)
    (folder / "hook.log").write_text("2026-11-18T09:12:44Z claude Stop 5ac28188 StorageFailed: disk full\n")
    assert status_line(home, app, COLUMNS="200").startswith("⚠ 1 hook failure: `daypack doctor` · app")
    with (folder / "hook.log").open("a") as log:
        log.write("2026-11-18T09:20:02Z - reported - 1\n")
    assert status_line(home, app, COLUMNS="200").startswith("app")


def test_a_folder_that_was_deleted_gives_a_line(home: str, tmp_path: Path) -> None:
    script = f'mkdir gone; cd gone; rmdir ../gone; exec "$0" {" ".join(COMMAND[1:])}'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable], cwd=tmp_path, capture_output=True, env=environment(home), check=False
    )
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1


def test_the_modules_of_commands_and_of_the_store_are_not_imported(home: str, app: Path) -> None:
    project_memory(find_home(home), find_project(str(app)))
    code = "import sys; from daypack.hooks.status.line import run; run(['--line']); print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=app,
        input=host_input(**here(app)),
        capture_output=True,
        env=environment(home),
        check=True,
    )
    for heavy in ("argparse", "msgspec", "tomllib", "pathlib", "daypack.memory.tools", "daypack.session", "splintr"):
        assert f"'{heavy}'" not in done.stdout.decode(), heavy
