"""Files of a folder that are replaced together: before the commit nothing changes, after it everything does."""

import os
from pathlib import Path

import pytest

from daypack.errors import Damaged
from daypack.files.lock import Lock
from daypack.files.rewrite import JOURNAL, STAGING, Rewrite, complete


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "log").write_bytes(b"one\ntwo\n")
    (tmp_path / "locked").write_bytes(b"old\n")
    (tmp_path / "derived").mkdir()
    (tmp_path / "derived" / "index").write_bytes(b"x")
    return tmp_path


def state(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and STAGING not in path.parts
    }


def stage(folder: Path) -> Rewrite:
    rewrite = Rewrite(str(folder))
    status = os.stat(folder / "log")
    rewrite.replace("log", b"ONE\nTWO\n", inode=status.st_ino, size=status.st_size)
    rewrite.replace("new/file", b"new")
    rewrite.remove("derived")
    rewrite.replace("locked", b"new\n")
    return rewrite


AFTER = {"log": b"ONE\nTWO\n", "new/file": b"new", "locked": b"new\n"}


def test_a_commit_replaces_and_removes_everything(folder: Path) -> None:
    before = state(folder)
    rewrite = stage(folder)
    assert state(folder) == before
    rewrite.commit()
    assert state(folder) == AFTER
    assert not (folder / STAGING).exists()


def test_what_was_not_committed_is_rolled_back_when_the_lock_is_taken(folder: Path) -> None:
    before = state(folder)
    stage(folder)
    with Lock(str(folder / "locked")):
        assert state(folder) == before
    assert not (folder / STAGING).exists()


@pytest.mark.parametrize("steps", range(5))
def test_a_commit_that_stopped_after_any_step_is_completed_when_the_lock_is_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    rewrite = stage(folder)
    done = 0

    def stop(original: object) -> object:
        def call(*args: str) -> None:
            nonlocal done
            if args[-1].endswith(("/log", "/new/file", "/locked", "derived/index")):
                done += 1
                if done > steps:
                    raise KeyboardInterrupt
            original(*args)  # type: ignore[operator]

        return call

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", stop(os.replace))
        patched.setattr(os, "unlink", stop(os.unlink))
        try:
            rewrite.commit()
        except KeyboardInterrupt:
            assert (folder / JOURNAL).exists()
        else:
            assert steps == 4
    with Lock(str(folder / "locked")):
        assert state(folder) == AFTER
    assert not (folder / STAGING).exists()


def test_lines_appended_after_a_kill_are_carried_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite = stage(folder)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", _only_journal(os.replace))
        with pytest.raises(KeyboardInterrupt):
            rewrite.commit()
    with open(folder / "log", "ab") as log:
        log.write(b"three\n")
    assert complete(str(folder))
    assert state(folder) == {**AFTER, "log": b"ONE\nTWO\nthree\n"}


def _only_journal(original: object) -> object:
    def call(source: str, target: str) -> None:
        if not target.endswith(JOURNAL):
            raise KeyboardInterrupt
        original(source, target)  # type: ignore[operator]

    return call


def test_a_file_written_again_after_completion_is_not_removed(folder: Path) -> None:
    rewrite = stage(folder)
    rewrite.commit()
    (folder / "derived").mkdir()
    (folder / "derived" / "index").write_bytes(b"again")
    (folder / STAGING).mkdir()
    (folder / JOURNAL).write_bytes(b'[{"path":"derived"},{"path":"locked","staged":"3","length":4}]')  # not removed yet
    complete(str(folder))
    assert state(folder) == {**AFTER, "derived/index": b"again"}


def test_a_journal_that_cannot_be_read_is_damage_and_nothing_changes(folder: Path) -> None:
    before = state(folder)
    stage(folder)
    (folder / JOURNAL).write_bytes(b"[{")
    with pytest.raises(Damaged, match="not a journal"):
        complete(str(folder))
    assert state(folder) == before
