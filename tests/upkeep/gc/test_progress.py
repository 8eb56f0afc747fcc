"""`gc --all --apply` continues where it was interrupted."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from daypack.errors import LockUnavailable
from daypack.upkeep.gc.progress import CollectionProgress

KEYS = [("a", "one"), ("a", "two"), ("b", "one")]


def test_a_completed_run_removes_its_progress_file(tmp_path: Path) -> None:
    with CollectionProgress(str(tmp_path / "u"), "x") as progress:
        assert progress.resumed == 0
        for key in KEYS:
            assert not progress.is_done(*key)
            progress.mark_done(*key)
            assert progress.is_done(*key)
        assert (tmp_path / "u/gc.progress").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "u") == []


def interrupt(folder: Path, count: int, options: str = "x") -> None:
    with suppress(KeyboardInterrupt), CollectionProgress(str(folder), options) as progress:
        for key in KEYS[:count]:
            progress.mark_done(*key)
        raise KeyboardInterrupt


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_an_interrupted_run_is_resumed(tmp_path: Path, count: int) -> None:
    interrupt(tmp_path, count)
    with CollectionProgress(str(tmp_path), "x") as progress:
        assert progress.resumed == count
        assert [progress.is_done(*key) for key in KEYS] == [at < count for at in range(3)]


def test_a_run_with_other_options_starts_over(tmp_path: Path) -> None:
    interrupt(tmp_path, 2)
    interrupt(tmp_path, 0, "y")
    with CollectionProgress(str(tmp_path), "x") as progress:
        assert progress.resumed == 0


@pytest.mark.parametrize("tail", [b'{"agent":"b","sess', b"\xff\xfe"])
def test_a_torn_line_is_truncated(tmp_path: Path, tail: bytes) -> None:
    interrupt(tmp_path, 2)
    path = tmp_path / "gc.progress"
    path.write_bytes(path.read_bytes() + tail)
    with suppress(KeyboardInterrupt), CollectionProgress(str(tmp_path), "x") as progress:
        assert progress.resumed == 2
        progress.mark_done(*KEYS[2])
        raise KeyboardInterrupt
    with CollectionProgress(str(tmp_path), "x") as progress:
        assert progress.resumed == 3


@pytest.mark.parametrize("data", [b"", b"\n", b"nonsense\n", b"{}\n", b'{"options":"x"}\n[]\n'])
def test_an_unreadable_file_is_started_over(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "gc.progress").write_bytes(data)
    with suppress(KeyboardInterrupt), CollectionProgress(str(tmp_path), "x") as progress:
        assert progress.resumed == 0
        progress.mark_done(*KEYS[0])
        raise KeyboardInterrupt
    with CollectionProgress(str(tmp_path), "x") as progress:
        assert progress.resumed == 1


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with CollectionProgress(str(tmp_path), "x"):
        with pytest.raises(LockUnavailable, match="is running"), CollectionProgress(str(tmp_path), "x"):
            pass
        assert (tmp_path / "gc.progress").exists()
    with CollectionProgress(str(tmp_path), "x") as progress:
        assert progress.resumed == 0


def test_a_dry_run_records_nothing(tmp_path: Path) -> None:
    interrupt(tmp_path, 2)
    with CollectionProgress(str(tmp_path), "x", writing=False) as progress:
        assert not progress.is_done(*KEYS[0])
        progress.mark_done(*KEYS[2])
    with CollectionProgress(str(tmp_path), "x") as progress:
        assert progress.resumed == 2
