"""Carries out the steps of an examination in one transaction; records are moved to the quarantine table, never lost."""

# ruff: noqa: S608 — table and column names are constants

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daypack.memory.store.checksums import DocumentRecord, checksum
from daypack.memory.store.counts import count_memory, recount_user, right_numbers
from daypack.memory.store.examination import Step, StoreProblem
from daypack.memory.store.port import join_id
from daypack.memory.store.reading import tolerant
from daypack.memory.store.rows import Row, as_text, damaged_row, seal_memory, seal_user
from daypack.memory.store.tables import columns_of, make_again
from daypack.memory.times import now_ms
from daypack.types.memory import PLACEHOLDER

if TYPE_CHECKING:
    from sqlite3 import Connection

_KEYS = {
    "users": ("number",),
    "memories": ("number",),
    "entries": ("memory", "seq"),
    "texts": ("number",),
    "documents": ("number",),
    "tokens": ("id",),
}
_KINDS = {"users": "user", "memories": "memory", "entries": "entry", "texts": "text", "documents": "document"}
_STEM_BYTES = 12


class Repair:
    """One repair of a store, within the caller's transaction."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._execute = connection.execute
        self._now = now_ms()
        self._unlinked: dict[Any, None] = {}  # memories whose tags and client keys are to be listed again
        self._columns: dict[str, list[str]] = {}
        self._sharing: dict[Any, int] | None = None

    def run(self, problems: Sequence[StoreProblem]) -> None:
        """Carry out the steps, and count and link everything again afterwards."""
        with tolerant(self._connection):
            taken = [(problem.step, problem.problem) for problem in problems if problem.step is not None]
            for step, _ in taken:
                if step.kind == "schema":
                    self._make_again(*step.key)
            self._execute("INSERT INTO erasing VALUES (0)")
            for step, problem in taken:
                self._take(step, problem)
            for number in self._unlinked:
                self._relink(number)
            self._recount()
            self._execute("DELETE FROM erasing")

    def _take(self, step: Step, problem: str) -> None:
        if step.kind == "quarantine":
            self._quarantine(step, problem)
        elif step.kind == "seal":
            self._seal(step, problem)
        elif step.kind == "relink":
            self._unlinked[step.key[0]] = None
        elif step.kind == "document":
            self._add_placeholder(step.key[0])
        elif step.kind == "identify":
            self._identify()

    def _make_again(self, type_: str, name: str) -> None:
        make_again(self._connection, type_, name)
        if name in ("tags", "keys"):
            numbers = self._execute("SELECT number FROM memories").fetchall()
            self._unlinked.update((number, None) for (number,) in numbers)
        elif name == "store":
            self._identify()

    def _identify(self) -> None:
        self._execute("DELETE FROM store")
        self._execute("INSERT INTO store(id, unclean) VALUES (?, 0)", (secrets.token_hex(8),))

    def _quarantine(self, step: Step, problem: str) -> None:
        self._copy(step, problem)
        where = _where(step.table)
        if step.table == "entries":
            (text,) = self._execute(f"SELECT text FROM entries WHERE {where}", step.key).fetchone()
            if not self._is_shared(text):
                self._execute("DELETE FROM texts WHERE number = ?", (text,))
            self._unlinked[step.key[0]] = None
        self._execute(f"DELETE FROM {step.table} WHERE {where}", step.key)

    def _is_shared(self, text: Any) -> bool:  # noqa: ANN401 — of a damaged file
        """Return True if another entry has this text too (its number was damaged); each entry is asked about once."""
        if self._sharing is None:
            query = "SELECT text, count(*) FROM entries GROUP BY text HAVING count(*) > 1"
            self._sharing = dict(self._execute(query).fetchall())
        left = self._sharing.get(text, 1) - 1
        self._sharing[text] = left
        return left > 0

    def _copy(self, step: Step, problem: str) -> None:
        """Copy every column of a row, as it is, into the quarantine table."""
        query = "SELECT coalesce(max(record), 0) + 1 FROM quarantine"
        record = self._execute(query).fetchone()[0]
        kind = _KINDS.get(step.table, "token")
        id_, memory_id = self._name(step)
        facts = (record, self._now, kind, id_, memory_id, problem)
        self._copy_row(facts, step.table, _where(step.table), step.key)
        if step.table == "entries":
            own = f"number = (SELECT text FROM entries WHERE {_where('entries')})"
            self._copy_row(facts, "texts", own, step.key)

    def _copy_row(self, facts: tuple[Any, ...], table: str, where: str, key: tuple[Any, ...]) -> None:
        if table not in self._columns:
            self._columns[table] = [column for column, _ in columns_of(self._connection, table)]
        for column in self._columns[table]:
            query = f'INSERT INTO quarantine SELECT ?, ?, ?, ?, ?, ?, ?, "{column}" FROM {table} WHERE {where}'
            self._execute(query, (*facts, f"{table}.{column}", *key))

    def _name(self, step: Step) -> tuple[str, str]:
        """Return the id of a row, as far as it can be read, and that of its memory."""
        if step.table in ("entries", "documents"):
            number = "seq" if step.table == "entries" else "version"
            query = (
                f"SELECT r.stem, r.{number}, m.id FROM {step.table} r LEFT JOIN memories m ON m.number = r.memory"
                f" WHERE {' AND '.join(f'r.{column} IS ?' for column in _KEYS[step.table])}"
            )
            row: Row = self._execute(query, step.key).fetchone()
            return damaged_row("entry", row[1], row[0]).id, as_text(row[2] or "")
        if step.table == "memories":
            row = self._execute("SELECT id FROM memories WHERE number = ?", step.key).fetchone()
            return as_text(row[0]), as_text(row[0])
        return as_text(step.key[0]), ""

    def _seal(self, step: Step, problem: str) -> None:
        """Keep a user or memory with the values it has now, and a copy of the damaged row."""
        self._copy(step, problem)
        number = step.key[0]
        if step.table == "users":
            for column, fallback in (("name", "user"), ("email", "''")):
                query = f"UPDATE users SET {column} = {fallback} WHERE number = ? AND typeof({column}) != 'text'"
                self._execute(query, (number,))
            for column in ("max_memories", "max_entries", "max_bytes"):
                query = (
                    f"UPDATE users SET {column} = 0 WHERE number = ? AND typeof({column}) NOT IN ('null', 'integer')"
                )
                self._execute(query, (number,))
            self._make_text("users", ("user", "name", "email"), number)
            seal_user(self._connection, number)
            return
        self._execute("UPDATE memories SET owner = ? WHERE number = ?", (step.owner, number))
        for column, fallback in (("created", self._now), ("deleted", None)):
            query = f"UPDATE memories SET {column} = ? WHERE number = ? AND typeof({column}) NOT IN ('null', 'integer')"
            self._execute(query, (fallback, number))
        self._make_text("memories", ("title", "type", "description"), number)
        seal_memory(self._connection, number)

    def _make_text(self, table: str, columns: tuple[str, ...], number: int) -> None:
        """Replace what is no text any more in columns of text."""
        row = self._execute(f"SELECT {', '.join(columns)} FROM {table} WHERE number = ?", (number,)).fetchone()
        for column, value in zip(columns, row, strict=True):
            if not isinstance(value, str) or not value.isprintable():
                shown = "".join(char for char in as_text(value) if char.isprintable()) or "damaged"
                self._execute(f"UPDATE {table} SET {column} = ? WHERE number = ?", (shown, number))

    def _relink(self, number: int) -> None:
        for table in ("tags", "keys"):
            self._execute(f"DELETE FROM {table} WHERE memory IS ?", (number,))
        for seq, tags, key in self._execute(
            "SELECT seq, tags, client_key FROM entries WHERE memory = ?", (number,)
        ).fetchall():
            if isinstance(tags, str):
                rows = [(number, tag, seq) for tag in tags.split("\n")]
                self._connection.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", rows)
            if key is not None:
                self._execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", (number, key, seq))

    def _add_placeholder(self, number: int) -> None:
        query = (
            "SELECT u.user, m.id, max(m.documents, (SELECT coalesce(max(version), 0) FROM documents"
            " WHERE memory = m.number)) + 1 FROM memories m JOIN users u ON u.number = m.owner WHERE m.number = ?"
        )
        user, memory_id, version = self._execute(query, (number,)).fetchone()
        stem = secrets.token_bytes(_STEM_BYTES)
        crc = checksum(DocumentRecord(user, memory_id, join_id(stem, version), self._now, PLACEHOLDER))
        query = "INSERT INTO documents(memory, version, stem, created, content, crc) VALUES (?, ?, ?, ?, ?, ?)"
        self._execute(query, (number, version, stem, self._now, PLACEHOLDER, crc))
        self._execute("UPDATE memories SET documents = ? WHERE number = ?", (version, number))

    def _recount(self) -> None:
        for (number,) in self._execute("SELECT number FROM memories").fetchall():
            counted = count_memory(self._connection, number)
            self._execute("UPDATE memories SET entries = ?, bytes = ? WHERE number = ?", (*counted, number))
            query = "UPDATE memories SET newest = ?, documents = ?, latest = ? WHERE number = ?"
            self._execute(query, (*right_numbers(self._connection, number, self._now), number))
        for (number,) in self._execute("SELECT number FROM users").fetchall():
            recount_user(self._connection, number)


def _where(table: str) -> str:
    return " AND ".join(f"{column} IS ?" for column in _KEYS[table])
