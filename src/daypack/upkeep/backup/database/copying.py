"""Copies the records of a database, as they are at one moment, while others write.

One transaction, REPEATABLE READ and READ ONLY, as daypack_operator: it sees every tenant, waits for no writer and stops
none. Rows are fetched in batches, so that memory does not grow with the database.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from daypack.errors import StorageFailed
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction
from daypack.upkeep.backup.database.lines import (
    FORMAT,
    TABLES,
    End,
    Header,
    Sum,
    encode_end,
    encode_header,
    encode_row,
)
from daypack.upkeep.backup.records import moment

_OPERATION = "back up"
_BATCH = 500
_KEYS, _BATCH_BYTES = 5_000, 4 << 20
_SIZES = {"session_lines": "stop - start", "session_blobs": "octet_length(data)"}  # of rows that may be large
_SNAPSHOT = Scope(role="daypack_operator", reading=True, snapshot=True)
_COLUMNS = (
    "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
    " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
)


def copy_records(database: Database, write: Callable[[bytes], None], restart: Callable[[], None]) -> End:
    """Write the lines of all records of a database; `restart` is called before each attempt, to forget the last."""

    def copy(transaction: Transaction) -> End:
        restart()
        found, lines = Sum(), bytearray(encode_header(_header(transaction, database.place)))
        for table, line in read_lines(transaction):
            found.add(table, line)
            lines += line
            if len(lines) >= 1 << 20:
                write(bytes(lines))
                lines.clear()
        end = found.end()
        write(bytes(lines) + encode_end(end))
        return end

    return database.run(_OPERATION, copy, _SNAPSHOT)


def sum_records(transaction: Transaction) -> End:
    """Return counts and digest of the records, as this transaction sees them."""
    found = Sum()
    for table, line in read_lines(transaction):
        found.add(table, line)
    return found.end()


def current_sum(database: Database) -> End:
    """Return counts and digest of the records of a database now."""
    return database.run("compare", sum_records, _SNAPSHOT)


def read_lines(transaction: Transaction) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of all rows, table by table."""
    for table, key in TABLES.items():
        columns = tuple(name for name, _ in columns_of(transaction, table))
        if table in _SIZES:
            for row in _large_rows(transaction, table, columns):
                yield table, encode_row(table, columns, row)
            continue
        query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(key)}"  # noqa: S608 — the names are ours
        transaction.execute(f"DECLARE rows NO SCROLL CURSOR FOR {query}".encode())
        while rows := transaction.rows(f"FETCH FORWARD {_BATCH} FROM rows"):
            for row in rows:
                yield table, encode_row(table, columns, row)
        transaction.execute("CLOSE rows")


def _large_rows(transaction: Transaction, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table in batches of a few megabytes: their keys and sizes are read first."""
    keys = ", ".join(TABLES[table])
    places = ", ".join(["%s"] * len(TABLES[table]))
    query = (
        f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 — the names are ours
        f" WHERE ({keys}) >= ({places}) AND ({keys}) <= ({places}) ORDER BY {keys}"
    )
    declared = f"DECLARE keys NO SCROLL CURSOR FOR SELECT {keys}, {_SIZES[table]} FROM {table} ORDER BY {keys}"  # noqa: S608
    transaction.execute(declared.encode())
    while found := transaction.rows(f"FETCH FORWARD {_KEYS} FROM keys"):
        batch: list[tuple[Any, ...]] = []
        size = 0
        for *key, length in found:
            if batch and size + length > _BATCH_BYTES:
                yield from transaction.rows(query, (*batch[0], *batch[-1]))
                batch, size = [], 0
            batch.append(tuple(key))
            size += length
        yield from transaction.rows(query, (*batch[0], *batch[-1]))
    transaction.execute("CLOSE keys")


def columns_of(transaction: Transaction, table: str) -> list[tuple[str, str]]:
    """Return the columns of a table that are stored as they are given, and their types."""
    found: list[tuple[str, str]] = [(row[0], row[1]) for row in transaction.rows(_COLUMNS, (table,))]
    return found


def _header(transaction: Transaction, place: str) -> Header:
    row: tuple[Any, ...] | None = transaction.row("SELECT id, (SELECT max(number) FROM migrations) FROM store")
    if row is None:
        raise StorageFailed("the database has no id", operation=_OPERATION, place=place)
    return Header(daypack="database", format=FORMAT, schema=row[1], store=row[0], taken_at=moment())
