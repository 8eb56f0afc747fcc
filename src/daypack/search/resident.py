"""Indexes that are searched often, in memory: all chunks are scored without reading or sorting postings.

Chunks are numbered in the order of their postings. A term is one byte for each chunk, 1 where it occurs. Eight terms
added up, each shifted by one bit, are a plane: one byte for each chunk, the mask of the terms in it. Adding, counting
and selecting bytes costs microseconds where a loop over postings costs milliseconds, and the result is the same.

It follows the tables: what was added since is read before a search, and another index replaces everything.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import compress
from operator import itemgetter

from msgspec import Struct

from daypack.search.matches import Chunk, Scores
from daypack.search.neighbours import Place
from daypack.search.postings import CHUNK_BITS, ENTRY_BITS, LENGTH_BITS, LENGTHS, Asked, Extent, find_terms
from daypack.search.tables import IndexTables, TermQuery, Totals

FROM_SEARCHES = 4  # before that, reading the whole index would not pay
MAX_CHUNKS = 1 << 16
MAX_BYTES = 8 << 20  # of terms
_PLANE = 8  # terms in a byte
_LAST_CHUNK, _LAST_LENGTH = (1 << CHUNK_BITS) - 1, LENGTHS - 1
_DIGITS = b"01".ljust(256, b"0")


class ResidentTerm(Struct, frozen=True):
    """A term, the chunks that contain it, and how many they are."""

    term: str
    flags: bytes  # a byte for each chunk
    bits: int  # a bit for each chunk
    count: int


class _Flags:
    """The chunks that contain a term, up to a posting."""

    def __init__(self) -> None:
        self.data = b""
        self.bits = 0
        self.count = 0
        self.reach = 0


class Resident:
    """The entries and the terms used so far of one index."""

    def __init__(self) -> None:
        self._searches = 0
        self._identity: object = None
        self._start()

    def _start(self) -> None:
        self.places: dict[int, Place] = {}
        self.firsts: dict[int, int] = {}  # entry -> its first chunk
        self.counts: dict[int, int] = {}  # entry -> number of its chunks, if not 1
        self.owners: list[int] = []  # chunk -> entry
        self.numbers: list[int] = []  # chunk -> itself: selecting from a list makes no new numbers
        self.lengths = bytearray()  # chunk -> length class, known if a term occurs in it
        self.shortest, self.longest = LENGTHS - 1, 0
        self._newest = 0
        self._terms: dict[TermQuery, _Flags] = {}

    def follow(self, tables: IndexTables, totals: Totals) -> bool:
        """Read what was added; return False if the index is too large, or was searched too seldom until now."""
        self._searches += 1
        if self._searches < FROM_SEARCHES or totals.chunks > MAX_CHUNKS:
            return False
        if tables.identity != self._identity or totals.newest < self._newest:
            self._start()
            self._identity = tables.identity
        if totals.newest > self._newest:
            for entry, stretch, before, after, speaker, chunks in tables.entries_after(self._newest):
                self._add(Place(entry, stretch, before, after, speaker), chunks)
            self._newest = totals.newest
        return len(self.places) == totals.entries  # not if a gap was filled meanwhile

    def _add(self, place: Place, chunks: int) -> None:
        entry, first = place.id, len(self.owners)
        self.places[entry] = place
        self.firsts[entry] = first
        if chunks != 1:
            self.counts[entry] = chunks
        self.owners += [entry] * chunks
        self.numbers += range(first, first + chunks)
        self.lengths += bytes(chunks)
        if earlier := self.places.get(place.before):
            self.places[earlier.id] = earlier._replace(after=entry)

    def read_places(self, ids: Iterable[int]) -> dict[int, Place]:
        """Return the positions of these entries."""
        places = self.places
        return {entry: places[entry] for entry in ids if entry in places}

    def read_terms(self, tables: IndexTables, terms: list[str], extent: Extent) -> tuple[list[ResidentTerm], list[str]]:
        """Return the terms that occur, rarest first, and those that do not occur."""

        def read(asked: Asked) -> list[ResidentTerm | None]:
            read = self._read(tables, [query for _, query in asked], extent)
            return [
                ResidentTerm(term, flags.data, flags.bits, flags.count) if flags.count else None
                for (term, _), flags in zip(asked, read, strict=True)
            ]

        return find_terms(terms, read, lambda term, other: term.flags == other.flags)

    def _read(self, tables: IndexTables, queries: list[TermQuery], extent: Extent) -> list[_Flags]:
        """Return the chunks of each query; what is not known yet is read at once."""
        read: list[_Flags] = []
        for query in queries:
            flags = self._terms.pop(query, None) or _Flags()
            self._terms[query] = flags  # now the one used last
            read.append(flags)
        stale = [pair for pair in zip(queries, read, strict=True) if pair[1].reach < extent.newest - 1]
        if stale:
            wanted = [(query, flags.reach) for query, flags in stale]
            for (_, flags), rows in zip(stale, tables.postings_after(wanted, before=extent.newest), strict=True):
                self._mark(flags, rows)
                flags.reach = extent.newest - 1
            while len(self._terms) > 1 and len(self._terms) * len(self.owners) > MAX_BYTES:
                del self._terms[next(iter(self._terms))]
        return read

    def _mark(self, flags: _Flags, rows: list[int]) -> None:
        data = bytearray(flags.data) + bytes(len(self.owners) - len(flags.data))
        for row in rows:
            chunk = self.firsts[row >> ENTRY_BITS] + (row >> LENGTH_BITS & _LAST_CHUNK)
            data[chunk] = 1
            self.lengths[chunk] = length = row & _LAST_LENGTH
            self.shortest, self.longest = min(self.shortest, length), max(self.longest, length)
        flags.data, flags.bits = bytes(data), int(data.translate(_DIGITS) or b"0", 2)
        flags.count += len(rows)


class ResidentMatches:
    """The terms of a query, rarest first, and the chunks that contain them; chosen as `Matches` chooses them."""

    def __init__(self, resident: Resident, terms: Sequence[ResidentTerm], extent: Extent) -> None:
        self._index = resident
        self.scores = Scores([term.count for term in terms], extent)
        self._terms = terms
        self._planes = [_plane(terms[start : start + _PLANE]) for start in range(0, len(terms), _PLANE)]
        self._beyond = self.scores.worth(-1 << _PLANE)  # of the terms in later planes

    def choose(self, limit: int, allowed: Collection[int] | None = None) -> list[int]:
        """Return the entries that match best, best first, then newest first."""
        wanted = 2 * limit  # chunks: a long entry may have several
        chunks = self._likely(wanted) if allowed is None else self._chunks_of(allowed)
        lengths, rate = self._index.lengths, self.scores.rate
        rated = [
            (rate(mask, lengths[chunk]), chunk) for chunk, mask in zip(chunks, self._masks(chunks), strict=True) if mask
        ]
        rated.sort(reverse=True)
        if len(rated) > wanted:
            floor = rated[wanted - 1][0]
            del rated[next((at for at in range(wanted, len(rated)) if rated[at][0] < floor), len(rated)) :]
        owners = self._index.owners
        return list(dict.fromkeys([owners[chunk] for _, chunk in rated]))[:limit]

    def _likely(self, wanted: int) -> list[int]:
        """Return the chunks that can be among the best, judged by the rarest terms."""
        if not self._planes:
            return []
        plane = self._planes[0]
        worth, factors = self.scores.worth, self.scores.factors
        floor, found = 0.0, 0
        for least, number in sorted(((worth(mask), number) for mask, number in self._classes()), reverse=True):
            found += number
            if found >= wanted:
                floor = least * factors[self._index.longest]
                break
        most, beyond = factors[self._index.shortest], self._beyond
        masks = range(1 << min(len(self._terms), _PLANE))
        chosen = bytes(mask + beyond > 0 and (worth(mask) + beyond) * most >= floor for mask in masks)
        return list(compress(self._index.numbers, plane.translate(chosen.ljust(256, b"\0"))))

    def _classes(self) -> Iterator[tuple[int, int]]:
        """Yield the masks of the rarest terms that occur, and in how many chunks."""
        classes = {0: (1 << len(self._planes[0])) - 1}
        for number, term in enumerate(self._terms[:_PLANE]):
            parts = [(mask, members, members & term.bits) for mask, members in classes.items()]
            classes = {mask | 1 << number: inside for mask, _, inside in parts if inside}
            classes |= {mask: members ^ inside for mask, members, inside in parts if members != inside}
        return ((mask, members.bit_count()) for mask, members in classes.items() if mask)

    def find(self, ids: Collection[int]) -> dict[int, Chunk]:
        """Return the best chunk of each of these entries that contains a term; on a tie the later one."""
        best: dict[int, Chunk] = {}
        owners, firsts, lengths, rate = self._index.owners, self._index.firsts, self._index.lengths, self.scores.rate
        chunks = self._chunks_of(ids)
        for at, mask in zip(chunks, self._masks(chunks), strict=True):
            if mask:
                entry, length = owners[at], lengths[at]
                row = entry << ENTRY_BITS | at - firsts[entry] << LENGTH_BITS | length
                chunk = Chunk(rate(mask, length), row, mask)
                if entry not in best or best[entry] < chunk:
                    best[entry] = chunk
        return best

    def _chunks_of(self, ids: Collection[int]) -> list[int]:
        firsts, counts = self._index.firsts, self._index.counts
        chunks = [firsts[entry] for entry in ids if entry in firsts and entry not in counts]
        for entry in counts.keys() & ids if counts else ():
            chunks += range(firsts[entry], firsts[entry] + counts[entry])
        return chunks

    def _masks(self, chunks: Sequence[int]) -> Iterable[int]:
        """Return the mask of each chunk."""
        if len(chunks) < 2:  # itemgetter returns no tuple then
            return [sum(plane[chunk] << _PLANE * at for at, plane in enumerate(self._planes)) for chunk in chunks]
        pick = itemgetter(*chunks)
        masks: Sequence[int] = pick(self._planes[0]) if self._planes else [0] * len(chunks)
        for at, plane in enumerate(self._planes[1:], 1):
            masks = [mask | more << _PLANE * at for mask, more in zip(masks, pick(plane), strict=True)]
        return masks


def _plane(terms: Sequence[ResidentTerm]) -> bytes:
    """Return one byte for each chunk: the mask of the terms in it."""
    total = 0
    for number, term in enumerate(terms):
        total |= int.from_bytes(term.flags, "little") << number
    return total.to_bytes(len(terms[0].flags), "little")
