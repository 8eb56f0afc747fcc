"""The records of a database as lines of JSON: a header, one line for each row, an end.

    {"daypack":"database","format":1,"schema":3,"store":"5f0c…","taken_at":"2026-11-17T21:00:00.000Z"}
    {"users":{"tenant":"ada","name":"Ada","email":"",…,"crc":123}}
    {"tokens":{…}} {"memories":{…}} {"entries":{…}} {"documents":{…}}
    {"sessions":{…}} {"session_lines":{…,"log":0,"start":0,"stop":948,"data":"{\\"seq\\":1,…"}} {"session_blobs":{…}}
    {"audit":{…}}
    {"end":{"counts":{"users":1,…},"digest":"9a…"}}

A row has the columns of its table. Bytes are written as text if they are UTF-8, else as {"base64":"…"}, and those of
`stem` and `digest` in hexadecimal. `crc` is the checksum of the record (memory/store/checksums.py), of session_lines
that of the log up to there; their bytes are those that the files of a session would have. The digest is the sum of the
SHA-256 of all lines between, except those of the audit log, in any order. Tags and search indexes are made again from
the entries.
"""

import base64
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct

from daypack.errors import Damaged
from daypack.files.blobs import name_of
from daypack.history.logs.lines import UNREADABLE
from daypack.memory.store.checksums import (
    DocumentRecord,
    EntryRecord,
    MemoryRecord,
    Record,
    TokenRecord,
    UserRecord,
    is_intact,
)
from daypack.memory.store.port import join_id
from daypack.memory.store.rows import split_tags

FORMAT = 1
NAME = "records.jsonl"
# In this order, so that a memory is known before its entries. The key of each table orders its lines.
TABLES = {
    "users": ("tenant",),
    "tokens": ("id",),
    "memories": ("tenant", "number"),
    "entries": ("tenant", "memory", "seq"),
    "documents": ("tenant", "memory", "version"),
    "sessions": ("tenant", "number"),
    "session_lines": ("tenant", "session", "log", "start"),
    "session_blobs": ("tenant", "session", "name"),
    "audit": ("seq",),
}
AUDIT = "audit"
_OF_SESSIONS = ("sessions", "session_lines", "session_blobs")
MAX_LINE_BYTES = 512 << 20  # an append to a session is one row, of which a line alone may have 64 MB
_MAX_TEXT_BYTES = 16 << 20  # more is base64, because a control character is six bytes of JSON
_HEX = ("stem", "digest")
_MODULUS = 1 << 256
_MOST_NAMED = 50  # damaged records that are listed

Row = dict[str, Any]


class Header(Struct, frozen=True, kw_only=True):
    """The first line: where and when the records were read. `schema` is the number of the last migration."""

    daypack: str
    format: int
    schema: int
    store: str
    taken_at: str


class End(Struct, frozen=True):
    """The last line."""

    counts: dict[str, int]
    digest: str


class Line(NamedTuple):
    """A row of a table, and its line."""

    table: str
    row: Row
    data: bytes


class Sum:
    """Counts lines and adds up their digests, in any order."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(TABLES, 0)
        self._total = 0

    def add(self, table: str, data: bytes) -> None:
        """Add a line."""
        self.counts[table] += 1
        if table != AUDIT:  # it grows by what is recorded about a restore
            self._total += int.from_bytes(sha256(data).digest(), "big")

    def end(self) -> End:
        """Return the last line for the lines so far."""
        return End(dict(self.counts), (self._total % _MODULUS).to_bytes(32, "big").hex())


def encode_header(header: Header) -> bytes:
    """Return the first line."""
    return msgspec.json.encode(header) + b"\n"


def encode_row(table: str, columns: Iterable[str], values: Iterable[Any]) -> bytes:
    """Return the line of a row."""
    row = {column: _plain(column, value) for column, value in zip(columns, values, strict=True)}
    return msgspec.json.encode({table: row}) + b"\n"


def encode_end(end: End) -> bytes:
    """Return the last line."""
    return msgspec.json.encode({"end": end}) + b"\n"


def _plain(column: str, value: Any) -> Any:  # noqa: ANN401 — as the database has it
    if isinstance(value, bytes):
        if column in _HEX:
            return value.hex()
        with suppress(UnicodeDecodeError):
            if len(value) <= _MAX_TEXT_BYTES:
                return value.decode()
        return {"base64": base64.b64encode(value).decode()}
    return value.isoformat() if isinstance(value, datetime) else value


def as_bytes(column: str, value: Any) -> Any:  # noqa: ANN401 — of a line
    """Return the bytes of a column that has bytes; None stays."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return base64.b64decode(value["base64"], validate=True)  # pyright: ignore[reportUnknownArgumentType]
    return bytes.fromhex(value) if column in _HEX else value.encode()


class Reader:
    """Reads the lines of a file strictly: `header` first, then the rows, and at the end whether all are there."""

    def __init__(self, chunks: Iterable[bytes], place: str) -> None:
        self.place = place
        self._lines = _split(chunks, place)
        self.header = self._read_header()
        self.end: End | None = None

    def rows(self) -> Iterator[Line]:
        """Yield the rows; raise Damaged if a line cannot be read, is missing or was changed."""
        found = Sum()
        for number, data in enumerate(self._lines, 2):
            if self.end is not None:
                raise self.damaged("lines after the end", number)
            try:
                [(table, row)] = msgspec.json.decode(data, type=dict[str, Row]).items()
                if table == "end":
                    self.end = msgspec.convert(row, End)
                    continue
                found.add(table, data)
            except (*UNREADABLE, KeyError) as error:
                raise self.damaged("cannot be read", number) from error
            yield Line(table, row, data)
        if self.end is None:
            raise self.damaged("the end is missing: the file was cut off")
        if not _is_same(self.end, found.end()):
            raise self.damaged("the lines are not those that the end counts")

    def damaged(self, problem: str, number: int = 0) -> Damaged:
        """Return the error for a line."""
        place = f"{self.place}, line {number}" if number else self.place
        hint = "use another backup; nothing was restored from this one"
        return Damaged(problem, operation="read backup", place=place, hint=hint)

    def _read_header(self) -> Header:
        try:
            header = msgspec.json.decode(next(self._lines, b""), type=Header)
        except UNREADABLE as error:
            raise self.damaged("cannot be read", 1) from error
        if (header.daypack, header.format) != ("database", FORMAT):
            raise self.damaged(f"format {header.format}; this version of daypack reads {FORMAT}", 1)
        return header


def _split(chunks: Iterable[bytes], place: str) -> Iterator[bytes]:
    """Yield the lines of a file, each with its LF."""
    rest: list[bytes] = []  # the beginning of a line, in the pieces that were read: joined once, however long it is
    length = 0
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        length += len(first)
        if others:
            yield b"".join(rest) + b"\n"
            yield from (line + b"\n" for line in others[:-1])
            rest, length = [others[-1]], len(others[-1])
        if length > MAX_LINE_BYTES:
            raise Damaged("a line is too long", operation="read backup", place=place, hint="use another backup")
    if length:
        raise Damaged("the last line is cut off", operation="read backup", place=place, hint="use another backup")


def _is_same(end: End, found: End) -> bool:
    """Return True if an end counts what was found; an earlier version of daypack did not count all tables."""
    counts = [{table: count for table, count in each.counts.items() if count} for each in (end, found)]
    return end.digest == found.digest and counts[0] == counts[1]


class Checked(NamedTuple):
    """What was found in the lines of a file: counts, and the records that do not match their checksum."""

    counts: dict[str, int]
    messages: int  # lines of the logs of all sessions
    events: int
    tokens: frozenset[str]
    damaged: tuple[str, ...]  # the first of them
    more: int  # beyond those


def check(reader: Reader) -> Checked:
    """Read all lines and compare each record with its checksum; raise Damaged if a line is not as it was written."""
    owners: dict[tuple[str, int], str] = {}
    tokens: set[str] = set()
    damaged: list[str] = []
    logs = _Logs()
    for table, row, _ in reader.rows():
        try:
            if table == "memories":
                owners[row["tenant"], row["number"]] = row["id"]
            elif table == "tokens":
                tokens.add(row["id"])
            if table in _OF_SESSIONS:
                intact = logs.is_intact(table, row)
            else:
                record = _record_of(table, row, owners)
                intact = record is None or is_intact(record, row["crc"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            intact = False
        if not intact:
            damaged.append(f"{table} {'/'.join(str(row.get(key))[:64] for key in TABLES[table])}")
    end = reader.end
    counts = end.counts if end else {}
    more = max(0, len(damaged) - _MOST_NAMED)
    messages, events = (logs.lines[log] for log in (0, 1))
    return Checked(counts, messages, events, frozenset(tokens), tuple(damaged[:_MOST_NAMED]), more)


class _Logs:
    """Compares the rows of sessions, in their order, with their running checksums and their names; counts lines."""

    def __init__(self) -> None:
        self.lines = Counter[int]()  # of each log
        self._log: tuple[Any, ...] = ()
        self._stop = self._crc = 0

    def is_intact(self, table: str, row: Row) -> bool:
        if table == "sessions":
            return all(isinstance(as_bytes(name, row[name]), bytes) for name in ("meta", "cwd", "created"))
        data: bytes = as_bytes("data", row["data"])
        if table == "session_blobs":
            return name_of(data) == row["name"]
        self.lines[row["log"]] += data.count(b"\n")
        log = row["tenant"], row["session"], row["log"]
        if log != self._log:
            self._log, self._stop, self._crc = log, 0, 0
        follows = row["start"] == self._stop and row["stop"] == row["start"] + len(data)
        intact = follows and crc32(data, self._crc) == row["crc"]
        self._stop, self._crc = row["stop"], row["crc"]
        return intact


def _record_of(table: str, row: Row, owners: Mapping[tuple[str, int], str]) -> Record | None:
    """Return the record of a row; None for the audit log, whose lines have checksums of their own."""
    if table == "users":
        limits = (row["max_memories"], row["max_entries"], row["max_bytes"])
        return UserRecord(row["tenant"], row["name"], row["email"], *limits)
    if table == "tokens":
        words = (row["name"], row["scope"], row["created"], row["expires"])
        return TokenRecord(row["id"], row["digest"], row["tenant"], *words)
    if table == "memories":
        words = (row["title"], row["type"], row["description"], row["created"], row["deleted"])
        return MemoryRecord(row["tenant"], row["id"], *words)
    if table == AUDIT:
        return None
    owner = row["tenant"], owners[row["tenant"], row["memory"]]
    if table == "documents":
        id_ = join_id(bytes.fromhex(row["stem"]), row["version"])
        return DocumentRecord(*owner, id_, row["created"], row["content"])
    words = (row["session"], row["role"], row["author"], row["at"], row["source"])
    id_ = join_id(bytes.fromhex(row["stem"]), row["seq"])
    return EntryRecord(
        *owner, id_, row["created"], row["moment"], row["raw"], row["summary"], *words,
        split_tags(row["tags"]), row["client_key"],
    )  # fmt: skip
