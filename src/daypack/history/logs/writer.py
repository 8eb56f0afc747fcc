"""Appends to a log: complete lines under the session's lock, acknowledged at the configured durability."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Generic
from zlib import crc32

import msgspec
from msgspec.structs import force_setattr

from daypack.errors import BadMessage, PoisonedLog, StorageFailed, SyncFailed, WriteFailed
from daypack.files import atomic, jsonl
from daypack.files.atomic import refusal
from daypack.files.commit import Handle, reentered
from daypack.files.lock import Lock
from daypack.files.offsets import DAMAGED, SLOT, UNCOUNTED, Offsets, Slot
from daypack.history.logs.lines import KEYED, UNREADABLE, extend, fits
from daypack.history.logs.reader import PREFIX, Record, decoder_of
from daypack.history.logs.upstream import Mark, Upstream
from daypack.types.history import Event, Message

MAX_LINE_BYTES = 64 << 20

Weigh = Callable[[Record], tuple[int, int]]  # tokens and flags of a record
Batch = tuple[Sequence[Record], float]  # the records of one call, and when it was made
_NO_RECORD = UNCOUNTED, DAMAGED
_encode = msgspec.json.Encoder().encode


class Repair(msgspec.Struct, frozen=True):
    """A torn tail that an append found and moved aside."""

    log: str
    offset: int
    bytes: int
    file: str | None  # where the bytes are now; None if the line was complete except for its LF

    def describe(self) -> dict[str, object]:
        """Return the data of the event that records it."""
        return {"log": self.log, "offset": self.offset, "bytes": self.bytes, "file": self.file}


def _not_utf8(record: Message | Event, error: UnicodeEncodeError) -> BadMessage:
    return BadMessage(
        f"a lone surrogate (character {error.start}) cannot be stored as UTF-8",
        operation="append",
        place=record.id,
        hint="decode the text with errors='replace' first",
    )


def _too_long(record: Message | Event, length: int) -> BadMessage:
    return BadMessage(
        f"{length:,} bytes in one line, the limit is {MAX_LINE_BYTES:,}",
        operation="append",
        place=record.id,
        hint="keep large content in a file and refer to it",
    )


class Writer(Generic[Record]):
    """Appends to one log; nothing else does.

    With an `upstream` the log is a cache: lines are stored there first, and what is wrong here is fetched again.
    """

    def __init__(self, path: str, lock: Lock, offsets: Offsets, shape: type[Record], weigh: Weigh[Record]) -> None:
        self.path = path
        self.lock = lock
        self.repairs: list[Repair] = []
        self.upstream: Upstream | None = None
        self._offsets = offsets
        self._prefix = PREFIX[shape]
        self._decoder = decoder_of(shape)
        self._weigh = weigh
        self._second = 0
        self._time = ""
        self._start()

    def _start(self) -> None:
        self._handle: Handle | None = None
        self._checks = -1
        self._seq = self._crc = self._end = 0  # of the last line
        self._lines = 0
        self._begun = 0  # lines before what the next sync is for
        self.dirty = False  # something was written since the files were opened
        self._writing = False  # the lock does not exclude a signal handler in its own thread
        self._floor = 0  # bytes before this offset may be another process's: never removed
        self._known = 0  # lines before this offset were acknowledged, in spite of what is damaged in them

    def forget(self) -> None:
        """In a forked child: drop the files of the parent, in which another thread may have been writing."""
        self.repairs.clear()  # the parent reports them
        self._offsets.close()
        self._start()

    @property
    def lines(self) -> int:
        """The number of lines; valid under the lock, after `begin`."""
        return self._lines

    @property
    def inode(self) -> int:
        """The inode of the file that is written; 0 if none is open."""
        return self._handle.inode if self._handle else 0

    @property
    def crc(self) -> int:
        """The running crc of all lines; valid like `lines`."""
        return self._crc

    def begin(self) -> Handle:
        """Make sure that the log ends with a complete line and its state is known; the caller holds the lock."""
        self._enter()
        try:
            return self._start_commit()
        except OSError as error:
            raise refusal(self.path, error, "open for append") from error
        finally:
            self._writing = False

    def follow_path(self) -> None:
        """Have `begin` look whether the path names another file: of a cache that was deleted and made again."""
        self._checks = -1

    def write(self, handle: Handle, records: Sequence[Record], now: float) -> int:
        """Number the records, append them and return the log's new end; under the lock, after `begin`."""
        self._enter()
        try:
            return self._write(handle, (records, now))
        finally:
            self._writing = False

    def write_several(self, handle: Handle, batches: Sequence[Batch[Record]]) -> int:
        """Do that with the records of several calls, which go upstream together."""
        self._enter()
        try:
            return self._write(handle, *batches)
        finally:
            self._writing = False

    def append(self, records: Sequence[Record], now: float) -> int:
        """Do `begin` and `write`; the caller holds the lock."""
        self._enter()
        try:
            return self._write(self._start_commit(), (records, now))
        except OSError as error:
            raise refusal(self.path, error, "open for append") from error
        finally:
            self._writing = False

    def _enter(self) -> None:
        if self._writing:
            raise reentered(self.path)
        self._writing = True

    def _start_commit(self) -> Handle:
        handle = self._ready()
        self._begun = self._lines
        return handle

    def _ready(self) -> Handle:
        handle = self._handle
        if handle is None or self._checks != self.lock.checks:
            named = 0
            with suppress(FileNotFoundError):  # `_open` makes the log of a cache again
                named = os.stat(self.path).st_ino if handle else 0
            if handle is None or handle.inode != named:
                handle = self._open()
            self._checks = self.lock.checks
        if handle.failure:
            raise PoisonedLog(
                f"a sync failed before ({handle.failure.strerror})",
                operation="append",
                place=self.path,
                hint="check the disk, then reopen the session; everything acknowledged is safe",
            )
        size = os.lseek(handle.fd, 0, os.SEEK_END)
        if size != self._end:
            self._catch_up(handle, size)
        return handle

    def _write(self, handle: Handle, *batches: Batch[Record]) -> int:
        seq, crc, end = self._seq, self._crc, self._end
        lines: list[bytes] = []
        slots: list[bytes] = []
        for records, now in batches:
            if int(now) != self._second:
                self._begin_second(int(now))
            time = f"{self._time}.{int(now * 1000) % 1000:03d}Z"
            mark, count, earlier = b"", len(records), self._lines - self._begun + len(lines)
            for number, record in enumerate(records, 1):
                seq += 1
                if count > 1 or earlier:
                    mark = jsonl.batch_mark(number, count, earlier)
                # No other code has these values yet: setting fields in place saves a copy of each.
                force_setattr(record, "seq", seq)
                force_setattr(record, "id", f"{self._prefix}-{seq}")
                force_setattr(record, "crc", "")  # of an attempt that another worker overtook
                if not record.ts:
                    force_setattr(record, "ts", time)
                try:
                    line, seal = jsonl.seal(_encode(record), mark)
                except UnicodeEncodeError as error:
                    raise _not_utf8(record, error) from error
                force_setattr(record, "crc", seal)
                tokens, flags = self._weigh(record)
                crc = crc32(line, crc)
                length = len(line)
                if length > MAX_LINE_BYTES:
                    raise _too_long(record, length)
                lines.append(line)
                slots.append(SLOT.pack(end, length, tokens, seq, crc, flags))
                end += length
        data = lines[0] if len(lines) == 1 else b"".join(lines)
        if self.upstream is None:
            self._append(handle, data)
        else:
            self.upstream.append(self.path, Mark(self._end, self._crc), data, crc)
            try:
                self._append(handle, data)
            except WriteFailed:
                return end  # it is stored; this log has fewer lines until the next call fetches them
        self.dirty = True
        handle.written = end
        self._offsets.add_packed(b"".join(slots))
        self._lines += len(slots)
        self._seq, self._crc, self._end = seq, crc, end
        return end

    def write_again(self, handle: Handle, slots: Sequence[Slot]) -> None:
        """Rewrite lines that no sync of this handle has covered; the caller holds the lock.

        After a failed sync in another process the kernel may keep their bytes without ever writing them; once they are
        rewritten, the next sync includes them.
        """
        for slot in slots:
            if slot.end <= handle.durable or self.upstream is not None:
                continue
            try:
                line = jsonl.read_at(handle.fd, slot.offset, slot.length)
                fd = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)  # not O_APPEND: at its offset
                try:
                    os.pwrite(fd, line, slot.offset)
                finally:
                    atomic.release(fd)
            except OSError as error:
                raise refusal(self.path, error, "write again") from error

    def _begin_second(self, second: int) -> None:
        self._second = second
        self._time = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        with suppress(OSError):
            if self._offsets.replaced:
                # context/ was deleted: write a new sidecar, so that the next reader need not scan the log.
                self._offsets.follow()

    def commit(self, handle: Handle, start: int, end: int) -> None:
        """Return when the bytes up to `end` are on disk; called without the lock."""
        if self.upstream is not None:
            return  # they are stored there
        try:
            handle.commit(end)
        except OSError as error:
            removed = self._remove_unsynced(handle) <= start
            state = "the lines were removed" if removed else "the lines may still be there"
            raise SyncFailed(
                f"{error.strerror or error}; {state}, nothing since the last successful sync is acknowledged",
                operation="sync",
                place=self.path,
                hint="check the disk, then reopen the session and append again",
            ) from error

    def rebuild(self) -> Handle:
        """Rebuild the sidecar from the log; the caller holds the lock."""
        self._offsets.make_writable()
        self._known = self._offsets.last().end
        self._offsets.ignore()
        self._handle = None
        return self.begin()

    def close(self) -> None:
        """Close the files; the sidecar is synced, so that it is trusted after a reboot."""
        self._offsets.sync()
        self._offsets.close()
        self._handle = None
        self.dirty = False

    def _open(self) -> Handle:
        self._handle = None
        fd = -1
        while fd < 0:
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                if self.upstream is None:
                    raise
                self.upstream.make()  # empty: an append finds that others are there, and fetches them
        handle = Handle(fd, os.fstat(fd).st_ino)
        self._offsets.close()
        self._catch_up(handle, os.lseek(handle.fd, 0, os.SEEK_END))
        self._handle = handle
        return handle

    def _catch_up(self, handle: Handle, size: int) -> None:
        """Read what other processes have appended; on the first append, everything."""
        if size and jsonl.read_at(handle.fd, size - 1, 1) != b"\n":
            size = self._terminate(handle, size)
        if size < self._end:
            handle.durable = 0  # known lines were removed: the bytes there now were never synced
        offsets = self._offsets
        offsets.make_writable()
        offsets.refresh()
        if offsets.last().end != size or not fits(offsets, handle.fd, size):
            if offsets.replaced:
                offsets.follow()
            # In a cache every line was stored: damaged lines, and a write of which a part was fetched, are not torn.
            extend(offsets, handle.fd, size, self._measure, self._known if self.upstream is None else size)
            self._known = 0
            size = self._cut(handle, offsets.last().end, size)
        last = offsets.last()
        self._seq, self._crc, self._end = last.seq, last.crc, last.end
        self._lines = len(offsets)
        handle.written = self._floor = size

    def _measure(self, record: bytes) -> tuple[int, int]:
        try:
            return self._weigh(self._decoder.decode(record))
        except UNREADABLE:
            return _NO_RECORD  # readers report it

    def _terminate(self, handle: Handle, size: int) -> int:
        """Add the LF that a complete last line lacks, and return the new size."""
        tail = jsonl.unterminated(handle.fd, 0, size)
        whole = jsonl.complete(tail) or (tail if self._measure(tail) != _NO_RECORD else b"")
        if not whole:
            return size
        offset = size - len(tail)
        moved = None if whole == tail else self._set_aside(tail)
        if whole != tail:
            os.ftruncate(handle.fd, offset + len(whole))
        jsonl.write_all(handle.fd, b"\n")
        self._note_repair(offset, len(tail), moved)
        return offset + len(whole) + 1

    def _cut(self, handle: Handle, end: int, size: int) -> int:
        """Move a newest write that is not whole to a file, and return the new size."""
        if end < size:
            tail = jsonl.read_at(handle.fd, end, size - end)
            moved = self._set_aside(tail)
            os.ftruncate(handle.fd, end)
            self._note_repair(end, len(tail), moved)
        return end

    def _note_repair(self, offset: int, length: int, moved: str | None) -> None:
        if self.upstream is None:
            self.repairs.append(Repair(os.path.basename(self.path), offset, length, moved))

    def _set_aside(self, tail: bytes) -> str | None:
        if self.upstream is not None:
            return None  # half of what another process was fetching or had stored
        number = 1
        while (former := atomic.read(path := f"{self.path}.torn-{number}")) is not None:
            if former == tail:
                break  # a crash between this copy and the truncation
            number += 1
        if former is None:
            atomic.create(path, tail)
        return os.path.basename(path)

    def _remove_unsynced(self, handle: Handle) -> int:
        """After a failed sync: truncate this process's unacknowledged lines and return the log's size.

        A line with a client key stays: another process may have acknowledged it.
        """
        with self.lock:
            start = max(handle.durable, self._floor)
            try:
                size = os.fstat(handle.fd).st_size
                replaced = os.stat(self.path).st_ino != handle.inode
                if size != handle.written or handle is not self._handle or replaced or self._has_key_after(start):
                    return size
                while self._lines and self._offsets.last().end > start:
                    self._lines -= 1
                    self._offsets.truncate(self._lines)
                os.ftruncate(handle.fd, start)
            except (OSError, StorageFailed):
                return handle.written
            handle.written = start
            return start

    def _has_key_after(self, start: int) -> bool:
        at = self._lines
        while at and (slot := self._offsets.read(at - 1, at)[0]).end > start:
            if slot.flags & KEYED:
                return True
            at -= 1
        return False

    def _append(self, handle: Handle, data: bytes) -> None:
        start = self._end
        try:
            if (written := os.write(handle.fd, data)) != len(data):
                jsonl.write_all(handle.fd, data[written:])
        except BaseException as error:
            # If this fails too, torn bytes stay: readers skip them and the next append moves them to a file.
            with suppress(OSError):
                os.ftruncate(handle.fd, start)
            if not isinstance(error, OSError):
                raise
            raise WriteFailed(
                error.strerror or str(error),
                operation="append",
                place=self.path,
                hint="nothing was appended; free space or fix the disk, then append again",
            ) from error
