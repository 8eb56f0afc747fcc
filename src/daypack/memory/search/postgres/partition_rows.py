"""The vectors of a large memory: a partition of its own, in which an index finds the rows near a query. Imports numpy.

The index (HNSW) supplies candidates, whose codes are compared as elsewhere. It is asked for more until they no longer
change the best: that is soon so for sentences, and late where most rows are about equally far from a query. Statements
name the partition as a literal: the server then locks and plans this one only, however many there are.
"""

import heapq
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction
from daypack.search.floor import Similarity
from daypack.search.nearest import CheckedRows, Scan, sample
from daypack.search.vectors import Nearest

if TYPE_CHECKING:
    from daypack.search.nearest import Codec, Floats

# Rows that are taken at once for each that is wanted: the search ends when so many change nothing. Of the hundred
# nearest, 0.993 are found among 100,000 clustered vectors (in one round of 464 rows: 0.908) and 0.997 among as many
# sentences (0.992), for 67 and 20 ms of the time of the server (17 and 7). An index with m 32 and ef_construction 256
# finds 0.994 in one round of 928, but takes 2.8 times as long to build; with 24 and 256 it finds 0.981.
_TAKEN_PER_ROW, _SPARE_ROWS = 8, 32
LEAST_EXAMINED, _MOST_EXAMINED = 100, 1_000  # `ef_search`: what pgvector allows at most
_MOST_WANTED = 480  # queries that want more compare all rows
_SCAN_MEMORY = 32  # times work_mem (4 MB): with 1 the index ends early, and 0.967 of the hundred are found
_VISITED = 200_000  # rows that the index visits, looking for those that a filter allows
COMPARED = 10_000  # so many ids that are allowed are all compared, without the index
_FARTHEST = 32  # rows among which the lowest cosine is searched

_SETTINGS = (  # without sorting, the only plan is that of the index
    "SELECT set_config('enable_sort', %s, true), set_config('hnsw.ef_search', %s, true),"
    " set_config('jit', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),"
    f" set_config('hnsw.max_scan_tuples', '{_VISITED}', true),"
    f" set_config('hnsw.scan_mem_multiplier', '{_SCAN_MEMORY}', true)"
)

_Row = tuple[int, bytes]  # seq, code


class Partition(NamedTuple):
    """Where the vectors of a memory are, and how many; equal as long as they are the same."""

    place: int
    generation: int
    vectors: int
    incarnation: str  # of the database


class PartitionRows:
    """The rows of a partition as they are at each call; `known` are the last similarities."""

    def __init__(
        self, database: Database, tenant: str, codec: "Codec", partition: Partition,
        known: dict[Partition, Similarity],
    ) -> None:  # fmt: skip
        self._database = database
        self._scope = Scope(tenant, reading=True)
        self._codec = codec
        self._partition = partition
        self._known = known
        self._from = f"FROM vectors WHERE place = {partition.place:d} AND generation = %s"

    def search(self, row: "Floats", limit: int, allowed: Collection[int] | None) -> tuple[Nearest, Nearest | None]:
        """Return the ids nearest to a query, overall and among those allowed."""

        def work(transaction: Transaction) -> tuple[list[_Row], list[_Row], list[_Row]]:
            far = self._farthest(transaction, row)
            near = self._find(transaction, row, limit, None)
            some: list[_Row] = []
            if allowed is not None:
                few = len(allowed) <= COMPARED
                some = self._read(transaction, allowed) if few else self._find(transaction, row, limit, allowed)
            return near, some, far.fetchall()

        near, some, far = self._database.run("search vectors", work, self._scope)
        each = [(number, code) for number, (_, code) in enumerate(far)]  # not the best of an id: the lowest of all
        low = min(self._compare(row, each).values(), default=0.0)
        nearest = _order(self._compare(row, near), limit, low)
        return nearest, None if allowed is None else _order(self._compare(row, some), limit, low)

    def compare(self, row: "Floats", ids: Collection[int]) -> tuple[dict[int, float], Similarity]:
        """Return the cosines of these ids, and how similar all vectors are to each other."""
        state = self._partition

        def work(transaction: Transaction) -> tuple[list[_Row], list[_Row]]:
            sampled: list[_Row] = []
            if state not in self._known:
                numbers = sample(self._partition.vectors).tolist()
                sampled = self._select(transaction, "AND number = ANY(%s) ORDER BY number", numbers).fetchall()
            return self._read(transaction, ids), sampled

        found, sampled = self._database.run("search vectors", work, self._scope)
        similarity = self._known.get(state)
        if similarity is None:
            similarity = Similarity(*self._codec.compare_pairs(self._checked(sampled))) if sampled else Similarity()
            self._known.clear()
            self._known[state] = similarity
        return self._compare(row, found), similarity

    # Reading

    def _farthest(self, transaction: Transaction, row: "Floats") -> Any:  # noqa: ANN401 — a cursor
        transaction.execute(_SETTINGS.encode(), ("off", str(LEAST_EXAMINED)))
        order, values = self._nearest(transaction, -row, None)
        return self._select(transaction, f"{order} LIMIT {_FARTHEST}", *values)

    def _find(self, transaction: Transaction, row: "Floats", limit: int, allowed: Collection[int] | None) -> list[_Row]:
        """Return rows of more than `limit` ids, or of all there are: by the index as long as it has enough of them."""
        taken = limit * _TAKEN_PER_ROW + _SPARE_ROWS
        if limit <= _MOST_WANTED and 2 * taken < self._partition.vectors:
            found = self._explore(transaction, row, limit, allowed)
            if found is not None:
                return found
        while True:
            transaction.execute(_SETTINGS.encode(), ("on", str(LEAST_EXAMINED)))
            order, values = self._nearest(transaction, row, allowed, " + 0")  # no index has this order
            rows: list[_Row] = self._select(transaction, f"{order} LIMIT %s", *values, taken).fetchall()
            if len({seq for seq, _ in rows}) >= limit + 16 or len(rows) < taken:
                return rows
            taken *= 4

    def _explore(
        self, transaction: Transaction, row: "Floats", limit: int, allowed: Collection[int] | None
    ) -> list[_Row] | None:
        """Return rows from the index, until more of them no longer change the best; None if it has no more."""
        taken = limit * _TAKEN_PER_ROW + _SPARE_ROWS
        transaction.execute(_SETTINGS.encode(), ("off", str(min(_MOST_EXAMINED, max(LEAST_EXAMINED, taken)))))
        order, values = self._nearest(transaction, row, allowed)
        self._select(transaction, order, *values, declare="DECLARE near NO SCROLL CURSOR FOR ")
        rows: list[_Row] = []
        cosines: dict[int, float] = {}
        former: list[int] = []
        while True:
            more: list[_Row] = transaction.execute(f"FETCH {taken:d} FROM near".encode(), binary=True).fetchall()
            rows += more
            for seq, cosine in self._compare(row, more).items():
                cosines[seq] = max(cosine, cosines.get(seq, cosine))
            best = heapq.nsmallest(limit, cosines, key=lambda seq: (-cosines[seq], seq))
            is_found = best == former and len(cosines) >= limit + 16
            if is_found or len(more) < taken:
                transaction.execute("CLOSE near")
                return rows if is_found else None
            former = best

    def _nearest(
        self, transaction: Transaction, row: "Floats", allowed: Collection[int] | None, term: str = ""
    ) -> tuple[str, tuple[object, ...]]:
        """Return the end of a query that orders rows by their distance, and its values."""
        schema = transaction.vector_schema
        kind = f"{schema}.halfvec({self._codec.dimensions:d})"
        unit = self._codec.prepare(row)[: self._codec.dimensions]
        order, near = f"ORDER BY (direction::{kind} OPERATOR({schema}.<=>) %s::{kind}){term}", str(unit.tolist())
        return (order, (near,)) if allowed is None else (f"AND seq = ANY(%s) {order}", (list(allowed), near))

    def _read(self, transaction: Transaction, ids: Collection[int]) -> list[_Row]:
        return self._select(transaction, "AND seq = ANY(%s)", list(ids)).fetchall()

    def _select(self, transaction: Transaction, rest: str, *values: object, declare: str = "") -> Any:  # noqa: ANN401 — a cursor
        # Not prepared: a plan that was made with other settings would be used again.
        query = f"{declare}SELECT seq, code {self._from} {rest}"
        parameters = (self._partition.generation, *values)
        return transaction.execute(query, parameters, prepare=False, binary=True)  # pyright: ignore[reportArgumentType, reportCallIssue]

    # Comparing

    def _checked(self, rows: Sequence[_Row]) -> CheckedRows:
        rows = [row for row in rows if len(row[1]) == self._codec.row_bytes]  # others are damaged
        codes = np.frombuffer(b"".join(code for _, code in rows), np.uint8).reshape(-1, self._codec.row_bytes)
        ids = np.fromiter((seq for seq, _ in rows), np.int64, len(rows))
        return CheckedRows(codes, len(rows), ids, np.empty((0, len(rows)), np.uint64), intact=True)

    def _compare(self, row: "Floats", rows: list[_Row]) -> dict[int, float]:
        """Return the cosine of the best row of each id."""
        rows.sort(key=lambda found: found[0])
        checked = self._checked(rows)
        return Scan(self._codec, checked, row).cosines(np.unique(checked.ids).tolist())


def _order(cosines: dict[int, float], limit: int, low: float) -> Nearest:
    ids = sorted(cosines, key=lambda entry_id: (-cosines[entry_id], entry_id))[:limit]
    found = [cosines[entry_id] for entry_id in ids]
    return Nearest(ids, found, min([low, *found[-1:]]), max([low, *found[:1]]))
