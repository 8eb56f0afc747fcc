"""Finding files by patterns, with listings that are kept."""

import os
from pathlib import Path

import pytest

from daypack.importers.folders import Folders


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")


def names(folders: Folders, root: Path, pattern: str) -> list[str]:
    return [os.path.relpath(path, root) for path in folders.match(str(root), pattern) if os.path.exists(path)]


def test_patterns_match_names_of_folders_and_files(tmp_path: Path) -> None:
    for name in ("a/x.jsonl", "a/y.txt", "b[1]/z.jsonl", ".hidden/x.jsonl", "a/.x.jsonl", "a/deep/x.jsonl"):
        put(tmp_path / name)
    folders = Folders()
    assert names(folders, tmp_path, "*/*.jsonl") == ["a/x.jsonl", "b[1]/z.jsonl"]
    assert names(folders, tmp_path, "*/x.jsonl") == ["a/x.jsonl"]
    assert names(folders, tmp_path, "a/*/x.jsonl") == ["a/deep/x.jsonl"]
    assert names(folders, tmp_path, ".hidden/*") == [".hidden/x.jsonl"]
    assert names(folders, tmp_path, "missing/*") == []


def test_files_and_folders_that_come_and_go_are_noticed(tmp_path: Path) -> None:
    folders = Folders()
    root = tmp_path / "later"
    assert names(folders, root, "*/*.jsonl") == []
    for name in ("a/one.jsonl", "a/two.jsonl", "b/three.jsonl"):
        put(root / name)
        assert f"{name}" in names(folders, root, "*/*.jsonl")
    (root / "a" / "one.jsonl").unlink()
    os.rename(root / "b", root / "c")
    assert names(folders, root, "*/*.jsonl") == ["a/two.jsonl", "c/three.jsonl"]


def test_a_folder_that_did_not_change_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a" / "one.jsonl")
    folders = Folders(clock=lambda: os.stat(tmp_path / "a").st_mtime + 60)
    before = names(folders, tmp_path, "*/*.jsonl")
    monkeypatch.setattr("os.scandir", None)
    assert names(folders, tmp_path, "*/*.jsonl") == before


def test_a_folder_that_changed_just_now_is_listed_again(tmp_path: Path) -> None:
    put(tmp_path / "one.jsonl")
    status = os.stat(tmp_path)
    folders = Folders(clock=lambda: status.st_mtime)
    assert names(folders, tmp_path, "*.jsonl") == ["one.jsonl"]
    put(tmp_path / "two.jsonl")
    os.utime(tmp_path, ns=(status.st_atime_ns, status.st_mtime_ns))  # within the same tick of the clock
    assert names(folders, tmp_path, "*.jsonl") == ["one.jsonl", "two.jsonl"]


def test_links_to_folders_are_not_followed_below_a_named_folder(tmp_path: Path) -> None:
    put(tmp_path / "a" / "one.jsonl")
    os.symlink(tmp_path, tmp_path / "a" / "loop")
    os.symlink("self", tmp_path / "self")
    assert [path for path in Folders().below(str(tmp_path)) if path.endswith("l")] == [f"{tmp_path}/a/one.jsonl"]
