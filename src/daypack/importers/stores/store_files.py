"""Opens the files of a memory store: whole files up to a size, folders without leaving them, SQLite without a trace.

A SQLite file in WAL mode is read from a private copy if its WAL has something in it: reading it in place would create
and change files beside it.
"""

import os
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

import msgspec

from daypack.errors import BadInput, Damaged, LockUnavailable, NotFound, StorageFailed
from daypack.files.read_only import copy
from daypack.importers.stores.records import Unreadable
from daypack.plain_files import open_plain

OPERATION = "read store"
MAX_FILE_BYTES = 256 << 20
MAX_FILES = 200_000
MAX_DEPTH = 12
_MAX_VALUE_BYTES = 16 << 20  # of a column; a larger one is skipped without being loaded
_WAIT_SECONDS = 2.0
_SQLITE = b"SQLite format 3\0"
_WAL = b"\x02\x02"

Row = tuple[Any, ...]


def read_bytes(path: str, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return the content of a plain file of a store."""
    try:
        with open_plain(path) as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise NotFound("no such file", operation=OPERATION, place=path) from None
    except OSError as error:
        raise StorageFailed(error.strerror or str(error), operation=OPERATION, place=path) from error
    if len(data) > limit:
        problem = f"it is larger than {limit >> 20:,} MiB"
        raise BadInput(problem, operation=OPERATION, place=path, hint="a store of this kind is smaller; check the path")
    return data


def read_json(path: str) -> object:
    """Return what a JSON file contains; raise BadInput if it is not JSON, is nested too deeply or too large."""
    try:
        return msgspec.json.decode(read_bytes(path))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"not valid JSON: {error}", operation=OPERATION, place=path) from error


def starts_with(path: str, size: int = 4_096) -> bytes:
    """Return the first bytes of a plain file; b"" if there is none or it cannot be read."""
    try:
        with open_plain(path) as file:
            return file.read(size)
    except OSError:
        return b""


def is_sqlite(path: str) -> bool:
    """Return True if a file begins as a SQLite file does."""
    return starts_with(path, len(_SQLITE)) == _SQLITE


def find_files(root: str, *, suffix: str = "", depth: int = MAX_DEPTH) -> Iterator[str]:
    """Yield the plain files below a folder, sorted; links are not followed, and hidden folders are left out."""
    root = root.rstrip("/") or "/"
    found = 0
    for folder, folders, names in os.walk(root):
        level = folder[len(root) :].count(os.sep)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if level < depth else []
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.endswith(suffix) or os.path.islink(path):
                continue
            found += 1
            if found > MAX_FILES:
                problem = f"it has more than {MAX_FILES:,} files"
                raise BadInput(problem, operation=OPERATION, place=root, hint="name a folder of notes")
            yield path


class Tables:
    """The tables of an open SQLite file."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        with self._reporting():
            # Virtual tables and views would run what the file says.
            rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
        self.names = frozenset(
            str(name) for name, sql in rows if not str(sql or "").lower().startswith("create virtual")
        )

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; none if there is no such table."""
        if table not in self.names:
            return frozenset()
        with self._reporting():
            return frozenset(str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({_quoted(table)})"))

    def rows(self, table: str, columns: Sequence[str]) -> "Iterator[dict[str, Any] | Unreadable]":
        """Yield the rows of a table by row id, with the columns that exist; damaged and huge ones as unreadable."""
        known = self.columns(table)
        wanted = [column for column in columns if column in known]
        if not wanted:
            return
        read = f"SELECT {', '.join(map(_quoted, wanted))} FROM {_quoted(table)} WHERE rowid = ?"  # noqa: S608 — quoted
        with self._reporting():
            ids = [row[0] for row in self._connection.execute(f"SELECT rowid FROM {_quoted(table)} ORDER BY rowid")]  # noqa: S608
        for row_id in ids:
            try:
                row = self._connection.execute(read, (row_id,)).fetchone()
            except (sqlite3.Error, OverflowError, MemoryError) as error:
                yield Unreadable(place=f"{self._path}: {table}, row {row_id}", problem=str(error))
                continue
            if row is not None:
                yield dict(zip(wanted, row, strict=True))

    def select(self, statement: str, *values: object) -> list[Row]:
        """Return the rows of a statement of a reader, for tables that have no row ids."""
        with self._reporting():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _reporting(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _failure(self._path, error) from error


@contextmanager
def open_tables(path: str) -> Generator[Tables]:
    """Open a SQLite file for reading; nothing is written to it or beside it."""
    try:
        connection = _connect(path)
    except sqlite3.Error as error:
        raise _failure(path, error) from error
    except OSError as error:
        raise StorageFailed(error.strerror or str(error), operation=OPERATION, place=path) from error
    with closing(connection):
        connection.text_factory = _decode
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        for pragma in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON"):
            connection.execute(f"PRAGMA {pragma}")
        yield Tables(path, connection)


def _connect(path: str) -> sqlite3.Connection:
    head = starts_with(path, 20)
    if head[:16] != _SQLITE:
        problem = "the file is empty" if not head else "it is not a SQLite file"
        raise BadInput(problem, operation=OPERATION, place=path)
    path = os.path.abspath(path)
    if head[18:20] == _WAL:
        if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
            return copy(path)
        options = "mode=ro&immutable=1"  # in WAL mode, reading creates files beside it
    else:
        options = "mode=ro"
    return sqlite3.connect(f"file:{quote(path)}?{options}", uri=True, timeout=_WAIT_SECONDS, isolation_level=None)


def _failure(path: str, error: sqlite3.Error) -> Exception:
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_READONLY_ROLLBACK")):
        hint = "close the program that uses it, or copy the file and name the copy"
        return LockUnavailable("another program is writing to it", operation=OPERATION, place=path, hint=hint)
    hint = f"try `sqlite3 {path} .recover` into a new file, and name that"
    return Damaged(f"the SQLite file is damaged: {error}", operation=OPERATION, place=path, hint=hint)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")
