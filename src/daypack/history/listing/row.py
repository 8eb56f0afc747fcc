"""What a list shows of a session, and the statuses of its files, which change when it is no longer true.

Opening a session costs 0.5 ms, most of it for what a list does not need. `read_row` reads the few bytes of an ordinary
session directly. It describes only what it verified: for everything else it returns None, and the session is opened.
"""

import os
import stat
from array import array
from collections.abc import Callable, Sequence
from zlib import crc32

import msgspec
from msgspec import Struct

from daypack.config import OF_SESSIONS
from daypack.files.jsonl import read_at
from daypack.files.offsets import HEADER, MAGIC, PLAIN, SLOT, START, UNCOUNTED, Slot
from daypack.files.rewrite import JOURNAL
from daypack.history.logs.lines import UNREADABLE
from daypack.history.logs.reader import decoder_of
from daypack.system import boot_id
from daypack.types.history import Message
from daypack.types.kinds import SESSION_STATES

FILES = ("", "messages.jsonl", "events.jsonl", "meta.json", "state", "created_at", "updated_at", "cwd")
Status = tuple[int, int, int, int]  # time of modification, time of change, size, inode
ABSENT: Status = (0, 0, 0, 0)

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STAGING = JOURNAL.partition("/")[0]
_PAGE = 1 << 12  # bytes; the small files, and the beginnings of most logs, are shorter
_MOST_SIDECAR = 1 << 21  # bytes, of 75,000 lines
_WORDS = SLOT.size // 4
_TOKENS, _FLAGS = 3, 6  # of the words of a slot
_SIZE = 2  # of a status


class Row(Struct, frozen=True, gc=False):
    """What a list shows of a session."""

    title: str | None
    state: str
    created_at: str
    updated_at: str
    cwd: str
    model: str | None
    tokenizer: str
    messages: int
    events: int
    tokens: int


# Returns a title, given the flags of the first lines of a log and how to read a line.
Title = Callable[[Sequence[int], Callable[[int], Sequence[Message]]], str]


class _Unusual(Exception):
    """The session has to be opened to describe it."""


class _Protocols(Struct, frozen=True):
    history: str | None = None


class _Meta(Struct, frozen=True):
    tokenizer: str
    model: str | None = None
    workspace: str | None = None
    protocols: _Protocols = _Protocols()
    # Settings that are refused if they are wrong: opening the session checks them.
    durability: object = None
    locking: object = None
    compaction_model: object = None
    embedding_model: object = None
    memory_ms: object = None
    redaction: object = None
    window: object = None


_meta = msgspec.json.Decoder(_Meta)
_CHECKED = tuple(field for field in OF_SESSIONS if field not in ("model", "workspace"))


def statuses_of(folder: str) -> tuple[Status, ...]:
    """Return the statuses of the files that a row is made from."""
    return tuple([_status_of(f"{folder}/{name}") for name in FILES])


def read_row(folder: str, title: Title) -> tuple[tuple[Status, ...], Row] | None:
    """Return the statuses of a session's files before they were read, and its row; None if it is unusual."""
    try:
        return _read_row(folder, title)
    except (_Unusual, OSError, *UNREADABLE):
        return None


def _read_row(folder: str, title: Title) -> tuple[tuple[Status, ...], Row]:
    top = _status(os.lstat(folder))
    names = _names(folder)
    if _STAGING in names:
        raise _Unusual  # a rewrite that has to be completed first
    has_sidecars = "context" in names and "offsets" in _names(f"{folder}/context")
    small = [_read(f"{folder}/{name}") if name in names else (b"", ABSENT) for name in FILES[3:]]
    meta = _meta.decode(small[0][0])
    if not meta.tokenizer or meta.protocols.history not in (None, "1") or any(getattr(meta, name) for name in _CHECKED):
        raise _Unusual
    state, created_at, updated_at, cwd = (data.decode("utf-8", "replace").strip() for data, _ in small[1:])
    with _Log(folder, "messages", meta.tokenizer if has_sidecars else None) as log:
        words = title(log.flags(), log.read)
    with _Log(folder, "events", "none" if has_sidecars else None) as events:
        pass
    row = Row(
        title=words or None,
        state=state if state in SESSION_STATES else "active",
        created_at=created_at,
        updated_at=updated_at,
        cwd=cwd,
        model=meta.model,
        tokenizer=meta.tokenizer,
        messages=log.count,
        events=events.count,
        tokens=log.tokens(),
    )
    return (top, log.status, events.status, *(status for _, status in small)), row


class _Log:
    """A log that its sidecar covers, without a line that needs a closer look."""

    def __init__(self, folder: str, name: str, method: str | None) -> None:
        self._fd = os.open(f"{folder}/{name}.jsonl", _OPEN)
        try:
            found = os.fstat(self._fd)
            self.status = _status(found)
            packed = b""
            if found.st_size and method:
                packed = _slots(f"{folder}/context/offsets/{name}.idx", method.encode())
            self.count = len(packed) // SLOT.size
            self._slots = array("I", packed)
            if not stat.S_ISREG(found.st_mode) or self._slot(self.count - 1).end != found.st_size:
                raise _Unusual
            if packed[SLOT.size - 4 :: SLOT.size].translate(None, PLAIN):
                raise _Unusual  # a damaged or hand-written line
            self._page = os.pread(self._fd, _PAGE, 0) if self.count else b""
            if self.count:
                self._line(self.count - 1)
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> "_Log":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def tokens(self) -> int:
        """Return the sum of the tokens of all lines."""
        counts = self._slots[_TOKENS::_WORDS]
        if UNCOUNTED in counts:
            raise _Unusual
        return sum(counts)

    def flags(self) -> Sequence[int]:
        """Return the flags of all lines."""
        return self._slots[_FLAGS::_WORDS]

    def read(self, at: int) -> list[Message]:
        """Return the message of a line."""
        return [decoder_of(Message).decode(self._line(at))]

    def _line(self, at: int) -> bytes:
        before, slot = self._slot(at - 1), self._slot(at)
        if slot.offset != before.end or not before.end < slot.end <= self.status[_SIZE]:
            raise _Unusual  # slots of another log, or damaged ones
        in_page = slot.end <= len(self._page)
        line = self._page[before.end : slot.end] if in_page else read_at(self._fd, before.end, slot.length)
        if not line.endswith(b"\n") or crc32(line, before.crc) != slot.crc:
            raise _Unusual
        return line

    def _slot(self, at: int) -> Slot:
        if at < 0:
            return START
        low, high, *others = self._slots[at * _WORDS : (at + 1) * _WORDS]
        return Slot(high << 32 | low, *others)


def _slots(path: str, method: bytes) -> bytes:
    """Return the packed slots of a sidecar."""
    fd = os.open(path, _OPEN)
    try:
        data = os.read(fd, _MOST_SIDECAR)
    finally:
        os.close(fd)
    if len(data) < HEADER.size or len(data) == _MOST_SIDECAR:
        raise _Unusual
    magic, written, boot, synced = HEADER.unpack_from(data)
    count = (len(data) - HEADER.size) // SLOT.size
    trusted = boot == boot_id() or synced >= count
    if magic != MAGIC or written.rstrip(b"\0") != method or not trusted:
        raise _Unusual
    return data[HEADER.size : HEADER.size + count * SLOT.size]


def _names(folder: str) -> set[str]:
    with os.scandir(folder) as found:
        names: set[str] = set()
        for item in found:
            if item.is_symlink():
                raise _Unusual
            names.add(item.name)
    return names


def _read(path: str) -> tuple[bytes, Status]:
    """Return the bytes of a small file, and its status before they were read."""
    fd = os.open(path, _OPEN)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _PAGE:
            raise _Unusual
        return os.read(fd, _PAGE), _status(found)
    finally:
        os.close(fd)


def _status_of(path: str) -> Status:
    try:
        return _status(os.lstat(path))
    except OSError:
        return ABSENT


def _status(found: os.stat_result) -> Status:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
