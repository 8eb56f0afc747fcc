"""Partitions for large memories: a memory with many vectors gets one of its own, with an index (HNSW).

    vectors_17      the partition for place 17; `embeddings.place` leads there

A memory is moved in one transaction: the table, its rows, its index, then the switch. A process that is killed
meanwhile leaves nothing half done. Searches find the vectors at the old place until the commit; batches wait for it
only while the rows that came during the build are copied. Attaching the partition blocks neither reads nor writes of
other memories.
"""

from typing import TYPE_CHECKING, NamedTuple

from daypack.errors import Damaged, StorageFailed
from daypack.memory.search.postgres.vectors import write_directions
from daypack.memory.store.postgres.index_rows import discard_vectors
from daypack.postgres.database import Database
from daypack.postgres.migrations import APP, OPERATOR, OWNER
from daypack.postgres.transaction import Role, Scope, Transaction
from daypack.search.vectors import open_codec

if TYPE_CHECKING:
    from daypack.search.nearest import Codec

CONNECTIONS, BUILD_EXAMINED = 16, 128  # m and ef_construction of the index
_COPIED_AT_ONCE = 2_000
_LEAST_MEMORY, _MOST_MEMORY = 64, 1_024  # MB, for the build: beyond it, the build is slower
_LOCK_MILLISECONDS = 500  # dropping a partition stops searches of all memories, so it is tried again later
_LOCKED = "55P03"
_PREFIX = "vectors_"


class Due(NamedTuple):
    """A memory that is to get a partition of its own."""

    tenant: str
    memory: int
    model: bytes


class _Vectors(NamedTuple):
    """The vectors of a memory, from which they are copied."""

    due: Due
    generation: int
    codec: "Codec"
    table: str  # where they are copied to
    place: int


class _GivenUp(Exception):
    """The vectors were erased meanwhile."""


class _Incomplete(Exception):
    """Vectors of a generation are damaged or missing."""

    def __init__(self, generation: int) -> None:
        super().__init__()
        self.generation = generation


def list_due(database: Database) -> list[Due]:
    """Return the memories that are to get a partition of their own."""
    query = "SELECT tenant, memory, model FROM embeddings WHERE due"
    rows = database.run("read vectors", lambda at: at.rows(query), Scope(role=OPERATOR, reading=True))
    return [Due(*row) for row in rows]


def promote_due(database: Database) -> int:
    """Move every memory that is due to a partition of its own, and return how many were moved.

    One that cannot be moved does not keep the others waiting: its error is raised at the end.
    """
    moved, failure = 0, None
    for due in list_due(database):
        try:
            moved += promote(database, *due)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return moved


def promote(database: Database, tenant: str, memory: int, model: bytes) -> bool:
    """Move the vectors of a memory to a partition with an index; False if another process does so, or has done so.

    Raises Damaged if some are damaged or missing: then all are made again.
    """
    due = Due(tenant, memory, model)
    try:
        return database.resolve("index vectors", lambda at: _promote(at, due), Scope(tenant, role=OWNER))
    except _GivenUp:
        return False
    except _Incomplete as error:
        generation = error.generation
        database.resolve("remove vectors", lambda at: discard_vectors(at, memory, model, generation), Scope(tenant))
        problem = f"vectors of the memory with number {memory} are damaged or missing"
        hint = "all of them are made again, by an index job that was added"
        raise Damaged(problem, operation="index vectors", place=database.place, hint=hint) from error


def _promote(transaction: Transaction, due: Due) -> bool:
    own = "tenant = %s AND memory = %s AND model = %s"
    _become(transaction, APP)
    row = transaction.row(f"SELECT generation, dimensions, vectors, place FROM embeddings WHERE {own}", due)  # noqa: S608
    if row is None or row[3]:
        return False
    generation, dimensions, count, _ = row
    query = "SELECT pg_try_advisory_xact_lock(hashtextextended('daypack.vectors.' || %s, 0)), nextval('vector_places')"
    locked, place = transaction.row(query, (generation,)) or (False, 0)
    if not locked:
        return False
    _become(transaction, OWNER)
    vectors = _Vectors(due, generation, open_codec(dimensions), f"{_PREFIX}{place:d}", place)
    _create(transaction, vectors, count)
    copied = _copy(transaction, vectors, 0)
    _index(transaction, vectors)
    _become(transaction, APP)
    query = f"SELECT vectors FROM embeddings WHERE {own} AND generation = %s AND place = 0 FOR UPDATE"  # noqa: S608
    row = transaction.row(query, (*due, generation))
    if row is None:
        raise _GivenUp
    _become(transaction, OWNER)
    if _copy(transaction, vectors, copied) != row[0]:
        raise _Incomplete(generation)
    query = "DELETE FROM small_vectors WHERE tenant = %s AND memory = %s AND generation = %s"
    transaction.execute(query, (due.tenant, due.memory, generation))
    # Late, because others that attach a partition wait until this is committed.
    transaction.execute(f"ALTER TABLE vectors ATTACH PARTITION {vectors.table} FOR VALUES IN ({place:d})".encode())
    _become(transaction, APP)
    query = f"UPDATE embeddings SET place = %s, due = false WHERE {own} AND generation = %s RETURNING place"  # noqa: S608
    return transaction.row(query, (place, *due, generation)) is not None


def _become(transaction: Transaction, role: Role) -> None:
    transaction.execute("SELECT set_config('role', %s, true)", (role,))


def _create(transaction: Transaction, vectors: _Vectors, count: int) -> None:
    size = count * (vectors.codec.dimensions * 2 + 512) >> 20
    memory = min(_MOST_MEMORY, max(_LEAST_MEMORY, size))
    query = "SELECT set_config('maintenance_work_mem', %s, true), set_config('statement_timeout', '0', true)"
    transaction.execute(query, (f"{memory}MB",))
    # The constraint is that of the partition, so that attaching does not read the rows.
    transaction.execute(
        f"CREATE TABLE {vectors.table}(LIKE vectors INCLUDING STORAGE INCLUDING INDEXES INCLUDING CONSTRAINTS,"
        f" CHECK (place IS NOT NULL AND place = {vectors.place:d}))".encode()
    )


def _copy(transaction: Transaction, vectors: _Vectors, first: int) -> int:
    """Copy rows from a number on, and return the number after the last."""
    due, generation = vectors.due, vectors.generation
    read = (
        "SELECT number, seq, code FROM small_vectors WHERE tenant = %s AND memory = %s AND generation = %s"
        " AND number >= %s ORDER BY number LIMIT %s"
    )
    write = (
        f"INSERT INTO {vectors.table}(tenant, place, memory, generation, number, seq, code, direction)"  # noqa: S608
        f" SELECT %s, %s, %s, %s, number, seq, code, direction::{transaction.vector_schema}.halfvec"
        " FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[], %s::text[]) AS added(number, seq, code, direction)"
    )
    while True:
        values = due.tenant, due.memory, generation, first, _COPIED_AT_ONCE
        rows = transaction.execute(read, values, binary=True).fetchall()
        if not rows:
            return first
        numbers, seqs, codes = map(list, zip(*rows, strict=True))
        is_complete = numbers == [*range(first, first + len(rows))]
        if not is_complete or not vectors.codec.are_intact(codes):
            raise _Incomplete(generation)
        added = numbers, seqs, codes, write_directions(vectors.codec, codes)
        transaction.execute(write.encode(), (due.tenant, vectors.place, due.memory, generation, *added))
        first = numbers[-1] + 1


def _index(transaction: Transaction, vectors: _Vectors) -> None:
    table, schema, dimensions = vectors.table, transaction.vector_schema, vectors.codec.dimensions
    transaction.execute(f"CREATE INDEX {table}_seq ON {table}(seq)".encode())
    statement = (
        f"CREATE INDEX {table}_near ON {table} USING hnsw"
        f" ((direction::{schema}.halfvec({dimensions:d})) {schema}.halfvec_cosine_ops)"
        f" WITH (m = {CONNECTIONS}, ef_construction = {BUILD_EXAMINED})"
    )
    transaction.execute(statement.encode(), ())  # formatted like a statement with values: see `schema_of_vector`
    transaction.execute(f"ANALYZE {table}".encode())  # else looking up some hundred seqs reads the whole partition


def drop_unused(database: Database) -> int:
    """Drop the partitions of memories and models that no longer exist, and return how many were dropped."""

    def find(transaction: Transaction) -> list[int]:
        query = (
            "SELECT substr(relname, %s)::bigint FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid"
            " WHERE inhparent = 'vectors'::regclass AND relname ~ %s"
        )
        places = [row[0] for row in transaction.rows(query, (len(_PREFIX) + 1, f"^{_PREFIX}[0-9]+$"))]
        # Read after the partitions: a memory that is moved now has a partition that is not among them.
        used = transaction.rows("SELECT place FROM embeddings WHERE place = ANY(%s)", (places,)) if places else []
        return sorted({*places}.difference(row[0] for row in used))

    unused = database.run("read vectors", find, Scope(role=OPERATOR, reading=True))
    return sum(_drop(database, place) for place in unused)


def _drop(database: Database, place: int) -> bool:
    def work(transaction: Transaction) -> None:
        transaction.execute("SELECT set_config('lock_timeout', %s, true)", (f"{_LOCK_MILLISECONDS}ms",))
        transaction.execute(f"DROP TABLE IF EXISTS {_PREFIX}{place:d}".encode())

    try:
        database.resolve("remove vectors", work, Scope(role=OWNER))
    except StorageFailed as error:
        if getattr(error.__cause__, "sqlstate", None) == _LOCKED:
            return False
        raise
    return True
