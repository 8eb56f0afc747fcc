"""A range of a log by sequence number, which is read during iteration: it may be longer than memory."""

from collections.abc import Iterator, Sequence
from typing import Generic, overload

from daypack.history.logs.reader import BATCH, Reader, Record

_SEARCHED = 4000  # lines that are searched at once


class Records(Generic[Record]):
    """A range of a log by sequence number, read during iteration."""

    def __init__(self, reader: Reader[Record], start: int, stop: int | None, words: Sequence[bytes] = ()) -> None:
        self._reader = reader
        self._words = words  # iteration yields only records whose lines contain one of them
        self._first = start
        self._last = reader.newest().seq if stop is None else stop  # lines appended later are not in the range
        self._generation = -1
        self._range = (0, 0)

    def _places(self) -> tuple[int, int]:
        """Return the positions of the range, looked up again if they may have changed."""
        for _ in range(3):
            if self._generation == self._reader.generation:
                break
            self._generation = self._reader.generation
            self._range = self._reader.position(self._first), self._reader.position(self._last + 1)
        return self._range

    def __iter__(self) -> Iterator[Record]:
        last = self._first - 1
        at, stop = self._places()
        step = _SEARCHED if self._words else BATCH
        while at < stop:
            generation = self._generation
            end = min(at + step, stop)
            batch = self._reader.holding(at, end, self._words) if self._words else self._reader.read(at, end)
            if generation != self._reader.generation:
                stop = self._places()[1]
                at = self._reader.position(last + 1)  # continue after the last yielded record
                continue
            for record in batch:
                last = max(last, record.seq)
                yield record
            at += step

    def __len__(self) -> int:
        count, generation = self._reader.count_records(*self._places()), self._generation
        return count if generation == self._reader.generation else self._reader.count_records(*self._places())

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        if isinstance(index, int):
            count = len(self)
            start, stop = self._places()
            at = (start if index >= 0 else stop) + index
            if count == stop - start and start <= at < stop:
                for record in self._reader.read(at, at + 1):
                    return record
        return tuple(self)[index]  # a slice, an error, or a lost line makes the position unknown
