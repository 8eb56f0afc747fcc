"""The real program `daypack hook`, started as a coding agent starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import daypack

SOURCE = str(Path(daypack.__file__).parents[1])


class Answered(NamedTuple):
    """What a hook printed, how it ended, and the lines of its log."""

    code: int
    output: bytes
    errors: bytes
    log: list[str]

    @property
    def fields(self) -> dict[str, Any]:
        """Standard output as JSON."""
        return json.loads(self.output)


class HookProgram:
    """Runs hooks in one home; `variables` are those of the host."""

    def __init__(self, home: str, **variables: str) -> None:
        self.home = home
        self.variables = variables

    @property
    def folder(self) -> Path:
        """The user's folder."""
        return Path(self.home, "home", str(os.getuid()))

    @property
    def log(self) -> list[str]:
        """The lines of hook.log."""
        path = self.folder / "hook.log"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the environment of a hook, without what the one of the tests has."""
        known = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        return {**known, "PYTHONPATH": SOURCE, "DAYPACK_HOME": self.home, **self.variables, **variables}

    def __call__(self, *arguments: str, data: "bytes | dict[str, Any]" = b"", **variables: str) -> Answered:
        """Run one hook with this input to its end."""
        before = len(self.log)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "daypack", "hook", *arguments],
            input=data if isinstance(data, bytes) else json.dumps(data).encode(),
            capture_output=True,
            env=self.environment(**variables),
            timeout=60,
            check=False,
        )
        return Answered(done.returncode, done.stdout, done.stderr, self.log[before:])


def event(name: str, **fields: object) -> dict[str, Any]:
    """Return the input of a hook."""
    return {"hook_event_name": name, "session_id": "s-1", "cwd": "/", **fields}
