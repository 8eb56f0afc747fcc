"""Appends to the audit log: sealed lines (files/jsonl.py) in one file per home, shared by threads and processes.

A line is with the operating system before the answer it is about is sent; lines about writes and erasures are on disk.
Lines that cannot be written (a full disk) are kept in memory and written first as soon as possible; meanwhile `require`
refuses further writes.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

import msgspec

from daypack.errors import LockUnavailable, StorageFailed, WriteFailed
from daypack.files import jsonl
from daypack.files.atomic import READ_ONLY_HINT, TEMPORARY, discard, make_folders, refusal, release, sync_folder
from daypack.files.commit import Handle
from daypack.files.durable import sync
from daypack.files.lock import Lock
from daypack.files.read_only import is_read_only
from daypack.forks import forks
from daypack.memory.audit_log.port import Cut, Due, Log, cut_deed, cut_refused, render, write_new
from daypack.memory.audit_log.reading import Line, Wrong, read_lines, verify
from daypack.memory.audit_log.record import Actor, Deed, Record, actor
from daypack.plain_files import open_plain

NAME = "audit.jsonl"
_LAST_BYTES = 64 << 10  # more than any line

_decode = msgspec.json.Decoder(Record).decode


class AuditLog(Log):
    """The audit log in a folder; it is created by the first line."""

    def __init__(self, folder: str, *, flock: bool = True) -> None:
        super().__init__(os.path.join(folder, NAME))
        self.path = self.place
        self.lock = Lock(self.path, flock=flock)
        self._handle: Handle | None = None
        self._checks = -1
        self._forks = forks.count
        self._end = self._seq = 0

    def check(self) -> None:
        """Raise if a line could not be written now."""
        self.require()
        if is_read_only(self.path):
            problem = "the audit log cannot be written here"
            raise WriteFailed(problem, operation="audit-log", place=self.path, hint=READ_ONLY_HINT)
        folder = os.path.dirname(self.path)
        with suppress(OSError):
            room = os.statvfs(folder if os.path.isdir(folder) else os.path.dirname(folder))
            if not room.f_bavail:
                raise WriteFailed("no space left on device", operation="audit-log", place=self.path, hint="free space")

    def is_read_only(self) -> bool:
        """Return True if the place of the file cannot be written."""
        return is_read_only(self.path)

    def exists(self) -> bool:
        """Return True if there is a file."""
        return os.path.exists(self.path)

    def lines(self) -> Iterator[Line]:
        """Yield every complete line, in order."""
        return read_lines(self.path)

    def verify(self) -> list[Wrong]:
        """Return damaged lines, missing numbers and a torn tail."""
        return verify(self.path)

    def cut(self, plan: Callable[[], Cut], archive: str) -> Cut:
        """Copy the lines of a plan to a new file, then put a shorter file in the place of the log."""
        shortened = os.path.join(os.path.dirname(self.path), f"{TEMPORARY}audit.{os.getpid()}")
        with self.lock:
            cut = plan()
            self._ready()
            last_line = render(self._seq + 1, (cut_deed(cut), actor.get(), time.time()))
            try:
                with open_plain(self.path) as source:
                    write_new(archive, _pieces(source.fileno(), 0, cut.bytes))
                    sync_folder(os.path.dirname(os.path.abspath(archive)))
                    kept = _pieces(source.fileno(), cut.bytes, os.path.getsize(self.path))
                    write_new(shortened, chain(kept, (last_line,)))
                os.replace(shortened, self.path)
            except OSError as error:
                discard(shortened)
                raise cut_refused(archive, error) from error
            sync_folder(os.path.dirname(self.path))
        self.close()
        return cut

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        with self._threads:
            self._handle = None
            self.lock.close()

    # Appending

    def _append(self, dues: Sequence[Due], *, durable: bool) -> None:
        try:
            self._create()
            with self.lock:
                handle = self._ready()
                end = self._write(handle, dues)
            if durable:
                handle.commit(end)
        except LockUnavailable:  # waiting helps
            raise
        except StorageFailed as error:
            self.close()
            raise WriteFailed(error.problem, operation="audit-log", place=error.place, hint=error.hint) from error
        except OSError as error:
            self.close()  # after a failed sync the next one could succeed without the bytes: the file is opened again
            hint = "free space or fix permissions; until then nothing can be written to memories through a server"
            problem = error.strerror or str(error)
            raise WriteFailed(problem, operation="audit-log", place=self.path, hint=hint) from error

    def _create(self) -> None:
        if self._handle is not None and self._forks == forks.count:
            return
        folder = os.path.dirname(self.path)
        make_folders(folder)
        with suppress(FileExistsError):
            release(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            sync_folder(folder)

    def _ready(self) -> Handle:
        """Return the open file, with the number and the end of its last line known; the lock is held."""
        handle = self._handle
        if handle is None or self._checks != self.lock.checks or self._forks != forks.count:
            inode = os.stat(self.path).st_ino
            if handle is None or handle.inode != inode or self._forks != forks.count:
                try:
                    fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
                except OSError as error:
                    raise refusal(self.path, error, "audit-log") from error
                handle = Handle(fd, inode)
                self._end = -1
            self._handle, self._checks, self._forks = handle, self.lock.checks, forks.count
        size = os.lseek(handle.fd, 0, os.SEEK_END)
        if size != self._end:
            self._catch_up(handle, size)
        return handle

    def _catch_up(self, handle: Handle, size: int) -> None:
        """Read the number of the last line, which another process may have written; set a torn tail aside."""
        tail = jsonl.unterminated(handle.fd, 0, size)
        if tail:
            self._repair(handle, tail, size)
            size = os.lseek(handle.fd, 0, os.SEEK_END)
        self._seq, self._end = last_seq(handle.fd, size), size
        if tail:
            self._write(handle, [(Deed(action="audit.repair"), Actor(), time.time())])

    def _repair(self, handle: Handle, tail: bytes, size: int) -> None:
        """Complete a line that lacks only its LF; move any other tail into a file of its own."""
        if line := jsonl.complete(tail):
            os.ftruncate(handle.fd, size - len(tail))
            jsonl.write_all(handle.fd, line + b"\n")
            return
        number = 1
        while os.path.lexists(aside := f"{self.path}.torn-{number}"):
            number += 1
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            jsonl.write_all(fd, tail)
            sync(fd)
        finally:
            release(fd)
        os.ftruncate(handle.fd, size - len(tail))

    def _write(self, handle: Handle, dues: Sequence[Due]) -> int:
        """Write what waits, then these lines; if that fails, the file is as before and what waits keeps waiting."""
        waiting, lost = self._waiting()
        lines: list[bytes] = []
        seq = self._seq
        for due in (*waiting, *dues):
            seq += 1
            lines.append(render(seq, due))
        data = b"".join(lines)
        try:
            jsonl.write_all(handle.fd, data)
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle.fd, self._end)
            raise
        self._seq, self._end = seq, self._end + len(data)
        handle.written = self._end
        self._written(waiting, lost)
        return self._end


def last_seq(fd: int, size: int) -> int:
    """Return the number of the last readable line of a log that ends with a complete line; 0 if it has none."""
    start = max(0, size - _LAST_BYTES)
    while True:
        found = 0
        for _, line in jsonl.scan(fd, start, size):
            if jsonl.check(line[:-1]) == "sealed":
                with suppress(msgspec.MsgspecError):
                    found = max(found, _decode(line[:-1]).seq)
        if found or not start:
            return found
        start = max(0, start - (1 << 20))


def _pieces(fd: int, start: int, stop: int) -> Iterator[bytes]:
    while start < stop and (data := os.pread(fd, min(1 << 20, stop - start), start)):
        yield data
        start += len(data)
