"""Terminal output: width, colours, wrapped text and pauses."""

import sys
import textwrap
import time

from daypack.cli.window_bar import GREY, terminal_look

_WIDEST = 100
_INDENT = 4


class Screen:
    """Prints the demo; with pauses on a terminal unless `fast`."""

    def __init__(self, *, fast: bool = False) -> None:
        look = terminal_look(_WIDEST)
        self.look = look._replace(width=max(60, look.width))
        self._slow = sys.stdout.isatty() and not fast
        self._alive = 0  # lines that the next picture overwrites
        self._scene = 0

    @property
    def inner(self) -> int:
        """The width of a picture in columns."""
        return self.look.width - _INDENT - 1

    def title(self, text: str) -> None:
        """Print the title."""
        self._print(f"\n {self.look.bold(text)}")

    def scene(self, text: str) -> None:
        """Print the heading of the next scene."""
        self._scene += 1
        number = self.look.paint(f"{self._scene:>2}", 39, bold=True)
        lines = textwrap.wrap(text, self.look.width - _INDENT - 1)
        self._print(f"\n {number} {self.look.bold(lines[0])}")
        for line in lines[1:]:
            self._print(" " * _INDENT + self.look.bold(line))

    def say(self, text: str) -> None:
        """Print wrapped text."""
        for line in textwrap.wrap(text, self.look.width - _INDENT - 1):
            self._print(" " * _INDENT + line)

    def row(self, name: str, text: str, wide: int = 11, colour: int = GREY) -> None:
        """Print a label and wrapped text beside it."""
        hanging = "  " if text.startswith("- ") else ""
        for line in textwrap.wrap(text, self.inner - wide, subsequent_indent=hanging) or [""]:
            self._print(" " * _INDENT + self.look.paint(f"{name:<{wide}}", colour) + line)
            name = ""

    def note(self, text: str) -> None:
        """Print wrapped text, dimmed."""
        for line in textwrap.wrap(text, self.inner):
            self._print(" " * _INDENT + self.look.dim(line))

    def draw(self, *lines: str) -> None:
        """Print lines without wrapping, in place of an animated picture."""
        for line in lines:
            self._print(" " * _INDENT + line)

    def move(self, *lines: str) -> None:
        """Show a picture until the next one is drawn; only on a colour terminal."""
        if self._slow and self.look.colour:
            self.draw(*lines)
            self._alive = len(lines)
            sys.stdout.flush()
            time.sleep(0.03)

    def pause(self, seconds: float = 1.5) -> None:
        """Pause so that the reader can follow."""
        sys.stdout.flush()
        if self._slow:
            time.sleep(seconds)

    def _print(self, text: str) -> None:
        if self._alive:
            print(f"\x1b[{self._alive}A\x1b[J", end="")
            self._alive = 0
        print(text)
