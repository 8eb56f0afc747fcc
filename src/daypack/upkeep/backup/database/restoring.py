"""Restores the records of a backup into an empty database, in one transaction: all of them or nothing.

Before it commits, the records are read back and compared with the backup. The database has an id of its own: positions
in its log mean nothing to another server, so consistency tokens of the former database are refused. Tags are made
again, and a job for the search index of every memory is added.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from secrets import token_bytes
from typing import Any

from daypack.errors import BadInput, Damaged
from daypack.memory.store.port import STORE_ID_CHARS
from daypack.postgres.database import Database
from daypack.postgres.migrations import OPERATOR, OWNER, list_migrations
from daypack.postgres.transaction import Scope, Transaction
from daypack.upkeep.backup.database.copying import columns_of, sum_records
from daypack.upkeep.backup.database.lines import AUDIT, Line, Reader, Sum, as_bytes

_OPERATION = "restore"
_OPERATOR = Scope(role="daypack_operator")
_LOCK = 0x6461_7970_7265_7374  # "dayprest"
_BATCH_ROWS, _BATCH_BYTES = 500, 4 << 20
_TAGS = (  # a column of entries, one tag in each line
    "INSERT INTO tags(tenant, memory, tag, seq) SELECT DISTINCT tenant, memory, decode(tag, 'escape'), seq"
    " FROM entries CROSS JOIN string_to_table(encode(tags, 'escape'), chr(10)) AS tag WHERE tags IS NOT NULL"
)
_JOBS = "INSERT INTO jobs(tenant, memory, goal, documents) SELECT tenant, number, newest, documents FROM memories"


def restore_records(
    database: Database, open_lines: Callable[[], Reader], revoked: AbstractSet[str] = frozenset()
) -> dict[str, int]:
    """Insert all records of a backup, without the tokens in `revoked`; return how many rows of each table.

    `open_lines` returns the lines from the beginning, once for each attempt.
    """

    def restore(transaction: Transaction) -> dict[str, int]:
        transaction.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        _as_owner(transaction, "LOCK TABLE users, memories, sessions IN SHARE ROW EXCLUSIVE MODE")  # writers wait
        if not is_empty(transaction):
            raise filled(database.place)
        reader = open_lines()
        _differ(transaction, reader.header.store)
        inserted = _Insertion(transaction, reader, revoked).insert()
        transaction.execute(_TAGS)
        transaction.execute(_JOBS)
        _continue_numbers(transaction)
        if sum_records(transaction).digest != inserted.end().digest:
            hint = "try again; nothing was restored"
            raise Damaged("the records read back differ", operation=_OPERATION, place=database.place, hint=hint)
        return inserted.counts

    return database.run(_OPERATION, restore, _OPERATOR)


def is_empty(transaction: Transaction) -> bool:
    """Return True if a database has no users, tokens, memories and sessions."""
    row = transaction.row(
        "SELECT EXISTS (SELECT FROM users) OR EXISTS (SELECT FROM tokens) OR EXISTS (SELECT FROM memories)"
        " OR EXISTS (SELECT FROM sessions)"
    )
    return row is not None and not row[0]


def filled(place: str) -> BadInput:
    """Return the error for a database that has memories."""
    hint = "create a new database and name it with --store; nothing is overwritten"
    return BadInput("the database is not empty", operation=_OPERATION, place=place, hint=hint)


class _Insertion:
    def __init__(self, transaction: Transaction, reader: Reader, revoked: AbstractSet[str]) -> None:
        self._transaction = transaction
        self._reader = reader
        self._revoked = revoked
        self._columns: dict[str, dict[str, str]] = {}
        self._found = Sum()
        self._keeps_audit = transaction.row("SELECT EXISTS (SELECT FROM audit)") == (True,)
        known = list_migrations()[-1].number
        if reader.header.schema > known:
            problem = f"a backup of schema {reader.header.schema}; this version of daypack knows {known}"
            raise BadInput(problem, operation=_OPERATION, place=reader.place, hint="install a later daypack")

    def insert(self) -> Sum:
        """Insert the rows in batches of one table and the same columns."""
        batch: list[Line] = []
        size = 0
        for line in self._reader.rows():
            if self._is_left_out(line):
                continue
            is_other = bool(batch) and (line.table != batch[0].table or line.row.keys() != batch[0].row.keys())
            if is_other or len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES:
                self._insert(batch)
                batch, size = [], 0
            batch.append(line)
            size += len(line.data)
        self._insert(batch)
        return self._found

    def _is_left_out(self, line: Line) -> bool:
        """Return True for a token that was revoked, and for lines of an audit log where there is one: it only grows."""
        if line.table == AUDIT and self._keeps_audit:
            return True
        return line.table == "tokens" and line.row.get("id") in self._revoked

    def _insert(self, batch: list[Line]) -> None:
        if not batch:
            return
        table = batch[0].table
        types = self._types(table)
        columns = [name for name in types if name in batch[0].row]
        if unknown := [name for name in batch[0].row if name not in types]:
            raise self._reader.damaged(f"{table} has no column {unknown[0]!r}")
        query = (
            f"INSERT INTO {table}({', '.join(columns)}) OVERRIDING SYSTEM VALUE"  # noqa: S608 — names of the catalogue
            f" VALUES ({', '.join(f'%s::{types[name]}' for name in columns)})"
        )
        try:
            rows = [[_value(types[name], name, line.row[name]) for name in columns] for line in batch]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._reader.damaged(f"a value of {table} cannot be read") from error
        with self._transaction.connection.cursor() as cursor:
            cursor.executemany(query.encode(), rows)
        self._transaction.row("SELECT 1")  # waits, so that not all of the backup is under way at once
        for line in batch:
            self._found.add(table, line.data)

    def _types(self, table: str) -> dict[str, str]:
        if table not in self._columns:
            self._columns[table] = dict(columns_of(self._transaction, table))
        return self._columns[table]


def _value(kind: str, column: str, value: Any) -> Any:  # noqa: ANN401 — of a line
    return as_bytes(column, value) if kind.startswith("bytea") else value


def _differ(transaction: Transaction, former: str) -> None:
    """Give the database a new id and key if it has those of the backup: it was made as a copy of that database."""
    if transaction.row("SELECT id FROM store") == (former,):
        transaction.execute("DELETE FROM store")
        values = (token_bytes(STORE_ID_CHARS // 2).hex(), token_bytes(32))
        transaction.execute("INSERT INTO store(id, signing_key) VALUES (%s, %s)", values)


def _continue_numbers(transaction: Transaction) -> None:
    """Let new memories, sessions and lines of the audit log have numbers of their own."""
    transaction.execute("UPDATE audit_end SET last = greatest(last, (SELECT coalesce(max(seq), 0) FROM audit))")
    for table in ("memories", "sessions"):
        row = transaction.row(f"SELECT max(number) FROM {table}")  # noqa: S608 — the names are ours
        if row is not None and row[0] is not None:
            _as_owner(transaction, f"SELECT setval(pg_get_serial_sequence('{table}', 'number'), {int(row[0])})")


def _as_owner(transaction: Transaction, statement: str) -> None:
    """Run a statement about a table or a sequence that only its owner may run."""
    transaction.execute(f"SET LOCAL ROLE {OWNER}".encode())
    transaction.execute(statement.encode())
    transaction.execute(f"SET LOCAL ROLE {OPERATOR}".encode())
