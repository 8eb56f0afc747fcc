"""Named pipes, devices and sockets are refused wherever a file is read; streams of the shell are read."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import daypack

TIMEOUT_SECONDS = 60  # a pipe that is waited for would never end
OTHER_KINDS = ("link to a pipe", "link to a device", "socket")

# Commands that read the file FILE, which they were given by name.
NAMED = (
    ("pin", "work", "rules.md", "--file", "FILE"),
    ("append", "work", "--jsonl", "FILE"),
    ("accept", "work", "FILE"),
    ("prepare", "work", "--tools", "FILE"),
    ("prepare", "work", "--items", "FILE"),
    ("prepare", "work", "--ids", "FILE"),
    ("child", "work", "one", "--handoff", "FILE"),
    ("child", "work", "one", "--artifact", "FILE"),
    ("erase", "work", "--literal-file", "FILE"),
    ("lint", "--with", "FILE"),
    ("conform", "FILE"),
    ("check-reply", "FILE"),
    ("import-envelope", "FILE"),
    ("import", "codex", "FILE"),
    ("memory", "import", "FILE"),
)
# Files of a home that commands read by themselves.
FOUND = (
    ("config.toml", ("log", "work")),
    ("work/messages.jsonl", ("log", "work")),
    ("work/events.jsonl", ("prepare", "work")),
    ("work/meta.json", ("prepare", "work")),
    ("work/context/budget", ("prepare", "work")),
    ("work/context/pinned/rules.md", ("prepare", "work")),
    ("work/context/offsets/messages.idx", ("log", "work")),
    ("work/context/ledger.json", ("prepare", "work")),
    ("work/context/search.sqlite", ("search", "work", "parser")),
    ("work/state", ("session", "show", "work")),
    ("work/latest.md", ("erase", "work", "--literal", "nothing-like-this")),
)


def make(kind: str, path: Path) -> None:
    """Put a special file where a command expects a file."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to a pipe":
        os.mkfifo(path.with_name("the-pipe"))
        path.symlink_to("the-pipe")
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            here = os.open(path.parent, os.O_RDONLY)
            bound.bind(f"/proc/self/fd/{here}/{path.name}")  # a path that is short enough for an address
            os.close(here)


def run(home: str, *args: str, stdin: bytes = b"", shell: str = "") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "daypack", *args]
    environ = {**os.environ, "DAYPACK_HOME": home}
    if shell:
        command = ["bash", "-c", shell.replace("daypack", f"{sys.executable} -m daypack")]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT_SECONDS, env=environ, check=False)


@pytest.fixture
def filled(home: str) -> str:
    with daypack.open_session("work", home=home) as session:
        session.append("user", "The parser fails on empty input.")
        session.pin("rules.md", "Answer in one sentence.")
        session.prepare()
    return home


@pytest.mark.parametrize("kind", ["pipe", "another kind"])
@pytest.mark.parametrize("args", NAMED, ids=" ".join)
def test_a_special_file_named_by_a_caller_is_refused(
    filled: str, tmp_path: Path, args: tuple[str, ...], kind: str
) -> None:
    path = tmp_path / "given" / "file"
    make(kind if kind == "pipe" else OTHER_KINDS[NAMED.index(args) % len(OTHER_KINDS)], path)
    done = run(filled, *(str(path) if arg == "FILE" else arg for arg in args))
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr
    assert str(path).encode() in done.stderr


@pytest.mark.requirement("X27")
@pytest.mark.parametrize("kind", ["pipe", "another kind"])
@pytest.mark.parametrize(("name", "args"), FOUND, ids=lambda value: value if isinstance(value, str) else "")
def test_a_special_file_in_a_home_is_never_waited_for(filled: str, name: str, args: tuple[str, ...], kind: str) -> None:
    with daypack.open_session("work", home=filled) as session:
        folder = session.path
    path = folder / name.removeprefix("work/") if name.startswith("work/") else Path(filled, name)
    make(kind if kind == "pipe" else OTHER_KINDS[FOUND.index((name, args)) % len(OTHER_KINDS)], path)
    assert b"Traceback" not in run(filled, *args).stderr


@pytest.mark.parametrize(
    "shell",
    [
        "daypack pin work new.md --file <(echo 'from a process')",
        "echo 'from a process' | daypack pin work new.md --file /dev/stdin",
        "echo 'from a process' | daypack pin work new.md --file -",
        "daypack pin work new.md --file /dev/stdin < <(echo 'from a process')",
    ],
)
def test_streams_of_the_shell_are_read(filled: str, shell: str) -> None:
    done = run(filled, shell=shell)
    assert done.returncode == 0, done.stderr
    with daypack.open_session("work", home=filled) as session:
        assert "from a process" in session.pins["new.md"]
