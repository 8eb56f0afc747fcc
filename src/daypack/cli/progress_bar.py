"""A bar on standard error for long work of a known size: how much is done, and about how long the rest takes."""

import sys
import time
from contextlib import suppress

from daypack.cli.terminal import is_utf8, terminal_width
from daypack.text.columns import fit

_COLUMNS = 24
_FULL, _EMPTY = "█", "░"
_SETTLING_SECONDS = 2.0  # before that, the rest cannot be estimated


class ProgressBar:
    """`with ProgressBar(total) as bar: bar.show(done, "3 of 9 files")`: in place on a terminal, else in lines."""

    def __init__(self, total: int) -> None:
        self._total = max(1, total)
        self._terminal = sys.stderr.isatty()
        self._interval = 0.1 if self._terminal else 10.0
        self._started = time.monotonic()
        self._next = self._started + self._interval
        self._shown = False

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_: object) -> None:
        """Erase the bar from the terminal."""
        if self._shown and self._terminal:
            _write("\r\x1b[K")

    def show(self, done: int, text: str) -> None:
        """Draw the bar if the interval has passed."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._interval
        self._shown = True
        line = f"{draw(done / self._total, ascii_only=not is_utf8(sys.stderr))}  {text}{self._rest(done, now)}"
        _write(f"\r\x1b[K{fit(line, terminal_width(100) - 1)}" if self._terminal else f"{line}\n")

    def _rest(self, done: int, now: float) -> str:
        spent = now - self._started
        if spent < _SETTLING_SECONDS or not 0 < done < self._total:
            return ""
        seconds = spent * (self._total - done) / done
        return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"


def draw(share: float, *, ascii_only: bool = False) -> str:
    """Return a bar with its percentage: ██████░░░░  60 %."""
    share = min(1.0, max(0.0, share))
    full, empty = ("#", ".") if ascii_only else (_FULL, _EMPTY)
    filled = int(share * _COLUMNS)
    return f"{full * filled}{empty * (_COLUMNS - filled)} {share:4.0%}"


def _write(text: str) -> None:
    with suppress(OSError):
        print(text, end="", file=sys.stderr, flush=True)
