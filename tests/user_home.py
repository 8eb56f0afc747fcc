"""A user's home in which `daypack setup` runs, in this process; the programs of the agents are empty scripts."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from daypack.cli.main import run

PROGRAMS = ("claude", "codex", "copilot", "qwen", "gemini")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class UserHome:
    """A home folder: its files, and the commands that run in it."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.bin = folder.parent / "bin"
        self.work = folder.parent / "work"
        self._capture = capture
        self._monkeypatch = monkeypatch
        for each in (folder, self.bin, self.work):
            each.mkdir()
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        variables = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "QWEN_HOME", "GEMINI_CLI_HOME", "HERMES_HOME")
        for variable in variables:
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.chdir(self.work)

    def install(self, *programs: str) -> None:
        """Put programs of agents on PATH."""
        for name in programs:
            (self.bin / name).write_text("#!/bin/sh\n")
            (self.bin / name).chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def read(self, name: str) -> str:
        return (self.folder / name).read_bytes().decode()

    def tree(self, *, own: bool = False) -> dict[str, bytes | str]:
        """Return every file, link and folder of the home; `own` includes daypack's."""
        found: dict[str, bytes | str] = {}
        for path in sorted(self.folder.rglob("*")):
            name = str(path.relative_to(self.folder))
            if own or not name.startswith(".daypack"):
                found[name] = (
                    f"→ {path.readlink()}" if path.is_symlink() else "" if path.is_dir() else path.read_bytes()
                )
        return found

    def daypack(self, *arguments: str, terminal: bool = False) -> subprocess.CompletedProcess[str]:
        self._monkeypatch.setattr(sys, "stdin", _Terminal() if terminal else io.StringIO())
        self._capture.readouterr()
        code = run(arguments)
        out, err = self._capture.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    def set_up(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = self.daypack("setup", "--yes", *arguments)
        assert done.returncode == 0, done.stderr
        return done

    def remove(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.daypack("setup", "--remove", "--yes", *arguments)
