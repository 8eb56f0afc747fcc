"""Terminal output: escaped text, colour, tables, JSON, notes, errors and progress."""

import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from daypack.cli.suggested import with_place
from daypack.errors import DaypackError
from daypack.types.names import CONTROLS, escape_controls, one_line

if TYPE_CHECKING:
    from daypack.types.memory import DamagedRecord

_NOT_ASCII = re.compile("[^\x20-\x7e]")
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36", "dim": "2"}


def safe(text: str) -> str:
    """Return text with control characters escaped, so that data cannot control the terminal."""
    return escape_controls(text)


def safe_line(text: str) -> str:
    """Return text as one line with control characters escaped."""
    return one_line(text)


def shell_word(text: str) -> str:
    """Return text as one word of a command to copy: in quotes if it has spaces or characters of the shell."""
    from shlex import quote  # noqa: PLC0415 — only for hints

    return quote(safe_line(text))


def json_text(value: Any) -> str:  # noqa: ANN401 — any value msgspec can encode
    """Return JSON in one line, with escapes for control characters and for what standard output cannot encode."""
    text = msgspec.json.encode(value).decode()
    if not is_utf8(sys.stdout):
        return _NOT_ASCII.sub(lambda match: _json_escape(match[0]), text)
    return CONTROLS.sub(lambda match: _json_escape(match[0]), text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()  # a character beyond 16 bits is two escapes
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def is_utf8(stream: TextIO) -> bool:
    """Return True if a stream can encode every character."""
    return (stream.encoding or "").lower().replace("-", "") in ("utf8", "utf8sig")


def colour(text: str, name: str) -> str:
    """Return text in colour if standard output is a terminal and NO_COLOR is not set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m"


def terminal_width(otherwise: int) -> int:
    """Return the columns of the terminal; of a pipe or a file, COLUMNS or the number given."""
    from shutil import get_terminal_size  # noqa: PLC0415 — few commands fill lines

    return get_terminal_size((otherwise, 24)).columns


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: 1 line, 2,000 lines."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: int = 0) -> list[str]:
    """Return lines with aligned columns, the first `right` columns right-aligned."""
    cells = [[safe_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    lines = [
        "  ".join(cell.rjust(width) if at < right else cell.ljust(width) for at, (cell, width) in enumerate(zipped))
        for zipped in (list(zip(row, widths, strict=True)) for row in cells)
    ]
    return [colour(lines[0].rstrip(), "dim"), *(line.rstrip() for line in lines[1:])]


def print_note(text: str) -> None:
    """Print a line to standard error, after flushing standard output so that the order is kept in a pipe.

    Commands in it repeat which home and database this command was given.
    """
    sys.stdout.flush()
    _print_aside(with_place(text))


def _print_aside(text: str, end: str = "\n") -> None:
    """Write to standard error; a command does not fail because its notes cannot be written."""
    with suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)


def print_error(error: DaypackError) -> None:
    """Print an error with its place and its hint to standard error."""
    place = f" [{error_line(error.place)}]" if error.place else ""
    print_note(f"daypack: {error_line(error.problem)}{place}")
    if error.hint:
        print_note(f"  → {error_line(error.hint)}")


def error_line(text: str) -> str:
    """Return a text of an error as one line, without secrets: it repeats what was typed, and is pasted elsewhere."""
    from daypack.text.redact.redact import redact  # noqa: PLC0415 — its patterns cost 20 ms

    return safe_line(redact(text).text)


class Progress:
    """A counter on standard error for long runs: in place on a terminal, else a line every few seconds."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._terminal = sys.stderr.isatty()
        self._interval = 0.1 if self._terminal else 5.0
        self._next = time.monotonic() + (0.5 if self._terminal else self._interval)
        self._shown = False

    def show(self, count: int) -> None:
        """Print the count if the interval has passed."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._interval
        self._shown = True
        end = "\r" if self._terminal else "\n"
        _print_aside(f"{count:,} {self._label}", end)

    def clear(self) -> None:
        """Erase the counter from the terminal."""
        if self._shown and self._terminal:
            _print_aside("\r\x1b[K", "")


def print_damaged(records: "Iterable[DamagedRecord]") -> None:
    """Print which stored records were skipped because they are damaged, to standard error."""
    for record in records:
        print_note(f"  → {safe_line(str(record))}")
