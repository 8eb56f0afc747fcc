"""The exclusive lock of a session: `flock` on its message log, for threads and processes alike."""

import fcntl
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from weakref import WeakSet

from daypack.errors import LockUnavailable
from daypack.files.atomic import refusal, release
from daypack.files.watch import Watch


class Forks:
    """Counts the forks this process came through: what a parent opened is not its child's."""

    def __init__(self) -> None:
        self.count = 0
        self.locks: WeakSet[Lock] = WeakSet()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.count += 1
        for lock in list(self.locks):
            lock.forget()


forks = Forks()


class ThreadLock:
    """A lock for the threads of one process; a forked child gets its own, whoever held the parent's."""

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._lock = threading.RLock()
        self._forks = forks.count

    def __enter__(self) -> None:
        if self._forks != forks.count:
            self._renew()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        if self._forks == forks.count:  # else this very thread forked: the child has nothing to give back
            self._lock.release()


class Lock:
    """Held with `with`; the thread that holds it may take it again.

    The file is opened anew when the path names another one than the one locked (the log was replaced), and
    after a fork, because a child would share its parent's lock.
    """

    def __init__(self, path: str, *, flock: bool = True) -> None:
        self.path = path
        self._inode = 0
        self.checks = 0  # grows when names in the folder may have changed
        self._watch = Watch(path)
        self._flock = flock
        self._how = fcntl.LOCK_EX
        self._fd = -1
        self._depth = 0
        self._owner = 0
        self._threads = threading.RLock()
        forks.locks.add(self)

    def forget(self) -> None:
        """In a forked child: leave the lock to the parent, whose thread may hold it and does not exist here."""
        self._threads = threading.RLock()
        self._depth = 0
        self._close()

    @contextmanager
    def without_waiting(self) -> Generator[None]:
        """Hold it as `with lock` does, but raise LockUnavailable where another holds it."""
        with self._threads:
            self._how |= fcntl.LOCK_NB
            try:
                self.__enter__()
            finally:
                self._how = fcntl.LOCK_EX
        try:
            yield
        finally:
            self.__exit__()

    def __enter__(self) -> "Lock":
        self._threads.acquire()
        if self._depth == 0:
            try:
                self._take()
            except BaseException:
                self._close()  # gives a lock back that was taken before an interrupt
                self._threads.release()
                raise
        self._depth += 1
        self._owner = threading.get_ident()
        return self

    @property
    def held(self) -> bool:
        """Whether the calling thread holds it."""
        return self._depth > 0 and self._owner == threading.get_ident()

    def exclude_threads(self) -> "threading.RLock":
        """Keep the other threads of this process out, and no other process."""
        return self._threads

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._flock:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            except OSError:
                self._close()  # closing gives the lock back whatever the file system says
        self._threads.release()

    def _take(self) -> None:
        while True:
            if self._fd < 0:
                self._open()
            try:
                if self._flock:
                    fcntl.flock(self._fd, self._how)
                if self._watch.unchanged():
                    return
                self.checks += 1
                named = os.stat(self.path).st_ino
            except FileNotFoundError as error:
                self._close()
                raise refusal(self.path, error, "open for append") from error
            except OSError as error:
                self._close()
                raise LockUnavailable(
                    error.strerror or str(error),
                    operation="lock",
                    place=self.path,
                    hint="on a file system without locks, with one writing process, set locking=single_writer",
                ) from error
            if named == self._inode:
                return
            self._close()

    def _open(self) -> None:
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            self._inode = os.fstat(self._fd).st_ino
        except OSError as error:
            raise refusal(self.path, error, "open for append") from error

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        self._watch.close()
        if fd >= 0:
            release(fd)

    def close(self) -> None:
        """Close the file; the lock can still be taken and opens it anew."""
        with self._threads:
            if self._depth == 0:
                self._close()
