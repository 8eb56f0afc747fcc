"""Repositories made by git itself, for tests of projects."""

import os
import subprocess
from pathlib import Path

_IDENTITY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, without the settings of this machine, and return what it prints."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_ALLOW_PROTOCOL": "file"}
    command = ["git", "-c", "init.defaultBranch=main", "-c", "advice.detachedHead=false", *arguments]
    environ = outside | settings | _IDENTITY
    return subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True, text=True).stdout.strip()


def new_repository(folder: Path) -> Path:
    """Create a repository with one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "README").write_text("text\n", encoding="utf-8")
    git(folder, "add", "README")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


def common_directory(folder: Path) -> str:
    """Return what git calls the common directory of a folder."""
    return os.path.realpath(folder / git(folder, "rev-parse", "--git-common-dir"))
