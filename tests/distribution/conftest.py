"""The wheel and the source distribution, built once for a test run, and an environment with the wheel."""

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

import pytest
from docs.example_runs import ROOT

WHEELS = ROOT / ".venv" / "wheels"  # of the dependencies: downloaded once


class Built(NamedTuple):
    """What `make dist` leaves."""

    wheel: Path
    sdist: Path


class Installed(NamedTuple):
    """An environment that has daypack and its dependencies, and nothing else."""

    folder: Path
    home: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def environment(self) -> dict[str, str]:
        """What a user has who has nothing: a home, and the programs of the system."""
        path = os.pathsep.join((str(self.folder / "bin"), "/usr/bin", "/bin"))
        return {"PATH": path, "HOME": str(self.home), "LC_ALL": "C.UTF-8", "COLUMNS": "100"}

    def run(self, *command: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment to its end."""
        return subprocess.run(
            (str(self.folder / "bin" / command[0]), *command[1:]),
            input=text,
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run have in common."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "distribution"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def built(shared: Path) -> Built:
    """The distributions, built from the working tree by the command of `make dist`."""
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = shared / "dist"
        if not folder.exists():
            build(shared / "building")
            (shared / "building").rename(folder)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def build(folder: Path, *options: str) -> None:
    """Build from the working tree into a folder."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), *options, str(ROOT)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def installed(built: Built, shared: Path) -> Installed:
    """An environment without pip into which the wheel was installed, with no compiler to be found."""
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = shared / "environment"
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=False)
            nothing = shared / "no programs"
            nothing.mkdir(exist_ok=True)
            _install(built.wheel, folder, str(nothing))
            (folder / "ready").touch()
    home = shared / "home"
    home.mkdir(exist_ok=True)
    return Installed(folder, home)


def _install(wheel: Path, folder: Path, path: str) -> None:
    assert shutil.which("cc", path=path) is None
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    onto = [*pip, "--python", str(folder / "bin" / "python"), "install", "--only-binary=:all:", "--no-index"]
    install = [*onto, "--find-links", str(WHEELS), str(wheel)]
    environment = {**os.environ, "PATH": path}
    if subprocess.run(install, capture_output=True, check=False, env=environment).returncode:
        download = [*pip, "download", "--quiet", "--only-binary=:all:", "--dest", str(WHEELS), str(wheel)]
        subprocess.run(download, capture_output=True, check=True)
        next(WHEELS.glob("daypack-*.whl")).unlink()
        done = subprocess.run(install, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
