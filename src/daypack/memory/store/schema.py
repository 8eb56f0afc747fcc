"""Compares the tables, indexes and triggers of a store with those of its format, and makes again what can be made."""

from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from daypack.memory.store.tables import RECORDS, SCHEMA

if TYPE_CHECKING:
    from sqlite3 import Connection

Difference = Literal["missing", "unknown", "different"]
_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"


class SchemaProblem(NamedTuple):
    """An object that is missing or different, or a trigger that daypack did not make."""

    type: str
    name: str
    difference: Difference

    @property
    def made(self) -> bool:
        """True if it can be made again; a new table of records would be empty."""
        return self.type != "table" or (self.difference == "missing" and self.name not in RECORDS)


def compare_schema(connection: "Connection") -> list[SchemaProblem]:
    """Return what differs; tables, indexes and views that daypack does not know are left alone."""
    expected = _expected()
    found = {(kind, name): sql for kind, name, sql in connection.execute(_OBJECTS)}
    problems = [SchemaProblem(*key, "missing") for key in expected if key not in found]
    for (kind, name), sql in found.items():
        if kind == "trigger" and sql != expected.get((kind, name)):
            known = (kind, name) in expected
            problems.append(SchemaProblem(kind, name, "different" if known else "unknown"))
        elif kind == "table" and (kind, name) in expected and columns_of(connection, name) != expected_columns(name):
            problems.append(SchemaProblem(kind, name, "different"))
    return problems


def make_again(connection: "Connection", type_: str, name: str) -> None:
    """Create a missing object, replace a trigger, or remove one that daypack did not make."""
    if type_ == "trigger":
        quoted = name.replace('"', '""')
        connection.execute(f'DROP TRIGGER IF EXISTS "{quoted}"')
    if sql := _expected().get((type_, name)):
        connection.execute(sql)


def columns_of(connection: "Connection", table: str) -> list[tuple[str, str]]:
    """Return the columns of a table with their types."""
    return connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()


@cache
def _expected() -> dict[tuple[str, str], str]:
    with closing(_empty()) as connection:
        return {(kind, name): sql for kind, name, sql in connection.execute(_OBJECTS)}


@cache
def expected_columns(table: str) -> list[tuple[str, str]]:
    """Return the columns that a table of the format has."""
    with closing(_empty()) as connection:
        return columns_of(connection, table)


def _empty() -> "Connection":
    import sqlite3  # noqa: PLC0415 — 5 ms

    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    return connection
