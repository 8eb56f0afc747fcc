"""Group commit: many appenders, one sync.

A writer appends under the session's lock, gives the lock back, and then waits here until its bytes are on
disk. Whoever finds no sync under way does it for all that was written so far. A failed sync is final: the
kernel may have dropped the bytes and would call the next sync a success, so the handle is poisoned.
"""

import os
import threading

from daypack.files.atomic import release


class Handle:
    """A log opened for appending, with what is known to be on disk."""

    def __init__(self, fd: int, inode: int) -> None:
        self.fd = fd
        self.inode = inode
        self.durable = 0  # a sync of this handle has proved every byte before this offset
        self.written = 0  # the end of the log, as of the last append or catch-up
        self.failure: OSError | None = None
        self._syncing = False
        self._changed = threading.Condition(threading.Lock())

    def commit(self, end: int) -> None:
        """Return when the bytes before `end` are on disk; raise the OSError of a sync that failed."""
        with self._changed:
            while True:
                if self.failure:
                    raise self.failure
                if self.durable >= end:
                    return
                if not self._syncing:
                    break
                self._changed.wait()
            self._syncing = True
            covered = self.written
        try:
            os.fdatasync(self.fd)
        except OSError as error:
            self.failure = error
            raise
        else:
            self.durable = max(self.durable, covered)
        finally:
            with self._changed:
                self._syncing = False
                self._changed.notify_all()

    def __del__(self) -> None:
        # Closed when the last thread that may still sync it has let go, never under its feet.
        release(self.fd)
