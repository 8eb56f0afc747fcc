"""Copies the parts of a home while they are written to: each as it was at one moment.

A session: both logs are measured under its lock, and copied up to that length without it. Lines are never changed, so
the lock is held for microseconds. If an erasure replaced the files meanwhile, the session is copied again: a backup
never mixes what was before it with what is after it. A store: SQLite's online backup; a database: one transaction.
Everything else is replaced whole when it changes, so one open file is one version.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import NamedTuple

from msgspec import structs

from daypack.config import Config
from daypack.errors import Damaged, LockUnavailable, StorageFailed
from daypack.files import atomic, jsonl, read_only
from daypack.files.database import BUSY_SECONDS
from daypack.files.lock import Lock
from daypack.files.rewrite import JOURNAL
from daypack.history.layout import Home, Layout
from daypack.upkeep.backup.contents import Found, files_of
from daypack.upkeep.backup.database.copying import copy_records
from daypack.upkeep.backup.database.lines import NAME as RECORDS
from daypack.upkeep.backup.manifest import File, Item
from daypack.upkeep.backup.tarball import TarWriter
from daypack.upkeep.database import find_database
from daypack.upkeep.session_settings import settings_of

LOGS = ("events.jsonl", "messages.jsonl")  # in this order: events refer to messages that exist before them
_CHUNK = 1 << 20
_TRIES = 20
STORE = "store.sqlite"


class _Moved(Exception):
    """A file was replaced or shortened while it was copied."""


class _OpenLog(NamedTuple):
    path: str
    fd: int
    length: int


class Snapshot:
    """Copies items of a home into a tar."""

    def __init__(self, root: str, tar: TarWriter, scratch: str) -> None:
        self._root = root
        self._tar = tar
        self._scratch = scratch  # for copies of stores
        self.files: list[File] = []

    def copy(self, item: Item) -> Item | None:
        """Copy an item and return it with its counts and position; None if it was removed meanwhile."""
        for _ in range(_TRIES):
            position, count = self._tar.position, len(self.files)
            try:
                copied = self._copy(item)
            except (EOFError, _Moved):
                self._tar.cut(position)
                del self.files[count:]
                continue
            return copied if len(self.files) > count else None
        problem = f"changed {_TRIES} times while it was copied"
        raise StorageFailed(problem, operation="back up", place=os.path.join(self._root, item.path), hint="try again")

    def _copy(self, item: Item) -> Item:
        if item.kind == "database":
            return self._copy_database(item)
        return self._copy_session(item) if item.session else self._copy_plain(item)

    def _copy_database(self, item: Item) -> Item:
        database = find_database(Home(self._root, item.user))
        if database is None:
            return item  # the setting is gone
        copy = os.path.join(self._scratch, RECORDS)
        fd = os.open(copy, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            end = copy_records(database, lambda data: jsonl.write_all(fd, data), lambda: _empty(fd))
            self._add(f"{item.path}/{RECORDS}", fd, os.fstat(fd).st_size)
        finally:
            database.close()
            os.close(fd)
            atomic.discard(copy)
        counts = {name: end.counts[name] for name in ("memories", "entries", "documents", "sessions")}
        return structs.replace(item, **counts)

    def _copy_session(self, item: Item) -> Item:
        layout = Layout(self._root, os.path.join(self._root, item.path))
        with ExitStack() as opened:
            try:
                logs = self._open_logs(Home(self._root, item.user), layout, opened)
            except FileNotFoundError:
                return self._copy_plain(item)  # moved or deleted meanwhile, or damaged: what is there is copied
            lines = {
                os.path.basename(log.path): self._add(f"{item.path}/{os.path.basename(log.path)}", log.fd, log.length)
                for log in logs
            }
            own = {f"{item.path}/{name}" for name in LOGS}
            for file in files_of(self._root, item):
                if file.path not in own:
                    self._copy_file(file)
            for log in logs:
                _check_unmoved(log)
        position = {os.path.basename(log.path): log.length for log in logs}
        return structs.replace(item, messages=lines["messages.jsonl"], events=lines["events.jsonl"], position=position)

    def _open_logs(self, home: Home, layout: Layout, opened: ExitStack) -> list[_OpenLog]:
        lock = opened.enter_context(closing(Lock(layout.messages, flock=_flock(home, layout))))
        with ExitStack() as held:
            try:
                held.enter_context(lock)
            except (StorageFailed, LockUnavailable):
                # A read-only disk has no writer to wait for. An unfinished erasure could not be completed, though.
                if os.path.lexists(os.path.join(layout.folder, JOURNAL)):
                    raise
            return [_open_log(os.path.join(layout.folder, name), opened) for name in LOGS]

    def _copy_plain(self, item: Item) -> Item:
        for file in files_of(self._root, item):
            if item.kind == "memory" and file.path == f"{item.path}/{STORE}":
                item = self._copy_store(item, file.path)
            else:
                self._copy_file(file)
        return item

    def _copy_file(self, file: Found) -> None:
        try:
            fd = _open(os.path.join(self._root, file.path))
        except FileNotFoundError:
            return
        try:
            size = os.fstat(fd).st_size
            if file.path.endswith(".jsonl"):  # a log: without a line that is being written
                size -= len(jsonl.unterminated(fd, 0, size))
            self._add(file.path, fd, size)
        finally:
            atomic.release(fd)

    def _copy_store(self, item: Item, path: str) -> Item:
        copy = os.path.join(self._scratch, STORE)
        try:
            copy_database(os.path.join(self._root, path), copy)
            memories, entries, documents = count_store(copy)
        except Damaged:
            self._copy_file(Found(path, 0))  # as it is: `verify` reports it
            return item
        fd = _open(copy)
        try:
            self._add(path, fd, os.fstat(fd).st_size)
        finally:
            atomic.release(fd)
            atomic.discard(copy)
        return structs.replace(item, memories=memories, entries=entries, documents=documents)

    def _add(self, path: str, fd: int, size: int) -> int:
        """Copy a file up to a length; return its number of lines."""
        lines = 0

        def chunks() -> Iterator[bytes]:
            nonlocal lines
            at = 0
            while at < size and (data := jsonl.read_at(fd, at, min(_CHUNK, size - at))):
                lines += data.count(b"\n")
                yield data
                at += len(data)

        self.files.append(File(path, size, self._tar.add(path, size, chunks())))
        return lines


def _empty(fd: int) -> None:
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)


def _flock(home: Home, layout: Layout) -> bool:
    config: Config = settings_of(home, layout)
    return config.locking == "flock"


def _open_log(path: str, opened: ExitStack) -> _OpenLog:
    fd = _open(path)
    opened.callback(atomic.release, fd)
    size = os.fstat(fd).st_size
    return _OpenLog(path, fd, size - len(jsonl.unterminated(fd, 0, size)))


def _open(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise atomic.refusal(path, error, "back up") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        atomic.release(fd)
        raise _Moved(path)
    return fd


def _check_unmoved(log: _OpenLog) -> None:
    """Raise if the log was replaced, or a failed append was taken back while it was copied."""
    try:
        named = os.stat(log.path).st_ino
    except OSError as error:
        raise _Moved(log.path) from error
    ended = log.length == 0 or jsonl.read_at(log.fd, log.length - 1, 1) == b"\n"
    if named != os.fstat(log.fd).st_ino or not ended:
        raise _Moved(log.path)


def copy_database(path: str, copy: str) -> None:
    """Copy a SQLite file that others write to, as it is at one moment, into a single file."""
    import sqlite3  # noqa: PLC0415 — 5 ms

    for ending in ("", "-journal", "-wal", "-shm"):
        atomic.discard(copy + ending)
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as target:
            with closing(read_only.connect(path, seconds=BUSY_SECONDS)) as source:
                source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        hint = "run `daypack doctor`, or restore it from an earlier backup"
        raise Damaged(str(error), operation="back up", place=path, hint=hint) from error


def count_store(path: str) -> tuple[int, int, int]:
    """Return the memories, entries and documents of a store."""
    import sqlite3  # noqa: PLC0415 — 5 ms

    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as store:
            memories, entries, documents = (
                store.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608 — the names are ours
                for table in ("memories", "entries", "documents")
            )
    except sqlite3.Error as error:
        hint = "run `daypack doctor`, or restore it from an earlier backup"
        raise Damaged(str(error), operation="back up", place=path, hint=hint) from error
    return memories, entries, documents
