"""What the readers of foreign transcripts share: rows, the steps they become, and the transcript itself.

A transcript is a list of rows: the lines of a file, or the elements of a list in one JSON document. A reader turns each
row into messages, or says that it is to be kept as it is. Nothing here writes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from daypack.errors import BadInput
from daypack.history.draft import MAX_DEPTH
from daypack.history.layout import MAX_NAME_BYTES
from daypack.types.history import Message

EXTRAS = "#extras"  # behind the source of a conversation: what stands beside it
Keep = Callable[[bytes], str]  # puts bytes beside the session's logs and returns the name they have there


class Row(NamedTuple):
    """One row: its number from 1, its bytes, and what they say, or why they cannot be read."""

    number: int
    raw: bytes
    value: Any = None
    problem: str = ""
    mended: bool = False  # read after characters that JSON or UTF-8 cannot spell were replaced

    @property
    def fields(self) -> dict[str, Any]:
        """The row as an object; empty when it is something else."""
        return object_of(self.value)


class Draft(NamedTuple):
    """A message for `append_many`, the rows it was made from, and how to make it from a part of them."""

    message: dict[str, Any]
    rows: tuple[Row, ...]
    again: "Callable[[Sequence[Row]], Draft] | None" = None
    child: str = ""  # the child agent that said it, when it is not the session's own


class Kept(NamedTuple):
    """A row that is no message: it becomes an event, with `value` in the place of what the row says."""

    row: Row
    value: dict[str, Any] | None = None
    problem: str = ""  # why it could not be read as more
    changed: str = ""  # the message that holds an earlier state of it


class Rollback(NamedTuple):
    """The user took back the newest turns: they stay in history, an event names them."""

    row: Row
    turns: int
    is_turn: Callable[[Message], bool]  # whether a message begins a turn


Step = Draft | Kept | Rollback


class RowReader(Protocol):
    """Reads the rows of one format, in order."""

    def note(self, row: Row) -> None:
        """See a row that was taken in before, for what later rows need of it."""
        ...

    def begins(self, row: Row) -> bool:
        """Say whether everything before this row is complete."""
        ...

    def read(self, row: Row) -> Iterator[Step]:
        """Yield what is complete with this row; what may go on is held back."""
        ...

    def finish(self) -> Iterator[Step]:
        """Yield what was held back."""
        ...


class Extras:
    """Keeps every row: for what stands beside a conversation."""

    def note(self, row: Row) -> None:
        """See a row that was taken in before: nothing of it is needed."""

    def begins(self, row: Row) -> bool:  # noqa: ARG002 — asked of every reader
        """Say whether everything before this row is complete: it always is."""
        return True

    def read(self, row: Row) -> Iterator[Step]:
        """Keep a row."""
        yield Kept(row)

    def finish(self) -> Iterator[Step]:
        """Yield nothing: no row is held back."""
        yield from ()


class Origin(NamedTuple):
    """Where a transcript comes from."""

    format: str
    path: str
    source: str  # the same for every copy of the transcript: it is what a later import goes by
    stable: bool = False  # rows have ids of their own, so that an edited file can still be matched row by row


class Transcript(NamedTuple):
    """One conversation of another agent, ready to be taken in."""

    origin: Origin
    session: str
    lines: Callable[[], Iterator[tuple[bytes, bool]]]  # each row's bytes, and whether it is sure to be complete
    reader: Callable[[Keep], RowReader]
    model: str | None = None
    cwd: str | None = None
    parent: tuple[str, str] | None = None  # the session this is a child of, and its name there
    files: tuple[str, ...] = ()  # side files that rows refer to


def parse_row(number: int, raw: bytes) -> Row:
    """Read one row; what cannot be read says why, an empty one says nothing."""
    if not raw.strip():
        return Row(number, raw)
    mended = False
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError) as error:
        import json  # noqa: PLC0415 — only for what the fast reader refuses

        # Other writers cut texts in the middle of a character and write NaN: better mended than lost.
        try:
            value, mended = scrub(json.loads(raw.decode("utf-8", "replace"), parse_constant=str)), True
        except (ValueError, RecursionError):
            return Row(number, raw, problem=f"not JSON: {error}")
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _is_deep(value):
        return Row(number, raw, problem=f"nested deeper than {MAX_DEPTH} levels")
    return Row(number, raw, value, mended=mended)


def _is_deep(value: object) -> bool:
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        one, depth = waiting.pop()
        inner = list(object_of(one).values()) or list_of(one)
        if inner and depth >= MAX_DEPTH:
            return True
        waiting += [(each, depth + 1) for each in inner if isinstance(each, dict | list)]
    return False


def scrub(value: object) -> Any:  # noqa: ANN401 — a JSON value
    """Return a JSON value with lone surrogates replaced."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [scrub(one) for one in cast(list[object], value)]
    if isinstance(value, dict):
        return {scrub(name): scrub(one) for name, one in cast(dict[str, object], value).items()}
    return value


def object_of(value: object) -> dict[str, Any]:
    """Return an object as it is, and anything else as an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def first_text(values: Iterable[object]) -> str | None:
    """Return the first of several values that is a text."""
    return next(filter(None, map(text_of, values)), None)


def list_of(value: object) -> list[Any]:
    """Return a list as it is, and anything else as an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """Return a text as it is, and anything else, the empty one included, as None."""
    return value if isinstance(value, str) and value else None


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return an object without some keys and without those that are null."""
    return {name: one for name, one in value.items() if name not in names and one is not None}


def time_of(value: object) -> str:
    """Return a foreign time as history spells it, or nothing when it is none: text with a zone, or seconds."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                return ""
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        else:
            return ""
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""


def safe_name(text: str) -> str:
    """Return a name for a session or a child, made from a foreign id or file name."""
    kept = "".join(one if one.isascii() and (one.isalnum() or one in "._-") else "-" for one in text)
    name = kept.lstrip(".").strip("-") or "transcript"
    if len(name) <= MAX_NAME_BYTES:
        return name
    return f"{name[: MAX_NAME_BYTES - 17]}-{digest_hex(text.encode())[:16]}"


def key_of(origin: Origin, row: Row) -> str:
    """Return the client key of a message whose row has no id: its transcript, its place, its bytes."""
    mark = f"{origin.source}\n{row.number}\n".encode()
    return f"{origin.format}:{digest_hex(mark + row.raw)[:40]}"


def digest_hex(data: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal."""
    from hashlib import sha256  # noqa: PLC0415 — 2 ms that other commands need not pay

    return sha256(data).hexdigest()


def unreadable(path: str, problem: str, hint: str) -> BadInput:
    """Return the error for a file that cannot be imported."""
    return BadInput(problem, operation="import", place=path, hint=hint)
