"""Installs Hermes Agent, which tests/agents/test_hermes.py drives, into an environment of its own, by pip.

python -m tools.hermes .venv/hermes    about 230 MB, half a minute; ends at once when it is there

When pip cannot fetch it, it says so and exits 0: its tests are skipped.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

VERSION = "0.19.0"
_PATIENCE_SECONDS = 600


def python(folder: Path) -> Path:
    """Return the interpreter of the environment."""
    return folder / "bin" / "python"


def is_installed(folder: Path) -> bool:
    """Return True if this version is there, whole."""
    return (folder / f"ready-{VERSION}").exists() and python(folder).exists()


def install(folder: Path) -> str:
    """Install it and return why that failed; nothing is fetched when it is there."""
    if is_installed(folder):
        return ""
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python(folder)), "-m", "pip", "install", "--quiet", f"hermes-agent=={VERSION}"],
    )
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode:
            return done.stderr.strip() or f"{step[0]} ended with status {done.returncode}"
    (folder / f"ready-{VERSION}").touch()
    return ""


def main(arguments: Sequence[str] = tuple(sys.argv[1:])) -> int:
    """Install into the given folder."""
    folder = Path(*arguments)
    if not is_installed(folder):
        print(f"installing Hermes Agent {VERSION} into {folder}, about half a minute")
    if problem := install(folder):
        print(f"not installed: Hermes Agent; its tests are skipped. pip said:\n{problem}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
