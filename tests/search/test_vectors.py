"""The file of vectors: shared, killed, torn, damaged or foreign, it never says something false."""

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected
from search.vector_rows import make_rows, open_vectors

from daypack.errors import BadInput, ExtraMissing, StorageFailed, UnsafePath, WriteFailed
from daypack.search.vectors import NAME, Vectors

ROW_BYTES = 448
HEADER_BYTES = 64


@pytest.fixture
def vectors(tmp_path: Path) -> Vectors:
    return open_vectors(tmp_path / "deep")


def file_of(vectors: Vectors) -> Path:
    return Path(vectors.path)


# Adding


def test_a_row_takes_less_than_450_bytes(vectors: Vectors) -> None:
    vectors.add(range(1, 101), make_rows(100))
    assert file_of(vectors).stat().st_size == HEADER_BYTES + 100 * ROW_BYTES
    assert ROW_BYTES <= 450


def test_known_ids_are_passed_over(vectors: Vectors) -> None:
    rows = make_rows(5)
    assert vectors.add([1, 2, 3], rows[:3]) == 3
    assert vectors.add([2, 3, 4, 9], rows[[4, 4, 3, 4]]) == 9
    assert vectors.add([1, 4], rows[:2]) == 9
    assert vectors.add([], rows[:0]) == 9
    assert vectors.newest == 9
    assert vectors.search(rows[2], 1).ids == [3]
    assert len(vectors.search(rows[0], 10).ids) == 5


def test_what_one_adds_another_sees(tmp_path: Path) -> None:
    one, other = open_vectors(tmp_path), open_vectors(tmp_path)
    rows = make_rows(200)
    for known in range(1, 201):
        one.add([known], rows[known - 1 : known])
        if known % 10 == 1:
            assert other.newest == known
            assert other.search(rows[known - 1], 1).ids == [known]
    other.add([201], rows[:1])
    assert one.newest == 201
    assert one.search(rows[0], 2).ids == [1, 201]


def test_files_are_private(vectors: Vectors) -> None:
    vectors.add([1], make_rows(1))
    assert stat.S_IMODE(file_of(vectors).stat().st_mode) == 0o600
    assert stat.S_IMODE(file_of(vectors).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("ids", [[2, 1], [0, 1], [-1, 1], [1, 1 << 62]])
def test_ids_that_do_not_ascend_are_refused(vectors: Vectors, ids: list[int]) -> None:
    with pytest.raises(BadInput, match="ascend"):
        vectors.add(ids, make_rows(2))


def test_vectors_of_another_shape_are_refused(vectors: Vectors) -> None:
    with pytest.raises(BadInput, match="shape"):
        vectors.add([1, 2], make_rows(3))
    with pytest.raises(BadInput, match="shape"):
        vectors.add([1], make_rows(1, 100))
    vectors.add([1], make_rows(1))
    with pytest.raises(BadInput, match="100 numbers"):
        vectors.search(make_rows(1, 100)[0], 1)


def test_a_missing_numpy_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "daypack.search.nearest")
    monkeypatch.delattr("daypack.search.nearest")
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ExtraMissing, match=r"daypack\[vectors\]"):
        open_vectors(tmp_path)


# Begun anew


def test_another_model_begins_anew_with_its_first_vector(tmp_path: Path) -> None:
    rows = make_rows(3)
    former, latter = open_vectors(tmp_path), open_vectors(tmp_path, model="other")
    former.add([1, 2, 3], rows)
    assert latter.newest == 0
    assert latter.search(rows[0], 1).ids == []
    assert former.newest == 3
    assert latter.add([1], rows[:1]) == 1
    assert latter.search(rows[0], 9).ids == [1]
    assert former.newest == 0
    assert former.search(rows[0], 9).ids == []


def test_other_dimensions_begin_anew(tmp_path: Path) -> None:
    open_vectors(tmp_path).add([1, 2], make_rows(2))
    narrow = open_vectors(tmp_path, 100)
    assert narrow.newest == 0
    assert narrow.add([1], make_rows(1, 100)) == 1
    assert len(narrow.search(make_rows(1, 100)[0], 9).ids) == 1


@pytest.mark.parametrize("content", [b"", b"x", b"daypvec1", b"\0" * 5_000])
def test_a_foreign_file_is_begun_anew(vectors: Vectors, content: bytes) -> None:
    file_of(vectors).parent.mkdir()
    file_of(vectors).write_bytes(content)
    rows = make_rows(2)
    assert vectors.newest == 0
    assert vectors.search(rows[0], 1).ids == []
    assert vectors.add([1, 2], rows) == 2
    assert vectors.search(rows[1], 1).ids == [2]


def test_a_removed_file_is_noticed(vectors: Vectors) -> None:
    rows = make_rows(3)
    vectors.add([1, 2, 3], rows)
    assert vectors.search(rows[0], 1).ids == [1]
    file_of(vectors).unlink()
    assert vectors.newest == 0
    assert vectors.search(rows[0], 1).ids == []
    assert vectors.add([1], rows[1:2]) == 1
    assert vectors.search(rows[0], 9).ids == [1]


def test_a_file_that_was_begun_anew_elsewhere_is_read_from_its_first_row(vectors: Vectors) -> None:
    rows = make_rows(60)
    vectors.add(range(1, 31), rows[:30])
    assert vectors.search(rows[0], 1).ids == [1]
    file_of(vectors).unlink()
    open_vectors(file_of(vectors).parent).add(range(101, 161), rows[::-1])
    assert vectors.search(rows[0], 1).ids == [160]
    assert vectors.search(rows[59], 1).ids == [101]


def test_closing_lets_go_until_the_next_call(vectors: Vectors) -> None:
    rows = make_rows(2)
    vectors.add([1, 2], rows)
    vectors.search(rows[0], 1)
    vectors.close()
    assert vectors.search(rows[1], 1).ids == [2]
    assert vectors.newest == 2


# Damage


@pytest.mark.parametrize("kept", [0, 1, ROW_BYTES - 1, ROW_BYTES, ROW_BYTES + 1, 2 * ROW_BYTES, 3 * ROW_BYTES - 1])
def test_a_torn_tail_is_written_over(vectors: Vectors, kept: int) -> None:
    rows = make_rows(6)
    vectors.add([1, 2, 3, 4, 4, 4], rows)
    path = file_of(vectors)
    os.truncate(path, HEADER_BYTES + 3 * ROW_BYTES + kept)
    for reader in (vectors, open_vectors(path.parent)):
        assert reader.newest == 3
        assert reader.search(rows[3], 9).ids[1:] != []
        assert 4 not in reader.search(rows[3], 9).ids
    assert vectors.add([4, 4, 5], rows[3:]) == 5
    for reader in (vectors, open_vectors(path.parent)):
        assert reader.newest == 5
        assert sorted(reader.search(rows[3], 9).ids) == [1, 2, 3, 4, 5]
        assert reader.search(rows[5], 1).ids == [5]


def test_an_id_with_more_rows_than_are_looked_at_may_be_torn_too(vectors: Vectors) -> None:
    rows = make_rows(300)
    vectors.add([1, *[2] * 299], rows)
    os.truncate(file_of(vectors), HEADER_BYTES + 250 * ROW_BYTES)
    assert vectors.newest == 1
    assert vectors.add([2], rows[5:6]) == 2
    assert open_vectors(file_of(vectors).parent).newest == 2
    assert sorted(vectors.search(rows[5], 9).ids) == [1, 2]
    assert vectors.add([3], rows[7:8]) == 3
    assert sorted(open_vectors(file_of(vectors).parent).search(rows[5], 9).ids) == [1, 2, 3]


@pytest.mark.parametrize("offset", [0, 8, 12, 16, 63, 64, 200, ROW_BYTES - 1])
@pytest.mark.parametrize("opened", [True, False])
def test_rows_before_a_damaged_one_are_kept(vectors: Vectors, offset: int, opened: bool) -> None:
    rows = make_rows(200)
    vectors.add(range(1, 201), rows)
    path = file_of(vectors)
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + 50 * ROW_BYTES + offset] ^= 4
    path.write_bytes(data)
    reader = open_vectors(path.parent)
    if opened:
        assert reader.newest == 200  # only the end was looked at
    assert reader.search(rows[3], 1).ids == [4]
    assert set(reader.search(rows[3], 300).ids) == set(range(1, 51))
    assert reader.newest == 50
    assert reader.add(range(1, 201), rows) == 200
    assert open_vectors(path.parent).search(rows[120], 1).ids == [121]


def test_zeros_after_a_power_cut_are_no_rows(vectors: Vectors) -> None:
    rows = make_rows(100)
    vectors.add(range(1, 101), rows)
    path = file_of(vectors)
    for zeros in (10, 90):
        with path.open("r+b") as file:
            file.seek(-zeros * ROW_BYTES, os.SEEK_END)
            file.write(bytes(zeros * ROW_BYTES))
        reader = open_vectors(path.parent)
        assert reader.newest == 100 - zeros
        assert len(reader.search(rows[0], 100).ids) == 100 - zeros
        assert reader.add(range(1, 101), rows) == 100
        assert len(reader.search(rows[0], 100).ids) == 100


def test_damage_that_cannot_be_mended_leaves_the_rows_before_it(vectors: Vectors) -> None:
    rows = make_rows(100)
    vectors.add(range(1, 101), rows)
    path = file_of(vectors)
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + 50 * ROW_BYTES + 99] ^= 1
    path.write_bytes(data)
    reader = open_vectors(path.parent)
    with injected(Faults()) as faults:
        faults.call = lambda name, real, *args, **kwargs: (  # type: ignore[method-assign]
            _refuse() if name in ("write", "replace") else real(*args, **kwargs)
        )
        assert len(reader.search(rows[0], 100).ids) == 50
    assert path.read_bytes() == bytes(data)


def _refuse() -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_link_is_refused(vectors: Vectors, tmp_path: Path) -> None:
    file_of(vectors).parent.mkdir()
    (tmp_path / "elsewhere").write_bytes(b"mine")
    file_of(vectors).symlink_to(tmp_path / "elsewhere")
    for call in (lambda: vectors.newest, lambda: vectors.add([1], make_rows(1))):
        with pytest.raises(UnsafePath):
            call()
    assert (tmp_path / "elsewhere").read_bytes() == b"mine"


def test_a_full_disk_is_told_and_leaves_the_rest(vectors: Vectors) -> None:
    rows = make_rows(3)
    vectors.add([1], rows[:1])
    at = calls_of(lambda: vectors.add([2], rows[1:2])).index("write") + 1
    with injected(Faults(at, code=errno.ENOSPC)), pytest.raises(WriteFailed, match="No space"):
        vectors.add([3], rows[2:])
    assert vectors.newest == 2
    assert vectors.add([3], rows[2:]) == 3


def test_any_call_that_fails_is_reported_and_harmless(tmp_path: Path, campaign: Campaign) -> None:
    rows = make_rows(8)

    def begin(name: str) -> Vectors:
        vectors = open_vectors(tmp_path / name)
        vectors.add([1, 2], rows[:2])
        return vectors

    def work(vectors: Vectors) -> None:
        vectors.add([3, 3, 4], rows[2:5])
        vectors.search(rows[0], 1)

    counting = begin("counting")
    calls = calls_of(lambda: work(counting))
    assert len(calls) > 10
    for at in campaign.calls("faults", calls):
        vectors = begin(str(at))
        with injected(Faults(at)) as faults, suppress(StorageFailed):
            work(vectors)
        assert faults.hit
        assert vectors.add([3, 3, 4, 5], rows[2:6]) == 5
        for reader in (vectors, open_vectors(tmp_path / str(at))):
            assert sorted(reader.search(rows[0], 9).ids) == [1, 2, 3, 4, 5], at


def test_the_file_name_is_what_the_index_removes(vectors: Vectors) -> None:
    vectors.add([1], make_rows(1))
    assert os.listdir(file_of(vectors).parent) == [NAME]
