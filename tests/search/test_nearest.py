"""What is nearest: found without comparing all rows, and with cosines that can be trusted."""

from pathlib import Path

import numpy as np
import pytest
from search.vector_rows import DIMENSIONS, Floats, make_queries, make_rows, open_vectors, unit

from daypack.search import nearest
from daypack.search.vectors import Nearest, Vectors

MANY = nearest.ALL_COMPARED + 5_000


@pytest.fixture
def vectors(tmp_path: Path) -> Vectors:
    return open_vectors(tmp_path / "deep")


@pytest.fixture(scope="module")
def many_rows() -> Floats:
    return make_rows(MANY)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, many_rows: Floats) -> Vectors:
    vectors = open_vectors(tmp_path_factory.mktemp("many"))
    for begin in range(0, MANY, 1_000):
        vectors.add(range(begin + 1, min(begin + 1_000, MANY) + 1), many_rows[begin : begin + 1_000])
    return vectors


def exact(rows: Floats, query: Floats, limit: int, among: "list[int] | None" = None) -> list[int]:
    places = np.arange(len(rows)) if among is None else np.array(among) - 1
    cosines = rows[places] @ query
    return (places[np.argsort(-cosines)[:limit]] + 1).tolist()


def share_right(vectors: Vectors, rows: Floats, queries: Floats, among: "list[int] | None" = None) -> float:
    right = 0
    for query in queries:
        found = vectors.search(query, 10, allowed=among)
        right += len(set(found.ids) & set(exact(rows, query, 10, among)))
    return right / 10 / len(queries)


def test_the_nearest_come_first_with_their_cosines(vectors: Vectors) -> None:
    rows = make_rows(300)
    assert vectors.add(range(1, 301), rows) == 300
    for query in make_queries(rows, 20):
        found = vectors.search(query, 5)
        assert found.ids[0] == exact(rows, query, 1)[0]
        assert found.cosines == sorted(found.cosines, reverse=True)
        assert found.cosines == pytest.approx([float(rows[known - 1] @ query) for known in found.ids], abs=2e-3)


def test_of_many_rows_the_best_ten_are_found_without_comparing_them_all(many: Vectors, many_rows: Floats) -> None:
    assert share_right(many, many_rows, make_queries(many_rows, 50)) >= 0.99


def test_a_query_that_is_near_to_nothing_still_finds_most_of_the_best(many: Vectors, many_rows: Floats) -> None:
    queries = unit(np.random.default_rng(3).standard_normal((20, DIMENSIONS)))
    assert share_right(many, many_rows, queries) >= 0.85


@pytest.mark.parametrize("step", [2, 300])
def test_only_what_is_allowed_is_found(many: Vectors, many_rows: Floats, step: int) -> None:
    among = list(range(7, MANY, step))
    queries = make_queries(many_rows, 20)
    for query in queries:
        assert set(many.search(query, 10, allowed=among).ids) <= set(among)
    assert share_right(many, many_rows, queries, among) >= 0.99


def test_few_that_are_allowed_are_all_returned(many: Vectors, many_rows: Floats) -> None:
    assert sorted(many.search(many_rows[0], 10, allowed={5, 900, MANY, MANY + 1}).ids) == [5, 900, MANY]
    assert many.search(many_rows[0], 10, allowed=()).ids == []


def test_the_best_row_of_an_id_counts(vectors: Vectors) -> None:
    rows = make_rows(400, seed=4)
    vectors.add([1 + place // 4 for place in range(400)], rows)
    for query in make_queries(rows, 20):
        cosines = (rows @ query).reshape(100, 4).max(axis=1)
        found = vectors.search(query, 10)
        assert len(found.ids) == len(set(found.ids)) == 10
        assert found.cosines == pytest.approx(sorted(cosines.tolist(), reverse=True)[:10], abs=2e-3)


def test_ids_with_many_rows_do_not_crowd_others_out(vectors: Vectors) -> None:
    alike = np.repeat(make_rows(1, seed=5), 6_000, axis=0)
    vectors.add([*[1] * 6_000, 2, 3], np.concatenate([alike, make_rows(2, seed=6)]))
    assert vectors.search(alike[0], 3).ids[0] == 1
    assert sorted(vectors.search(alike[0], 3, allowed=[2, 3]).ids) == [2, 3]


def test_cosines_of_given_ids(many: Vectors, many_rows: Floats) -> None:
    query = make_queries(many_rows, 1)[0]
    asked = [3, 4_000, MANY]
    found = many.cosines(query, [*asked, MANY + 1])
    assert found == pytest.approx({known: float(many_rows[known - 1] @ query) for known in asked}, abs=2e-3)


def test_low_and_high_span_all_rows_whatever_is_allowed(vectors: Vectors) -> None:
    rows = make_rows(500)
    vectors.add(range(1, 501), rows)
    query = rows[7]
    found = vectors.search(query, 3)
    assert (found.low, found.high) == pytest.approx((float((rows @ query).min()), 1.0), abs=2e-3)
    assert vectors.search(query, 3, allowed=[9, 10, 11]).low == found.low


def test_low_of_many_rows_is_close_to_the_lowest(many: Vectors, many_rows: Floats) -> None:
    for query in make_queries(many_rows, 20):
        cosines = many_rows @ query
        found = many.search(query, 3)
        assert cosines.min() - 2e-3 <= found.low <= cosines.min() + 0.15 * (cosines.max() - cosines.min())
        assert many.search(query, 3, allowed=range(1, 200)).low == found.low


def test_nothing_is_found_where_nothing_is(vectors: Vectors) -> None:
    assert vectors.newest == 0
    assert vectors.search(make_rows(1)[0], 10) == Nearest([], [], 0.0, 0.0)
    assert vectors.cosines(make_rows(1)[0], [1]) == {}
    assert not Path(vectors.path).exists()


@pytest.mark.parametrize("dimensions", [1, 7, 64, 100, 256])
def test_any_number_of_dimensions(tmp_path: Path, dimensions: int) -> None:
    count = nearest.ALL_COMPARED + 100
    vectors, rows = open_vectors(tmp_path, dimensions), make_rows(count, dimensions)
    vectors.add(range(1, count + 1), rows)
    for query in rows[:5]:
        assert vectors.search(query, 1).cosines == pytest.approx([1.0], abs=0.02)


def test_rows_need_not_have_length_one(vectors: Vectors) -> None:
    rows = make_rows(10)
    vectors.add(range(1, 11), rows * np.arange(1, 11, dtype=np.float32)[:, None])
    found = vectors.search(rows[3] * 9, 1)
    assert found.ids == [4]
    assert found.cosines == pytest.approx([1.0], abs=2e-3)


@pytest.mark.filterwarnings("error")
def test_a_row_without_a_length_is_near_to_nothing(vectors: Vectors) -> None:
    rows = make_rows(4)
    rows[1], rows[2] = 0, np.nan
    vectors.add(range(1, 5), rows)
    assert vectors.cosines(rows[3], [1, 2, 3, 4]) == pytest.approx({1: rows[0] @ rows[3], 2: 0, 3: 0, 4: 1}, abs=2e-3)
    assert len(vectors.search(np.zeros(DIMENSIONS, np.float32), 4).ids) == 4
