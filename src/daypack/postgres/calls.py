"""Calls of functions of the schema that are transactions by themselves: one statement, sent without a cursor.

An append, and the question whether a cache is current, are such calls. A cursor of psycopg would cost the client more
than everything else about them.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from psycopg import Connection

    from daypack.postgres.silence import WatchedConnection

_UNKNOWN_STATEMENT = "26000"
_ROWS = 2  # ExecStatus.TUPLES_OK; psycopg is not imported here


class Call(NamedTuple):
    """A statement with one value as its result, which is text, and the values it takes.

    `%s` is sent as text, whatever its type: else it would be prepared again for each size of a number. `%b` is bytes.
    """

    query: str
    values: tuple[Any, ...]

    def within(self, connection: "Connection[Any]") -> str | None:
        """Return the result in a transaction of the caller."""
        row = connection.execute(self.query, self.values).fetchone()  # pyright: ignore[reportArgumentType] — constants
        return row[0] if row else None

    def alone(self, connection: "WatchedConnection") -> str | None:
        """Return the result when it is committed."""
        sendable = all(isinstance(value, str | bytes) for value in self.values)
        if not sendable or connection.prepare_threshold is None:  # through a pooler nothing is prepared
            return self.within(connection)
        return self._send(connection)

    def _send(self, connection: "WatchedConnection") -> str | None:
        name, text = _prepared(self.query)
        if name not in connection.prepared:
            connection.execute(text)
            connection.prepared |= {name}
        sent = [value if isinstance(value, bytes) else _encode(value) for value in self.values]
        result = connection.execute_prepared(name, sent, [isinstance(value, bytes) for value in self.values])
        if result.status == _ROWS:
            value = result.get_value(0, 0) if result.ntuples else None
            return None if value is None else value.decode()
        from psycopg.errors import error_from_result  # noqa: PLC0415 — only for errors

        error = error_from_result(result)
        if error.sqlstate == _UNKNOWN_STATEMENT:  # an administrator has removed it
            connection.prepared = frozenset()
            return self._send(connection)
        raise error


def text_array(texts: list[str]) -> str:
    """Return an array of texts, as text."""
    quoted = (text.replace("\\", r"\\").replace('"', r"\"") for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


def _encode(value: str) -> bytes:
    if "\0" in value:
        from psycopg import DataError  # noqa: PLC0415

        raise DataError("a text contains a NUL character")
    return value.encode()


@cache
def _prepared(query: str) -> tuple[bytes, bytes]:
    """Return a name for a statement, and the statement that prepares it."""
    from re import sub  # noqa: PLC0415
    from zlib import crc32  # noqa: PLC0415

    numbers = iter(range(1, query.count("%") + 1))
    text = sub("%[sb]", lambda _: f"${next(numbers)}", query)
    name = f"daypack_{crc32(query.encode()):08x}"
    return name.encode(), f"PREPARE {name} AS {text}".encode()
