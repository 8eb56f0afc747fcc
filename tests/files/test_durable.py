"""The one place that syncs: fsync and fdatasync on Linux, a full sync on macOS, and no error that is not raised."""

import errno
import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from faults import Faults, injected, mac

import daypack
from daypack.errors import StorageFailed
from daypack.files import atomic, durable
from daypack.files.database import Database, Format

SOURCES = Path(__file__).parents[2] / "src"
REFUSALS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.ENOSYS)


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def syncs_of(fd: int) -> list[str]:
    with injected(Faults()) as counted:
        durable.sync(fd)
        durable.sync_data(fd)
    return counted.calls


def test_nothing_else_in_the_sources_syncs() -> None:
    pattern = re.compile(r"\bfsync\(|\bfdatasync\b|\bos\.sync\b|F_FULLFSYNC|fullfsync")
    found = {path.name for path in SOURCES.rglob("*.py") if pattern.search(path.read_text(encoding="utf-8"))}
    assert found == {"durable.py"}


def test_linux_syncs_all_of_a_file_or_its_data(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "FULL_SYNC", None)
    assert syncs_of(fd) == ["fsync", "fdatasync"]


def test_a_system_without_fdatasync_syncs_all_of_the_file(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(durable, "FULL_SYNC", None)
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.delattr(os, "fdatasync")
    durable.sync_data(fd)
    assert synced == [fd]


def test_macos_syncs_down_to_the_drive(fd: int) -> None:
    with mac() as synced:
        assert syncs_of(fd) == ["fcntl", "fcntl"]
        assert synced == [fd, fd]


@pytest.mark.parametrize("refusal", REFUSALS, ids=errno.errorcode.get)
def test_a_file_system_that_refuses_a_full_sync_gets_fsync(fd: int, refusal: int) -> None:
    with mac(refusal) as synced:
        assert syncs_of(fd) == ["fcntl", "fsync"] * 2
        assert synced == []


def test_a_kernel_that_does_not_know_the_command_gets_fsync(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(fcntl, "F_FULLFSYNC"):
        pytest.skip("this kernel knows it")
    monkeypatch.setattr(durable, "FULL_SYNC", 51)
    assert syncs_of(fd) == ["fcntl", "fsync"] * 2  # answered by the kernel, not by a fake


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EBADF], ids=errno.errorcode.get)
def test_an_error_of_the_disk_is_raised_and_no_weaker_sync_hides_it(fd: int, code: int) -> None:
    with mac(), injected(Faults(1, code=code)) as counted, pytest.raises(OSError) as raised:
        durable.sync_data(fd)
    assert (raised.value.errno, counted.calls) == (code, ["fcntl"])
    with mac(errno.ENOTSUP), injected(Faults(2, code=code)) as counted, pytest.raises(OSError) as raised:
        durable.sync(fd)
    assert (raised.value.errno, counted.calls) == (code, ["fcntl", "fsync"])


def test_folders_are_synced_to_the_drive_too(tmp_path: Path) -> None:
    with mac() as synced, injected(Faults()) as counted:
        atomic.replace(str(tmp_path / "file"), b"data")
    assert counted.calls.count("fcntl") == len(synced) == 2  # the file, then the folder
    with mac(), injected(Faults(counted.calls.index("fcntl") + 1)), pytest.raises(StorageFailed):
        atomic.replace(str(tmp_path / "file"), b"other")
    assert (tmp_path / "file").read_bytes() == b"data"


FORM = Format("test file", 7, 1, "CREATE TABLE t (x)", "delete it", kept=True)


def read_settings(connection: sqlite3.Connection) -> list[int]:
    return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("fullfsync", "checkpoint_fullfsync")]


def test_sqlite_is_told_to_sync_to_the_drive_on_macos_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mac(), closing(Database(str(tmp_path / "mac.sqlite"), FORM)) as database:
        assert database.run("test", read_settings) == [1, 1]
    monkeypatch.setattr(durable, "FULL_SYNC", None)
    with closing(Database(str(tmp_path / "linux.sqlite"), FORM)) as database:
        assert database.run("test", read_settings) == [0, 0]


def test_a_session_on_macos_acknowledges_after_a_full_sync(home: str) -> None:
    with mac() as synced, daypack.open_session("work", home=home) as session:
        before = len(synced)
        session.append("user", "hello")
        assert len(synced) == before + 1
        session.close()
