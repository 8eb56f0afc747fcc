"""A user's machine in a temporary folder: home, repository, programs on PATH, and a model that they reach."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from model_endpoint import ModelEndpoint

import daypack
from coding_agents.wire import Part, read_texts, sorted_arguments
from tools.agents import NODE

AGENTS = Path(__file__).parents[2] / ".venv" / "agents"
PATIENCE_SECONDS = 60
_SOURCE = Path(daypack.__file__).parents[1]
_KEPT = ("LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR")
_DAYPACK = """#!{python}
import sys
sys.path.insert(0, {source!r})
from daypack.__main__ import main
sys.exit(main())
"""

Found = TypeVar("Found")


class Machine:
    """`home` and `project` are folders; `environment` is what every program started here gets."""

    def __init__(self, root: Path, endpoint: ModelEndpoint) -> None:
        self.root = root
        self.endpoint = endpoint
        self.home, self.bin, temporary = (root / name for name in ("home", "bin", "tmp"))
        for folder in (self.home, self.bin, temporary):
            folder.mkdir(parents=True)
        self.daypack_home = self.home / ".daypack"
        self.environment: dict[str, str] = {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "HOME": str(self.home),
            "TMPDIR": str(temporary),
            "PATH": os.pathsep.join(
                (str(self.bin), str(AGENTS / "node_modules" / ".bin"), str(NODE.parent), os.defpath)
            ),
            "TERM": "dumb",
            "DAYPACK_HOME": str(self.daypack_home),
            "PYTHONPATH": str(_SOURCE),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{what}": "dev@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        self.put_daypack(_DAYPACK.format(python=sys.executable, source=str(_SOURCE)))
        self.project = self.repository("project")

    def put_daypack(self, program: str) -> None:
        """Make a script the `daypack` on PATH."""
        path = self.bin / "daypack"
        path.write_text(program, encoding="utf-8")
        path.chmod(0o755)

    def remove_daypack(self) -> None:
        (self.bin / "daypack").unlink()

    def repository(self, name: str) -> Path:
        """Create a repository with one commit."""
        folder = self.root / name
        folder.mkdir()
        (folder / "README.md").write_text(f"# {name}\n\nRetries are in retry.py.\n", encoding="utf-8")
        for module in ("daypack", "json", "msgspec", "sqlite3"):  # a project may have modules of any name
            (folder / f"{module}.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
        for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "First")):
            self.run("git", *command, cwd=folder)
        return folder

    def run(
        self, *command: str, cwd: Path | None = None, more: Mapping[str, str] = {}, stdin: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; its output is in the error when it fails."""
        done = subprocess.run(
            [self.find(command[0]), *command[1:]],
            cwd=cwd or self.project,
            env={**self.environment, **more},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert not check or done.returncode == 0, (
            f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    def find(self, command: str) -> str:
        """Return the path of a program."""
        program = shutil.which(command, path=self.environment["PATH"])
        assert program, f"{command} is not on PATH"
        return program

    def daypack(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run a command of daypack and return what it prints."""
        return self.run("daypack", *arguments, cwd=cwd).stdout

    def recorded(self, agent: str, session: str) -> list[Part]:
        """Return what daypack has of a session of an agent, as parts; nothing when it has none.

        What a hook added to a message, and is marked as such, is left out.
        """
        log = next(self.daypack_home.glob(f"home/*/agent/{agent}/session/{session}/messages.jsonl"), None)
        lines = log.read_text(encoding="utf-8").splitlines() if log else []
        return [part for line in lines for part in _parts(json.loads(line))]

    def wait_for(self, agent: str, session: str, text: str) -> list[Part]:
        """Wait until daypack has a text in a session and works on it no more, and return what it has."""

        def look() -> list[Part]:
            parts = [] if is_taken_in(session) else self.recorded(agent, session)
            return parts if any(text in part.text for part in parts) else []

        try:
            return eventually(look)
        except AssertionError:
            found = [part.text for part in self.recorded(agent, session)]
            failed = self.failures() or "no hook failed"
            raise AssertionError(f"{agent} {session} has {found}, but not {text!r}; {failed}") from None

    def sessions(self, agent: str) -> list[str]:
        """Return the names of the sessions that daypack has of an agent."""
        return sorted(path.name for path in self.daypack_home.glob(f"home/*/agent/{agent}/session/*"))

    def failures(self) -> str:
        """Return what hooks could not do."""
        return "".join(path.read_text(encoding="utf-8") for path in self.daypack_home.glob("home/*/hook.log"))

    def entries(self) -> list[str]:
        """Return the raw entries of the project's memory, oldest first."""
        rows = map(json.loads, self.daypack("memory", "export").splitlines())
        return [row["entry"]["raw_entry"] for row in rows if "entry" in row]

    def files(self, *, below: str = "", without: tuple[str, ...] = (".daypack",)) -> dict[str, bytes]:
        """Return the files of the home and their bytes; `without` names folders and files that do not count."""
        found = (path for path in (self.home / below).rglob("*") if path.is_file() and not path.is_symlink())
        names = ((str(path.relative_to(self.home)), path) for path in found)
        return {
            name: path.read_bytes()
            for name, path in sorted(names)
            if not any(name == each or name.startswith(f"{each}/") for each in without)
        }


def _parts(message: Mapping[str, Any]) -> Iterator[Part]:
    content = message.get("content")
    if isinstance(content, list):
        parts = cast(list[dict[str, Any]], content)
        content = [part for part in parts if part.get("meta", {}).get("writer") != "hook"]
    texts = read_texts(content)
    for text in ["\n".join(texts)] if message["role"] == "tool" else texts:
        yield Part(message["role"], text)
    for call in message.get("tool_calls", ()):
        yield Part("assistant", sorted_arguments(call["arguments"]), call["name"])


def is_taken_in(session: str) -> bool:
    """Return whether a process works on a session: after its messages it writes the memory, an index, a recap."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            if f"--take-in\0{session}".encode() in command.read_bytes():
                return True
    return False


def eventually(look: Callable[[], Found], *, within_seconds: float = 60) -> Found:
    """Look until there is something, and return it; what work in the background leaves."""
    end = time.monotonic() + within_seconds
    while not (found := look()):
        if time.monotonic() > end:
            raise AssertionError(f"nothing within {within_seconds} s")
        time.sleep(0.05)
    return found
