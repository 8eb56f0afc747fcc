"""The exclusive lock of a session: `flock` on its message log, for threads and processes alike."""

import fcntl
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Protocol

from daypack.errors import LockUnavailable, StorageFailed
from daypack.files import rewrite
from daypack.files.atomic import make_folders, refusal, release
from daypack.forks import forks

_SETTLED_SECONDS = 0.1  # longer than a clock tick of any kernel
_COARSE_SECONDS = 2.1  # the same where times are stored in whole seconds, or in two: HFS+, exFAT
_MAX_PAUSE_SECONDS = 0.2  # between two attempts at a lock


class Watch:
    """Detects whether a path may name another file than before; asked on every append and read.

    It checks the modification time of the folder, which changes with every created, renamed or deleted entry. A stat of
    the file is slow on recent kernels, because it makes the next write update the inode (8 µs). Moved folders are
    followed.
    """

    def __init__(self, path: str) -> None:
        self._folder = os.path.dirname(path)
        self._fd = -1
        self._mtime = 0

    def unchanged(self) -> bool:
        """Return True if no entry of the folder has changed since the last call; False if in doubt."""
        if self._fd < 0:
            self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        status = os.fstat(self._fd)
        if status.st_mtime_ns == self._mtime:
            return True
        # Another change within the same clock tick would not change the time, so a recent time is not stored.
        settled = _SETTLED_SECONDS if status.st_mtime_ns % 1_000_000_000 else _COARSE_SECONDS
        self._mtime = status.st_mtime_ns if time.time() - status.st_mtime > settled else 0
        return False

    def close(self) -> None:
        """Close the folder; the next call opens it again."""
        fd, self._fd, self._mtime = self._fd, -1, 0
        if fd >= 0:
            release(fd)


class Remade(Protocol):
    """A folder that may be deleted while it is in use, because all of it can be made again."""

    def make(self) -> None:
        """Create the files that are missing, empty."""
        ...

    def fill(self) -> None:
        """Bring files up to date that are not the ones from before; called with the lock."""
        ...


class Lock:
    """A reentrant lock for `with`.

    The file is reopened if the path names another file (the log was replaced), and after a fork, because a child would
    share its parent's lock. In a folder that is `remade` a missing file is created. The inode is compared each time the
    lock is taken, so a process that removes the folder under the lock excludes those that take it afterwards.
    """

    def __init__(self, path: str, *, flock: bool = True) -> None:
        self.path = path
        self._staging = os.path.join(os.path.dirname(path), rewrite.STAGING)
        self._inode = 0
        self.checks = 0  # incremented when entries of the folder may have changed
        self._watch = Watch(path)
        self._flock = flock
        self.remade: Remade | None = None
        self._replaced = False  # the file is not the one that was locked before
        self._how = fcntl.LOCK_EX
        self._fd = -1
        self._depth = 0
        self._owner = 0
        self._threads = threading.RLock()
        forks.watch(self)

    def forget(self) -> None:
        """In a forked child: drop the lock, which a thread of the parent may hold."""
        self._threads = threading.RLock()
        self._depth = 0
        self._close()

    @contextmanager
    def without_waiting(self) -> Generator[None]:
        """Hold it as `with lock` does, but raise LockUnavailable instead of waiting."""
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
                self._close()  # releases a lock taken before an interrupt
                self._threads.release()
                raise
        self._depth += 1
        self._owner = threading.get_ident()
        if self._replaced and self.remade is not None:
            self._fill(self.remade)
        return self

    def _fill(self, folder: Remade) -> None:
        self._replaced = False
        try:
            folder.fill()
        except BaseException:
            self._replaced = True  # the next one who takes it tries again
            self.__exit__()
            raise

    def follow(self) -> None:
        """Lock the file that the path names now, if it is another one; the caller holds the lock, and fills it."""
        self._take()
        self._replaced = False

    @property
    def is_current(self) -> bool:
        """True if the path names the file that was locked last."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    @property
    def held(self) -> bool:
        """True if the calling thread holds it."""
        return self._depth > 0 and self._owner == threading.get_ident()

    @property
    def nested(self) -> bool:
        """True if the calling thread has taken it more than once."""
        return self._depth > 1 and self.held

    def exclude_threads(self) -> "threading.RLock":
        """Return the lock that excludes other threads of this process, but no other process."""
        return self._threads

    def __exit__(self, *_: object) -> None:
        if not self._depth:
            return  # this thread forked while it held the lock: the child has nothing to release
        self._depth -= 1
        if self._depth == 0 and self._flock and self._fd >= 0:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            except OSError:
                self._close()  # closing always releases the lock
        self._threads.release()

    def _take(self) -> None:
        while True:
            try:
                if self._fd < 0:
                    self._open()
                if self._flock:
                    fcntl.flock(self._fd, self._how)
                # A folder that was moved away, to be removed, is unchanged.
                if self._watch.unchanged() and (self.remade is None or os.stat(self.path).st_ino == self._inode):
                    return
                self.checks += 1
                if os.path.lexists(self._staging):  # left by a killed process, which had this lock
                    rewrite.complete(os.path.dirname(self.path))
                named = os.stat(self.path).st_ino
            except FileNotFoundError as error:
                self._close()
                if self.remade is None or self._how & fcntl.LOCK_NB:
                    raise refusal(self.path, error, "open for append") from error
                self._replaced = True
                self.remade.make()
                continue
            except OSError as error:
                self._close()
                raise LockUnavailable(
                    error.strerror or str(error),
                    operation="lock",
                    place=self.path,
                    hint="on a file system without locks and with one writing process, set locking=single_writer",
                ) from error
            if named == self._inode:
                return
            self._replaced = True
            self._close()

    def _open(self) -> None:
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            self._inode = os.fstat(self._fd).st_ino
        except FileNotFoundError:
            raise
        except OSError as error:
            raise refusal(self.path, error, "open for append") from error

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        self._watch.close()
        if fd >= 0:
            release(fd)

    def close(self) -> None:
        """Close the file; taking the lock opens it again."""
        with self._threads:
            if self._depth == 0:
                self._close()


class LockableFile:
    """An open file for `flock`. A forked child closes it at once, or it would hold the lock as long as it lives."""

    def __init__(self) -> None:
        self.fd = -1
        forks.watch(self)

    def forget(self) -> None:
        """In a forked child: leave the lock to the parent."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            release(fd)

    def close(self) -> None:
        """Release the lock and close the file."""
        if self.fd >= 0:
            with suppress(OSError):  # explicit: a child that was just forked may not have closed it yet
                fcntl.flock(self.fd, fcntl.LOCK_UN)
        self.forget()


@contextmanager
def held_after_waiting(path: str, seconds: float, what: str) -> Generator[None]:
    """Hold a lock on a file of its own; raise LockUnavailable if others hold it for so long.

    Where there are no locks, everyone holds it.
    """
    end, pause = time.monotonic() + seconds, 0.005
    while True:
        with held_without_waiting(path) as held:
            if held:
                yield
                return
        if time.monotonic() >= end:
            problem = f"{what} is still running after {seconds:,.0f} s"
            raise LockUnavailable(problem, operation="lock", place=path, hint="try again when it has ended")
        time.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)


@contextmanager
def held_without_waiting(path: str) -> Generator[bool]:
    """Hold a lock on a file of its own; yield False if another thread or process holds it.

    Where there are no locks, everyone holds it.
    """
    file = LockableFile()
    held = True
    try:
        try:
            make_folders(os.path.dirname(path), durable=False)
            file.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
            fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = False
        except (OSError, StorageFailed):
            pass
        yield held
    finally:
        file.close()
