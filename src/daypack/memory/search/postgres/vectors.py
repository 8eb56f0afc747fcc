"""The vectors of one memory in a PostgreSQL database, made by one embedder.

    embeddings   one row for each memory and model: the newest entry that has a vector, the number of vectors, where
                 they are, and their generation
    vectors      the vectors, as rows of search/nearest.py, numbered from 0

A batch is written by one statement: it moves `newest` on and adds the rows, or does nothing if `newest` is not where
the batch begins, because another process was faster or the vectors were erased. So nothing is doubled or skipped when
processes work at once or are killed. An embedder that is not instant also takes a lease, so that one process embeds.

A small memory is searched in the process (`loaded_rows`), a large one in its partition (`partition_rows`).
"""

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from daypack.errors import DaypackError
from daypack.memory.search.vectors import VectorQuery
from daypack.memory.store.port import memory_missing
from daypack.memory.store.postgres.index_rows import discard_vectors, erase_vectors, remove_rows
from daypack.postgres.database import Database
from daypack.postgres.migrations import INCARNATION
from daypack.postgres.transaction import Scope, Transaction
from daypack.search.fuse import Closeness
from daypack.search.vectors import open_codec

if TYPE_CHECKING:
    from daypack.llm.embedding.port import Embedder
    from daypack.memory.search.postgres.loaded_rows import LoadedRows, RowCache
    from daypack.memory.search.postgres.partition_rows import Partition, PartitionRows
    from daypack.memory.search.vectors import Texts
    from daypack.search.floor import Similarity
    from daypack.search.nearest import Codec

LARGE = 20_000  # a memory with more vectors gets a partition of its own
MAX_INDEXED = 4_000  # dimensions that an index of pgvector can have
_BATCH = 64
_POLL_SECONDS = 0.05
_LEASE_SECONDS = 10.0  # after a process was killed, others wait so long at most
_READ_AT_ONCE = 100_000  # rows
_BLOCK = 256  # rows that travel as one value

_OWN = "tenant = %s AND memory = %s AND model = %s"
_STATE = "generation, newest, vectors, place"
_READ = f"""
SELECT {INCARNATION}, e.generation, e.vectors, e.place, e.dimensions, blocks.codes FROM embeddings e
LEFT JOIN LATERAL (
    SELECT number / {_BLOCK} AS block, string_agg(code, ''::bytea ORDER BY number) AS codes FROM vectors v,
        (SELECT CASE WHEN e.generation = %s THEN %s ELSE 0 END) AS known(first)
    WHERE v.tenant = e.tenant AND v.place = 0 AND v.memory = e.memory AND v.generation = e.generation
        AND v.number >= known.first AND v.number < known.first + {_READ_AT_ONCE}
    GROUP BY 1
) blocks ON true WHERE e.tenant = %s AND e.memory = %s AND e.model = %s
ORDER BY blocks.block
"""  # noqa: S608 — constants
_NUMBER = f"SELECT number, {INCARNATION} FROM memories WHERE tenant = %s AND id = %s"  # noqa: S608
_NEW = """
INSERT INTO embeddings(tenant, memory, model, dimensions)
SELECT tenant, number, %s, %s FROM memories WHERE tenant = %s AND number = %s FOR KEY SHARE ON CONFLICT DO NOTHING
"""
_FREE = "(embedder IS NULL OR embedder = %s OR leased_until < now())"
_CLAIM = f"""
UPDATE embeddings SET embedder = %s, leased_until = now() + %s * interval '1 second'
WHERE {_OWN} AND generation = %s AND {_FREE} RETURNING {_STATE}
"""  # noqa: S608
_ADD = f"""
WITH moved AS (
    UPDATE embeddings SET newest = %s, vectors = vectors + %s,
        due = place = 0 AND vectors + %s > %s AND dimensions <= {MAX_INDEXED}
    WHERE {_OWN} AND generation = %s AND newest = %s AND place = %s RETURNING vectors
)
INSERT INTO vectors(tenant, place, memory, generation, number, seq, code, direction)
SELECT %s, %s, %s, %s, moved.vectors - %s + added.place - 1, added.seq, added.code,
    added.direction::{{vector_schema}}.halfvec
FROM moved, unnest(%s::bigint[], %s::bytea[], %s::text[]) WITH ORDINALITY AS added(seq, code, direction, place)
"""  # noqa: S608


class _Found(NamedTuple):
    """The state of the vectors, and whether this process may embed."""

    generation: int
    newest: int
    vectors: int
    place: int
    is_free: bool = True


class PlacedQuery(VectorQuery):
    """A query, and the rows that it was compared with."""

    rows: "LoadedRows | PartitionRows"


class PostgresVectors:
    """The vectors of a memory of a tenant; threads and processes may share them.

    A memory that was erased and imported again has the same id and another number. Vectors of a number are erased with
    the memory and never begun again in one incarnation of the database, so the number is looked up whenever there are
    none, and in each incarnation.
    """

    def __init__(
        self, database: Database, tenant: str, memory_id: str, embedder: "Embedder", cache: "RowCache"
    ) -> None:
        self._database = database
        self._scope, self._reading = Scope(tenant), Scope(tenant, reading=True)
        self._tenant, self._memory_id = tenant, memory_id
        self._numbered = 0, ""  # the number of the memory as it was looked up last, and in which incarnation
        self._model = embedder.name.encode()
        self._key = tenant, memory_id, self._model
        self._embedder = embedder
        self._cache = cache
        self._others_removed = False  # vectors of other models
        self._lease = uuid4()
        self._similarities: dict[Partition, Similarity] = {}

    @cached_property
    def _codec(self) -> "Codec":
        return open_codec(self._embedder.dimensions)

    @property
    def _memory(self) -> int:
        return self._numbered[0]

    @property
    def _own(self) -> tuple[str, int, bytes]:
        return self._tenant, self._memory, self._model

    @property
    def newest(self) -> int:
        """The newest entry that has a vector."""
        found = self._database.run("read vectors", self._find, self._reading)
        return found.newest if found else 0

    @property
    def instant(self) -> bool:
        """True if the embedder is fast enough for a search to embed a few missing entries."""
        return self._embedder.instant

    # Embedding

    def catch_up(self, goal: int, texts: "Texts", deadline: float | None) -> str | None:
        """Embed entries up to `goal` and return the problem, if any. No batch starts after the deadline."""
        try:
            self._embed(goal, texts, deadline)
        except DaypackError as error:
            return str(error)
        return None

    def _embed(self, goal: int, texts: "Texts", deadline: float | None) -> None:
        leased = False
        try:
            while (found := self._begin(goal)).newest < goal and not _has_passed(deadline):
                leased = leased or (found.is_free and not self.instant)
                if not found.is_free:
                    time.sleep(_POLL_SECONDS)
                elif batch := texts(found.newest, _BATCH):
                    ids = [seq for seq, parts in batch for _ in parts]
                    self._add(found, ids, self._embedder.encode([part for _, parts in batch for part in parts]))
                else:
                    break
            if found.newest >= goal and not self._others_removed:
                self._database.resolve(
                    "remove vectors", lambda at: erase_vectors(at, self._memory, self._model), self._scope
                )
                self._others_removed = True
        finally:
            if leased:
                with suppress(DaypackError):
                    self._database.resolve("embed", self._release, self._scope)

    def _begin(self, goal: int) -> _Found:
        """Return where to continue; an embedder that is not instant gets a lease, if no other process has one."""

        def work(transaction: Transaction) -> _Found:
            found = self._find(transaction)
            if found is None:
                # Not by the batch: what was read before an erasure must not come back.
                query = f"DELETE FROM embeddings WHERE {_OWN} AND dimensions <> %s RETURNING place, generation"  # noqa: S608
                remove_rows(transaction, self._memory, transaction.rows(query, (*self._own, self._codec.dimensions)))
                transaction.execute(_NEW, (self._model, self._codec.dimensions, *self._own[:2]))
                if not self._look_up(transaction):
                    raise memory_missing(self._memory_id, "embed")
                found = self._find(transaction) or _Found(0, 0, 0, 0, is_free=False)  # erased at once
            if found.newest >= goal or self.instant or not found.is_free:
                return found
            values = self._lease, _LEASE_SECONDS, *self._own, found.generation, self._lease
            row = transaction.row(_CLAIM, values)
            return _Found(*row) if row else found._replace(is_free=False)

        return self._database.resolve("embed", work, self._scope)

    def _release(self, transaction: Transaction) -> None:
        query = f"UPDATE embeddings SET embedder = NULL, leased_until = NULL WHERE {_OWN} AND embedder = %s"  # noqa: S608
        transaction.execute(query.encode(), (*self._own, self._lease))

    def _add(self, found: _Found, ids: Sequence[int], rows: Any) -> None:  # noqa: ANN401 — an array
        """Write a batch, unless the vectors are no longer as they were found."""
        codes = split_codes(self._codec, self._codec.encode(ids, rows))
        directions = write_directions(self._codec, codes) if found.place else [None] * len(codes)
        count = len(codes)
        tenant, memory, model = self._own
        moved = ids[-1], count, count, LARGE, tenant, memory, model, found.generation, found.newest, found.place
        added = tenant, found.place, memory, found.generation, count, list(ids), codes, directions

        def work(transaction: Transaction) -> None:
            statement = _ADD.format(vector_schema=transaction.vector_schema)
            transaction.execute(statement.encode(), (*moved, *added))

        # If an earlier attempt was committed, `newest` has moved, and this one adds nothing.
        self._database.resolve("add vectors", work, self._scope)

    def _find(self, transaction: Transaction) -> _Found | None:
        query = f"SELECT {INCARNATION}, dimensions, {_STATE}, {_FREE} FROM embeddings WHERE {_OWN}"  # noqa: S608
        rows = self._select(transaction, query, self._lease)
        return _Found(*rows[0][2:]) if rows and rows[0][1] == self._embedder.dimensions else None

    def _select(self, transaction: Transaction, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query about these vectors; they begin with the incarnation of the database."""

        def select() -> list[tuple[Any, ...]]:
            return transaction.execute(query.encode(), (*values, *self._own), binary=True).fetchall()

        incarnation = self._numbered[1]  # before `select`: another thread may look the number up meanwhile
        rows = select()
        if rows and rows[0][0] == incarnation:
            return rows
        return select() if self._look_up(transaction) else []

    def _look_up(self, transaction: Transaction) -> bool:
        """Look up the number of the memory; return False if there is no such memory."""
        row = transaction.row(_NUMBER, (self._tenant, self._memory_id))
        if row is not None:
            self._numbered = row[0], row[1]
        return row is not None

    # Searching

    def search(self, query: str, limit: int, allowed: Collection[int] | None) -> VectorQuery | None:
        """Return the entries closest to a query, overall and among those allowed; None if there are no vectors."""
        rows = self._read()
        if rows is None:
            return None
        row = self._embedder.encode([query])[0]
        placed = PlacedQuery(row, *rows.search(row, max(limit, 0), allowed))
        placed.rows = rows
        return placed

    def compare(self, query: VectorQuery, ids: Collection[int]) -> Closeness:
        """Return how close these entries are to a query."""
        rows = query.rows if isinstance(query, PlacedQuery) else self._read()
        low, high = query.nearest.low, query.nearest.high
        if rows is None:
            return Closeness({}, low, high, self._embedder.weight)
        cosines, similarity = rows.compare(query.row, ids)
        return Closeness(cosines, low, high, self._embedder.weight, similarity)

    def close(self) -> None:
        """Nothing is held open; the rows stay in the cache, which is bounded."""

    def _read(self) -> "LoadedRows | PartitionRows | None":
        """Return the vectors as they are now: those that are known, and those added since."""
        codec = self._codec
        from daypack.memory.search.postgres.loaded_rows import LoadedRows  # noqa: PLC0415 — imports numpy

        known = self._cache.find(self._key)
        while True:
            since = (known.generation, known.count) if known else (0, 0)
            found = self._database.run(
                "read vectors", lambda at, since=since: self._select(at, _READ, *since), self._reading
            )
            if not found or not found[0][2] or found[0][4] != codec.dimensions:
                self._cache.remove(self._key)
                return None
            incarnation, generation, vectors, place = found[0][:4]
            if place:
                return self._open_partition(place, generation, vectors, incarnation)
            if known and (known.incarnation != incarnation or known.count > vectors):
                known = None  # of rows that a failover lost, or newer than the snapshot of this transaction
                continue
            if known is None or known.generation != generation:
                known = LoadedRows(codec, generation, incarnation)
            wanted = min(vectors, known.count + _READ_AT_ONCE)
            if codes := [row[5] for row in found if row[5] is not None]:
                known = known.extended(codes)
            if known.count != wanted:  # some are damaged or missing: all are made again
                self._cache.remove(self._key)
                self._discard(generation)
                return None
            if wanted == vectors:
                self._cache.keep(self._key, known)
                return known

    def _open_partition(self, place: int, generation: int, vectors: int, incarnation: str) -> "PartitionRows":
        from daypack.memory.search.postgres.partition_rows import Partition, PartitionRows  # noqa: PLC0415

        self._cache.remove(self._key)
        partition = Partition(place, generation, vectors, incarnation)
        return PartitionRows(self._database, self._tenant, self._codec, partition, self._similarities)

    def _discard(self, generation: int) -> None:
        self._database.resolve(
            "remove vectors", lambda at: discard_vectors(at, self._memory, self._model, generation), self._scope
        )


def split_codes(codec: "Codec", data: bytes) -> list[bytes]:
    """Return rows one by one."""
    size = codec.row_bytes
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def write_directions(codec: "Codec", codes: Sequence[bytes]) -> list[str | None]:
    """Return vectors as the server reads them; None for zeros, which an index does not hold."""
    import numpy as np  # noqa: PLC0415

    rows = np.frombuffer(b"".join(codes), np.uint8).reshape(-1, codec.row_bytes)
    return [str(direction) if direction else None for direction in codec.directions(rows)]


def _has_passed(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
