"""Memories on PostgreSQL: durable adds and searches, beside the file store and beside pgvector as LangChain uses it.

One server from a wheel serves ours and theirs. Entries have 300 bytes and ready-made vectors of 384 dimensions. Up to
20,000 entries ours compares all vectors of a memory; a larger memory has a partition with an index (halfvec, HNSW).
LangChain's PGVector stores float32 and creates no index: it compares all.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from itertools import count, cycle
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from bench.entries import DIMENSIONS, RAW_BYTES, SUMMARY_CHARS, ReadyMade, Texts, make_vectors
from bench.histories import Histories
from bench.measure import Block, Series, alternate, ratio, repeat, say, settle
from bench.table import Row, Section, duration
from daypack.memory.backend import Backend
from daypack.memory.search.index_cache import IndexCache
from daypack.memory.search.postgres.indexes import PostgresIndexes
from daypack.memory.search.postgres.partitions import promote_due
from daypack.memory.store.port import NewEntry
from daypack.memory.store.postgres.store import PostgresStore
from daypack.memory.store.sqlite import SqliteStore
from daypack.memory.tools import Memories
from daypack.postgres.database import Database
from tools.postgres import Server, problem

if TYPE_CHECKING:
    from daypack.llm.embedding.port import Embedder

SIZES = (10_000, 100_000, 1_000_000)
ROUNDS, OPERATIONS = 15, 20
TOP = 10
SETTINGS = {"shared_buffers": "2GB", "maintenance_work_mem": "2GB", "max_wal_size": "8GB"}
LANGCHAIN = "LangChain PGVector"
_WAIT_MS = 600_000
_BATCH = 5_000
_NOTES = (
    f"entries of {RAW_BYTES} bytes, vectors of {DIMENSIONS} dimensions; p50 / p99 of every call",
    "searches: words and vectors together, six words; LangChain's: vectors only, exact (it creates no index)",
)


class Contender(NamedTuple):
    """What adds one entry, and what searches for the best ten."""

    name: str
    add: Callable[[], object]
    search: Callable[[], object]


def measure(histories: Histories) -> Section:
    """Measure all sizes."""
    if reason := problem():
        return Section("PostgreSQL", (), (reason,))
    rows: list[Row] = []
    for size in [size for size in SIZES if size <= max(histories.sizes)]:
        rows += _measure_size(Path(histories.folder), size)
    return Section(f"PostgreSQL ({ROUNDS} rounds of {OPERATIONS} calls)", tuple(rows), _NOTES)


def open_memories(url: str, embedder: "Embedder | None") -> Memories:
    """Return memories in a database, with a given embedding model."""
    database = Database(url)
    return Memories(Backend(PostgresStore(database), IndexCache(PostgresIndexes(database), lambda: embedder)))


def _measure_size(folder: Path, size: int) -> Iterator[Row]:
    vectors, texts = make_vectors(size), Texts(1)
    held, later = list(texts.take(size)), cycle(list(texts.take(4_000)))
    embedder = ReadyMade(vectors)
    with ExitStack() as stack:
        server = stack.enter_context(Server.start(folder / f"pg-{size}", SETTINGS))
        place = folder / f"files-{size}"
        files = Memories(
            Backend(SqliteStore(str(place / "store.sqlite")), IndexCache(str(place / "index"), lambda: embedder))
        )
        contenders = [
            _ours("PostgreSQL", stack.enter_context(open_memories(server.url(), embedder)), held, later, texts),
            _ours("SQLite", stack.enter_context(files), held, later, texts),
        ]
        if theirs := _langchain(server, vectors, held, later):
            contenders.append(theirs)
        settle()
        yield from _compare("add_entry, durable", size, {one.name: repeat(one.add) for one in contenders})
        yield from _compare("search, best 10", size, {one.name: repeat(one.search) for one in contenders})


def _ours(name: str, memories: Memories, held: list[str], later: Iterator[str], texts: Texts) -> Contender:
    memory_id = fill(memories, held, name)

    def add() -> None:
        text = next(later)
        memories.add_entry(memory_id, text, text[:SUMMARY_CHARS])

    return Contender(name, add, lambda: memories.search_memories(memory_id, texts.question(), TOP))


def fill(memories: Memories, held: Sequence[str], name: str) -> str:
    """Create a memory with these entries, indexed; return its id."""
    say(f"{name}: storing {len(held):,} entries")
    memory_id = memories.create_memory("bench").memory_id
    store = memories.backend.store
    for begin in range(0, len(held), _BATCH):
        part = [NewEntry(raw=text, summary=text[:SUMMARY_CHARS]) for text in held[begin : begin + _BATCH]]
        store.add(memories.user, memory_id, part)
    say(f"{name}: indexing them")
    while memories.await_consistency(memory_id, timeout_ms=_WAIT_MS).status == "timeout":
        say(f"{name}: still indexing")
    if isinstance(store, PostgresStore):
        promote_due(store.database)
    return memory_id


def _langchain(server: Server, vectors: Any, held: list[str], later: Iterator[str]) -> Contender | None:  # noqa: ANN401 — an array
    """Return LangChain's store with the same entries; None if it is not installed."""
    try:
        shape = import_module("langchain_postgres").PGVector
    except ImportError:
        say(f"{LANGCHAIN} is not installed")
        return None
    say(f"{LANGCHAIN}: storing {len(held):,} entries")
    url = server.url().replace("postgresql://", "postgresql+psycopg://")
    theirs = shape(embeddings=None, connection=url, collection_name="bench", embedding_length=DIMENSIONS)
    numbers = count()
    with psycopg.connect(server.url()) as connection:
        query = "SELECT uuid FROM langchain_pg_collection WHERE name = 'bench'"
        (collection,) = connection.execute(query).fetchone() or (None,)
        copying = "COPY langchain_pg_embedding(id, collection_id, embedding, document, cmetadata) FROM STDIN"
        with connection.cursor() as cursor, cursor.copy(copying) as copy:
            for text, row in zip(held, vectors, strict=True):
                copy.write_row((str(next(numbers)), collection, f"[{','.join(map(str, row.tolist()))}]", text, "{}"))
    asked = cycle(vectors[:1_000])

    def add() -> None:
        number, text = next(numbers), next(later)
        row = vectors[number % len(vectors)].tolist()
        theirs.add_embeddings([text], [row], metadatas=[{"summary": text[:SUMMARY_CHARS]}], ids=[str(number)])

    return Contender(LANGCHAIN, add, lambda: theirs.similarity_search_by_vector(next(asked).tolist(), k=TOP))


def _compare(name: str, size: int, blocks: dict[str, Block]) -> Iterator[Row]:
    """Yield a row for each contender beside ours."""
    say(f"{name}, {size:,} entries: {ROUNDS} rounds")
    series = alternate(blocks, rounds=ROUNDS, operations=OPERATIONS)
    ours = series.pop(next(iter(blocks)))
    for other, theirs in series.items():
        wall, cpu = ratio(ours.wall, theirs.wall), ratio(ours.cpu, theirs.cpu)
        beside = f"{_tail(theirs)} {other}"
        yield Row(name, size, _tail(ours), beside, wall, ours.quiet() / theirs.quiet(), cpu)


def _tail(series: Series) -> str:
    cuts = quantiles(series.every, n=100, method="inclusive")
    return f"{duration(cuts[49])} / {duration(cuts[98])}"
