"""Maps keys to lines: a hash table in one file that grows without being rewritten.

    header, 64 bytes: magic "daypkey1" · boot id (16) · covered lines (u64) · keys (u64) · synced lines (u64)
                      · running crc of the covered lines (u32) · crc of these fields (u32) · 8 spare
    levels: 1,024 cells, then 2,048, 4,096, … each half full before the next begins
    cell, 16 bytes: hash of the key u64 (never 0) · line number u64

A lookup probes every level (eleven for a million keys). The file is a cache: `covered` is the number of log lines
it includes, `crc` identifies them. After a reboot it is trusted only if all of it was synced.
"""

import errno
import os
from collections.abc import Iterator
from struct import Struct
from zlib import crc32

from daypack.files.atomic import discard, make_folders, release
from daypack.files.durable import sync_data
from daypack.system import boot_id

MAGIC = b"daypkey1"
_HEADER = Struct("<8s16sQQQI")
_HEADER_SIZE = 64
_CELL = Struct("<QQ")
_FIRST = 1024
_WINDOW = 8  # cells read at once


class Keys:
    """The table of one log, opened for writing under the session's lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.covered = 0
        self.crc = 0
        self._count = 0
        self._fd = -1

    def open(self) -> None:
        """Read the header, creating the file; an untrusted table starts empty."""
        self.close()
        make_folders(os.path.dirname(self.path), durable=False)
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        boot, synced = self._read_header()
        if boot != boot_id() and synced != self.covered:
            self.covered = self._count = self.crc = 0
        if not self.covered:
            os.ftruncate(self._fd, 0)

    def _read_header(self) -> tuple[bytes, int]:
        """Read the header; a missing or damaged header means an empty table."""
        data = os.pread(self._fd, _HEADER_SIZE, 0)
        seal = int.from_bytes(data[_HEADER.size : _HEADER.size + 4], "little")
        if len(data) == _HEADER_SIZE and data.startswith(MAGIC) and crc32(data[: _HEADER.size]) == seal:
            _, boot, self.covered, self._count, synced, self.crc = _HEADER.unpack_from(data)
            return boot, synced
        self.covered = self._count = self.crc = 0
        return b"", 0

    @property
    def is_open(self) -> bool:
        """True if the file is open."""
        return self._fd >= 0

    def refresh(self) -> None:
        """Read what other processes have added."""
        if not self.is_open or _moved(self._fd, self.path):
            self.open()
            return
        self._read_header()

    def find(self, key: str) -> Iterator[int]:
        """Yield the line numbers that may have `key` (another key can share its hash)."""
        wanted = _hash(key)
        start, size = _HEADER_SIZE, _FIRST
        for _ in range(_level(self._count)[0] + 1):
            for _, cell, line in self._probe(start, size, wanted):
                if cell == wanted:
                    yield line
            start, size = start + size * _CELL.size, size * 2

    def put(self, key: str, line: int) -> None:
        """Add a key; its line counts as included after `cover`."""
        _, start, size = _level(self._count)
        wanted = _hash(key)
        for position, cell, _ in self._probe(start, size, wanted):
            if cell == 0:
                os.pwrite(self._fd, _CELL.pack(wanted, line), position)
                break
        self._count += 1

    def cover(self, lines: int, crc: int, *, synced: bool = False) -> None:
        """Record that the table includes the first `lines` lines of the log, with this running crc."""
        self.covered, self.crc = lines, crc
        header = _HEADER.pack(MAGIC, boot_id(), lines, self._count, lines if synced else 0, crc)
        os.pwrite(self._fd, header + crc32(header).to_bytes(4, "little") + bytes(8), 0)

    def sync(self) -> None:
        """Sync the table, so that it is trusted after a reboot; other processes may have added to it."""
        if self.is_open:
            self.refresh()
            sync_data(self._fd)
            self.cover(self.covered, self.crc, synced=True)

    def drop(self) -> None:
        """Delete the table; it is rebuilt when it is needed."""
        self.close()
        discard(self.path)

    def close(self) -> None:
        """Close the file."""
        fd, self._fd = self._fd, -1
        self.covered = self._count = self.crc = 0
        if fd >= 0:
            release(fd)

    def _probe(self, start: int, size: int, wanted: int) -> Iterator[tuple[int, int, int]]:
        # A level is at most half full, so probing soon reaches an empty cell.
        index = wanted % size
        for _ in range(size // _WINDOW + 2):
            window = min(_WINDOW, size - index)
            position = start + index * _CELL.size
            data = os.pread(self._fd, window * _CELL.size, position)
            data += bytes(window * _CELL.size - len(data))
            for cell, line in _CELL.iter_unpack(data):
                yield position, cell, line
                if cell == 0:
                    return
                position += _CELL.size
            index = (index + window) % size
        raise OSError(errno.EINVAL, "a level without an empty cell", self.path)


def _level(count: int) -> tuple[int, int, int]:
    """Return number, offset and size of the level for the next key."""
    level, start, size = 0, _HEADER_SIZE, _FIRST
    while count >= size // 2:
        count -= size // 2
        level, start, size = level + 1, start + size * _CELL.size, size * 2
    return level, start, size


def _hash(key: str) -> int:
    from hashlib import blake2b  # noqa: PLC0415 — 2 ms, only with keys

    digest = blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


def _moved(fd: int, path: str) -> bool:
    try:
        return os.stat(path).st_ino != os.fstat(fd).st_ino
    except FileNotFoundError:
        return True
