"""What both audit logs do: lines that cannot be written wait in memory, and are written first as soon as possible."""

import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from daypack.errors import DaypackError, WriteFailed
from daypack.files import jsonl
from daypack.files.durable import sync
from daypack.forks import ThreadLock
from daypack.memory.audit_log.reading import Line, Wrong
from daypack.memory.audit_log.record import OK, STARTED, Actor, Deed, Record, actor

MAX_PENDING = 10_000

_encode = msgspec.json.Encoder().encode
Due = tuple[Deed, Actor, float]


class Cut(NamedTuple):
    """What a cut removes: lines, bytes, and the numbers of the first and the last of them."""

    lines: int
    bytes: int
    first: int
    last: int
    kept: int


class Log(ABC):
    """An audit log. Threads share it, and so do processes that open the same one."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._pending: deque[Due] = deque()
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

    @contextmanager
    def recording(self, deed: Deed) -> Generator[dict[str, Any]]:
        """Record what the owner does before it begins and when it has ended, with the error if it failed.

        If the first line cannot be written, it does not begin; except an export from a home that cannot be written:
        copying the files of such a home leaves no line either. Fields of the Deed that are known only at the end, such
        as the id of what was created, are put into the yielded dict.
        """
        more: dict[str, Any] = {}
        if deed.action == "export" and self.is_read_only():
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

    def is_read_only(self) -> bool:
        """Return True if no line can ever be written here."""
        return False

    @abstractmethod
    def check(self) -> None:
        """Raise if a line could not be written now."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open; the next line opens it again."""

    @abstractmethod
    def exists(self) -> bool:
        """Return True if a line was ever written."""

    @abstractmethod
    def lines(self) -> Iterator[Line]:
        """Yield every complete line, in order."""

    @abstractmethod
    def verify(self) -> list[Wrong]:
        """Return what is not as it was written; a cut that is recorded is not wrong."""

    @abstractmethod
    def cut(self, plan: Callable[[], Cut], archive: str) -> Cut:
        """Copy the lines of a plan to a new file, then remove them and add a line that says so, all or nothing."""

    @abstractmethod
    def _append(self, dues: Sequence[Due], *, durable: bool) -> None:
        """Write what waits, then these lines."""

    def _waiting(self) -> tuple[list[Due], int]:
        """Return what is to be written before anything else, and how many lines it says were lost."""
        with self._threads:
            waiting, lost = list(self._pending), self._lost
        if lost:
            waiting.append((Deed(action="audit.lost", count=lost), Actor(), time.time()))
        return waiting, lost

    def _written(self, waiting: Sequence[Due], lost: int) -> None:
        """Forget what `_waiting` returned, after it was written."""
        with self._threads:
            for _ in range(len(waiting) - bool(lost)):
                self._pending.popleft()
            self._lost -= lost


def render(seq: int, due: Due) -> bytes:
    """Return a sealed line, with its LF."""
    deed, who, when = due
    moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(when))}.{int(when * 1000) % 1000:03d}Z"
    record = Record(
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
    return jsonl.seal(_encode(record))[0]


def cut_deed(cut: Cut) -> Deed:
    """Return what is recorded about a cut."""
    return Deed(action="audit.cut", tool="audit-log", seqs=(cut.first, cut.last))


def cut_refused(archive: str, error: OSError) -> WriteFailed:
    """Return the error for a cut whose file cannot be written."""
    hint = "the audit log is unchanged; name a file in a folder with free space"
    return WriteFailed(error.strerror or str(error), operation="audit cut", place=archive, hint=hint)


def write_new(path: str, pieces: Iterable[bytes]) -> None:
    """Write a new file, durably; leave none if that fails."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for piece in pieces:
            jsonl.write_all(fd, piece)
        sync(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(fd)
