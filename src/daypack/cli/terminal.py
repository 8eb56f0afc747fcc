"""What reaches the terminal: escaped text, colour where it is wanted, JSON, progress."""

import os
import re
import sys
import time
from typing import Any

import msgspec

# Everything but LF and TAB that a terminal may act on: C0, DEL, C1, line separators, bidirectional controls.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36", "dim": "2"}


def safe(text: str) -> str:
    """Return text in which control characters from data are visible instead of obeyed."""
    return _CONTROL.sub(lambda match: _escape(match[0]), text)


def safe_line(text: str) -> str:
    """Return text as one safe line."""
    return safe(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def json_text(value: Any) -> str:  # noqa: ANN401 — any value msgspec can encode
    """Return JSON in one line; characters a terminal may act on are escaped, which means the same."""
    text = msgspec.json.encode(value).decode()
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def colour(text: str, name: str) -> str:
    """Return text in colour when standard output is a terminal and nobody asked for none."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: 1 line, 2 lines."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def say(text: str) -> None:
    """Print a line to standard error, behind what was printed before it."""
    sys.stdout.flush()  # through a pipe it would come last
    print(text, file=sys.stderr, flush=True)


class Progress:
    """A count on standard error while a long input is read: in place on a terminal, else a line every few seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._terminal = sys.stderr.isatty()
        self._every = 0.1 if self._terminal else 5.0
        self._next = time.monotonic() + (0.5 if self._terminal else self._every)
        self._shown = False

    def show(self, count: int) -> None:
        """Show the count if it is time to."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._every
        self._shown = True
        end = "\r" if self._terminal else "\n"
        print(f"{count:,} {self._what}", end=end, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove what stands on the terminal."""
        if self._shown and self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
