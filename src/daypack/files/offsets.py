"""The sidecar of a log: one fixed-width slot per line, so that line n is found without reading the others.

    header, 64 bytes: magic "daypidx1" · counting method (24) · boot id (16) · synced slots (u64) · 8 spare
    slot,   28 bytes: offset u64 · length u32 · tokens u32 · seq u32 · running crc u32 · flags u32

The running crc covers the log from its first byte to the end of the line: one CRC over any range of lines
proves that range. The sidecar is a cache. Slots behind `synced` count only during the boot they were written
in: after a power cut the log may be ahead of them, or they may be zeros.
"""

import os
import struct
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from daypack.errors import StorageFailed
from daypack.files.atomic import discard, make_folders, release
from daypack.files.jsonl import read_at

MAGIC = b"daypidx1"
UNSEALED = 1
DAMAGED = 2
# The lowest flag bytes of lines that can be decoded as they stand.
PLAIN = bytes(flags for flags in range(256) if not flags & (UNSEALED | DAMAGED))
UNCOUNTED = 0xFFFFFFFF  # tokens of a line that only a reader has seen

SYNC_EVERY = 8192  # slots; so many lines at most are read again after a power cut

HEADER = Struct("<8s24s16sQ8x")
SLOT = Struct("<QIIIII")
_HEADER_SIZE, _SLOT_SIZE = HEADER.size, SLOT.size


class Slot(NamedTuple):
    """Where one line is and what is known of it without reading it."""

    offset: int
    length: int
    tokens: int
    seq: int
    crc: int
    flags: int

    @property
    def end(self) -> int:
        """The offset behind the line's LF."""
        return self.offset + self.length


START = Slot(0, 0, 0, 0, 0, 0)


class Offsets:
    """The slots of one log: a trusted run in the file, and behind it slots known only to this process."""

    def __init__(self, path: str, method: str | None) -> None:
        self.path = path
        self._method = method.encode() if method is not None else None  # None: read, whatever the counts are
        self._fd = -1
        self._inode = 0
        self._writable = False
        self._partly = False  # the file holds slots of an earlier boot that are not trusted
        self._ignored = False  # the file does not describe the log; a reader goes on without it
        self._filed = 0  # trusted slots in the file
        self._synced = 0
        self._extra = bytearray()  # packed slots behind them, not in the file (yet)

    def __len__(self) -> int:
        return self._filed + len(self._extra) // SLOT.size

    # Reading

    def refresh(self) -> int:
        """Look for slots other processes have added; return how many there are now."""
        if self._ignored:
            return len(self)
        if self._fd < 0 or self._partly:
            filed, extra = self._filed, self._extra
            self._extra = bytearray()
            self.reopen()
            if self._filed == filed:  # else the file says it better, or says something else
                self._extra = extra
            return len(self)
        count = max(0, (os.lseek(self._fd, 0, os.SEEK_END) - HEADER.size) // SLOT.size)
        if count < self._filed or count >= len(self):
            self._extra.clear()
            self._filed = count
        return len(self)

    def reopen(self) -> None:
        """Read the file anew from its path, which may name another file than before."""
        writable = self._writable
        self.close()
        if writable:
            self.make_writable()
        else:
            self._open(os.O_RDONLY)

    def follow(self) -> None:
        """Go on in the file that the path names now, or in a new one, taking along the slots it lacks."""
        packed = self.raw(0, len(self))
        self.reopen()
        self.add_packed(packed[len(self) * SLOT.size :])

    @property
    def replaced(self) -> bool:
        """Whether the path no longer names the file that is open."""
        try:
            return os.stat(self.path).st_ino != self._inode
        except OSError:
            return self._fd >= 0

    @property
    def filed(self) -> int:
        """How many slots come from the file."""
        return self._filed

    def last(self) -> Slot:
        """Return the newest slot; before any line, the start of the log."""
        count = len(self)
        return self.read(count - 1, count)[0] if count else START

    def read(self, start: int, stop: int) -> list[Slot]:
        """Return slots by position, from `start` up to but not including `stop`."""
        return [Slot._make(fields) for fields in SLOT.iter_unpack(self.raw(start, stop))]

    def raw(self, start: int, stop: int) -> bytes:
        """Return the packed slots of a range of positions; zeros stand where the file turned out shorter."""
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
        """Put slots behind the newest."""
        self.add_packed(b"".join([SLOT.pack(*slot) for slot in slots]))

    def add_packed(self, data: bytes) -> None:
        """Put packed slots behind the newest: into the file where that works, else for this process only.

        The log has the lines, that is what counts: a full disk here fails nobody's append.
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
        """Forget the slots from position `count` on."""
        del self._extra[max(0, count - self._filed) * SLOT.size :]
        if count < self._filed:
            self._filed = count
            self._synced = min(self._synced, count)
            if self._writable:
                self._trim()

    def make_writable(self) -> None:
        """Open the file for writing, creating it, and cut off what cannot be trusted."""
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
        """Forget every slot because the file does not describe the log; go on in memory, or in a new file."""
        writable = self._writable
        self.close()
        if writable:
            discard(self.path)
            self.make_writable()
        self._ignored = not writable

    def sync(self) -> None:
        """Make the slots durable, so that they are believed after a power cut too."""
        if not self._writable or self._extra or self._synced == self._filed:
            return
        count = self._filed
        try:
            os.fdatasync(self._fd)
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
            return  # no sidecar: every slot is read off the log
        try:
            status = os.fstat(self._fd)
            self._inode = status.st_ino
            magic, method, boot, synced = HEADER.unpack(os.pread(self._fd, HEADER.size, 0))
            count = (status.st_size - HEADER.size) // SLOT.size
        except (OSError, struct.error):
            magic, method, boot, synced, count = b"", b"", b"", 0, 0
        if magic != MAGIC or self._method not in (None, method.rstrip(b"\0")):
            if not flags & os.O_CREAT:  # a writer makes it right; for a reader it is as good as none
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
        # A missing file is rebuilt; one that cannot be kept right must not stay.
        self.close()
        discard(self.path)


def boot_id() -> bytes:
    """Return 16 bytes that differ between boots (between processes, where the system does not tell)."""
    global _boot  # noqa: PLW0603 — it cannot change while this process lives
    if not _boot:
        try:
            with open("/proc/sys/kernel/random/boot_id", "rb") as file:
                _boot = bytes.fromhex(file.read(36).decode().replace("-", ""))
        except (OSError, ValueError):
            _boot = os.urandom(16)
    return _boot


_boot = b""
