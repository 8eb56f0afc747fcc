"""Whether a path may name another file than before, asked on every append and every read.

The folder is asked, not the file: its time changes with every name that comes, goes or is replaced in it. A stat of
the file itself is dear on recent kernels, because it makes the next write stamp the inode afresh (8 µs here). A
folder that is moved is followed to its new place.
"""

import os
import time

from daypack.files.atomic import release

_SETTLED_SECONDS = 0.1  # longer than a tick of any kernel's clock


class Watch:
    """Remembers a folder's time."""

    def __init__(self, path: str) -> None:
        self._folder = os.path.dirname(path)
        self._fd = -1
        self._seen = 0

    def unchanged(self) -> bool:
        """Say whether no name in the folder has changed since the last time; when in doubt, it has."""
        if self._fd < 0:
            self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        status = os.fstat(self._fd)
        if status.st_mtime_ns == self._seen:
            return True
        # Another change within the same tick would leave the time as it is: a young time is not remembered.
        self._seen = status.st_mtime_ns if time.time() - status.st_mtime > _SETTLED_SECONDS else 0
        return False

    def close(self) -> None:
        """Forget the folder; the next question opens it anew."""
        fd, self._fd, self._seen = self._fd, -1, 0
        if fd >= 0:
            release(fd)
