"""A SQLite file shared by threads and processes: made whole, opened, checked, given back before a fork.

A file is made aside and then named, so that one that is empty or half written is not taken for a new one. It is
readable by its owner alone. What the file system refuses is StorageFailed, what is no file of this format Damaged.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import WeakSet

from daypack.errors import Damaged, StorageFailed, UnsafePath
from daypack.files.atomic import discard, make_folders, release, sync_folder

if TYPE_CHECKING:
    from sqlite3 import Connection

BUSY_SECONDS = 20
_FORK_SECONDS = 5.0  # at most this long a fork waits for the transactions of other threads
COMPANIONS = ("-wal", "-shm", "-journal")
_UNFINISHED = ".new"

# Result codes of SQLite (their low byte).
_ERROR, _BUSY, _LOCKED, _READONLY, _CORRUPT, _FULL, _MISMATCH, _NOTADB = 1, 5, 6, 8, 11, 13, 20, 26
_BROKEN = (_ERROR, _CORRUPT, _MISMATCH, _NOTADB)
_MOVED = 8 | 4 << 8  # SQLITE_READONLY_DBMOVED: somebody deleted or replaced the file
_HINTS = {
    _FULL: "free space; the {} is as it was before",
    _READONLY: "fix permissions, or move the file to a place that can be written",
    _BUSY: "another process is writing to the {}; try again",
    _LOCKED: "another process is writing to the {}; try again",
}

_databases: "WeakSet[Database]" = WeakSet()
_inherited: list["Connection"] = []  # of a parent process: neither to be used nor to be closed here

Answer = TypeVar("Answer")


class Format(NamedTuple):
    """What a file must be. `kept`: it is the truth, so a commit is on disk, and a file that is gone is damage."""

    what: str
    application: int
    version: int
    schema: str
    hint: str
    kept: bool = False
    pragmas: tuple[str, ...] = ()


class Moved(StorageFailed):
    """Somebody removed or replaced the file while it was open."""


class _Forks(threading.local):
    """Closes files before a fork: SQLite's locks do not survive one.

    A child that inherits a connection in the midst of a transaction finds its file locked for ever, so whoever forks
    waits for other threads to end theirs, and lets none begin before the fork is done.
    """

    def __init__(self) -> None:
        self.held: list[Database] = []

    def before(self) -> None:
        until = time.monotonic() + _FORK_SECONDS
        for database in list(_databases):
            if database.pause(max(0.0, until - time.monotonic())):
                self.held.append(database)

    def in_parent(self) -> None:
        while self.held:
            self.held.pop().go_on()

    def in_child(self) -> None:
        self.held.clear()
        for database in list(_databases):
            database.forget()


class Database:
    """One file; `run` gives a connection to whoever works with it, one thread at a time."""

    def __init__(self, path: str, form: Format) -> None:
        self.path = os.path.abspath(path)
        self.inode = 0  # of the file that was opened last
        self._form = form
        self._threads = threading.RLock()
        self._connection: Connection | None = None
        self._lock_depth = 0
        _databases.add(self)

    def run(self, operation: str, work: Callable[["Connection"], Answer], *, writing: bool = False) -> Answer:
        """Do `work` in one transaction; within it, further calls of the same thread take part in it."""
        with self._threads:
            connection = self.open(operation)
            with self.refusing(operation):
                if connection.in_transaction:  # whoever adds may ask in between
                    return work(connection)
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                try:
                    answer = work(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                return answer

    def alone(self, operation: str, work: Callable[["Connection"], Answer]) -> Answer:
        """Do `work` outside of a transaction: what SQLite refuses to do in one."""
        with self._threads:
            connection = self.open(operation)
            with self.refusing(operation):
                return work(connection)

    @contextmanager
    def refusing(self, operation: str) -> Generator[None]:
        """Turn what SQLite says into our errors."""
        import sqlite3  # noqa: PLC0415 — 5 ms for those who need a file only

        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self.refusal(operation, error) from error

    # Opening

    def open(self, operation: str) -> "Connection":
        """Return the connection; it is a new one if there was none, or the path names another file by now."""
        with self._threads:
            if self._connection is not None:
                with suppress(OSError):
                    if os.stat(self.path).st_ino == self.inode:
                        return self._connection
                self.close()
            make_folders(os.path.dirname(self.path), durable=self._form.kept)
            # One process at a time makes or replaces: nobody finds half of a replaced file.
            with self.folder_locked(), self.refusing(operation):
                try:
                    self._connection = self._connect(operation)
                except OSError as error:
                    raise self.refusal(operation, error) from error
            return self._connection

    def _connect(self, operation: str) -> "Connection":
        import sqlite3  # noqa: PLC0415

        if os.path.islink(self.path):
            hint = "replace the link by the file itself"
            raise UnsafePath("is a symbolic link", operation=operation, place=self.path, hint=hint)
        if os.path.exists(self.path):
            discard(self.path + _UNFINISHED)  # a second name, if whoever made it was killed before the end
        else:
            self._make(operation)
        self.inode = os.stat(self.path).st_ino
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._check(connection, operation)  # before anything is changed
            connection.execute("PRAGMA journal_mode=WAL")
            # NORMAL: a power cut may take the newest transactions, never the file.
            connection.execute(f"PRAGMA synchronous={'FULL' if self._form.kept else 'NORMAL'}")
            for pragma in self._form.pragmas:
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _make(self, operation: str) -> None:
        """Make the file aside, with its tables, then give it its name."""
        import sqlite3  # noqa: PLC0415

        if self._form.kept and (self.inode or os.path.exists(f"{self.path}-wal")):
            raise self._damage("is gone", operation)
        fresh = self.path + _UNFINISHED
        for ending in ("", *COMPANIONS):
            discard(fresh + ending)
        # Made here because SQLite would let others read it.
        release(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(fresh, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=MEMORY")
            connection.execute(f"PRAGMA synchronous={'FULL' if self._form.kept else 'OFF'}")
            mark = f"PRAGMA application_id={self._form.application};PRAGMA user_version={self._form.version}"
            connection.executescript(f"BEGIN;{mark};{self._form.schema};COMMIT")
        finally:
            connection.close()
        for ending in COMPANIONS:
            discard(self.path + ending)  # of a file that was deleted: SQLite would read them as this one's
        with suppress(FileExistsError):  # where there are no locks, another process may have been faster
            os.link(fresh, self.path)
        os.unlink(fresh)
        if self._form.kept:
            sync_folder(os.path.dirname(self.path))

    def _check(self, connection: "Connection", operation: str) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != self._form.application:
            raise self._damage(f"is no {self._form.what} of daypack", operation)
        if version != self._form.version:
            raise self._damage(f"is of format {version}; this version of daypack has {self._form.version}", operation)

    @contextmanager
    def folder_locked(self) -> Generator[None]:
        """Keep other processes from making or replacing the file; held by this thread already: goes on."""
        with self._threads:
            fd = -1
            self._lock_depth += 1
            try:
                if self._lock_depth == 1:
                    with suppress(OSError):  # a file system without locks: as good as it gets
                        fd = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                        fcntl.flock(fd, fcntl.LOCK_EX)
                yield
            finally:
                self._lock_depth -= 1
                if fd >= 0:
                    release(fd)

    # What goes wrong

    def refusal(self, operation: str, error: Exception) -> StorageFailed | Damaged:
        """Return the error for what SQLite or the file system said."""
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        code = 0 if isinstance(error, OSError) else getattr(error, "sqlite_errorcode", _ERROR)
        if code == _MOVED:
            return Moved(problem, operation=operation, place=self.path, hint="try again")
        if code & 0xFF in _BROKEN:
            return self._damage(problem, operation)
        hint = _HINTS.get(code & 0xFF, f"check permissions and the disk; {self._form.hint}").format(self._form.what)
        return StorageFailed(problem, operation=operation, place=self.path, hint=hint)

    def _damage(self, problem: str, operation: str) -> Damaged:
        return Damaged(problem, operation=operation, place=self.path, hint=self._form.hint)

    # Closing

    def close(self) -> None:
        """Close the file; `run` opens it again. In a transaction of this thread it stays open."""
        with self._threads:
            connection = self._connection
            if connection is not None and not connection.in_transaction:
                self._connection = None
                connection.close()

    def pause(self, seconds: float) -> bool:
        """Close the file and keep other threads from it until `go_on`; False when one of them takes longer."""
        if not self._threads.acquire(timeout=seconds):
            return False
        self.close()
        return True

    def go_on(self) -> None:
        """End a pause."""
        self._threads.release()

    def forget(self) -> None:
        """In a forked child: leave an open connection to the parent."""
        self._threads = threading.RLock()
        self._lock_depth = 0
        if self._connection is not None:
            _inherited.append(self._connection)
            self._connection = None


_forks = _Forks()
os.register_at_fork(before=_forks.before, after_in_parent=_forks.in_parent, after_in_child=_forks.in_child)
