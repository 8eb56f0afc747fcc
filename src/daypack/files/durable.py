"""The only place that syncs: what was written is on the disk when a function here returns, on Linux and on macOS.

On macOS, fsync only hands the bytes to the drive, which may still lose them; F_FULLFSYNC makes the drive write them. A
file system that does not know it (a network mount) gets fsync. Errors of a sync are raised: nothing may be acknowledged
after one.
"""

import errno
import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite3 import Connection

# The command of fcntl that makes a drive write its cache; None where fsync does that.
FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_UNSUPPORTED = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.ENOSYS)


def sync(fd: int) -> None:
    """Flush an open file, or the entries of an open folder."""
    if FULL_SYNC is not None:
        try:
            fcntl.fcntl(fd, FULL_SYNC)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
        else:
            return
    os.fsync(fd)


def sync_data(fd: int) -> None:
    """Flush the bytes and the length of an open file, but not its times where that is cheaper."""
    if FULL_SYNC is None and hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        sync(fd)


def sync_path(path: str, flags: int = 0) -> None:
    """Flush a file or, with O_DIRECTORY, the entries of a folder."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        sync(fd)
    finally:
        with suppress(OSError):  # it was only read
            os.close(fd)


def sync_commits(connection: "Connection") -> None:
    """Let SQLite flush a file as `sync` does, where it would do less by default."""
    if FULL_SYNC is not None:
        for pragma in ("fullfsync", "checkpoint_fullfsync"):
            connection.execute(f"PRAGMA {pragma}=ON")
