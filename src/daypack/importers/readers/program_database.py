"""A SQLite database of another program: opened for reading, refused if it lacks a column; a lock is no damage."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from daypack.errors import BadInput, StorageFailed
from daypack.importers.lines import unreadable

if TYPE_CHECKING:
    from sqlite3 import Connection

_LOCK_SECONDS = 2.0  # a program that writes holds its database for milliseconds


class Schema(NamedTuple):
    """The program that writes a database, the columns that are read of its tables, and which file to give instead."""

    program: str
    tables: Mapping[str, Sequence[str]]
    hint: str


class ProgramDatabase:
    """An open database. Raises BadInput if it is damaged or of another program, StorageFailed while it is locked."""

    def __init__(self, path: str, schema: Schema) -> None:
        self._path = path
        self._schema = schema
        self._connection = self._connect()
        try:
            for table, columns in schema.tables.items():
                found = {row[1] for row in self.fetch(f"PRAGMA table_info({table})")}
                if missing := [column for column in columns if column not in found]:
                    what = f"is not a database of {schema.program} that this version reads"
                    raise unreadable(path, f"{what}: {table} has no {', '.join(missing)}", schema.hint)
        except BaseException:
            self.close()
            raise

    def fetch(self, query: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        import sqlite3  # noqa: PLC0415 — only for programs that have a database

        try:
            return self._connection.execute(query, tuple(values)).fetchall()
        except sqlite3.Error as error:
            raise self._describe(error) from error

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _connect(self) -> "Connection":
        import sqlite3  # noqa: PLC0415

        from daypack.files.read_only import connect  # noqa: PLC0415

        try:
            return connect(self._path, seconds=_LOCK_SECONDS)
        except (sqlite3.Error, OSError) as error:
            raise self._describe(error) from error

    def _describe(self, error: Exception) -> BadInput | StorageFailed:
        """Return the error to raise: a lock ends, so that the next import tries again."""
        problem = f"cannot be read: {error}"
        if "locked" in str(error) or "busy" in str(error):
            hint = f"import again when {self._schema.program} is idle"
            return StorageFailed(problem, operation="import", place=self._path, hint=hint)
        return unreadable(self._path, problem, "it may be damaged: `sqlite3 FILE 'PRAGMA integrity_check'` says where")
