"""Checks the lines of a log, and adds the slots that its sidecar lacks."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple
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
    batch: Any = None  # not of any other shape that another program may have sealed


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
    batch: tuple[int, int, int] = (1, 1, 0)  # which of how many lines of a write, after how many of the same sync


def examine(line: bytes) -> Examined:
    """Check whether a line is intact, hand-written, damaged or lost."""
    if not line.strip():
        return Examined(b"", -1, DAMAGED, "empty line")
    verdict = jsonl.check(line)
    if verdict == "broken":
        return _rescued(line, "checksum does not match")
    try:
        if verdict == "sealed":
            sealed = _sealed.decode(line)
            return Examined(line, sealed.seq, 0, "", _batch(sealed))
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
            sealed = _sealed.decode(record)
            return Examined(record, sealed.seq, DAMAGED, foreign, _batch(sealed))
        except UNREADABLE as error:
            reason = f"not a JSON object ({error})"
    elif not line.strip(b"\0"):
        reason = f"{len(line)} zero bytes"
    return Examined(b"", 0, DAMAGED, reason)


def _batch(sealed: _Sealed) -> tuple[int, int, int]:
    match sealed.batch:
        case [int() as number, int() as count, *earlier] if 1 <= number <= count:
            return number, count, len(earlier)
        case _:
            return 1, 1, 0


def next_seq(previous: int, examined: Examined) -> int:
    """Return the number of a line: its sealed number, else the next; numbers never decrease."""
    if examined.seq < 0:
        return previous
    if examined.flags & UNSEALED or not examined.record:
        return previous + 1
    return max(previous, examined.seq)


class _Unsettled:
    """The newest write, while it is not certain that it is whole.

    A write that a power failure cut short may lack sectors in its middle, before lines of the same write that are
    whole. Nothing after it was acknowledged, because a sync of that would have synced this too. So it counts as torn,
    all of it, unless a line follows that was written after it was synced: then it is damage within the log.
    """

    def __init__(self, known: int) -> None:
        self._known = known  # lines before this offset were acknowledged
        self._damaged = False
        self._slots: list[Slot] = []

    def take(self, slot: Slot, line: bytes, examined: Examined) -> list[Slot]:
        """Take the next line; return the slots of lines that count from now on."""
        number, count, earlier = examined.batch
        new = examined.record and number == 1 and not earlier  # what comes before it was synced
        settled = self._settle() if new else []
        self._slots.append(slot)
        if slot.end <= self._known:
            return [*settled, *self._settle()]
        if examined.record:
            self._damaged = self._damaged or bool(examined.flags & DAMAGED and not new)
            whole = number == count and not self._damaged
        else:
            whole = len(self._slots) == 1 and not _lacks_sectors(line)
            self._damaged = True
        return [*settled, *self._settle()] if whole else settled

    def _settle(self) -> list[Slot]:
        slots, self._slots, self._damaged = self._slots, [], False
        return slots


def _lacks_sectors(line: bytes) -> bool:
    """Return True for a damaged line that this program began to write, not a person or another program."""
    return line.startswith(b'{"seq":') or b"\0" in line


def extend(offsets: Offsets, fd: int, size: int, measure: Measure | None, known: int = 0) -> None:
    """Add slots for the terminated lines that have none; start over if the sidecar does not match this log.

    `measure` returns tokens and flags of a record; a reader passes None and leaves the lines uncounted. A newest write
    that is not whole gets no slots. Lines before `known`, and those of the sidecar, were acknowledged.
    """
    if not fits(offsets, fd, size):
        known = max(known, offsets.last().end)
        offsets.ignore()
    last = offsets.last()
    seq, crc = last.seq, last.crc
    unsettled = _Unsettled(known)
    slots: list[Slot] = []
    for offset, line in jsonl.scan(fd, last.end, size):
        examined = examine(line[:-1])
        tokens, flags = measure(examined.record) if measure and examined.record else (UNCOUNTED, 0)
        seq = next_seq(seq, examined)
        crc = crc32(line, crc)
        slots += unsettled.take(Slot(offset, len(line), tokens, seq, crc, flags | examined.flags), line, examined)
        if len(slots) >= _BATCH:
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


def lines_with(data: bytes, words: Sequence[bytes]) -> list[bytes]:
    """Return the lines that contain one of some words, in their order."""
    starts: set[int] = set()
    for word in words:
        at = data.find(word)
        while at >= 0:
            starts.add(data.rfind(b"\n", 0, at) + 1)
            at = data.find(word, data.index(b"\n", at))
    return [data[start : data.index(b"\n", start) + 1] for start in sorted(starts)]
