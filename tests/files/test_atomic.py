"""Whole-file replacement and private folders."""

import os
from pathlib import Path

import pytest
from faults import Faults, injected

from daypack.errors import Damaged, SourceMissing, StorageFailed, UnsafePath, WriteFailed
from daypack.files import atomic, blobs


def test_a_reader_sees_the_former_or_the_new_bytes_whichever_call_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with injected(Faults()) as counting:
        atomic.replace(str(path), b"former")
    for at in range(1, counting.count + 1):
        atomic.replace(str(path), b"former")
        with injected(Faults(at)):
            try:
                atomic.replace(str(path), b"new")
                told = True
            except StorageFailed as error:
                told = bool(error.hint)
        assert told
        assert path.read_bytes() in (b"former", b"new")


def test_creating_leaves_what_is_there(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    assert atomic.create(path, b"one")
    assert not atomic.create(path, b"two")
    assert atomic.read(path) == b"one"
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_replacement_names_the_file_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "file"
    with pytest.raises(WriteFailed) as failed:
        atomic.replace(str(path), b"x")
    assert failed.value.place == str(path)
    assert list(tmp_path.iterdir()) == []


def test_reading_follows_no_link_and_opens_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(UnsafePath):
            atomic.read(str(tmp_path / name))
    assert atomic.read(str(tmp_path / "none")) is None


def test_folders_are_made_private_at_every_level(tmp_path: Path) -> None:
    atomic.make_folders(str(tmp_path / "a" / "b" / "c"))
    assert [
        path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c")
    ] == [0o700] * 3


@pytest.mark.requirement("X24")
def test_a_blob_is_named_by_its_digest_and_checked_when_it_is_read(tmp_path: Path) -> None:
    folder = str(tmp_path)
    name = blobs.put(folder, b"hello")
    assert name == "sha256-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert blobs.put(folder, b"hello") == name
    assert blobs.get(folder, name) == b"hello"
    (tmp_path / name).write_bytes(b"hallo")
    with pytest.raises(Damaged):
        blobs.get(folder, name)
    with pytest.raises(SourceMissing):
        blobs.get(folder, "sha256-0")
