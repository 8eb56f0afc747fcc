"""Writes a new store file with every record that can be read from a damaged one, which is kept beside it.

    store.sqlite.damaged-20261117T091500   the damaged file, as it was
    store.sqlite.repair                    the new file until it is complete; it then takes the name of the store

A kill at any moment leaves the damaged store or the new one under its name, never neither and never a mixture: the
journal is folded in before, and one rename replaces the file.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from struct import pack
from typing import TYPE_CHECKING, Any, NamedTuple

from daypack.errors import Damaged, StorageFailed
from daypack.files.atomic import discard, release, sync_folder
from daypack.files.database import BUSY_SECONDS, COMPANIONS, Database, is_damage
from daypack.files.durable import sync, sync_path
from daypack.memory.store.reading import tolerant
from daypack.memory.store.rows import Row
from daypack.memory.store.store_format import APPLICATION, FORMAT, VERSION
from daypack.memory.store.tables import columns_of, expected_columns

if TYPE_CHECKING:
    from sqlite3 import Connection

_OPERATION = "repair store"
_UNFINISHED = ".repair"
_ASIDE = ".damaged-"
_HINT = "restore the store from a backup; the file was not changed"
# Parts of SQLite's header that are the same in every store: the offset and the possible values.
_PAGE_BYTES = 4096
_HEADER_BYTES = 100
_HEADER: tuple[tuple[int, tuple[bytes, ...]], ...] = (
    (0, (b"SQLite format 3\0",)),
    (16, (pack(">H", _PAGE_BYTES),)),
    (18, (b"\2\2", b"\1\1")),
    (20, (bytes((0, 64, 32, 32)),)),
    (44, (pack(">I", 4),)),
    (56, (pack(">I", 1),)),
    (60, (pack(">I", VERSION), pack(">I", 1))),
    (68, (pack(">I", APPLICATION),)),
)
_COPIED = ("store", "users", "memories", "texts", "entries", "documents", "tags", "keys", "tokens", "quarantine")
_NUMBERED = ("users", "memories", "texts", "documents")
_KEY_COLUMNS = {"entries": 2, "tags": 3, "keys": 2, "tokens": 1, "quarantine": 1}  # the first of a table
_SET_ASIDE = (
    "SELECT (SELECT count(DISTINCT record) FROM quarantine),"
    " (SELECT count(*) FROM memories WHERE deleted IS NULL AND owner NOT IN (SELECT number FROM users))"
)
# The index of the names has their numbers too: it may be whole where the table is not. The checksum does not match, so
# that the user is kept only if a record confirms the name.
_USERS_BY_NAME = (
    "SELECT number, user, user, '', NULL, NULL, NULL, 0, 0, 0, -1 FROM users INDEXED BY sqlite_autoindex_users_1"
)
_MOST_NUMBERS = 50_000_000


def has_damaged_header(path: str) -> bool:
    """Return True if a constant part of the header differs, also where SQLite does not notice."""
    with open(path, "rb") as file:
        header = file.read(_HEADER_BYTES)
    return len(header) == _HEADER_BYTES and _mended(header) != header


class SetAside(NamedTuple):
    """What a repair kept of damage: files, records in quarantine, and memories whose owner is unknown."""

    files: tuple[str, ...] = ()
    records: int = 0
    unowned: int = 0


def kept_aside(path: str) -> SetAside:
    """Return what repairs of a store have set aside, the newest file first."""
    from daypack.files import read_only  # noqa: PLC0415 — only where a list may be incomplete

    folder, name = os.path.split(path)
    names = sorted((other for other in _listed(folder) if other.startswith(name + _ASIDE)), reverse=True)
    files = tuple(os.path.join(folder, other) for other in names)
    if not os.path.exists(path):
        return SetAside(files)
    try:
        with closing(read_only.connect(path, seconds=BUSY_SECONDS)) as source, tolerant(source):
            records, unowned = source.execute(_SET_ASIDE).fetchone()
    except Exception as error:
        if not is_damage(error):
            raise
        return SetAside(files)
    return SetAside(files, records, unowned)


def _listed(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def mend_header(path: str) -> None:
    """Restore the constant parts of a damaged header, in one write; the file is kept as it was beside it."""
    if not has_damaged_header(path):
        return
    _set_aside(path)
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.pwrite(fd, _mended(os.pread(fd, _HEADER_BYTES, 0)), 0)
        sync(fd)
    finally:
        release(fd)


def _mended(header: bytes) -> bytes:
    mended = bytearray(header)
    for offset, values in _HEADER:
        if bytes(mended[offset : offset + len(values[0])]) not in values:
            mended[offset : offset + len(values[0])] = values[0]
    return bytes(mended)


def rewrite_store(path: str) -> str:
    """Replace a damaged store by a new one with every record that can be read; return the path of the old file."""
    import sqlite3  # noqa: PLC0415 — 5 ms

    database = Database(path, FORMAT)
    with database.folder_locked(), database.refusing(_OPERATION):
        discard(path + _UNFINISHED)
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as source:
            _check_tables(source, path)
            _fold_journal(source, path)
            source.execute("BEGIN EXCLUSIVE")  # others neither read nor write until the new file has its name
            _write(source, path + _UNFINISHED)
            kept = _set_aside(path)
            os.replace(path + _UNFINISHED, path)
            sync_folder(os.path.dirname(path))
            with suppress(sqlite3.Error):
                source.execute("ROLLBACK")
    return kept


def _check_tables(source: "Connection", path: str) -> None:
    """Refuse a file whose list of tables is damaged: a new file would contain nothing."""
    try:
        version = source.execute("PRAGMA user_version").fetchone()[0]
        found = {table: len(columns_of(source, table)) for table in _COPIED}
    except Exception as error:
        if not is_damage(error):
            raise
        raise Damaged(f"its tables cannot be found: {error}", operation=_OPERATION, place=path, hint=_HINT) from error
    if version != VERSION:
        raise Damaged(f"it has format {version}", operation=_OPERATION, place=path, hint=_HINT)
    wrong = [table for table in _COPIED if found[table] != len(expected_columns(table))]
    if wrong:
        problem = f"its tables cannot be found: {', '.join(wrong)}"
        raise Damaged(problem, operation=_OPERATION, place=path, hint=_HINT)


def _fold_journal(source: "Connection", path: str) -> None:
    """Move the journal into the file, so that none is left that SQLite would apply to the new file."""
    try:
        mode = source.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
    except Exception as error:
        if not is_damage(error):
            raise
        mode = str(error)
    if any(os.path.exists(path + ending) and os.path.getsize(path + ending) for ending in ("-wal", "-journal")):
        if mode == "wal":
            hint = "stop the programs that use the store, then repair again"
            raise StorageFailed("another process uses the store", operation=_OPERATION, place=path, hint=hint)
        raise Damaged(f"its journal cannot be read: {mode}", operation=_OPERATION, place=path, hint=_HINT)


def _set_aside(path: str) -> str:
    """Keep a copy of the file as it is now, and return its path."""
    stem = path + _ASIDE + time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    kept, number = stem, 1
    while os.path.lexists(kept):
        number += 1
        kept = f"{stem}-{number}"
    unfinished = f"{path}{_UNFINISHED}-copy"
    discard(unfinished)
    release(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    shutil.copyfile(path, unfinished)
    sync_path(unfinished)
    os.replace(unfinished, kept)
    sync_folder(os.path.dirname(path))
    return kept


def _write(source: "Connection", path: str) -> None:
    import sqlite3  # noqa: PLC0415

    release(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(path, isolation_level=None)) as target, tolerant(source):
        target.execute("PRAGMA journal_mode=MEMORY")
        mark = f"PRAGMA application_id={APPLICATION};PRAGMA user_version={VERSION}"
        target.executescript(f"BEGIN;{mark};{FORMAT.schema};COMMIT")
        target.execute("DELETE FROM store")
        target.execute("BEGIN")
        for table in _COPIED:
            columns = [column for column, _ in columns_of(source, table)]  # a name may be damaged, its place is not
            marks = ", ".join("?" * len(columns))
            query = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"  # noqa: S608 — a constant
            for row in _rows(source, table, columns):
                with suppress(sqlite3.IntegrityError, UnicodeEncodeError):  # a row that is nothing: the old file has it
                    target.execute(query, row)
        target.execute("COMMIT")
    for ending in COMPANIONS:
        discard(path + ending)
    sync_path(path)


def _rows(source: "Connection", table: str, columns: list[str]) -> Iterator[Row]:
    """Yield every row that can be read: all of them, or from both ends, and the rest one by one."""
    names = ['"' + column.replace('"', '""') + '"' for column in columns]
    shown, numbered = ", ".join(names), table in (*_NUMBERED, "store")
    keys = ["rowid"] if numbered else names[: _KEY_COLUMNS[table]]
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{name} {direction}" for name in keys)
        try:
            for row in source.execute(f"SELECT {shown} FROM {table} ORDER BY {order}"):  # noqa: S608 — constants
                yield tuple(map(_storable, row))
        except Exception as error:
            if not is_damage(error):
                raise
            continue
        return
    for values in _keys(source, table):
        where = " AND ".join(f"{name} = ?" for name in keys)
        try:
            row = source.execute(f"SELECT {shown} FROM {table} WHERE {where}", values).fetchone()  # noqa: S608
        except Exception as error:
            if not is_damage(error):
                raise
            continue
        if row:
            yield tuple(map(_storable, row))
    if table == "users":
        yield from (tuple(map(_storable, row)) for row in _numbers(source, _USERS_BY_NAME))


def _keys(source: "Connection", table: str) -> Iterator[Row]:
    """Yield the keys of the rows that there may be."""
    if table == "entries":
        for number, newest in _numbers(source, "SELECT number, newest FROM memories"):
            if isinstance(number, int) and isinstance(newest, int):
                yield from ((number, seq) for seq in range(1, min(newest, _MOST_NUMBERS) + 1))
    elif table in _NUMBERED:
        newest = max((row[0] for row in _numbers(source, f"SELECT max(rowid) FROM {table}") if row[0]), default=0)  # noqa: S608
        yield from ((number,) for number in range(1, min(newest, _MOST_NUMBERS) + 1))


def _numbers(source: "Connection", query: str) -> list[Row]:
    found: list[Row] = []
    try:
        found.extend(source.execute(query))
    except Exception as error:
        if not is_damage(error):
            raise
    return found


def _storable(value: Any) -> Any:  # noqa: ANN401 — of a damaged file
    """Return a value that SQLite stores; text that is no UTF-8 becomes bytes."""
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        return value.encode("utf-8", "surrogateescape")
    return value
