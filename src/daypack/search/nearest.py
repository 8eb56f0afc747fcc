"""Encodes vectors as compact rows and finds the rows nearest to a query. Imports numpy: only `vectors` imports it.

    row, 448 bytes at 384 dimensions: tag u64 · check u32 · scale f32 · ninth bits (48) · int8 values (384)

A vector component has nine bits: the upper eight are an int8, the ninth is in a bit plane. Eight bits alone confuse
close neighbours (recall of the ten nearest: 0.983 with eight bits, 0.995 with nine). `tag` is twice the id, plus one in
the last row of that id. `check` is a checksum of the row; a row of zeros never ends an id.

Up to ALL_COMPARED rows are compared with a query. Among more rows, the sign bits (one per component, kept in memory)
select the candidates: the number of differing signs is nearly binomial, with the angle between the vectors as its
probability. So the rows with the fewest differing signs are compared by value, then every row that could still belong
to the best ten.
"""

from collections.abc import Collection, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daypack.errors import BadInput

ALL_COMPARED = 4_000  # up to so many rows, the sign bits save nothing
_FIRST_COMPARED = 500
_MOST_COMPARED = 8  # at most one row in so many: a query without close neighbours is not worth more
_PROMISED = 10  # so many of the best must be right
_DEVIATIONS = 2.25  # tolerance for differing signs, in standard deviations above the expected number
_SAMPLED = 64  # rows whose similarity to each other is that of the memory
_FARTHEST = 128  # rows among which the lowest cosine is searched
# Rows compared at once: they fit into the CPU's cache and stay below the size at which BLAS starts its threads, which
# costs milliseconds on a busy machine.
_BLOCK = 512
_LOAD_BLOCK = 4_096

_TAG, _CHECK, _SCALE, _PLANE = 0, 8, 12, 16  # offsets in a row
_MASK = (1 << 64) - 1
_FACTOR = 0x9E3779B97F4A7C15
_SIGN_BITS = np.uint64(0x8080808080808080)
_GATHER = np.uint64(0x0102040810204080)  # gathers the eight sign bits in the highest byte

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Places = NDArray[np.intp]
Distances = NDArray[np.uint16]


class CheckedRows(NamedTuple):
    """Rows with a valid checksum, their ids and sign bits. The first `total` items of each array are in use."""

    rows: Bytes  # of the mapped file
    total: int
    ids: NDArray[np.int64]
    signs: Words  # one row per 64 components, so that counting is sequential in memory
    intact: bool  # no row was damaged


Found = tuple[list[int], list[float], float, float]  # ids, cosines, the lowest, the highest


class Codec:
    """Encodes vectors of a fixed dimension as rows, and reads rows."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._words = -(-dimensions // 64)
        self._padded = self._words * 64
        self._values = _PLANE + self._words * 8
        self.row_bytes = self._values + self._padded
        factors = [pow(_FACTOR, power + 1, _MASK + 1) for power in range(self.row_bytes // 8)]
        self._factors = np.array(factors, np.uint64)
        self.empty = CheckedRows(np.empty((0, self.row_bytes), np.uint8), 0, *self._room(0), intact=True)

    # Writing

    def encode(self, ids: Sequence[int], vectors: Floats) -> bytes:
        """Return the rows of vectors, normalised to length 1; a vector with no finite length becomes zeros."""
        count = len(ids)
        given = np.asarray(vectors, np.float32)
        if given.shape != (count, self.dimensions):
            problem = f"{count} ids, and vectors of shape {given.shape} where rows of {self.dimensions} must be"
            raise BadInput(problem, operation="add vectors")
        most = np.abs(given).max(axis=1, initial=0)
        if not (usable := np.isfinite(most) & (most > 0)).all():
            given, most = np.where(usable[:, None], given, 0), np.where(usable, most, 1)
        parts = np.zeros((count, self._padded), np.float32)
        np.divide(given, most[:, None], out=parts[:, : self.dimensions])
        parts *= 256
        numbers = np.minimum(np.floor(parts), 255)
        nine = numbers.astype(np.int16)
        rows = np.empty((count, self.row_bytes), np.uint8)
        entry_id = np.asarray(ids, np.uint64)
        tags = rows[:, _TAG:_CHECK].view(np.uint64)[:, 0]
        np.left_shift(entry_id, np.uint64(1), out=tags)
        tags[:-1] |= entry_id[1:] != entry_id[:-1]
        tags[-1:] |= np.uint64(1)
        rows[:, _CHECK:_SCALE] = 0
        rows[:, _SCALE:_PLANE].view(np.float32)[:, 0] = _scales(parts, numbers)
        rows[:, _PLANE : self._values] = np.packbits(nine & 1, axis=1)
        rows[:, self._values :].view(np.int8)[:] = nine >> 1
        rows[:, _CHECK:_SCALE].view(np.uint32)[:, 0] = self._sums(rows)
        return rows.tobytes()

    def _sums(self, rows: Bytes) -> NDArray[np.uint32]:
        words = rows.view(np.uint64)
        sums = words @ self._factors
        sums -= rows[:, _CHECK:_SCALE].view(np.uint32)[:, 0].astype(np.uint64) * self._factors[1]
        return (sums >> np.uint64(32)).astype(np.uint32)

    # Reading

    def are_intact(self, codes: Sequence[bytes]) -> bool:
        """Return True if these are rows with valid checksums."""
        if any(len(code) != self.row_bytes for code in codes):
            return False
        rows = np.frombuffer(b"".join(codes), np.uint8).reshape(-1, self.row_bytes)
        return bool((self._sums(rows) == rows[:, _CHECK:_SCALE].view(np.uint32)[:, 0]).all())

    def last_complete(self, data: bytes) -> tuple[int, int]:
        """Return the number of rows up to the end of the last complete id, and that id."""
        rows = np.frombuffer(data, np.uint8).reshape(-1, self.row_bytes)
        tags = rows[:, _TAG:_CHECK].view(np.uint64)[:, 0]
        right = self._sums(rows) == rows[:, _CHECK:_SCALE].view(np.uint32)[:, 0]
        ends = np.flatnonzero(right & ((tags & np.uint64(1)) == 1))
        return (int(ends[-1]) + 1, int(tags[ends[-1]] >> np.uint64(1))) if len(ends) else (0, 0)

    def check(self, data: memoryview, checked: CheckedRows) -> CheckedRows:
        """Check the rows after those already checked, up to the first damaged row, and add them."""
        rows = np.frombuffer(data, np.uint8).reshape(-1, self.row_bytes)
        start, count = checked.total, len(rows)
        ids, signs = checked.ids, checked.signs
        if count > len(ids):
            ids, signs = self._room(max(count, start * 2))
            ids[:start], signs[:, :start] = checked.ids[:start], checked.signs[:, :start]
        newest = int(ids[start - 1]) if start else 0
        intact = True
        for begin in range(start, count, _LOAD_BLOCK):
            block = rows[begin : begin + _LOAD_BLOCK]
            good, newest = self._take_block(block, newest, ids[begin:], signs[:, begin:])
            if good < len(block):
                count, intact = begin + good, False
                break
        while count > start and not rows[count - 1, _TAG] & 1:  # rows of an incomplete id
            count -= 1
        return CheckedRows(rows, count, ids, signs, intact)

    def _take_block(self, block: Bytes, newest: int, ids: NDArray[np.int64], signs: Words) -> tuple[int, int]:
        """Return the number of valid rows, and the id of the last."""
        size = len(block)
        tags = block[:, _TAG:_CHECK].view(np.uint64)[:, 0]
        ids[:size] = tags >> np.uint64(1)
        right = self._sums(block) == block[:, _CHECK:_SCALE].view(np.uint32)[:, 0]
        right[0] &= ids[0] >= newest
        right[1:] &= ids[1:size] >= ids[: size - 1]
        signs[:, :size] = self._signs(block[:, self._values :]).T
        good = size if right.all() else int(right.argmin())
        return good, int(ids[good - 1]) if good else newest

    def _room(self, count: int) -> tuple[NDArray[np.int64], Words]:
        return np.empty(count, np.int64), np.empty((self._words, count), np.uint64)

    def _signs(self, values: Bytes) -> Words:
        eights = values.view(np.uint64) & _SIGN_BITS
        eights >>= np.uint64(7)
        eights *= _GATHER
        eights >>= np.uint64(56)
        return eights.astype(np.uint8).view(np.uint64)

    # Comparing

    def prepare(self, query: Floats) -> Floats:
        """Return a query normalised to length 1 and padded to the length of a row."""
        given = np.asarray(query, np.float32).reshape(-1)
        if len(given) != self.dimensions:
            problem = f"a query of {len(given)} numbers where vectors have {self.dimensions}"
            raise BadInput(problem, operation="search vectors")
        unit = np.zeros(self._padded, np.float32)
        length = float(given @ given) ** 0.5
        if isfinite(length) and length > 0:
            unit[: self.dimensions] = given / np.float32(length)
        return unit

    def compare(self, rows: Bytes, query: Floats, *, fine: bool) -> Floats:
        """Return the cosines of rows and a prepared query, using eight bits, or all nine if `fine`."""
        sums = rows[:, self._values :].view(np.int8).astype(np.float32) @ query
        sums *= 2
        if fine:
            sums += np.unpackbits(rows[:, _PLANE : self._values], axis=1).astype(np.float32) @ query
            sums += query.sum() / 2
        else:
            sums += query.sum()  # the mean of the ninth bit
        sums *= rows[:, _SCALE:_PLANE].view(np.float32)[:, 0]
        return sums

    def compare_pairs(self, checked: CheckedRows) -> tuple[int, float, float]:
        """Return the number, mean and standard deviation of the cosines between a sample of rows of different ids."""
        places = sample(checked.total)
        values = checked.rows[places, self._values :].view(np.int8).astype(np.float32) * 2 + 1
        lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
        values /= lengths[:, None]
        ids = checked.ids[places]
        first, second = np.nonzero(np.triu(ids[:, None] != ids[None, :]))
        cosines = (values @ values.T)[first, second]
        return (len(cosines), float(cosines.mean()), float(cosines.std())) if len(cosines) else (0, 0.0, 0.0)

    def directions(self, rows: Bytes) -> list[list[int] | None]:
        """Return vectors with the direction of rows: odd numbers, so that nine bits suffice; None for zeros."""
        nine = rows[:, self._values :].view(np.int8).astype(np.int16) * 2
        nine += np.unpackbits(rows[:, _PLANE : self._values], axis=1)
        odd = (nine[:, : self.dimensions] * 2 + 1).tolist()
        scales = rows[:, _SCALE:_PLANE].view(np.float32)[:, 0].tolist()
        return [numbers if scale else None for numbers, scale in zip(odd, scales, strict=True)]

    def count_differing(self, signs: Words, query: Floats) -> Distances:
        """Return for every row the number of signs that differ from a prepared query."""
        asked = self._signs(np.where(query < 0, 255, 0).astype(np.uint8)[None])[0]
        total = np.zeros(signs.shape[1], np.uint16)
        differing, bits, few = np.empty_like(signs[0]), np.empty_like(total, np.uint8), np.empty_like(total, np.uint8)
        for begin in range(0, self._words, 3):  # three words differ in at most 192 bits: one byte
            few.fill(0)
            for word in range(begin, min(begin + 3, self._words)):
                np.bitwise_xor(signs[word], asked[word], out=differing)
                np.bitwise_count(differing, out=bits)
                few += bits
            total += few
        return total


class Scan:
    """One query over the checked rows."""

    def __init__(self, codec: Codec, checked: CheckedRows, query: Floats) -> None:
        self._codec = codec
        self._rows = checked.rows[: checked.total]
        self._ids = checked.ids[: checked.total]
        self._signs = checked.signs[:, : checked.total]
        self._query = codec.prepare(query)

    def find(self, limit: int, allowed: Collection[int] | None) -> Found:
        """Return the ids whose best row is nearest."""
        if not len(self._ids):
            return [], [], 0.0, 0.0
        within = None if allowed is None else self._places(allowed)
        if len(self._ids) <= ALL_COMPARED:
            every = self._compare(np.arange(len(self._ids)))
            lowest = np.argsort(every)[:1]
            places, cosines = (np.arange(len(self._ids)), every) if within is None else (within, every[within])
        else:
            distances = self._codec.count_differing(self._signs, self._query)
            counts = np.bincount(distances)
            lowest = self._find_lowest(distances, counts)
            if within is None:
                places, cosines = self._find_candidates(distances, counts, None, limit)
            elif len(within) > ALL_COMPARED:
                pool = distances[within]
                places, cosines = self._find_candidates(pool, np.bincount(pool), within, limit)
            else:
                places, cosines = within, self._compare(within)
        best = self._best(self._choose(places, cosines, limit))
        ids = sorted(best, key=lambda entry_id: (-best[entry_id], entry_id))[:limit]
        low = float(self._compare(lowest, fine=True)[0])
        found = [best[entry_id] for entry_id in ids]
        return ids, found, min([low, *found[-1:]]), max([low, *found[:1]])

    def cosines(self, ids: Collection[int]) -> dict[int, float]:
        """Return the cosine of the best row of each of these ids."""
        return self._best(self._places(ids))

    def _places(self, ids: Collection[int]) -> Places:
        wanted = np.sort(np.fromiter(ids, np.int64, len(ids)))
        first, last = np.searchsorted(self._ids, wanted), np.searchsorted(self._ids, wanted, "right")  # ids ascend
        counts: Places = last - first
        starts: Places = np.repeat(last - counts.cumsum(), counts)
        return starts + np.arange(len(starts))

    def _compare(self, places: Places, *, fine: bool = False) -> Floats:
        cosines = np.empty(len(places), np.float32)
        for begin in range(0, len(places), _BLOCK):
            rows = self._rows.take(places[begin : begin + _BLOCK], axis=0)
            cosines[begin : begin + _BLOCK] = self._codec.compare(rows, self._query, fine=fine)
        return cosines

    def _find_lowest(self, distances: Distances, counts: Places) -> Places:
        least = len(counts) - 1 - int(np.searchsorted(counts[::-1].cumsum(), _FARTHEST))
        far = np.flatnonzero(distances >= least)[: _FARTHEST * 4]
        return far[np.argsort(self._compare(far))[:1]]

    def _find_candidates(
        self, pool: Distances, counts: Places, within: Places | None, limit: int
    ) -> tuple[Places, Floats]:
        """Compare the rows that can be among the best by value."""
        counts = counts.cumsum()
        wanted = max(_FIRST_COMPARED, limit * 8)
        near = int(np.searchsorted(counts, wanted))
        places = np.flatnonzero(pool <= near)
        if len(places) > wanted * 4:  # many rows at the same distance: take the newest
            places = np.concatenate([np.flatnonzero(pool < near), np.flatnonzero(pool == near)[-wanted:]])
        places = places if within is None else within[places]
        cosines = self._compare(places)
        reach = min(self._reach(places, cosines), int(np.searchsorted(counts, len(pool) // _MOST_COMPARED)) - 1)
        if reach <= near:
            return places, cosines
        more = np.flatnonzero((pool > near) & (pool <= reach))
        more = more if within is None else within[more]
        return np.concatenate([places, more]), np.concatenate([cosines, self._compare(more)])

    def _reach(self, places: Places, cosines: Floats) -> int:
        """Return how many signs may differ in a row as near as the last of the best ten."""
        first = np.argsort(-cosines)[: _PROMISED * 16]
        _, starts = np.unique(self._ids[places[first]], return_index=True)
        last = first[np.sort(starts)[:_PROMISED][-1]]
        chance = float(np.arccos(np.clip(cosines[last], -1, 1))) / np.pi
        dimensions = self._codec.dimensions
        return int(dimensions * chance + _DEVIATIONS * (dimensions * chance * (1 - chance)) ** 0.5)

    def _choose(self, places: Places, cosines: Floats, limit: int) -> Places:
        """Return the rows that may be among the best when all nine bits are used."""
        taken = limit * 2 + 32
        while taken < len(places):
            first = places[np.argpartition(cosines, -taken)[-taken:]]
            if len(np.unique(self._ids[first])) >= limit + 16:
                return first
            taken *= 4
        return places

    def _best(self, places: Places) -> dict[int, float]:
        best: dict[int, float] = {}
        cosines = self._compare(places, fine=True).tolist()
        for entry_id, cosine in zip(self._ids[places].tolist(), cosines, strict=True):
            if cosine > best.get(entry_id, -2.0):
                best[entry_id] = cosine
        return best


def sample(total: int) -> Places:
    """Return the places of the rows among so many whose similarity to each other is that of the memory."""
    return np.unique(np.linspace(0, total - 1, min(_SAMPLED, total)).astype(np.intp))


def _scales(parts: Floats, numbers: Floats) -> Floats:
    """Return the factors that make the cosine of a row and its own vector 1.

    The vector's length would also do, but this halves the errors among close neighbours.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", parts, parts))
    numbers += np.float32(0.5)  # a number represents the interval up to the next
    own = np.einsum("ij,ij->i", parts, numbers)
    return np.divide(lengths, own, out=np.zeros_like(own), where=own > 0)
