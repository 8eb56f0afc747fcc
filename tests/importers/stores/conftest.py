"""Stores of other systems, rebuilt from what the programs themselves wrote."""

import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from daypack.importers.stores.records import Orphan, Record, StoredMemory, Unreadable
from daypack.importers.stores.systems import open_store

RECORDED = Path(__file__).parent / "recorded"


def build(target: Path, *scripts: str) -> Path:
    """Write a SQLite file from recorded SQL."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(target)) as connection:
        for script in scripts:
            connection.executescript((RECORDED / script).read_text())
    return target


def read_all(path: Path, system: str = "") -> list[Record]:
    return list(open_store(str(path), system).read())


def memories(records: list[Record]) -> list[StoredMemory]:
    return [record for record in records if isinstance(record, StoredMemory)]


def orphans(records: list[Record]) -> list[Orphan]:
    return [record for record in records if isinstance(record, Orphan)]


def unreadable(records: list[Record]) -> list[Unreadable]:
    return [record for record in records if isinstance(record, Unreadable)]


def digest(path: Path) -> dict[str, str]:
    """Return the digest of every file below a path, or of the file."""
    files = sorted(path.rglob("*")) if path.is_dir() else sorted(path.parent.glob(f"{path.name}*"))
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}


@pytest.fixture
def mem0_home(tmp_path: Path) -> Path:
    """A folder of mem0 with its history and its local Qdrant."""
    folder = tmp_path / "mem0"
    build(folder / "history.db", "mem0/history.sql")
    build(folder / "qdrant" / "collection" / "mem0" / "storage.sqlite", "mem0/points.sql")
    return folder


@pytest.fixture
def mem0_faiss(tmp_path: Path) -> Path:
    folder = tmp_path / "faiss"
    folder.mkdir()
    shutil.copyfile(RECORDED / "mem0" / "faiss.json", folder / "mem0.json")
    (folder / "mem0.faiss").write_bytes(b"IxFI")
    return folder
