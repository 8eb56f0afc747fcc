"""A SQLite file shared by threads and processes: created atomically, checked when opened, closed before a fork.

A file is created under a temporary name, so that an empty or half-written file is never mistaken for a new one. Only
its owner can read it. Errors of the file system are StorageFailed, a file of another format is Damaged.

Where nothing can be written, a file is read as it is, and a missing one is empty. Writes are refused; those to a
derived file go to a private copy.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from math import ceil
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import WeakSet

from daypack.errors import Damaged, StorageFailed, UnsafePath, WriteFailed
from daypack.files import read_only
from daypack.files.atomic import READ_ONLY_HINT, discard, make_folders, release, sync_folder
from daypack.files.durable import sync_commits
from daypack.files.lock import LockableFile
from daypack.types.deadline import Deadline

if TYPE_CHECKING:
    from sqlite3 import Connection

BUSY_SECONDS = 20
_FORK_SECONDS = 5.0  # a fork waits at most so long for transactions of other threads
_CHANGES_FOLLOWED = 5  # by a read, of a file that it cannot lock
COMPANIONS = ("-wal", "-shm", "-journal")
_UNFINISHED = ".new"

# Result codes of SQLite (their low byte).
_ERROR, _BUSY, _LOCKED, _READONLY, _CORRUPT, _FULL, _MISMATCH, _NOTADB = 1, 5, 6, 8, 11, 13, 20, 26
_BROKEN = (_ERROR, _CORRUPT, _MISMATCH, _NOTADB)
# A damaged length asks for more memory than there is; a message about a damaged table is no text.
_FROM_DAMAGE = (MemoryError, UnicodeDecodeError)
_MOVED = 8 | 4 << 8  # SQLITE_READONLY_DBMOVED: the file was deleted or replaced
_HINTS = {
    _FULL: "free space; the {} is unchanged",
    _READONLY: "fix permissions, or move the file to a writable folder",
    _BUSY: "another process is writing to the {}; try again",
    _LOCKED: "another process is writing to the {}; try again",
}

_databases: "WeakSet[Database]" = WeakSet()
_inherited: list["Connection"] = []  # of a parent process: must be neither used nor closed here

Answer = TypeVar("Answer")


class Format(NamedTuple):
    """The format of a file. `kept`: it is not derived, so commits are synced and a missing file is damage.

    `upgrades` bring a file of an earlier version to this one, each within one transaction.
    """

    what: str
    application: int
    version: int
    schema: str
    hint: str
    kept: bool = False
    pragmas: tuple[str, ...] = ()
    upgrades: Mapping[int, Callable[["Connection"], object]] = {}


class Moved(StorageFailed):
    """The file was deleted or replaced while it was open."""


class _Forks(threading.local):
    """Closes files before a fork, because SQLite's locks do not survive it.

    A child that inherited a connection within a transaction would find its file locked forever. So the forking thread
    waits for the transactions of other threads, and blocks new ones until the fork is done.
    """

    def __init__(self) -> None:
        self.held: list[Database] = []

    def before(self) -> None:
        until = time.monotonic() + _FORK_SECONDS
        for database in self._opened():
            if database.pause(max(0.0, until - time.monotonic())):
                self.held.append(database)

    @staticmethod
    def _opened() -> "list[Database]":
        while True:
            try:
                return list(_databases)
            except RuntimeError:  # another thread opened one meanwhile
                continue

    def in_parent(self) -> None:
        while self.held:
            self.held.pop().resume()

    def in_child(self) -> None:
        self.held.clear()
        for database in list(_databases):
            database.forget()


class Database:
    """One file, used by one thread at a time."""

    def __init__(self, path: str, form: Format) -> None:
        self.path = os.path.abspath(path)
        self.inode = 0  # of the file that was opened last
        self.times_opened = 0  # unlike an inode, which a new file may get again, it tells files apart
        self._form = form
        self._threads = threading.RLock()
        self._connection: Connection | None = None
        self._lock_depth = 0
        self._seen: read_only.State | None = None  # of a file opened where nothing can be written
        self._private = False  # the connection is to a copy or to memory
        _databases.add(self)

    def run(self, operation: str, work: Callable[["Connection"], Answer], *, writing: bool = False) -> Answer:
        """Run `work` in one transaction; nested calls of the same thread join it."""
        with self._threads:
            for _ in range(_CHANGES_FOLLOWED):
                connection = self.open(operation, writing=writing)
                if connection.in_transaction:  # a nested call
                    with self.refusing(operation):
                        return work(connection)
                try:
                    answer = self._transact(connection, operation, work, writing=writing)
                except Damaged:
                    if self._is_current():
                        raise
                else:
                    if writing or self._is_current():
                        return answer
            hint = "another process writes to the file; try again"
            raise StorageFailed("it changes while it is read", operation=operation, place=self.path, hint=hint)

    def _transact(
        self, connection: "Connection", operation: str, work: Callable[["Connection"], Answer], *, writing: bool
    ) -> Answer:
        with self.refusing(operation):
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            changes = connection.total_changes
            try:
                answer = work(connection)
                if connection.total_changes == changes and not writing:
                    connection.execute("ROLLBACK")  # after a damaged page, a COMMIT of reads fails
                else:
                    connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return answer

    def check_writable(self, operation: str) -> None:
        """Raise WriteFailed if the file could not be opened for writing now; one that is open may still be written."""
        if read_only.is_read_only(self.path):
            raise self._cannot_write(operation)

    def alone(self, operation: str, work: Callable[["Connection"], Answer]) -> Answer:
        """Run `work`, which writes, outside a transaction, for statements that SQLite refuses in one."""
        with self._threads:
            connection = self.open(operation, writing=True)
            with self.refusing(operation):
                return work(connection)

    @contextmanager
    def waiting(self, operation: str, deadline: Deadline) -> Generator[None]:
        """Wait for other processes until the deadline only, and in no case longer than otherwise."""
        with self._threads:
            connection = self.open(operation)
            limit = min(BUSY_SECONDS, deadline.remaining())
            # Rounded up: after a refusal, callers ask whether the deadline has passed.
            connection.execute(f"PRAGMA busy_timeout={ceil(limit * 1000)}")
            try:
                yield
            finally:
                if self._connection is connection:  # not closed meanwhile
                    connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")

    @contextmanager
    def refusing(self, operation: str) -> Generator[None]:
        """Turn SQLite's errors into ours."""
        import sqlite3  # noqa: PLC0415 — 5 ms

        try:
            yield
        except (sqlite3.Error, *_FROM_DAMAGE) as error:
            raise self.refusal(operation, error) from error

    # Opening

    def open(self, operation: str, *, writing: bool = False) -> "Connection":
        """Return the connection; it is reopened if the path now names another file."""
        with self._threads:
            if self._seen is not None or (self._connection is None and read_only.is_read_only(self.path)):
                return self._open_read_only(operation, writing=writing)
            if self._connection is not None:
                with suppress(OSError):
                    if os.stat(self.path).st_ino == self.inode:
                        return self._connection
                self.close()
            make_folders(os.path.dirname(self.path), durable=self._form.kept)
            # One process at a time creates or replaces the file, so that no process sees half of it.
            with self.folder_locked(), self.refusing(operation):
                try:
                    self._connection = self._connect(operation)
                except OSError as error:
                    raise self.refusal(operation, error) from error
            return self._connection

    def _open_read_only(self, operation: str, *, writing: bool) -> "Connection":
        if self._connection is not None and self._connection.in_transaction:
            return self._connection
        if (writing and not self._private) or not self._is_current():
            self.close()
            if not read_only.is_read_only(self.path):
                return self.open(operation, writing=writing)
        if writing and self._form.kept:
            raise self._cannot_write(operation)
        if self._connection is not None and (self._private or not writing):
            return self._connection
        self.close()
        with self.refusing(operation):
            try:
                return self._connect_read_only(operation, copied=writing)
            except OSError as error:
                raise self.refusal(operation, error) from error

    def _connect_read_only(self, operation: str, *, copied: bool) -> "Connection":
        self._refuse_link(operation)
        self._seen = read_only.state_of(self.path)
        if not os.path.exists(self.path):
            if self._form.kept and (self.inode or os.path.exists(f"{self.path}-wal")):
                raise self._damage("the file is missing", operation)
            return self.use_empty()
        self.inode = os.stat(self.path).st_ino
        self.times_opened += 1
        connection = read_only.copy(self.path) if copied else read_only.connect(self.path, seconds=BUSY_SECONDS)
        try:
            self._check(connection, operation)
            if connection.execute("PRAGMA user_version").fetchone()[0] != self._form.version and not copied:
                connection.close()
                copied, connection = True, read_only.copy(self.path)
            for pragma in self._form.pragmas:
                connection.execute(f"PRAGMA {pragma}")
            self._upgrade(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._private = connection, copied
        return connection

    def use_empty(self) -> "Connection":
        """Where nothing can be written: use an empty database in memory instead of the file, until that changes."""
        self.close()
        self._seen = read_only.state_of(self.path)
        self._connection = connection = read_only.create(self._script)
        self._private = True
        return connection

    def _is_current(self) -> bool:
        """Return False if a file that this process cannot write was changed by another since it was opened."""
        return self._seen is None or read_only.is_same(self._seen, read_only.state_of(self.path))

    def _refuse_link(self, operation: str) -> None:
        if os.path.islink(self.path):
            hint = "replace the link by the file itself"
            raise UnsafePath("is a symbolic link", operation=operation, place=self.path, hint=hint)

    def _connect(self, operation: str) -> "Connection":
        import sqlite3  # noqa: PLC0415

        self._refuse_link(operation)
        if os.path.exists(self.path):
            discard(self.path + _UNFINISHED)  # left over if its creator was killed
        else:
            self._make(operation)
        self.inode = os.stat(self.path).st_ino
        self.times_opened += 1
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._check(connection, operation)  # before anything is changed
            connection.execute("PRAGMA journal_mode=WAL")
            # NORMAL: a power failure may lose the newest transactions, never the file.
            connection.execute(f"PRAGMA synchronous={'FULL' if self._form.kept else 'NORMAL'}")
            sync_commits(connection)
            for pragma in self._form.pragmas:
                connection.execute(f"PRAGMA {pragma}")
            self._upgrade(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _upgrade(self, connection: "Connection") -> None:
        """Bring a file of an earlier version to this one, whole or not at all."""
        if connection.execute("PRAGMA user_version").fetchone()[0] == self._form.version:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]  # another process may have been faster
            if version in self._form.upgrades:
                self._form.upgrades[version](connection)
                connection.execute(f"PRAGMA user_version={self._form.version}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _make(self, operation: str) -> None:
        """Create the file with its tables under a temporary name, then rename it."""
        import sqlite3  # noqa: PLC0415

        if self._form.kept and (self.inode or os.path.exists(f"{self.path}-wal")):
            raise self._damage("the file is missing", operation)
        fresh = self.path + _UNFINISHED
        for ending in ("", *COMPANIONS):
            discard(fresh + ending)
        # Created here because SQLite would make it readable for others.
        release(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(fresh, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=MEMORY")
            connection.execute(f"PRAGMA synchronous={'FULL' if self._form.kept else 'OFF'}")
            sync_commits(connection)
            connection.executescript(self._script)
        finally:
            connection.close()
        for ending in COMPANIONS:
            discard(self.path + ending)  # of a deleted file: SQLite would apply them to this one
        with suppress(FileExistsError):  # without locks, another process may have been faster
            os.link(fresh, self.path)
        os.unlink(fresh)
        if self._form.kept:
            sync_folder(os.path.dirname(self.path))

    @property
    def _script(self) -> str:
        mark = f"PRAGMA application_id={self._form.application};PRAGMA user_version={self._form.version}"
        return f"BEGIN;{mark};{self._form.schema};COMMIT"

    def _check(self, connection: "Connection", operation: str) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != self._form.application:
            raise self._damage(f"not a daypack {self._form.what}", operation)
        if version != self._form.version and version not in self._form.upgrades:
            raise self._damage(f"format {version}; this version of daypack reads {self._form.version}", operation)

    @contextmanager
    def folder_locked(self) -> Generator[None]:
        """Keep other processes from creating or replacing the file; reentrant."""
        with self._threads:
            folder = LockableFile()
            self._lock_depth += 1
            try:
                if self._lock_depth == 1:
                    with suppress(OSError):  # a file system without locks
                        folder.fd = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                        fcntl.flock(folder.fd, fcntl.LOCK_EX)
                yield
            finally:
                self._lock_depth -= 1
                folder.close()

    # Errors

    def refusal(self, operation: str, error: Exception) -> StorageFailed | Damaged:
        """Return our error for an error of SQLite or the file system."""
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or "out of memory"
        code = 0 if isinstance(error, OSError) else _code_of(error)
        if code == _MOVED:
            return Moved(problem, operation=operation, place=self.path, hint="try again")
        if code & 0xFF in _BROKEN:
            return self._damage(problem, operation)
        hint = _HINTS.get(code & 0xFF, f"check permissions and the disk; {self._form.hint}").format(self._form.what)
        kind = WriteFailed if code & 0xFF in (_READONLY, _FULL) else StorageFailed
        return kind(problem, operation=operation, place=self.path, hint=hint)

    def _cannot_write(self, operation: str) -> WriteFailed:
        problem = f"the {self._form.what} cannot be written here"
        return WriteFailed(problem, operation=operation, place=self.path, hint=READ_ONLY_HINT)

    def _damage(self, problem: str, operation: str) -> Damaged:
        return Damaged(problem, operation=operation, place=self.path, hint=self._form.hint)

    # Closing

    def close(self) -> None:
        """Close the file; `run` opens it again. Within a transaction of this thread it stays open."""
        with self._threads:
            connection = self._connection
            if connection is not None and not connection.in_transaction:
                self._connection = self._seen = None
                self._private = False
                connection.close()

    def pause(self, seconds: float) -> bool:
        """Close the file and block other threads until `resume`; return False if one of them takes too long."""
        if not self._threads.acquire(timeout=seconds):
            return False
        self.close()
        return True

    def resume(self) -> None:
        """End a pause."""
        self._threads.release()

    def forget(self) -> None:
        """In a forked child: leave an open connection to the parent."""
        self._threads = threading.RLock()
        self._lock_depth = 0
        if self._connection is not None:
            _inherited.append(self._connection)
            self._connection = self._seen = None
            self._private = False


def is_damage(error: Exception) -> bool:
    """Return True if an error of SQLite means that the file does not have the bytes that were written."""
    import sqlite3  # noqa: PLC0415

    return isinstance(error, _FROM_DAMAGE) or (isinstance(error, sqlite3.Error) and _code_of(error) & 0xFF in _BROKEN)


def _code_of(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", _ERROR)


_forks = _Forks()
os.register_at_fork(before=_forks.before, after_in_parent=_forks.in_parent, after_in_child=_forks.in_child)
