"""The vectors of a small memory, kept by the process: a search compares them as it does those of a mapped file.

Only rows that were added since the last search are read. The least recently used memories go when all together exceed
a number of bytes; reading them again costs 1 ms for 1,000 vectors and about 50 ms for 20,000.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from daypack.forks import ThreadLock
from daypack.search.floor import Similarity
from daypack.search.vectors import Nearest

if TYPE_CHECKING:
    from daypack.search.nearest import Bytes, CheckedRows, Codec, Floats, Scan

MAX_BYTES = 256 << 20
_SPARE = 2  # one more row in so many fits before all are copied

Key = tuple[str, str, bytes]  # tenant, memory, model


class LoadedRows:
    """The rows of one generation, up to a number; threads may search and extend them at once.

    Rows of a generation never change in one incarnation of a database, so threads that extend the same rows write the
    same bytes.
    """

    def __init__(
        self, codec: "Codec", generation: int, incarnation: str, room: "Bytes | None" = None,
        checked: "CheckedRows | None" = None,
    ) -> None:  # fmt: skip
        self.generation = generation
        self.incarnation = incarnation
        self._codec = codec
        self._checked = codec.empty if checked is None else checked
        self._room = self._checked.rows if room is None else room
        self._similarity: Similarity | None = None

    @property
    def count(self) -> int:
        """The number of rows; a damaged one and those after it are left out."""
        return self._checked.total

    @property
    def size(self) -> int:
        """The bytes in use."""
        return self._room.nbytes + self._checked.ids.nbytes + self._checked.signs.nbytes

    def extended(self, codes: Sequence[bytes]) -> "LoadedRows":
        """Return these rows and others after them."""
        import numpy as np  # noqa: PLC0415 — 100 ms

        data, size = b"".join(codes), self._codec.row_bytes
        # After a row of another length no checksum is right.
        added = np.frombuffer(data[: len(data) // size * size], np.uint8).reshape(-1, size)
        count, total = self.count, self.count + len(added)
        room = self._room
        if total > len(room):
            room = np.empty((total + (total // _SPARE if count else 0), self._codec.row_bytes), np.uint8)
            room[:count] = self._room[:count]
        room[count:total] = added
        checked = self._codec.check(room[:total].reshape(-1).data, self._checked)
        return LoadedRows(self._codec, self.generation, self.incarnation, room, checked)

    def search(self, row: "Floats", limit: int, allowed: Collection[int] | None) -> tuple[Nearest, Nearest | None]:
        """Return the ids nearest to a query, overall and among those allowed."""
        scan = self._scan(row)
        nearest = Nearest(*scan.find(limit, None))
        return nearest, None if allowed is None else Nearest(*scan.find(limit, allowed))

    def compare(self, row: "Floats", ids: Collection[int]) -> tuple[dict[int, float], Similarity]:
        """Return the cosines of these ids, and how similar all vectors are to each other."""
        if self._similarity is None:
            self._similarity = Similarity(*self._codec.compare_pairs(self._checked))
        return self._scan(row).cosines(ids), self._similarity

    def _scan(self, row: "Floats") -> "Scan":
        from daypack.search.nearest import Scan  # noqa: PLC0415

        return Scan(self._codec, self._checked, row)


class RowCache:
    """The rows of the memories that were searched last; the last one stays even if it is larger than all may be."""

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._most = most
        self._threads = ThreadLock(self._drop)
        self._drop()

    def _drop(self) -> None:
        self._kept: OrderedDict[Key, LoadedRows] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """The bytes in use."""
        return self._size

    def find(self, key: Key) -> LoadedRows | None:
        """Return what is kept of a memory."""
        with self._threads:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Key, rows: LoadedRows) -> None:
        """Keep rows instead of former ones."""
        with self._threads:
            former = self._kept.pop(key, None)
            self._kept[key] = rows
            self._size += rows.size - (former.size if former else 0)
            while self._size > self._most and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1].size

    def remove(self, key: Key) -> None:
        """Give up the rows of a memory."""
        with self._threads:
            former = self._kept.pop(key, None)
            self._size -= former.size if former else 0
