"""A round over many sessions goes on where it was interrupted."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from daypack.errors import LockUnavailable
from daypack.upkeep.gc.round import Round

KEYS = [("a", "one"), ("a", "two"), ("b", "one")]


def test_a_round_that_ends_leaves_nothing(tmp_path: Path) -> None:
    with Round(str(tmp_path / "u"), "x") as done:
        assert done.before == 0
        for key in KEYS:
            assert not done.has(*key)
            done.note(*key)
            assert done.has(*key)
        assert (tmp_path / "u/gc.progress").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "u") == []


def interrupt(folder: Path, count: int, options: str = "x") -> None:
    with suppress(KeyboardInterrupt), Round(str(folder), options) as done:
        for key in KEYS[:count]:
            done.note(*key)
        raise KeyboardInterrupt


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_an_interrupted_round_goes_on(tmp_path: Path, count: int) -> None:
    interrupt(tmp_path, count)
    with Round(str(tmp_path), "x") as done:
        assert done.before == count
        assert [done.has(*key) for key in KEYS] == [at < count for at in range(3)]


def test_a_round_with_other_options_begins_anew(tmp_path: Path) -> None:
    interrupt(tmp_path, 2)
    interrupt(tmp_path, 0, "y")
    with Round(str(tmp_path), "x") as done:
        assert done.before == 0


@pytest.mark.parametrize("tail", [b'{"agent":"b","sess', b"\xff\xfe"])
def test_a_torn_line_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    interrupt(tmp_path, 2)
    path = tmp_path / "gc.progress"
    path.write_bytes(path.read_bytes() + tail)
    with suppress(KeyboardInterrupt), Round(str(tmp_path), "x") as done:
        assert done.before == 2
        done.note(*KEYS[2])
        raise KeyboardInterrupt
    with Round(str(tmp_path), "x") as done:
        assert done.before == 3


@pytest.mark.parametrize("data", [b"", b"\n", b"nonsense\n", b"{}\n", b'{"options":"x"}\n[]\n'])
def test_a_file_that_cannot_be_read_is_begun_anew(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "gc.progress").write_bytes(data)
    with suppress(KeyboardInterrupt), Round(str(tmp_path), "x") as done:
        assert done.before == 0
        done.note(*KEYS[0])
        raise KeyboardInterrupt
    with Round(str(tmp_path), "x") as done:
        assert done.before == 1


def test_two_rounds_at_once_are_refused(tmp_path: Path) -> None:
    with Round(str(tmp_path), "x"):
        with pytest.raises(LockUnavailable, match="another run"), Round(str(tmp_path), "x"):
            pass
        assert (tmp_path / "gc.progress").exists()
    with Round(str(tmp_path), "x") as done:
        assert done.before == 0


def test_a_round_that_only_reads_notes_nothing(tmp_path: Path) -> None:
    interrupt(tmp_path, 2)
    with Round(str(tmp_path), "x", writing=False) as done:
        assert not done.has(*KEYS[0])
        done.note(*KEYS[2])
    with Round(str(tmp_path), "x") as done:
        assert done.before == 2
