"""A SQLite file that can be read but not written: on a read-only mount, or in a folder of another user.

SQLite reads a file in WAL mode only if it can create files beside it. Where it cannot, the file is opened as it is if
nothing is in its WAL, and as a private copy, which has no name, otherwise.
"""

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlite3 import Connection

_COPIES = 5  # tries, while another process writes

_ABSENT = (0, 0, 0)


class State(NamedTuple):
    """The file and its WAL: inode, time of modification, size. `shared`: SQLite sees what other processes write."""

    file: tuple[int, int, int]
    wal: tuple[int, int, int]
    shared: bool


def is_read_only(path: str) -> bool:
    """Return True if this process can write neither a file nor others beside it."""
    if os.path.exists(path) and not os.access(path, os.W_OK):
        return True
    folder = os.path.dirname(path)
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return not os.access(folder, os.W_OK)


def state_of(path: str) -> State:
    """Return what changes when another process, for which it is writable, writes to the file."""
    wal = _status(f"{path}-wal")
    return State(_status(path), wal, wal[2] > 0 and os.path.exists(f"{path}-shm"))


def is_same(seen: State, now: State) -> bool:
    """Return False if a connection that was opened in one state must be opened again."""
    return seen.file[0] == now.file[0] if seen.shared and now.shared else seen == now


def connect(path: str, *, seconds: float) -> "Connection":
    """Open an existing file for reading; a WAL that no process has open is applied to a private copy."""
    uri = f"{_uri(path)}?mode=ro"
    if is_read_only(path):
        state = state_of(path)
        if state.wal[2] and not state.shared:
            return copy(path)
        # With both files SQLite sees the commits and locks of other processes; with neither there is nothing to see.
        uri += "" if state.shared else "&immutable=1"
    connection = _open(uri, seconds)
    connection.execute("PRAGMA query_only=ON")
    return connection


def copy(path: str) -> "Connection":
    """Open a private copy, which can be written; it is gone when it is closed."""
    import shutil  # noqa: PLC0415 — 10 ms that only this needs
    import tempfile  # noqa: PLC0415

    folder = tempfile.mkdtemp(prefix="daypack-")
    try:
        target = os.path.join(folder, "copy.sqlite")
        for _ in range(_COPIES):
            state = state_of(path)
            shutil.copyfile(path, target)
            if os.path.exists(f"{path}-wal"):
                shutil.copyfile(f"{path}-wal", f"{target}-wal")
            if state_of(path) == state:
                break
        connection = _open(_uri(target), 0)
        try:
            connection.execute("PRAGMA journal_mode=MEMORY")  # applies the WAL; from here on it is one file
            connection.execute("PRAGMA synchronous=OFF")
        except BaseException:
            connection.close()
            raise
        return connection
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def create(script: str) -> "Connection":
    """Return an empty database in memory."""
    connection = _open(":memory:", 0)
    connection.executescript(script)
    return connection


def _open(name: str, seconds: float) -> "Connection":
    import sqlite3  # noqa: PLC0415 — 5 ms

    return sqlite3.connect(name, timeout=seconds, isolation_level=None, check_same_thread=False, uri=True)


def _uri(path: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 — 3 ms

    return f"file:{quote(path)}"


def _status(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return _ABSENT
    return status.st_ino, status.st_mtime_ns, status.st_size
