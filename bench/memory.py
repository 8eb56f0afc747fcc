"""Memory: durable adds compared with chroma, vector search compared with numpy, bulk import, and bytes on disk."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from itertools import count, cycle
from typing import TYPE_CHECKING, Any

from bench.entries import DIMENSIONS, RAW_BYTES, SUMMARY_CHARS, ReadyMade, Texts, archive, make_queries, make_vectors
from bench.histories import Histories
from bench.measure import Block, Series, alternate, ratio, repeat, say, settle
from bench.table import Limit, Row, Section, compare, duration, times
from daypack.memory.backend import Backend
from daypack.memory.search.index_cache import IndexCache
from daypack.memory.store.sqlite import SqliteStore
from daypack.memory.tools import Memories
from daypack.search.vectors import Vectors

if TYPE_CHECKING:
    from daypack.llm.embedding.port import Embedder

ENTRIES = 100_000
HELD = 10_000  # entries before the first one that is measured
ROUNDS, OPERATIONS = 15, 8
SEARCH_ROUNDS, QUESTIONS = 21, 20
TOP = 10
_LEAST_ADDS, _LEAST_IMPORTED, _LEAST_RECALL = 10.0, 20_000, 0.99
_MOST_BYTES, _MOST_VECTOR_BYTES = 1_000, 450
_MOST_SEARCH_MS = 25
_BATCH = 2_000
_WAIT_MS = 600_000
_CHROMA = "chroma"
_NOTES = (
    f"adds: {RAW_BYTES} bytes, a summary of {SUMMARY_CHARS} characters, ready-made vectors of {DIMENSIONS} dimensions;",
    "beside: chroma's PersistentClient, one entry per add. More is better here: adds a second, and for a second of CPU",
    "searchable: add_entry, then await_consistency(level='searchable'); chroma is searchable when add returns",
    f"vector search: rows in groups; beside, and what recall is against: numpy float32, matrix @ query, best {TOP}",
    "search by words: six words of a vocabulary of 20,000, as unequal as those of a language",
)


def measure(histories: Histories) -> Section:
    """Measure adds, searches, imports and sizes."""
    size = min(ENTRIES, max(histories.sizes))
    rows = [*_measure_adds(histories.folder), *_measure_nearest(histories.folder, size)]
    rows += _measure_import(histories.folder, size)
    title = f"Memory ({ROUNDS} rounds of {OPERATIONS} adds, {SEARCH_ROUNDS} rounds of {QUESTIONS} searches)"
    return Section(title, tuple(rows), _NOTES)


# Adds


def _measure_adds(folder: str) -> Iterator[Row]:
    vectors = make_vectors(HELD)
    texts = Texts(1)
    held, later = list(texts.take(HELD)), cycle(list(texts.take(4_000)))
    with ExitStack() as stack:
        memories = stack.enter_context(_open(os.path.join(folder, "memory"), ReadyMade(vectors)))
        say(f"memory: importing {HELD:,} entries")
        # Two, so that nobody makes searchable what another has added.
        first, second = (memories.import_memory(archive(held)).memory_id for _ in range(2))
        _wait(memories, second)
        blocks = {
            "acknowledged": repeat(lambda: _add(memories, first, next(later))),
            "searchable": repeat(lambda: _wait(memories, second, _add(memories, second, next(later)))),
        }
        if chroma := _open_chroma(os.path.join(folder, "chroma"), vectors, held):
            blocks[_CHROMA] = repeat(lambda: chroma(next(later)))
        settle()
        say(f"memory: adds, {ROUNDS} rounds")
        series = alternate(blocks, rounds=ROUNDS, operations=OPERATIONS)
    yield _compare_rates("add_entry, durable", series["acknowledged"], series.get(_CHROMA))
    yield _compare_rates("add_entry, searchable", series["searchable"], series.get(_CHROMA))


def _open(folder: str, embedder: "Embedder | None") -> Memories:
    store = SqliteStore(os.path.join(folder, "store.sqlite"))
    return Memories(Backend(store, IndexCache(os.path.join(folder, "index"), lambda: embedder)))


def _add(memories: Memories, memory_id: str, text: str) -> str:
    return memories.add_entry(memory_id, text, text[:SUMMARY_CHARS]).token


def _wait(memories: Memories, memory_id: str, token: str | None = None) -> None:
    found = memories.await_consistency(memory_id, token, timeout_ms=_WAIT_MS)
    if found.status != "consistent":
        raise RuntimeError(f"the barrier says {found.status}: {found.problem}")


def _open_chroma(folder: str, vectors: Any, held: list[str]) -> Callable[[str], None] | None:  # noqa: ANN401
    """Return what adds one entry to a collection of as many; None when chroma is not installed."""
    try:
        shape = import_module("chromadb")
        settings = import_module("chromadb.config").Settings(anonymized_telemetry=False)
    except ImportError:
        return None
    say(f"filling {_CHROMA}")
    collection = shape.PersistentClient(folder, settings).create_collection("bench", embedding_function=None)
    numbers = count()
    for begin in range(0, len(held), _BATCH):
        part = held[begin : begin + _BATCH]
        ids = [str(next(numbers)) for _ in part]
        collection.add(
            ids=ids,
            embeddings=vectors[begin : begin + len(part)],
            documents=part,
            metadatas=[{"summary": text[:SUMMARY_CHARS]} for text in part],
        )

    def add(text: str) -> None:
        number = next(numbers)
        collection.add(
            ids=[str(number)],
            embeddings=vectors[number % len(vectors) : number % len(vectors) + 1],
            documents=[text],
            metadatas=[{"summary": text[:SUMMARY_CHARS]}],
        )

    return add


def _compare_rates(name: str, ours: Series, beside: Series | None) -> Row:
    rate = f"{1e9 / ours.middle('wall'):,.0f}/s"
    target = f"wall ≥ {times(_LEAST_ADDS)} ×"
    if beside is None:
        return Row(name, HELD, rate, f"{_CHROMA} is not installed", target=target)
    gain = ratio(beside.wall, ours.wall)
    return Row(
        name,
        HELD,
        rate,
        f"{1e9 / beside.middle('wall'):,.0f}/s",
        gain,
        beside.quiet() / ours.quiet(),
        ratio(beside.cpu, ours.cpu),
        target,
        gain.value >= _LEAST_ADDS,
    )


# Vectors


def _measure_nearest(folder: str, size: int) -> Iterator[Row]:
    import numpy as np

    say(f"memory: {size:,} vectors")
    matrix = make_vectors(size)
    vectors = Vectors(os.path.join(folder, "vectors"), model="ready-made", dimensions=DIMENSIONS)
    for begin in range(0, size, _BATCH):
        vectors.add(range(begin + 1, min(begin + _BATCH, size) + 1), matrix[begin : begin + _BATCH])
    queries = make_queries(matrix, 200)

    def compare_all(query: Any) -> Any:  # noqa: ANN401 — arrays
        cosines = matrix @ query
        best = np.argpartition(cosines, size - TOP)[-TOP:]
        return best[np.argsort(-cosines[best])]

    right = sum(
        len({int(place) + 1 for place in compare_all(query)} & set(vectors.search(query, TOP).ids)) for query in queries
    )
    recall = right / TOP / len(queries)
    say(f"memory: vector search, {SEARCH_ROUNDS} rounds")
    mine, theirs = cycle(queries), cycle(queries)
    blocks: dict[str, Block] = {
        "ours": repeat(lambda: vectors.search(next(mine), TOP)),
        "numpy": repeat(lambda: compare_all(next(theirs))),
    }
    series = alternate(blocks, rounds=SEARCH_ROUNDS, operations=QUESTIONS)
    yield compare("vector search, best 10", series["ours"], series["numpy"], Limit(0.5), size)
    target, met = f"≥ {_LEAST_RECALL}", recall >= _LEAST_RECALL
    yield Row("  recall of the best 10", size, f"{recall:.4f}", "1", target=target, met=met)
    taken = os.path.getsize(vectors.path) / size
    target, met = f"≤ {_MOST_VECTOR_BYTES} bytes", taken <= _MOST_VECTOR_BYTES
    yield Row(
        "  a vector on disk",
        size,
        f"{taken:.0f} bytes",
        f"{matrix.nbytes // size:,} bytes",
        None,
        None,
        None,
        target,
        met,
    )


# Import and size


def _measure_import(folder: str, size: int) -> Iterator[Row]:
    texts = Texts(2)
    lines = list(archive(list(texts.take(size))))
    place = os.path.join(folder, "imported")
    with _open(place, None) as memories:
        settle()
        say(f"memory: importing {size:,} entries")
        start, cpu = time.perf_counter(), time.process_time()
        memory_id = memories.import_memory(lines).memory_id
        stored, spent = time.perf_counter() - start, time.process_time() - cpu
        _wait(memories, memory_id)
        searchable = time.perf_counter() - start
        target, met = f"≥ {_LEAST_IMPORTED:,}/s", size / stored >= _LEAST_IMPORTED
        yield Row("import, durable", size, f"{size / stored:,.0f}/s", target=target, met=met)
        yield Row("  for a second of CPU", size, f"{size / spent:,.0f}")
        yield Row("import, searchable by words", size, f"{size / searchable:,.0f}/s")
        say(f"memory: search by words, {SEARCH_ROUNDS} rounds")
        ask = repeat(lambda: memories.search_memories(memory_id, texts.question(), TOP))
        series = alternate({"ours": ask}, rounds=SEARCH_ROUNDS, operations=QUESTIONS)["ours"]
        taken = series.middle("wall")
        target, met = f"wall ≤ {_MOST_SEARCH_MS} ms", taken <= _MOST_SEARCH_MS * 1e6
        yield Row("search_memories by words", size, duration(taken), target=target, met=met)
        yield Row("  CPU time", size, duration(series.middle("cpu")))
    taken = _bytes_in(place) / size
    target, met = f"≤ {_MOST_BYTES:,} bytes", taken <= _MOST_BYTES
    yield Row(f"an entry of {RAW_BYTES} bytes on disk", size, f"{taken:,.0f} bytes", target=target, met=met)


def _bytes_in(folder: str) -> int:
    """Return the bytes of all files: the store, and the index by words."""
    return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names)
