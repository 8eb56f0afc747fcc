"""Commands are run in this process, each with a home of its own."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack
from daypack.cli.main import run
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


def _runner(capture: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Command:
    def command(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capture.readouterr()
        try:
            code = run(args)
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        out, err = capture.readouterr()
        return subprocess.CompletedProcess(args, code, out.decode(), err.decode())

    return command


@pytest.fixture
def command(
    home: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Run `daypack …` in an empty workspace and return its exit code and what it printed."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.setenv("DAYPACK_HOME", os.fspath(home))
    monkeypatch.chdir(workspace)
    return _runner(capfdbinary, monkeypatch)


@pytest.fixture
def bare_command(
    home: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Run `daypack …` in an empty folder."""
    monkeypatch.setenv("DAYPACK_HOME", home)
    monkeypatch.chdir(tmp_path)
    return _runner(capfdbinary, monkeypatch)


@pytest.fixture
def talk(home: str) -> Session:
    """A session with a pin and one user message."""
    session = daypack.open_session("talk", home=home, durability="os", model="gpt-4o")
    session.pin("rules", "Be brief.")
    session.append("user", "List the files")
    return session
