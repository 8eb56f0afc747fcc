"""Appends to the audit log: sealed lines (files/jsonl.py) in one file per home, shared by threads and processes.

A line is with the operating system before the answer it is about is sent; lines about writes and erasures are on disk.
Lines that cannot be written (a full disk) are kept in memory and written first as soon as possible; meanwhile `require`
refuses further writes.
"""

import os
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from daypack.errors import DaypackError, LockUnavailable, StorageFailed, WriteFailed
from daypack.files import jsonl
from daypack.files.atomic import READ_ONLY_HINT, make_folders, refusal, release, sync_folder
from daypack.files.commit import Handle
from daypack.files.durable import sync
from daypack.files.lock import Lock
from daypack.files.read_only import is_read_only
from daypack.forks import ThreadLock, forks
from daypack.memory.audit_log.record import OK, STARTED, Actor, Deed, Record, actor

NAME = "audit.jsonl"
MAX_PENDING = 10_000
_LAST_BYTES = 64 << 10  # more than any line

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode
_Due = tuple[Deed, Actor, float]


class AuditLog:
    """The audit log in a folder; it is created by the first line."""

    def __init__(self, folder: str, *, flock: bool = True) -> None:
        self.path = os.path.join(folder, NAME)
        self.lock = Lock(self.path, flock=flock)
        self._handle: Handle | None = None
        self._checks = -1
        self._forks = forks.count
        self._end = self._seq = 0
        self._pending: deque[_Due] = deque()
        self._lost = 0
        self._threads = ThreadLock()

    @property
    def pending(self) -> int:
        """How many lines wait for being written, and how many were too many to keep."""
        return len(self._pending) + self._lost

    def record(self, deed: Deed, *, durable: bool = False) -> bool:
        """Append a line; return False if it has to wait. `durable`: return when it is on disk."""
        due = deed, actor.get(), time.time()
        try:
            self._append((due,), durable=durable)
        except DaypackError:
            with self._threads:
                if len(self._pending) < MAX_PENDING:
                    self._pending.append(due)
                else:
                    self._lost += 1
            return False
        return True

    def require(self) -> None:
        """Raise if lines cannot be written: then nothing may be written that they would be about."""
        if self.pending:
            self._append((), durable=True)

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

    @contextmanager
    def recording(self, deed: Deed) -> Generator[dict[str, Any]]:
        """Record what the owner does before it begins and when it has ended, with the error if it failed.

        If the first line cannot be written, it does not begin; except an export from a home that cannot be written:
        copying the files of such a home leaves no line either. Fields of the Deed that are known only at the end, such
        as the id of what was created, are put into the yielded dict.
        """
        more: dict[str, Any] = {}
        if deed.action == "export" and is_read_only(self.path):
            yield more
            return
        self._append(((msgspec.structs.replace(deed, result=STARTED), actor.get(), time.time()),), durable=True)
        result = OK
        try:
            yield more
        except BaseException as error:
            result = type(error).__name__
            raise
        finally:
            self.record(msgspec.structs.replace(deed, **more, result=result), durable=True)

    def render(self, deed: Deed) -> bytes:
        """Return the next line as it would be appended; the caller holds the lock and writes it."""
        self._ready()
        return jsonl.seal(_encode(_line(self._seq + 1, deed, actor.get(), time.time())))[0]

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        with self._threads:
            self._handle = None
            self.lock.close()

    # Appending

    def _append(self, dues: Sequence[_Due], *, durable: bool) -> None:
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

    def _write(self, handle: Handle, dues: Sequence[_Due]) -> int:
        """Write what waits, then these lines; if that fails, the file is as before and what waits keeps waiting."""
        with self._threads:
            waiting, lost = list(self._pending), self._lost
        missed = [(Deed(action="audit.lost", count=lost), Actor(), time.time())] if lost else []
        lines: list[bytes] = []
        seq = self._seq
        for deed, who, when in (*waiting, *missed, *dues):
            seq += 1
            lines.append(jsonl.seal(_encode(_line(seq, deed, who, when)))[0])
        data = b"".join(lines)
        try:
            jsonl.write_all(handle.fd, data)
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle.fd, self._end)
            raise
        self._seq, self._end = seq, self._end + len(data)
        handle.written = self._end
        with self._threads:
            for _ in waiting:
                self._pending.popleft()
            self._lost -= lost
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


def _line(seq: int, deed: Deed, who: Actor, when: float) -> Record:
    moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(when))}.{int(when * 1000) % 1000:03d}Z"
    return Record(
        seq=seq,
        time=moment,
        action=deed.action,
        tool=deed.tool,
        user=deed.user,
        door=who.door,
        token=who.token,
        uid=who.uid,
        request=who.request,
        memory=deed.memory,
        memories=deed.memories,
        entries=deed.entries,
        version=deed.version,
        target=deed.target,
        seqs=deed.seqs,
        count=deed.count,
        result=deed.result,
    )
