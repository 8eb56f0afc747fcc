"""The sidecar of a log: one fixed-width slot per line, so that line n is found without reading the others.

    header, 64 bytes: magic "daypidx1" · counting method (24) · boot id (16) · synced slots (u64) · 8 spare
    slot,   28 bytes: offset u64 · length u32 · tokens u32 · seq u32 · running crc u32 · flags u32

The running crc covers the log from its first byte to the end of the line, so one CRC verifies any range of lines.
The sidecar is a cache. Slots after `synced` count only until the next reboot: after a power failure the log may be
ahead of them, or they may be zeros.
"""

import os
import struct
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from daypack.errors import StorageFailed
from daypack.files.atomic import discard, make_folders, release
from daypack.files.durable import sync_data
from daypack.files.jsonl import read_at
from daypack.system import boot_id

MAGIC = b"daypidx1"
UNSEALED = 1
DAMAGED = 2
# The lowest flag bytes of lines that can be decoded without a check.
PLAIN = bytes(flags for flags in range(256) if not flags & (UNSEALED | DAMAGED))
UNCOUNTED = 0xFFFFFFFF  # tokens of a line that only a reader has indexed

SYNC_EVERY = 8192  # slots; at most so many lines are read again after a power failure

HEADER = Struct("<8s24s16sQ8x")
SLOT = Struct("<QIIIII")
_HEADER_SIZE, _SLOT_SIZE = HEADER.size, SLOT.size


class Slot(NamedTuple):
    """Where a line is, and its metadata."""

    offset: int
    length: int
    tokens: int
    seq: int
    crc: int
    flags: int

    @property
    def end(self) -> int:
        """The offset after the line's LF."""
        return self.offset + self.length


START = Slot(0, 0, 0, 0, 0, 0)


class Offsets:
    """The slots of one log: the trusted ones in the file, then those only this process has."""

    def __init__(self, path: str, method: str | None) -> None:
        self.path = path
        self._method = method.encode() if method is not None else None  # None: accept any counting method
        self._fd = -1
        self._inode = 0
        self._writable = False
        self._partly = False  # the file has untrusted slots from before a reboot
        self._ignored = False  # the file does not match the log; a reader continues without it
        self._filed = 0  # trusted slots in the file
        self._synced = 0
        self._extra = bytearray()  # packed slots after them that are not in the file (yet)

    def __len__(self) -> int:
        return self._filed + len(self._extra) // SLOT.size

    # Reading

    def refresh(self) -> int:
        """Find slots that other processes have added; return the number of slots."""
        if self._ignored:
            return len(self)
        if self._fd < 0 or self._partly:
            filed, extra = self._filed, self._extra
            self._extra = bytearray()
            self.reopen()
            if self._filed == filed:  # else the file has more, or other slots
                self._extra = extra
            return len(self)
        count = max(0, (os.lseek(self._fd, 0, os.SEEK_END) - HEADER.size) // SLOT.size)
        if count < self._filed or count >= len(self):
            self._extra.clear()
            self._filed = count
        return len(self)

    def reopen(self) -> None:
        """Reopen the file; the path may name another file than before."""
        writable = self._writable
        self.close()
        if writable:
            self.make_writable()
        else:
            self._open(os.O_RDONLY)

    def follow(self) -> None:
        """Switch to the file that the path names now, or a new one, and add the slots it lacks."""
        packed = self.raw(0, len(self))
        self.reopen()
        self.add_packed(packed[len(self) * SLOT.size :])

    @property
    def replaced(self) -> bool:
        """True if the path no longer names the open file."""
        try:
            return os.stat(self.path).st_ino != self._inode
        except OSError:
            return self._fd >= 0

    @property
    def filed(self) -> int:
        """The number of slots in the file."""
        return self._filed

    def last(self) -> Slot:
        """Return the newest slot; START in an empty log."""
        count = len(self)
        return self.read(count - 1, count)[0] if count else START

    def read(self, start: int, stop: int) -> list[Slot]:
        """Return the slots of positions `start` to before `stop`."""
        return [Slot._make(fields) for fields in SLOT.iter_unpack(self.raw(start, stop))]

    def raw(self, start: int, stop: int) -> bytes:
        """Return the packed slots of a range of positions; zeros where the file is shorter."""
        width = SLOT.size
        inner = min(stop, self._filed)
        data = b""
        if start < inner:
            data = read_at(self._fd, HEADER.size + start * width, (inner - start) * width)
            data += bytes((inner - start) * width - len(data))
        if stop > self._filed:
            skip = max(0, start - self._filed)
            data += bytes(self._extra[skip * width : (stop - self._filed) * width])
        return data

    # Changing

    def add(self, slots: Sequence[Slot]) -> None:
        """Append slots."""
        self.add_packed(b"".join([SLOT.pack(*slot) for slot in slots]))

    def add_packed(self, data: bytes) -> None:
        """Append packed slots to the file; if that fails, keep them in this process.

        The log has the lines, so a full disk here fails no append.
        """
        if not self._writable:
            self._extra += data
            return
        if self._extra:
            data = bytes(self._extra) + data
        if not self._write(data, _HEADER_SIZE + self._filed * _SLOT_SIZE):
            self._extra[:] = data
            return
        self._extra.clear()
        self._filed += len(data) // _SLOT_SIZE
        if self._filed - self._synced >= SYNC_EVERY:
            self.sync()

    def truncate(self, count: int) -> None:
        """Remove the slots from position `count` on."""
        del self._extra[max(0, count - self._filed) * SLOT.size :]
        if count < self._filed:
            self._filed = count
            self._synced = min(self._synced, count)
            if self._writable:
                self._trim()

    def make_writable(self) -> None:
        """Open the file for writing, creating it, and truncate untrusted slots."""
        if self._writable:
            return
        self.close()
        try:
            make_folders(os.path.dirname(self.path), durable=False)
        except StorageFailed:
            return
        self._open(os.O_RDWR | os.O_CREAT)
        self._writable = self._fd >= 0
        if self._writable:
            self._trim()

    def ignore(self) -> None:
        """Discard all slots because the file does not match the log; continue in memory, or in a new file."""
        writable = self._writable
        self.close()
        if writable:
            discard(self.path)
            self.make_writable()
        self._ignored = not writable

    def sync(self) -> None:
        """Sync the slots, so that they are trusted after a power failure."""
        if not self._writable or self._extra or self._synced == self._filed:
            return
        count = self._filed
        try:
            sync_data(self._fd)
        except OSError:
            self._give_up()
            return
        self._synced = count
        self._write_header()

    def close(self) -> None:
        """Close the file."""
        fd, self._fd = self._fd, -1
        self._writable = self._partly = self._ignored = False
        self._filed = self._synced = self._inode = 0
        self._extra.clear()
        if fd >= 0:
            release(fd)

    # The file

    def _open(self, flags: int) -> None:
        try:
            self._fd = os.open(self.path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        except OSError:
            return  # no sidecar: all slots are read from the log
        try:
            status = os.fstat(self._fd)
            self._inode = status.st_ino
            magic, method, boot, synced = HEADER.unpack(os.pread(self._fd, HEADER.size, 0))
            count = (status.st_size - HEADER.size) // SLOT.size
        except (OSError, struct.error):
            magic, method, boot, synced, count = b"", b"", b"", 0, 0
        if magic != MAGIC or self._method not in (None, method.rstrip(b"\0")):
            if not flags & os.O_CREAT:  # a writer rebuilds it; a reader ignores it
                self.close()
            return
        self._synced = min(synced, count)
        self._partly = boot != boot_id()
        self._filed = self._synced if self._partly else count

    def _trim(self) -> None:
        try:
            os.ftruncate(self._fd, HEADER.size + self._filed * SLOT.size)
        except OSError:
            self._give_up()
            return
        self._write_header()

    def _write_header(self) -> None:
        if not self._write(HEADER.pack(MAGIC, self._method or b"", boot_id(), self._synced), 0):
            self._give_up()
        self._partly = False

    def _write(self, data: bytes, offset: int) -> bool:
        try:
            return os.pwrite(self._fd, data, offset) == len(data)
        except OSError:
            return False

    def _give_up(self) -> None:
        # A missing file is rebuilt; a wrong one must not stay.
        self.close()
        discard(self.path)
