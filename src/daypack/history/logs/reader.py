"""Reads a log without a lock: its newest records, a range, or all, at a cost independent of its length."""

import os
import warnings
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, overload
from zlib import crc32

import msgspec
from msgspec.structs import force_setattr

from daypack.errors import DamageWarning
from daypack.files import jsonl
from daypack.files.atomic import refusal, release
from daypack.files.lock import Lock, Watch
from daypack.files.offsets import DAMAGED, PLAIN, SLOT, START, UNCOUNTED, UNSEALED, Offsets, Slot
from daypack.files.rewrite import JOURNAL
from daypack.forks import ThreadLock
from daypack.history.logs.lines import UNREADABLE, examine, extend, lines_with
from daypack.history.logs.upstream import Upstream
from daypack.plain_files import open_fd
from daypack.types.history import Damage, Event, Message

Record = TypeVar("Record", Message, Event)
Answer = TypeVar("Answer")
PREFIX: dict[type, str] = {Message: "msg", Event: "ev"}
BATCH = 1000  # records that are read at once
_SLOTS = 1 << 16  # that are summed at once
_TOKENS, _FLAGS = 3, 6  # of the seven words of a slot
_MOST_WARNINGS = 10
_decoders: dict[type, Any] = {}


def decoder_of(shape: type[Record]) -> "msgspec.json.Decoder[Record]":
    """Return the decoder of a record type, created once because that takes 0.1 ms."""
    if shape not in _decoders:
        _decoders[shape] = msgspec.json.Decoder(shape)
    return _decoders[shape]


class _Numbered(msgspec.Struct):
    seq: int


_numbers = msgspec.json.Decoder(_Numbered)


class _Rebuilt(Exception):
    """The slots were rebuilt, so known positions are invalid."""


class _Unfaithful(Exception):
    """A line is damaged here that may be whole where the log comes from."""


class _Unsettled(Exception):
    """The log is being rewritten together with other files, which must be completed first."""


class _Unfilled(Exception):
    """Another thread fills the log of a cache."""


class _Replaced(FileNotFoundError):
    """The file of a cache is another one, or shorter than it was: it may lack lines."""


class _Reading:
    """Admits one thread at a time and turns OSError into our errors."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._threads = ThreadLock()

    def __enter__(self) -> None:
        self._threads.__enter__()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._threads.__exit__()
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise refusal(self._path, error, "read") from error


class Reader(Generic[Record]):
    """The records of one log, by position.

    A damaged line is not a record: it is reported once, as a warning, and listed in `damage` by its line number.
    """

    def __init__(self, path: str, offsets: Offsets, shape: type[Record], lock: Lock) -> None:
        self.path = path
        self._lock = lock  # only for a rewrite that a killed process left
        self._journal = os.path.join(os.path.dirname(path), JOURNAL)
        self.damage: dict[int, Damage] = {}
        self.sidecar_is_wrong = False  # the next writer rebuilds it
        self.generation = 0  # grows when positions may have changed
        self.restore: Callable[[], bool] | None = None  # of a cache: fetches lines that are damaged here
        self.upstream: Upstream | None = None  # of a cache: makes and fills a log again that was deleted
        self.inode = 0  # of the file that is read
        self._rebuilds = 0
        self._offsets = offsets
        self._decoder = decoder_of(shape)
        self._prefix = PREFIX[shape]
        self._fd = -1
        self._size = 0
        self._watch = Watch(path)
        self._reading = _Reading(path)

    def tail(self, count: int) -> tuple[Record, ...]:
        """Return the last `count` records, oldest first.

        A last write that is not whole has no records: it is skipped here and moved aside by the next append.
        """
        return self._look(lambda: self._tail(count))

    def _tail(self, count: int) -> tuple[Record, ...]:
        stop = self._cover()
        records: list[Record] = []
        while len(records) < count and stop > 0:
            start = max(0, stop - (count - len(records)))
            records[:0] = self._decode(start, stop)
            stop = start
        return tuple(records)

    def count(self) -> int:
        """Return the number of lines, including damaged lines."""
        return self._look(self._cover)

    def newest(self) -> Slot:
        """Return the slot of the last line; in an empty log, START, whose seq is 0."""
        return self._look(self._newest)

    def _newest(self) -> Slot:
        self._cover()
        return self._offsets.last()

    def torn(self) -> bool:
        """Return True if there are bytes after the last complete write."""
        return self._look(lambda: self._cover() >= 0 and self._offsets.last().end != self._size)

    def position(self, seq: int) -> int:
        """Return the position of the first line whose sequence number is not below `seq`."""
        return self._look(lambda: self._position(seq))

    def _position(self, seq: int) -> int:
        lines = self._cover()
        near = seq - 1
        usual = 0 < near <= lines and self._seq(near - 1) == near and (near == lines or self._seq(near) == seq)
        if not usual:  # a number is missing or duplicated
            near = bisect_left(range(lines), seq, key=self._seq)
        # The slots are only a cache: verify with the numbers in the lines. The rest of a line may be long.
        before = self._decode(near - 1, near, _numbers) if near else []
        here = self._decode(near, near + 1, _numbers) if near < lines else []
        odd = (before and before[0].seq >= seq) or (here and here[0].seq < seq)
        if odd and self._offsets.filed:
            self._rebuild()
        return near

    def read(self, start: int, stop: int) -> list[Record]:
        """Return the records of a range of positions."""
        return self._look(lambda: self._decode(max(0, start), min(stop, self._cover())))

    def holding(self, start: int, stop: int, words: Sequence[bytes]) -> list[Record]:
        """Return the records of a range whose lines contain one of some words; next to damage, also others.

        Lines without them are checked as bytes and not decoded, which costs a tenth.
        """
        return self._look(lambda: self._holding(max(0, start), min(stop, self._cover()), words))

    def pick(self, seqs: Sequence[int]) -> list[Record]:
        """Return the records with these numbers, in this order, without lost ones."""
        return self._look(lambda: self._pick(seqs))

    def _pick(self, seqs: Sequence[int]) -> list[Record]:
        lines = self._cover()
        found: list[Record] = []
        for seq in seqs:
            at = seq - 1
            if not 0 <= at < lines or self._seq(at) != seq:
                at = self._position(seq)
            found += [record for record in self._decode(at, min(at + 1, lines)) if record.seq == seq]
        return found

    def count_records(self, start: int, stop: int) -> int:
        """Return how many lines of a range are records, without reading all of them."""
        return self._look(lambda: self._count_records(start, min(stop, self._cover())))

    def _count_records(self, start: int, stop: int) -> int:
        flags = self._offsets.raw(start, stop)[SLOT.size - 4 :: SLOT.size]
        odd = {line - 1 for line in self.damage if start < line <= stop}
        if flags.translate(None, PLAIN):
            odd |= {at for at, flag in enumerate(flags, start) if flag & DAMAGED}
        return max(0, stop - start) - sum(1 for at in odd if not self._decode(at, at + 1))

    def slots(self, start: int, stop: int) -> list[Slot]:
        """Return the slots of a range of positions."""
        return self._look(lambda: self._offsets.read(start, min(stop, self._cover())))

    def counted_tokens(self, start: int = 0, stop: int | None = None) -> tuple[int, list[int]]:
        """Return the tokens of the counted lines from position `start` to before `stop`, and where the others are.

        The slots alone are read.
        """
        end = self.count() if stop is None else min(stop, self.count())
        total, others, width = 0, list[int](), SLOT.size // 4
        for first in range(start, end, _SLOTS):
            packed = self._look(partial(self._raw, first, min(first + _SLOTS, end)))
            slots = array("I", packed)
            tokens, odd = slots[_TOKENS::width], set[int]()
            if packed[SLOT.size - 4 :: SLOT.size].translate(None, PLAIN):
                odd = {at for at, flags in enumerate(slots[_FLAGS::width]) if flags & DAMAGED}
            odd |= {at for at, count in enumerate(tokens) if count == UNCOUNTED} if UNCOUNTED in tokens else set()
            total += sum(tokens) - sum(tokens[at] for at in odd)
            others += [first + at for at in sorted(odd)]
        return total, others

    def _raw(self, start: int, stop: int) -> bytes:
        return self._offsets.raw(start, min(stop, self._cover()))

    def newest_within(self, tokens: int, measure: Callable[[Record], int]) -> int:
        """Return how many of the newest records fit into `tokens`."""
        fitting, stop = 0, self.count()
        while stop > 0:
            start = max(0, stop - BATCH)
            slots = self.slots(start, stop)
            for at in range(start + len(slots) - 1, start - 1, -1):
                slot = slots[at - start]
                if slot.tokens != UNCOUNTED and not slot.flags & DAMAGED:
                    costs = [slot.tokens]
                else:
                    costs = [measure(record) for record in self.read(at, at + 1)]
                tokens -= sum(costs)
                if tokens < 0:
                    return fitting
                fitting += len(costs)
            stop = start
        return fitting

    def close(self) -> None:
        """Close the files; reading opens them again."""
        with self._reading:
            self._close()

    def distrust(self) -> None:
        """Forget what was read, because it is wrong or incomplete: the next read has the log filled before."""
        self.close()
        self.inode = self._size = 0
        self.damage.clear()
        self.generation += 1

    def forget(self) -> None:
        """In a forked child: drop the files of the parent, in which another thread may have been reading."""
        self._close()

    def _look(self, look: Callable[[], Answer]) -> Answer:
        """Call `look`; if it finds that the slots do not match the log, rebuild them and call it again."""
        while True:
            try:
                with self._reading:
                    self._rebuilds = 0
                    while True:
                        try:
                            return look()
                        except _Rebuilt:
                            continue
            except _Unsettled:  # out of `_reading`: a thread that holds the session's lock may wait for it
                with self._lock:
                    continue  # taking the lock completes it
            except _Unfilled:
                if self.upstream is not None:
                    self.upstream.wait_until_filled()
            except FileNotFoundError as error:
                if self.upstream is None or os.path.islink(self.path):
                    raise refusal(self.path, error, "read") from error
                self.upstream.remake()
            except _Unfaithful:
                restore, self.restore = self.restore, None
                if restore is not None and restore():
                    self.restore = restore  # else it is damaged there too, and reported

    def _rebuild(self) -> None:
        if self._rebuilds:
            return  # the slots were just rebuilt from the log: the log itself is damaged
        self._require_faithful()
        self._rebuilds += 1
        self.generation += 1
        self.sidecar_is_wrong = True
        known = self._offsets.last().end
        self._offsets.ignore()
        extend(self._offsets, self._fd, self._size, None, known)
        raise _Rebuilt

    def _require_faithful(self) -> None:
        if self.restore is not None and not self._lock.held:
            raise _Unfaithful

    def _cover(self) -> int:
        """Extend the slots to the last terminated line and return their number."""
        upstream = self.upstream
        if upstream is not None and upstream.is_filling and not self._lock.held:
            raise _Unfilled
        # The folder of a cache may be deleted, and is then unchanged.
        if self._fd < 0 or ((upstream or not self._watch.unchanged()) and os.stat(self.path).st_ino != self.inode):
            self._open()
        count = self._offsets.refresh()
        # Read the size after the slots: writers add the line first, so no slot points past the end.
        size = os.lseek(self._fd, 0, os.SEEK_END)
        if size < self._size and upstream is not None and not upstream.is_filling:
            raise _Replaced
        self._size = size
        if self._offsets.last().end == self._size:
            return count
        if self._offsets.replaced:
            self._offsets.reopen()
        extend(self._offsets, self._fd, self._size, None)
        return len(self._offsets)

    def _open(self) -> None:
        self._close()
        if os.path.lexists(self._journal) and not self._lock.held:
            raise _Unsettled
        fd = open_fd(self.path, os.O_NOFOLLOW)
        former, inode = self.inode, os.fstat(fd).st_ino
        # Only the one who fills a cache reads a file that another process may have begun to fill.
        if former != inode and self.upstream is not None and not self.upstream.is_filling:
            release(fd)
            raise _Replaced
        self._fd, self.inode, self._size = fd, inode, 0
        if former not in (0, inode):  # replaced: other lines, at other places
            self.generation += 1
            self.damage.clear()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        self._offsets.close()
        self._watch.close()
        if fd >= 0:
            release(fd)

    def _seq(self, position: int) -> int:
        return self._offsets.read(position, position + 1)[0].seq

    @overload
    def _decode(self, start: int, stop: int) -> list[Record]: ...
    @overload
    def _decode(
        self, start: int, stop: int, decoder: "msgspec.json.Decoder[_Numbered]"
    ) -> "list[Record] | list[_Numbered]": ...
    def _decode(
        self, start: int, stop: int, decoder: "msgspec.json.Decoder[Any] | None" = None
    ) -> "list[Record] | list[_Numbered]":
        if stop <= start:
            return []
        before = self._offsets.read(start - 1, start)[0] if start else START
        if data := self._intact(before, start, stop):
            try:
                return (decoder or self._decoder).decode_lines(data)
            except UNREADABLE:
                pass  # sealed, but of another type: decoding line by line reports which and why
        return self._decode_each(before, start, stop)

    def _holding(self, start: int, stop: int, words: Sequence[bytes]) -> list[Record]:
        before = self._offsets.read(start - 1, start)[0] if 0 < start < stop else START
        data = self._intact(before, start, stop) if start < stop else b""
        if not data:
            return self._decode(start, stop)
        try:
            return self._decoder.decode_lines(b"".join(lines_with(data, words)))
        except UNREADABLE:
            return self._decode(start, stop)

    def _intact(self, before: Slot, start: int, stop: int) -> bytes:
        """Return the bytes of a range of lines after `before`; none if a line needs a check of its own."""
        packed = self._offsets.raw(start, stop)
        last = Slot._make(SLOT.unpack_from(packed, len(packed) - SLOT.size))
        if not before.end < last.end <= self._size or packed[SLOT.size - 4 :: SLOT.size].translate(None, PLAIN):
            return b""
        data = jsonl.read_at(self._fd, before.end, last.end - before.end)
        return data if crc32(data, before.crc) == last.crc else b""

    def _decode_each(self, before: Slot, start: int, stop: int) -> list[Record]:
        """Decode line by line, because a line is damaged or hand-written, or the slots do not match."""
        slots = self._offsets.read(start, stop)
        ends = [before.end, *(slot.end for slot in slots)]
        framed = ends[-1] <= self._size and all(slot.offset == end for slot, end in zip(slots, ends, strict=False))
        lines = [jsonl.read_at(self._fd, slot.offset, slot.length) for slot in slots] if framed else []
        framed = framed and all(line.find(b"\n") == len(line) - 1 for line in lines)
        examined = [examine(line[:-1]) for line in lines]
        changed = not framed or crc32(b"".join(lines), before.crc) != slots[-1].crc
        explained = framed and any(check.flags & DAMAGED for check in examined)
        if changed and not explained:
            self._rebuild()
        records: list[Record] = []
        for line, (slot, check) in enumerate(zip(slots, examined, strict=False), start + 1):
            reason = check.reason
            try:
                if check.record:
                    record = self._decoder.decode(check.record)
                    records.append(self._numbered(record, slot.seq) if check.flags & UNSEALED else record)
            except UNREADABLE as error:
                reason = reason or str(error)
            if reason and line not in self.damage:
                self._report(Damage(self.path, line, slot.offset, slot.length, reason))
        return records

    def _report(self, damage: Damage) -> None:
        self._require_faithful()
        self.damage[damage.line] = damage
        if len(self.damage) <= _MOST_WARNINGS:
            warnings.warn(DamageWarning(str(damage)), stacklevel=8)
        elif len(self.damage) == _MOST_WARNINGS + 1:
            text = f"{self.path}: more than {_MOST_WARNINGS} damaged lines; see `daypack doctor`"
            warnings.warn(DamageWarning(text), stacklevel=8)

    def _numbered(self, record: Record, seq: int) -> Record:
        """Number a hand-written line by its position, ignoring any number in it."""
        force_setattr(record, "seq", seq)
        force_setattr(record, "id", f"{self._prefix}-{seq}")
        return record
