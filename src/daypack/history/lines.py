"""Checks the lines of a log, and adds the slots that its sidecar lacks."""

from collections.abc import Callable
from typing import Annotated, NamedTuple
from zlib import crc32

import msgspec

from daypack.files import jsonl
from daypack.files.offsets import DAMAGED, START, UNCOUNTED, UNSEALED, Offsets, Slot

Measure = Callable[[bytes], tuple[int, int]]
_BATCH = 1000

# Flags of a slot in addition to those of files/offsets.py; the role is its index in ROLES plus one.
ROLE_SHIFT = 4
CALLS = 1 << 7  # has tool calls
KEYED = 1 << 8  # has a client key
BROKEN = 1 << 9  # a reply that broke off


MAX_SEQ = 4_000_000_000  # a slot has 32 bits for it; leaves room above
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Sealed(msgspec.Struct):
    seq: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)] = 0


class _Unsealed(msgspec.Struct):
    pass  # any object: a hand-written line is numbered by its position


_sealed = msgspec.json.Decoder(_Sealed)
_unsealed = msgspec.json.Decoder(_Unsealed)


class Examined(NamedTuple):
    """The result of checking a line (without its LF)."""

    record: bytes  # what can be decoded; empty if the line is lost
    seq: int  # its sealed number; 0 if there is none, -1 for an empty line
    flags: int
    reason: str  # why it is damaged, for people


def examine(line: bytes) -> Examined:
    """Check whether a line is intact, hand-written, damaged or lost."""
    if not line.strip():
        return Examined(b"", -1, DAMAGED, "empty line")
    verdict = jsonl.check(line)
    if verdict == "broken":
        return _rescued(line, "checksum does not match")
    try:
        if verdict == "sealed":
            return Examined(line, _sealed.decode(line).seq, 0, "")
        _unsealed.decode(line)
    except UNREADABLE as error:
        return _rescued(line, f"not a JSON object ({error})")
    return Examined(line, 0, UNSEALED, "")


def _rescued(line: bytes, reason: str) -> Examined:
    """Look for a complete line at the end of a damaged one."""
    record = jsonl.salvage(line) or b""
    if record:
        foreign = f"{len(line) - len(record)} foreign bytes before a complete line, which was read"
        try:
            return Examined(record, _sealed.decode(record).seq, DAMAGED, foreign)
        except UNREADABLE as error:
            reason = f"not a JSON object ({error})"
    elif not line.strip(b"\0"):
        reason = f"{len(line)} zero bytes"
    return Examined(b"", 0, DAMAGED, reason)


def next_seq(previous: int, examined: Examined) -> int:
    """Return the number of a line: its sealed number, else the next; numbers never decrease."""
    if examined.seq < 0:
        return previous
    if examined.flags & UNSEALED or not examined.record:
        return previous + 1
    return max(previous, examined.seq)


def extend(offsets: Offsets, fd: int, size: int, measure: Measure | None) -> None:
    """Add slots for the terminated lines that have none; start over if the sidecar does not match this log.

    `measure` returns tokens and flags of a record; a reader passes None and leaves the lines uncounted.
    """
    if not fits(offsets, fd, size):
        offsets.ignore()
    last = offsets.last()
    seq, crc = last.seq, last.crc
    slots: list[Slot] = []
    for offset, line in jsonl.scan(fd, last.end, size):
        examined = examine(line[:-1])
        tokens, flags = measure(examined.record) if measure and examined.record else (UNCOUNTED, 0)
        seq = next_seq(seq, examined)
        crc = crc32(line, crc)
        slots.append(Slot(offset, len(line), tokens, seq, crc, flags | examined.flags))
        if len(slots) == _BATCH:
            offsets.add(slots)
            slots.clear()
    if slots:
        offsets.add(slots)


def fits(offsets: Offsets, fd: int, size: int) -> bool:
    """Return True if the newest slot matches the log: the line's bytes, its number and the running crc."""
    count = len(offsets)
    if not count:
        return True
    before = offsets.read(count - 2, count - 1)[0] if count > 1 else START
    last = offsets.last()
    if not last.length or last.offset != before.end or last.end > size:
        return False
    line = jsonl.read_at(fd, last.offset, last.length)
    if line.find(b"\n") != last.length - 1 or crc32(line, before.crc) != last.crc:
        return False
    return next_seq(before.seq, examine(line[:-1])) == last.seq
