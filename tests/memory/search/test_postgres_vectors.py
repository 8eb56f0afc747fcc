"""Vectors in a database: the same answers as from files, whoever embeds at once and is killed."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import postgres_server
import pytest
from llm.embedding.embedders import find_embedder
from memory.search.numbered import Entries, Numbered, make_vectors, number_memory
from search.vector_rows import make_queries, make_rows

from daypack.llm.embedding.port import Embedder
from daypack.memory.search.postgres import vectors as module
from daypack.memory.search.postgres.loaded_rows import RowCache
from daypack.memory.search.postgres.vectors import PostgresVectors
from daypack.memory.search.vectors import EntryVectors, Texts
from daypack.memory.store.postgres.index_rows import erase_vectors
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope

pytestmark = postgres_server.needs_postgres
ME = Scope("me")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


def _open(database: Database, embedder: Embedder, tenant: str = "me", memory: int = 1) -> PostgresVectors:
    return PostgresVectors(database, tenant, number_memory(database, tenant, memory), embedder, RowCache())


def _check_same(ours: PostgresVectors, files: EntryVectors, query: str, limit: int, allowed: list[int] | None) -> None:
    found, wanted = ours.search(query, limit, allowed), files.search(query, limit, allowed)
    assert found
    assert wanted
    assert (found.nearest, found.allowed, found.ids) == (wanted.nearest, wanted.allowed, wanted.ids)
    ids = [*wanted.ids, 1, 3, 10**6]
    assert ours.compare(found, ids) == files.compare(wanted, ids)


@pytest.mark.parametrize("count", [1, 2, 100, 3_100, 4_500])
def test_answers_are_those_of_the_files(database: Database, tmp_path: Path, count: int) -> None:
    texts = Entries(count)
    vectors = make_vectors(texts.texts)
    queries = make_queries(make_rows(max(20, texts.texts), 64), 20)
    queries[3] = 0
    embedder = Numbered(np.concatenate([vectors, queries]))
    ours, files = _open(database, embedder), EntryVectors(str(tmp_path), embedder)
    for goal in (count // 3 + 1, count // 3 + 2, count):
        assert ours.catch_up(goal, texts, None) is None
        assert files.catch_up(goal, texts, None) is None
        assert ours.newest == files.newest
        for number in range(len(queries)):
            query = str(len(vectors) + number)
            some = list(range(number % 5 + 1, count + 1, number % 3 + 2))
            _check_same(ours, files, query, (1, 10, 100, count)[number % 4], some if number % 2 else None)
    _check_same(_open(database, embedder), files, "0", 10, None)
    files.close()


def test_texts_of_the_static_model_have_the_same_neighbours(database: Database, tmp_path: Path) -> None:
    embedder = find_embedder("static")
    words = Path(module.__file__).read_text().split()
    said = [(seq, [" ".join(words[seq * 3 : seq * 3 + 9]), *([""] if seq % 50 == 0 else [])]) for seq in range(1, 200)]
    ours, files = _open(database, embedder), EntryVectors(str(tmp_path), embedder)
    for vectors in (ours, files):
        assert vectors.catch_up(199, lambda after, limit: said[after : after + limit], None) is None
    for query in ("the newest entry that has a vector", "another process was killed", ""):
        _check_same(ours, files, query, 100, [3, 7, 50, 51])
    files.close()


def test_without_vectors_nothing_is_found(database: Database) -> None:
    embedder = Numbered(make_vectors(10))
    ours = _open(database, embedder)
    assert ours.newest == 0
    assert ours.search("1", 5, None) is None
    assert ours.catch_up(0, Entries(0), None) is None
    assert ours.search("1", 5, None) is None


def test_another_tenant_and_another_memory_have_other_vectors(database: Database) -> None:
    texts, embedder = Entries(30), Numbered(make_vectors(100))
    ours = _open(database, embedder)
    ours.catch_up(30, texts, None)
    for other in (_open(database, embedder, "you"), _open(database, embedder, "me", 2)):
        assert other.newest == 0
        assert other.search("1", 5, None) is None
        other.catch_up(10, Entries(10), None)
        found = other.search("1", 50, None)
        assert found
        assert len(found.nearest.ids) == 10
    found = ours.search("1", 50, None)
    assert found
    assert len(found.nearest.ids) == 30


def test_vectors_of_another_process_are_found(database: Database) -> None:
    embedder = Numbered(make_vectors(400))
    first, second = _open(database, embedder), _open(database, embedder)
    for goal in (50, 51, 200):
        assert first.catch_up(goal, Entries(goal), None) is None
        found = second.search("1", 500, None)
        assert found
        assert sorted(found.ids) == list(range(1, goal + 1))


def test_a_search_in_an_older_snapshot_leaves_newer_vectors_as_they_are(database: Database) -> None:
    embedder, cache, memory_id = Numbered(make_vectors(200)), RowCache(), number_memory(database, "me", 1)
    reader, writer = (PostgresVectors(database, "me", memory_id, embedder, cache) for _ in range(2))

    def grow() -> None:
        assert writer.catch_up(100, Entries(100), None) is None
        assert writer.search("1", 5, None)

    writer.catch_up(50, Entries(50), None)
    with database.together("search", "me"):
        assert reader.newest == 50
        growing = threading.Thread(target=grow)
        growing.start()
        growing.join()
        found = reader.search("1", 500, None)
    assert found
    assert len(found.ids) == 50
    assert reader.newest == 100


def test_erased_vectors_do_not_come_back_even_if_as_many_are_made_again(database: Database) -> None:
    texts, embedder = Entries(100), Numbered(make_vectors(200))
    first, second = _open(database, embedder), _open(database, embedder)
    first.catch_up(100, texts, None)
    assert second.search("1", 5, None)
    database.run("erase", lambda at: erase_vectors(at, 1), ME)
    assert second.newest == 0
    assert second.search("1", 5, None) is None
    moved = Numbered(embedder.vectors[::-1].copy())
    _open(database, moved).catch_up(100, texts, None)
    assert (found := second.search("1", 100, None))
    assert (wanted := _open(database, moved).search("198", 100, None))  # the same vector
    assert found.nearest == wanted.nearest
    assert _count(database) == Entries(100).texts


def test_what_was_read_before_an_erasure_is_not_written_after_it(database: Database) -> None:
    texts, embedder = Entries(64), Numbered(make_vectors(100))
    ours = _open(database, embedder)

    def erased_meanwhile(after: int, limit: int) -> object:
        batch = texts(after, limit)
        if not embedder.texts:
            database.run("erase", lambda at: erase_vectors(at, 1), ME)
        else:
            batch = [(seq, parts) for seq, parts in batch if seq != 3]  # erased
        return batch

    assert ours.catch_up(64, erased_meanwhile, None) is None  # pyright: ignore[reportArgumentType]
    found = ours.search("1", 100, None)
    assert found
    assert 3 not in found.ids
    assert len(found.ids) == 63
    assert _count(database) == texts.texts - 1


def test_vectors_of_another_model_go_once_the_new_ones_are_complete(database: Database) -> None:
    texts, vectors = Entries(100), make_vectors(200)
    first, second = _open(database, Numbered(vectors, "one")), _open(database, Numbered(vectors[:, :32].copy(), "two"))
    first.catch_up(100, texts, None)
    second.catch_up(100, lambda after, limit: texts(after, limit) if after < 50 else [], None)
    assert 0 < second.newest < 100
    assert first.newest == 100
    second.catch_up(100, texts, None)
    assert (first.newest, second.newest) == (0, 100)
    assert _count(database) == texts.texts
    assert first.search("1", 5, None) is None


def test_a_model_with_other_dimensions_begins_anew(database: Database) -> None:
    texts, vectors = Entries(20), make_vectors(100)
    _open(database, Numbered(vectors)).catch_up(20, texts, None)
    other = _open(database, Numbered(vectors[:, :32].copy()))
    assert other.newest == 0
    assert other.search("1", 5, None) is None
    assert other.catch_up(20, texts, None) is None
    assert (found := other.search("1", 50, None))
    assert len(found.ids) == 20
    assert _count(database) == texts.texts


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET code = set_byte(code, 30, 7)",
        "UPDATE vectors SET code = '\\x00'",
        "DELETE FROM vectors",
    ],
)
def test_damaged_vectors_are_made_again(database: Database, damage: str) -> None:
    texts, embedder = Entries(20), Numbered(make_vectors(100))
    _open(database, embedder).catch_up(20, texts, None)
    database.run("damage", lambda at: at.execute(f"{damage} WHERE number = 9".encode()).rowcount, ME)
    ours = _open(database, embedder)
    assert ours.search("1", 50, None) is None
    assert ours.catch_up(20, texts, None) is None
    assert (found := ours.search("1", 50, None))
    assert len(found.ids) == 20


def test_kept_rows_are_bounded_and_read_again(database: Database) -> None:
    texts, embedder = Entries(100), Numbered(make_vectors(200))
    cache = RowCache(40_000)
    several = [
        PostgresVectors(database, "me", number_memory(database, "me", memory), embedder, cache)
        for memory in range(1, 9)
    ]
    for vectors in several:
        vectors.catch_up(100, texts, None)
    for vectors in [*several, *several]:
        assert (found := vectors.search("1", 500, None))
        assert len(found.ids) == 100
        assert 0 < cache.size <= 40_000
    database.run("erase", lambda at: [erase_vectors(at, memory) for memory in range(1, 9)], ME)
    for vectors in several:
        assert vectors.search("1", 5, None) is None
    assert cache.size == 0


# Several processes


def _fork(work: "object") -> int:
    pid = os.fork()
    if not pid:
        try:
            work()  # pyright: ignore[reportCallIssue]
        finally:
            os._exit(0)
    return pid


@pytest.mark.parametrize("instant", [True, False])
def test_processes_that_embed_at_once_and_are_killed_neither_double_nor_skip(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instant: bool
) -> None:
    monkeypatch.setattr(module, "_BATCH", 7)
    monkeypatch.setattr(module, "_LEASE_SECONDS", 0.2)
    texts = Entries(600)
    embedder = Numbered(make_vectors(texts.texts), instant=instant)
    database.check("connect")

    def embed(number: int) -> None:
        batches = 0

        def some(after: int, limit: int) -> object:
            nonlocal batches
            batches += 1
            if batches == 5 + number:
                os.kill(os.getpid(), signal.SIGKILL)
            return texts(after, limit)

        _open(database, embedder).catch_up(600, some, None)  # pyright: ignore[reportArgumentType]

    for begin in range(0, 12, 4):
        pids = [_fork(lambda number=number: embed(number)) for number in range(begin, begin + 4)]
        for pid in pids:
            os.waitpid(pid, 0)
    ours = _open(database, embedder)
    assert ours.newest > 0
    assert ours.catch_up(600, texts, None) is None
    files = EntryVectors(str(tmp_path), embedder)
    files.catch_up(600, texts, None)
    for query in ("1", "300", "500"):
        _check_same(ours, files, query, 600, None)
    assert _count(database) == texts.texts
    files.close()


def test_one_process_embeds_and_the_others_wait_for_it(database: Database) -> None:
    texts = Entries(200)
    embedders = [Numbered(make_vectors(texts.texts), instant=False) for _ in range(4)]
    started = threading.Barrier(4)

    def embed(embedder: Numbered) -> None:
        started.wait()
        assert _open(database, embedder).catch_up(200, texts, None) is None
        assert _open(database, embedder).newest == 200

    threads = [threading.Thread(target=embed, args=(embedder,)) for embedder in embedders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(embedder.texts) for embedder in embedders) == texts.texts
    assert _count(database) == texts.texts


def test_a_lease_does_not_outlast_a_deadline_or_its_owner(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = Entries(100)
    embedder = Numbered(make_vectors(texts.texts), instant=False)
    waiting = _open(database, embedder)

    def another_meanwhile(after: int, limit: int) -> object:
        if not after:
            assert _open(database, embedder).catch_up(100, texts, 0.0) is None  # long past
        return texts(after, limit)

    assert waiting.catch_up(100, another_meanwhile, None) is None  # pyright: ignore[reportArgumentType]
    assert len(embedder.texts) == texts.texts
    query = "SELECT count(*) FROM embeddings WHERE embedder IS NOT NULL"
    assert database.run("count", lambda at: at.row(query), ME) == (0,)


def test_a_batch_that_another_process_has_written_is_dropped(database: Database) -> None:
    texts = Entries(100)
    embedder = Numbered(make_vectors(texts.texts))

    def another_meanwhile(after: int, limit: int) -> object:
        _embed(database, embedder, texts, after + 10)
        return texts(after, limit)

    assert _open(database, embedder).catch_up(100, another_meanwhile, None) is None  # pyright: ignore[reportArgumentType]
    assert _count(database) == texts.texts
    assert (found := _open(database, embedder).search("1", 500, None))
    assert sorted(found.ids) == list(range(1, 101))


def _embed(database: Database, embedder: Embedder, texts: Texts, goal: int) -> None:
    assert _open(database, embedder).catch_up(goal, lambda after, limit: texts(after, goal - after), None) is None


def _count(database: Database) -> int:
    row = database.run("count", lambda at: at.row("SELECT count(*) FROM vectors"), ME)
    assert row
    return row[0]
