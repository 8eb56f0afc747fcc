"""The SQLite file behind an index: opened, checked, begun anew when it cannot be used, shared by processes.

It is derived, so a file that is missing, of another format, foreign or broken is replaced by an empty one. What the
file system refuses (no space, no right to write) is an error, because an empty file would not help.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from daypack.errors import StorageFailed, UnsafePath
from daypack.files.atomic import discard, make_folders, release

if TYPE_CHECKING:
    from sqlite3 import Connection

APPLICATION = 0x64707833  # "dpx3"
BUSY_SECONDS = 20
_CACHE_KIB = 16_000
_MAX_FRESH_STARTS = 3  # a disk that breaks every file is not to be tried for ever

# Result codes of SQLite (their low byte).
_ERROR, _BUSY, _LOCKED, _READONLY, _CORRUPT, _FULL, _MISMATCH, _NOTADB = 1, 5, 6, 8, 11, 13, 20, 26
_BROKEN = (_ERROR, _CORRUPT, _MISMATCH, _NOTADB)
_MOVED = 8 | 4 << 8  # SQLITE_READONLY_DBMOVED: somebody deleted or replaced the file
_HINTS = {
    _FULL: "free space; the index is as it was before",
    _READONLY: "fix permissions, or move the file to a place that can be written",
    _BUSY: "another process is writing to the index; try again",
    _LOCKED: "another process is writing to the index; try again",
}

_inherited: list["Connection"] = []  # of a parent process: neither to be used nor to be closed here

Answer = TypeVar("Answer")


class _Forks:
    """Closes what is idle before a fork: SQLite's locks do not survive one."""

    def __init__(self) -> None:
        self.tables: WeakSet[Table] = WeakSet()
        os.register_at_fork(before=self._before, after_in_child=self._in_child)

    def _before(self) -> None:
        for table in list(self.tables):
            table.close(waiting=False)

    def _in_child(self) -> None:
        for table in list(self.tables):
            table.forget()


class Table:
    """One file with a schema; `run` gives a connection to whoever works with it, one thread at a time."""

    def __init__(self, path: str, schema: str, version: int) -> None:
        self.path = os.path.abspath(path)
        self._schema = schema
        self._version = version
        self._threads = threading.RLock()
        self._connection: Connection | None = None
        self._inode = 0
        self._fresh_starts = 0
        _forks.tables.add(self)

    def run(self, operation: str, work: Callable[["Connection"], Answer], *, writing: bool = False) -> Answer | None:
        """Do `work` in one transaction; None when the file turned out to be unusable and was begun anew."""
        import sqlite3  # noqa: PLC0415 — 5 ms for those who search only

        with self._threads:
            try:
                return self._work(self._open(operation), work, writing=writing)
            except sqlite3.DatabaseError as error:
                code = getattr(error, "sqlite_errorcode", _ERROR)
                if code == _MOVED:
                    self.close()
                elif code & 0xFF in _BROKEN:
                    self._begin_anew(operation, error)
                else:
                    raise self._refusal(operation, error) from error
        return None

    def _work(self, connection: "Connection", work: Callable[["Connection"], Answer], *, writing: bool) -> Answer:
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

    def _open(self, operation: str) -> "Connection":
        if self._connection is not None:
            with suppress(OSError):
                if os.stat(self.path).st_ino == self._inode:
                    return self._connection
            self.close()
        import sqlite3  # noqa: PLC0415

        make_folders(os.path.dirname(self.path), durable=False)
        # One process at a time opens or replaces: nobody finds half of a replaced file.
        with self._folder_locked():
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", _ERROR) & 0xFF not in _BROKEN:
                    raise self._refusal(operation, error) from error
                self._replace(operation, error)
                try:
                    self._connection = self._connect()
                except sqlite3.DatabaseError as again:
                    raise self._refusal(operation, again) from again
            except OSError as error:
                raise self._refusal(operation, error) from error
        return self._connection

    def _connect(self) -> "Connection":
        import sqlite3  # noqa: PLC0415

        if os.path.islink(self.path):
            hint = "replace the link by the file itself"
            raise UnsafePath("is a symbolic link", operation="open index", place=self.path, hint=hint)
        with suppress(FileExistsError):  # made here because SQLite would let others read it
            release(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        self._inode = os.stat(self.path).st_ino
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=32
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            # A power cut may take the newest transactions, never the file: what is missing is added again.
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            if self._mark(connection) == (0, 0) and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                script = f"PRAGMA application_id={APPLICATION};PRAGMA user_version={self._version};{self._schema}"
                connection.executescript(f"BEGIN IMMEDIATE;{script};COMMIT")
            if self._mark(connection) != (APPLICATION, self._version):
                raise sqlite3.DatabaseError("not an index of this format")
        except BaseException:
            connection.close()
            raise
        return connection

    def _mark(self, connection: "Connection") -> tuple[int, int]:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        return application, connection.execute("PRAGMA user_version").fetchone()[0]

    def _begin_anew(self, operation: str, error: Exception) -> None:
        self.close()
        with self._folder_locked():
            self._replace(operation, error)

    def _replace(self, operation: str, error: Exception) -> None:
        """Remove the file that was found broken, unless another process has done so."""
        self._fresh_starts += 1
        if self._fresh_starts > _MAX_FRESH_STARTS:
            raise self._refusal(operation, error) from error
        with suppress(FileNotFoundError):
            if os.stat(self.path).st_ino != self._inode:
                return
        for ending in ("-wal", "-shm", "-journal"):
            discard(self.path + ending)
        try:
            with suppress(FileNotFoundError):
                os.unlink(self.path)
        except OSError as refused:
            raise self._refusal(operation, refused) from refused

    @contextmanager
    def _folder_locked(self) -> Generator[None]:
        fd = -1
        try:
            with suppress(OSError):  # a file system without locks: as good as it gets
                fd = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            if fd >= 0:
                release(fd)

    def _refusal(self, operation: str, error: Exception) -> StorageFailed:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        hint = _HINTS.get(code, "check permissions and the disk; the index may be deleted, it is built again")
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return StorageFailed(problem, operation=operation, place=self.path, hint=hint)

    def close(self, *, waiting: bool = True) -> None:
        """Close the file; `run` opens it again. Without waiting, one that is in use stays open."""
        if not self._threads.acquire(blocking=waiting):
            return
        try:
            connection = self._connection
            if connection is not None and not connection.in_transaction:
                self._connection = None
                connection.close()
        finally:
            self._threads.release()

    def forget(self) -> None:
        """In a forked child: leave an open connection to the parent."""
        self._threads = threading.RLock()
        if self._connection is not None:
            _inherited.append(self._connection)
            self._connection = None


_forks = _Forks()
