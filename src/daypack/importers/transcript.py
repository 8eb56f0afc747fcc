"""The types all transcript readers share: rows, the steps they are converted to, and the transcript itself.

A transcript is a list of rows: the lines of a file, or the elements of a list in one JSON document. A reader turns each
row into messages or leaves it as a raw row. Nothing here writes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from daypack.history.draft import MAX_DEPTH
from daypack.history.layout import safe_name
from daypack.history.sessions import CHILD
from daypack.importers.lines import Lines
from daypack.types.history import Message

EXTRA_ROWS = "#extra"  # suffix of a conversation's source for the rows beside it
StoreBlob = Callable[[bytes], str]  # stores bytes in the session's blob folder and returns their name


class Row(NamedTuple):
    """A row: its number from 1, its bytes, and their JSON value or the reason why they cannot be parsed."""

    number: int
    raw: bytes
    value: Any = None
    problem: str = ""
    repaired: bool = False  # parsed after invalid characters were replaced

    @property
    def fields(self) -> dict[str, Any]:
        """The row as an object; empty if it is another JSON value."""
        return object_of(self.value)


class Draft(NamedTuple):
    """A message for `append_many`, its rows, and a function that makes a draft from some of the rows."""

    message: dict[str, Any]
    rows: tuple[Row, ...]
    from_rows: "Callable[[Sequence[Row]], Draft] | None" = None
    child: str = ""  # the sub-agent that wrote it; empty for the session's own messages


class RawRow(NamedTuple):
    """A row that is not a message and becomes an event; `value` replaces the row's own value."""

    row: Row
    value: dict[str, Any] | None = None
    problem: str = ""  # why it could not be converted
    changed: str = ""  # the stored message that holds an earlier version of it


class Rollback(NamedTuple):
    """The user rolled back the newest turns: they stay in history, and an event lists them."""

    row: Row
    turns: int
    is_turn: Callable[[Message], bool]  # True if a message starts a turn


class RequestRow(NamedTuple):
    """A row about a request that the agent sent: it becomes part of an observed turn."""

    row: Row


class Removal(NamedTuple):
    """The user took back the newest messages: they stay in history, and an event lists them."""

    row: Row
    is_removed: Callable[[Message], bool]


class Compaction(NamedTuple):
    """The agent compacted its window: of the messages before it, only some stay in the window."""

    row: Row
    id: str  # the same in every version of the file
    is_kept: Callable[[Message], bool]
    facts: dict[str, Any]  # trigger, before_tokens, after_tokens: as far as the row has them


Step = Draft | RawRow | Rollback | Removal | Compaction | RequestRow


class RowReader(Protocol):
    """Reads the rows of one format, in order."""

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored, to collect what later rows depend on."""
        ...

    def is_boundary(self, row: Row) -> bool:
        """Return True if all messages before this row are complete."""
        ...

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the steps that this row completes; a message that may continue is held back."""
        ...

    def finish(self) -> Iterator[Step]:
        """Yield the steps that were held back."""
        ...

    def state(self) -> dict[str, Any] | None:
        """Return what later rows depend on, when nothing is held back; None if that is too much to keep."""
        ...

    def resume(self, state: dict[str, Any]) -> None:
        """Continue after the rows that an earlier import stored, given its state, without observing them."""
        ...


class ExtraRows:
    """Keeps every row raw: for the rows beside a conversation."""

    def observe(self, row: Row) -> None:
        """See a row that an earlier import stored: later rows do not depend on it."""

    def is_boundary(self, row: Row) -> bool:  # noqa: ARG002 — required by RowReader
        """Return True: no message spans several rows."""
        return True

    def read(self, row: Row) -> Iterator[Step]:
        """Yield the row unconverted."""
        yield RawRow(row)

    def finish(self) -> Iterator[Step]:
        """Yield nothing: no row is held back."""
        yield from ()

    def state(self) -> dict[str, Any] | None:
        """Return nothing: later rows do not depend on earlier ones."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue: later rows do not depend on earlier ones."""


class Origin(NamedTuple):
    """Where a transcript comes from."""

    format: str
    path: str
    source: str  # identifies the transcript: the same for every copy of the file
    has_row_ids: bool = False  # an edited file can be matched row by row


class Transcript(NamedTuple):
    """One conversation of another agent, ready to be imported."""

    origin: Origin
    session: str
    lines: Lines
    reader: Callable[[StoreBlob], RowReader]
    model: str | None = None
    cwd: str | None = None
    parent: tuple[str, str] | None = None  # the parent session, and the name of this child in it
    files: tuple[str, ...] = ()  # side files that rows refer to
    sub_agents: tuple[str, ...] = ()  # files with transcripts of sub-agents
    note: str = ""  # what the file lacks; if it does, only a session that has nothing from elsewhere is filled from it
    earlier_session: str = ""  # the name that earlier versions gave the session: what they imported is continued there


def parse_row(number: int, raw: bytes) -> Row:
    """Parse one row; `problem` says why it cannot be parsed, and an empty row has no value."""
    if not raw.strip():
        return Row(number, raw)
    repaired = False
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError) as error:
        import json  # noqa: PLC0415 — only for rows that msgspec refuses

        # Other programs cut texts in the middle of a character and write NaN: repair these rows.
        try:
            value, repaired = scrub(json.loads(raw.decode("utf-8", "replace"), parse_constant=str)), True
        except (ValueError, RecursionError):
            return Row(number, raw, problem=f"not JSON: {error}")
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _is_deep(value):
        return Row(number, raw, problem=f"nested deeper than {MAX_DEPTH} levels")
    return Row(number, raw, value, repaired=repaired)


def _is_deep(value: object) -> bool:
    pending: list[tuple[object, int]] = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        inner = list(object_of(current).values()) or list_of(current)
        if inner and depth >= MAX_DEPTH:
            return True
        pending += [(member, depth + 1) for member in inner if isinstance(member, dict | list)]
    return False


def scrub(value: object) -> Any:  # noqa: ANN401 — a JSON value
    """Return a JSON value with lone surrogates replaced."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [scrub(element) for element in cast(list[object], value)]
    if isinstance(value, dict):
        return {scrub(name): scrub(member) for name, member in cast(dict[str, object], value).items()}
    return value


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object unchanged, any other value as an empty dict."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def first_text(values: Iterable[object]) -> str | None:
    """Return the first value that is a non-empty string."""
    return next(filter(None, map(text_of, values)), None)


def list_of(value: object) -> list[Any]:
    """Return a list unchanged, any other value as an empty list."""
    return cast(list[Any], value) if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """Return a non-empty string unchanged, any other value as None."""
    return value if isinstance(value, str) and value else None


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return an object without the named keys and without null values."""
    return {name: member for name, member in value.items() if name not in names and member is not None}


def time_of(value: object) -> str:
    """Convert an ISO time with a zone, or seconds or milliseconds, to the format of history; empty if it is neither."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            if time.tzinfo is None:
                return ""
        elif isinstance(value, int | float) and not isinstance(value, bool):
            time = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        else:
            return ""
        return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""


def child_session_name(parent: str, name: str) -> str:
    """Return the name of the session that holds the messages of a child."""
    return safe_name(f"{parent}{CHILD}{name}")


def key_of(origin: Origin, row: Row) -> str:
    """Return the client key of a message whose row has no id, from its source, line number and bytes."""
    position = f"{origin.source}\n{row.number}\n".encode()
    return f"{origin.format}:{digest_hex(position + row.raw)[:40]}"


def digest_hex(data: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal."""
    from hashlib import sha256  # noqa: PLC0415 — 2 ms that other commands need not pay

    return sha256(data).hexdigest()
