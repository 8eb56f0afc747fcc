"""Large memories: a partition with an index, made while others write and search, whoever is killed when."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import postgres_server
import psycopg
import pytest
from campaigns import Campaign
from memory.search.numbered import Entries, Floats, Numbered, make_vectors, number_memory
from search.vector_rows import make_queries, make_rows

from daypack.errors import Damaged
from daypack.memory.search.postgres import partition_rows, partitions, vectors
from daypack.memory.search.postgres.loaded_rows import RowCache
from daypack.memory.search.postgres.partitions import drop_unused, list_due, promote, promote_due
from daypack.memory.search.postgres.vectors import PostgresVectors
from daypack.memory.search.vectors import EntryVectors
from daypack.memory.store.postgres.index_rows import erase_vectors
from daypack.postgres import database as database_module
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

pytestmark = postgres_server.needs_postgres
ME = Scope("me")
MODEL = b"numbered"
EMBEDDER = Numbered(make_vectors(2_000, 32))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "LARGE", 500)


def _open(database: Database, embedder: Numbered, tenant: str = "me", memory: int = 1) -> PostgresVectors:
    return PostgresVectors(database, tenant, number_memory(database, tenant, memory), embedder, RowCache())


def _fill(database: Database, count: int, tenant: str = "me", memory: int = 1) -> tuple[PostgresVectors, Entries]:
    texts = Entries(count)
    ours = _open(database, EMBEDDER, tenant, memory)
    assert ours.catch_up(count, texts, None) is None
    return ours, texts


def _ids(vectors: PostgresVectors, limit: int) -> list[int]:
    found = vectors.search("1", limit, None)
    assert found
    return sorted(found.ids)


def _place(database: Database, tenant: str = "me", memory: int = 1) -> int:
    query = "SELECT place FROM embeddings WHERE memory = %s"
    row = database.run("read", lambda at: at.row(query, (memory,)), Scope(tenant))
    return row[0] if row else -1


def _tables(url: str) -> list[str]:
    query = "SELECT relname FROM pg_class WHERE relname ~ '^vectors_[0-9]+$' AND relkind = 'r' ORDER BY 1"
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute(query).fetchall()]


def _rows(database: Database, tenant: str = "me") -> list[tuple[Any, ...]]:
    query = "SELECT memory, number, seq, code, place FROM vectors ORDER BY 1, 2"
    return database.run("read", lambda at: at.rows(query), Scope(tenant))


def test_a_memory_that_grew_large_is_due_and_then_has_a_partition(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    small, _ = _fill(database, 100, memory=2)
    _fill(database, 100, tenant="you")
    large, texts = _fill(database, 400)
    assert [tuple(due) for due in list_due(database)] == [("me", 1, MODEL)]
    before = _rows(database)
    queries = [str(number) for number in range(30) if number not in (5, 7)]  # they have no direction
    wanted = [large.search(query, 100, [3, 5, 7, 11]) for query in queries]
    assert promote_due(database) == 1
    assert list_due(database) == []
    assert promote_due(database) == 0
    assert (_place(database), _place(database, memory=2)) == (1, 0)
    assert _tables(database_url) == ["vectors_1"]
    after = _rows(database)
    assert [row[:4] for row in after] == [row[:4] for row in before]
    assert {row[4] for row in after if row[0] == 1} == {1}
    files = EntryVectors(str(tmp_path), EMBEDDER)
    files.catch_up(400, texts, None)
    for query, former in zip(queries, wanted, strict=True):
        found = large.search(query, 100, [3, 5, 7, 11])
        assert found
        assert former
        assert found.nearest.ids[:10] == former.nearest.ids[:10]
        assert found.allowed
        assert former.allowed
        assert found.allowed.ids == former.allowed.ids
        assert found.nearest.cosines[:10] == pytest.approx(former.nearest.cosines[:10], abs=1e-5)
        assert (found.nearest.low, found.nearest.high) == pytest.approx(
            (former.nearest.low, former.nearest.high), abs=1e-3
        )
        ours, theirs = large.compare(found, [1, 7, 400, 10**6]), files.compare(former, [1, 7, 400, 10**6])
        assert ours.similarity == theirs.similarity
        assert ours.cosines == pytest.approx(theirs.cosines, abs=1e-5)
    assert len(_ids(small, 500)) == 100
    files.close()


def test_all_rows_come_back_whatever_is_asked_for(database: Database) -> None:
    large, _ = _fill(database, 600)
    assert promote_due(database) == 1
    for limit in (0, 1, 10, 100, 590, 600, 2_000):
        for allowed in (None, range(1, 601), range(1, 601, 50)):
            found = large.search("3", limit, None if allowed is None else list(allowed))
            assert found
            assert len(found.nearest.ids) == min(limit, 600)
            assert found.nearest.cosines == sorted(found.nearest.cosines, reverse=True)
            if allowed is not None:
                assert found.allowed
                assert len(found.allowed.ids) == min(limit, len(allowed))
                assert {*found.allowed.ids} <= {*allowed}


def test_many_allowed_ids_are_found_through_the_index(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    large, _ = _fill(database, 600)
    promote_due(database)
    allowed = list(range(2, 601, 3))
    wanted = large.search("3", 20, allowed)
    monkeypatch.setattr(partition_rows, "COMPARED", 10)
    found = large.search("3", 20, allowed)
    assert wanted
    assert found
    assert found.allowed == wanted.allowed
    found = large.search("3", 500, allowed)
    assert found
    assert found.allowed
    assert sorted(found.allowed.ids) == allowed


def test_vectors_are_added_to_a_partition_and_found_there(database: Database) -> None:
    large, _ = _fill(database, 400)
    promote_due(database)
    other = _open(database, EMBEDDER)
    assert other.catch_up(470, Entries(470), None) is None
    assert {row[4] for row in _rows(database)} == {1}
    assert [row[1] for row in _rows(database)] == list(range(Entries(470).texts))
    found = large.search(str(Entries(470).texts - 1), 1, None)
    assert found
    assert found.ids == [470]
    assert _ids(large, 1_000) == list(range(1, 471))


def test_the_index_is_used_by_the_role_of_the_tools(database: Database) -> None:
    large, _ = _fill(database, 600)
    promote_due(database)
    plans: list[str] = []
    select = partition_rows.PartitionRows._select  # pyright: ignore[reportPrivateUsage]

    def explained(self: Any, transaction: Any, rest: str, *values: object, **options: str) -> Any:
        if "ORDER BY (" in rest:
            query = f"EXPLAIN SELECT seq, code {self._from} {rest}"
            shown = transaction.execute(query.encode(), (self._partition.generation, *values), prepare=False)
            plans.append("\n".join(row[0] for row in shown.fetchall()))
        return select(self, transaction, rest, *values, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_rows.PartitionRows, "_select", explained)
        patch.setattr(partition_rows, "COMPARED", 10)
        large.search("1", 10, list(range(1, 500)))
        large.search("1", 20, None)
        assert len(plans) == 5  # far and near, twice, and the allowed ones
        assert all("Index Scan using vectors_1_near on vectors_1 vectors" in plan for plan in plans), plans
        assert not any("Sort" in plan or "small_vectors" in plan for plan in plans)
        plans.clear()
        large.search("1", 600, None)
        assert "Sort" in plans[-1]  # all rows: the index cannot promise them


def test_other_tenants_never_see_vectors_of_a_partition(database: Database) -> None:
    _fill(database, 400)
    _fill(database, 300, tenant="you")
    promote_due(database)
    place = _place(database)
    query = "SELECT count(*) FROM vectors WHERE place = %s"
    for scope in (Scope("you"), Scope("")):
        assert database.run("read", lambda at: at.row(query, (place,)), scope) == (0,)
        with pytest.raises(Exception, match="permission denied"):
            database.run("read", lambda at: at.row("SELECT count(*) FROM vectors_1"), scope)
    intruder = _open(database, EMBEDDER, "you")
    rows = intruder._open_partition(place, 1, 400, "")  # pyright: ignore[reportPrivateUsage]
    nearest, _ = rows.search(EMBEDDER.vectors[1], 10, None)
    assert nearest.ids == []
    assert rows.compare(EMBEDDER.vectors[1], [1, 2, 3])[0] == {}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET code = '\\x00'",
        "UPDATE vectors SET code = set_byte(code, 30, 7)",
        "DELETE FROM vectors",
    ],
)
def test_a_memory_with_a_damaged_vector_is_embedded_again_and_others_are_moved_meanwhile(
    database: Database, damage: str
) -> None:
    ours, texts = _fill(database, 430)
    _fill(database, 430, memory=2)
    query = f"{damage} WHERE memory = 1 AND number = 5 RETURNING number"
    assert database.run("damage", lambda at: at.rows(query), ME) == [(5,)]
    with pytest.raises(Damaged, match="the memory with number 1 are damaged or missing"):
        promote_due(database)
    assert _place(database) == -1
    assert _place(database, memory=2) > 0
    jobs = database.run("read", lambda at: at.rows("SELECT memory FROM jobs"), ME)
    assert jobs == [(1,)]
    assert ours.catch_up(430, texts, None) is None
    assert promote_due(database) == 1
    assert _ids(ours, 1_000) == list(range(1, 431))


def test_a_partition_with_a_row_of_a_wrong_length_is_searched_without_it(database: Database) -> None:
    large, _ = _fill(database, 430)
    promote_due(database)
    query = "UPDATE vectors SET code = '\\x00' WHERE number = 5 RETURNING number"
    assert database.run("damage", lambda at: at.rows(query), ME) == [(5,)]
    assert len(_ids(large, 1_000)) == 429


# Moving


def test_searches_and_batches_go_on_while_a_memory_is_moved(database: Database, database_url: str) -> None:
    _fill(database, 500)
    stopped = threading.Event()
    problems: list[str] = []

    def search() -> None:
        ours, least = _open(database, EMBEDDER), 500
        while not stopped.is_set():
            found = ours.search("1", 2_000, None)
            if not found or sorted(found.ids) != list(range(1, len(found.ids) + 1)) or len(found.ids) < least:
                problems.append(f"{found and len(found.ids)} after {least}")
                return
            least = len(found.ids)

    def embed() -> None:
        ours, goal = _open(database, EMBEDDER), 500
        while not stopped.is_set() and goal < 1_200:
            goal += 5
            if problem := ours.catch_up(goal, Entries(goal), None):
                problems.append(problem)
        goals.append(goal)

    goals: list[int] = []
    threads = [threading.Thread(target=work) for work in (search, search, embed)]
    for thread in threads:
        thread.start()
    try:
        assert promote(database, "me", 1, MODEL)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert not problems
    assert [row[1] for row in _rows(database)] == list(range(Entries(goals[0]).texts))
    assert {row[4] for row in _rows(database)} == {1}
    assert _tables(database_url) == ["vectors_1"]


def test_two_that_move_the_same_memory_make_one_partition(database: Database, database_url: str) -> None:
    _fill(database, 500)
    moved: list[bool] = []
    threads = [threading.Thread(target=lambda: moved.append(promote(database, "me", 1, MODEL))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(moved) == [False, False, False, True]
    assert len(_tables(database_url)) == 1


class _Through:
    """A connection whose statements are counted."""

    def __init__(self, connection: Any, execute: Any) -> None:
        self._connection = connection
        self.execute = execute

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_a_move_that_is_killed_anywhere_leaves_nothing_behind(database: Database, database_url: str) -> None:
    large, texts = _fill(database, 430)
    _fill(database, 430, memory=2)
    before = _rows(database)
    memory_2 = [row for row in before if row[0] == 2]

    def killed_at(step: int) -> None:
        class Killed(Transaction):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                plain, left = self.execute, [step]

                def execute(*given: Any, **options: Any) -> Any:
                    left[0] -= 1
                    if not left[0]:
                        plain("SELECT 1").fetchone()  # so that all before it were executed
                        os.kill(os.getpid(), signal.SIGKILL)
                    return plain(*given, **options)

                self.execute = execute
                self.connection = _Through(self.connection, execute)  # pyright: ignore[reportAttributeAccessIssue]

        database_module.Transaction = Killed  # pyright: ignore[reportPrivateImportUsage]
        promote(database, "me", 1, MODEL)

    steps = 0
    while True:
        steps += 1
        pid = os.fork()
        if not pid:
            try:
                killed_at(steps)
            finally:
                os._exit(0)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            break
        assert _place(database) == 0
        assert _rows(database) == before
        assert _tables(database_url) == []
        assert len(_ids(large, 1_000)) == 430
    assert steps > 12
    assert _place(database) > 0
    assert len(_tables(database_url)) == 1
    assert [row[:4] for row in _rows(database)] == [row[:4] for row in before]
    assert [row for row in _rows(database) if row[0] == 2] == memory_2
    assert _ids(large, 1_000) == list(range(1, 431))
    assert len(_rows(database)) == 2 * texts.texts


def test_vectors_that_are_erased_during_the_move_are_not_moved(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(database, 430)
    index = partitions._index  # pyright: ignore[reportPrivateUsage]

    def erased_meanwhile(*given: Any) -> None:
        index(*given)
        database.run("erase", lambda at: erase_vectors(at, 1), ME)

    monkeypatch.setattr(partitions, "_index", erased_meanwhile)
    assert not promote(database, "me", 1, MODEL)
    assert _rows(database) == []
    assert _tables(database_url) == []


def test_partitions_of_memories_that_are_gone_are_dropped(database: Database, database_url: str) -> None:
    first, _ = _fill(database, 430)
    _fill(database, 430, memory=2)
    _fill(database, 430, tenant="you")
    assert promote_due(database) == 3
    assert drop_unused(database) == 0
    database.run("erase", lambda at: erase_vectors(at, 2), ME)
    assert _rows(database)[-1][0] == 1
    assert drop_unused(database) == 1
    assert len(_tables(database_url)) == 2
    assert first.catch_up(430, Entries(430), None) is None
    other = _open(database, Numbered(make_vectors(2_000, 32), "other"))
    assert other.catch_up(430, Entries(430), None) is None  # removes those of the former model
    assert drop_unused(database) == 1
    assert promote_due(database) == 1
    assert len(_tables(database_url)) == 2
    assert len(_ids(other, 1_000)) == 430


def test_a_partition_in_use_is_dropped_later(database: Database, database_url: str) -> None:
    _fill(database, 430)
    promote_due(database)
    database.run("erase", lambda at: erase_vectors(at, 1), ME)
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT count(*) FROM daypack.vectors")
        assert drop_unused(database) == 0
    assert drop_unused(database) == 1
    assert _tables(database_url) == []


# Recall


def _recall(database: Database, rows: Floats, queries: Floats) -> tuple[float, float]:
    """Return how many of the 10 and of the 100 nearest are found, compared with all rows."""
    embedder = Numbered(np.concatenate([rows, queries]))
    said = [(seq, [str(seq - 1)]) for seq in range(1, len(rows) + 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "_BATCH", 2_000)
        ours = _open(database, embedder)
        assert ours.catch_up(len(rows), lambda after, limit: said[after : after + limit], None) is None
    assert promote_due(database) == 1
    ten = hundred = 0
    for number, query in enumerate(queries):
        found = ours.search(str(len(rows) + number), 100, None)
        assert found
        assert len(found.ids) == 100
        nearest = (np.argsort(-(rows @ query), kind="stable")[:100] + 1).tolist()
        ten += len({*found.ids[:10]} & {*nearest[:10]})
        hundred += len({*found.ids} & {*nearest})
    return ten / len(queries) / 10, hundred / len(queries) / 100


def test_the_index_finds_what_comparing_all_would_find(database: Database, campaign: Campaign) -> None:
    rows = make_rows(max(5_000, int(50_000 * campaign.scale)), 128)
    ten, hundred = _recall(database, rows, make_queries(rows, 100))
    assert ten >= 0.99
    assert hundred >= 0.99  # with nine bits for each component, some of the last change places


def test_more_rows_of_the_index_are_examined_where_the_first_are_not_the_nearest(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse index leads to the nearest on detours only, as a good one does among many more rows."""
    monkeypatch.setattr(partitions, "CONNECTIONS", 5)
    monkeypatch.setattr(partitions, "BUILD_EXAMINED", 16)
    rows = make_rows(6_000, 128)
    ten, hundred = _recall(database, rows, make_queries(rows, 50))
    assert ten >= 0.99
    assert hundred >= 0.99
