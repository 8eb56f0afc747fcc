"""Lines of a log: one JSON object each, ended by LF, sealed by a checksum in the last key.

    {"seq":12,"id":"msg-12", … ,"crc":"1a2b3c4d"}⏎

The checksum is the CRC-32 of the bytes before `,"crc"`. A line without it is *unsealed*: hand-written lines are
allowed. A line with a wrong checksum is *broken*. Only byte 0x0A ends a line.
"""

import os
from collections.abc import Iterator
from typing import Literal
from zlib import crc32

Verdict = Literal["sealed", "unsealed", "broken"]

_KEY = b',"crc":"'
_SEAL = len(_KEY) + 8 + len(b'"}')
_HEAD = b'{"seq":'
_CHUNK = 1 << 20
_MOST_TRIES = 64


def seal(body: bytes, mark: bytes = b"") -> tuple[bytes, str]:
    """Return the line for one encoded JSON object, with its LF, and the checksum it carries.

    `mark` is a key with its value that is added to the object: see `batch_mark`.
    """
    head = memoryview(body)[:-1]  # a message may have 60 MB: no copy
    crc = crc32(mark, crc32(head)).to_bytes(4, "big").hex()
    return b"".join((head, mark, _KEY, crc.encode(), b'"}\n')), crc


def batch_mark(number: int, count: int, earlier: int) -> bytes:
    """Return the mark of line `number`, from 1, of `count` lines that are written together, all or none.

    `earlier` lines of other writes are synced together with them: group commit.
    """
    return b',"batch":[%d,%d,%d]' % (number, count, earlier) if earlier else b',"batch":[%d,%d]' % (number, count)


def check(line: bytes) -> Verdict:
    """Check the seal of a line (without its LF)."""
    tail = line[-_SEAL:]
    sealed = tail[-10:-2] == b"%08x" % crc32(memoryview(line)[:-_SEAL])
    if tail.startswith(_KEY) and tail.endswith(b'"}'):
        return "sealed" if sealed else "broken"
    # A correct checksum after a wrong key is a damaged seal, not a hand-written line.
    return "broken" if sealed else "unsealed"


def salvage(line: bytes) -> bytes | None:
    """Return the sealed line at the end of a broken one, after a torn write or a block of zeros."""
    start = len(line)
    for _ in range(_MOST_TRIES):  # the text may contain the beginning of a line
        start = line.rfind(_HEAD, 1, start)
        if start == -1:
            return None
        if check(line[start:]) == "sealed":
            return line[start:]
    return None


def complete(tail: bytes) -> bytes:
    """Return the complete line in an unterminated tail: all of it, all but a wrong last byte, or b""."""
    for line in (tail, tail[:-1]):
        if check(line) == "sealed":
            return line
    return b""


def read_at(fd: int, offset: int, length: int) -> bytes:
    """Read `length` bytes at `offset`; fewer only at the end of the file."""
    data = os.pread(fd, length, offset)
    if len(data) == length or not data:
        return data
    parts = [data]
    missing = length - len(data)
    while missing and parts[-1]:
        parts.append(os.pread(fd, missing, offset + length - missing))
        missing -= len(parts[-1])
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, continuing after short writes."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def scan(fd: int, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and bytes (with LF) of every terminated line between two offsets."""
    open_parts: list[bytes] = []  # of a line that continues in the next chunk
    offset = position = start
    while position < stop:
        data = os.pread(fd, min(_CHUNK, stop - position), position)
        if not data:
            return
        position += len(data)
        first, *lines = data.split(b"\n")
        open_parts.append(first)
        if not lines:
            continue
        line = b"".join((*open_parts, b"\n"))  # it may have 60 MB: no copy but this is kept
        open_parts = [lines.pop()]
        yield offset, line
        offset += len(line)
        for line in lines:
            yield offset, line + b"\n"
            offset += len(line) + 1


def unterminated(fd: int, start: int, stop: int) -> bytes:
    """Return the bytes after the last LF between two offsets (b"" if the last line is complete)."""
    parts: list[bytes] = []
    while stop > start:
        step = min(_CHUNK, stop - start)
        data = read_at(fd, stop - step, step)
        cut = data.rfind(b"\n")
        parts.append(data[cut + 1 :])
        if cut != -1:
            break
        stop -= step
    return b"".join(reversed(parts))
