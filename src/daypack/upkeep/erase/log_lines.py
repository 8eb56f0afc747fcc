"""Rewrites the lines of a log: a line keeps its number, its id and its time, and gets a new checksum."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import msgspec

from daypack.files import jsonl
from daypack.history.logs.lines import UNREADABLE, examine, next_seq


class Line(NamedTuple):
    """A line of a log with its LF, which the last one may lack."""

    data: bytes
    seq: int
    record: bytes  # what can be decoded; empty if the line is damaged or blank

    @property
    def fields(self) -> dict[str, Any] | None:
        """The JSON object of the line; None if it has none."""
        try:
            value = msgspec.json.decode(self.record) if self.record else None
        except UNREADABLE:
            return None
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def read_lines(data: bytes) -> Iterator[Line]:
    """Yield the lines of a log."""
    seq = 0
    for line in _split(data):
        examined = examine(line.removesuffix(b"\n"))
        seq = next_seq(seq, examined)
        yield Line(line, seq, examined.record)


def _split(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


def sealed_like(line: Line, fields: dict[str, Any]) -> bytes:
    """Return the bytes of a line with other fields, sealed if it was sealed."""
    return _seal(line, msgspec.json.encode({key: value for key, value in fields.items() if key != "crc"}))


def with_body(line: Line, change: Callable[[bytes], bytes]) -> bytes:
    """Return the bytes of a line whose text is changed as it is; of a damaged line, all of it."""
    body = line.data.removesuffix(b"\n")
    if jsonl.check(body) == "sealed":
        return _seal(line, change(body.rpartition(b',"crc":"')[0]) + b"}")
    return change(line.data)


def _seal(line: Line, body: bytes) -> bytes:
    ending = b"\n" if line.data.endswith(b"\n") else b""
    if jsonl.check(line.data.removesuffix(b"\n")) != "sealed":
        return body + ending
    return jsonl.seal(body)[0].removesuffix(b"\n") + ending
