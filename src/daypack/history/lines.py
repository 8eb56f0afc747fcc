"""What a line of a log is worth, and the slots of lines that nobody has entered into the sidecar yet."""

from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

import msgspec

from daypack.files import jsonl
from daypack.files.offsets import DAMAGED, UNCOUNTED, UNSEALED, Offsets, Slot

Measure = Callable[[bytes], tuple[int, int]]
_BATCH = 1000

# Flags of a slot beside those of files/offsets.py; the role is its place in ROLES plus one.
ROLE_SHIFT = 4
CALLS = 1 << 7  # asks for tool calls
KEYED = 1 << 8  # has a client key


class _Stamp(msgspec.Struct):
    seq: int = 0


_stamps = msgspec.json.Decoder(_Stamp)


class Examined(NamedTuple):
    """A line (without its LF) after a look at it."""

    record: bytes  # what can be decoded; nothing when the line is lost
    seq: int  # the number it states; 0 when it states none, -1 when there is nothing to number
    flags: int
    reason: str  # what is wrong with it, for a person


def examine(line: bytes) -> Examined:
    """Tell a good line from a hand-written, a damaged and a lost one."""
    if not line.strip():
        return Examined(b"", -1, DAMAGED, "empty line")
    verdict = jsonl.check(line)
    if verdict == "broken":
        record = jsonl.salvage(line) or b""
        return Examined(record, _seq(record) if record else 0, DAMAGED, _diagnose(line, record))
    try:
        seq = _seq(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        record = jsonl.salvage(line) or b""
        return Examined(record, _seq(record) if record else 0, DAMAGED, _diagnose(line, record, str(error)))
    return Examined(line, seq, 0 if verdict == "sealed" else UNSEALED, "")


def next_seq(previous: int, examined: Examined) -> int:
    """Number a line: sealed lines are believed, the others take the next free number; never downwards."""
    if examined.seq < 0:
        return previous
    if examined.flags & UNSEALED or not examined.record:
        return examined.seq if examined.seq > previous else previous + 1
    return max(previous, examined.seq)


def extend(offsets: Offsets, fd: int, size: int, measure: Measure | None) -> None:
    """Enter the terminated lines that have no slot yet; begin anew where the sidecar cannot be about this log.

    `measure` gives tokens and flags of a record; a reader has none and leaves the lines uncounted.
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
    """Whether the newest slot is about a line of this log: one line, and the number it states."""
    if not len(offsets):
        return True
    last = offsets.last()
    if not last.length or last.end > size:
        return False
    line = jsonl.read_at(fd, last.offset, last.length)
    if line.find(b"\n") != last.length - 1:
        return False
    examined = examine(line[:-1])
    return bool(examined.flags) or examined.seq <= last.seq


def _seq(line: bytes) -> int:
    return _stamps.decode(line).seq


def _diagnose(line: bytes, record: bytes, error: str = "") -> str:
    if not line.strip(b"\0"):
        return f"{len(line)} zero bytes"
    if record:
        return f"{len(line) - len(record)} foreign bytes before a whole line, which was read"
    return f"not a JSON object ({error})" if error else "checksum does not match"
