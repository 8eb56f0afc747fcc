"""The window of a turn as a bar: in colour if the terminal supports it, otherwise with letters. Pure functions.

IIITTTTTTTTTTTTTTTTTTTTTTVV····················░░░░░░░░░░
╰─ expected cache hit: 5,000 of 6,100 tokens ─╯
I instructions 700  T tail 4,900  V volatile 500  · free 5,900  ░ reserved for the reply 4,000
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from daypack.cli.terminal import is_utf8, terminal_width
from daypack.turn.turn import Turn


class Kind(NamedTuple):
    """A part of a window: its name, its letter without colour, and its colour."""

    name: str
    letter: str
    colour: int


TOOLS = Kind("tools", "D", 74)  # definitions
INSTRUCTIONS = Kind("instructions", "I", 39)
CORE = Kind("core", "B", 205)
MEMORY = Kind("memory", "M", 141)
SUMMARY = Kind("CONTEXT.md", "C", 214)
REFS = Kind("refs", "R", 172)  # and what child agents answered
OTHER = Kind("other items", "O", 103)  # of the caller, or imported
TAIL = Kind("tail", "T", 71)
NOTE = Kind("core note", "b", 205)  # core blocks that are newer than the prefix
VOLATILE = Kind("volatile", "V", 187)
KINDS = (TOOLS, INSTRUCTIONS, MEMORY, CORE, SUMMARY, REFS, OTHER, TAIL, NOTE, VOLATILE)  # in the order of a window
PREFIX_KINDS = KINDS[: KINDS.index(TAIL)]
_PREFIX = {
    "tools": TOOLS,
    "system": INSTRUCTIONS,
    "runtime_block": INSTRUCTIONS,
    "core_blocks": CORE,
    "memory_document": MEMORY,
    "memory_entries": MEMORY,
    "refs": REFS,
    "child_result": REFS,
    "child_refs": REFS,
    **dict.fromkeys(("context_doc", "summary", "facts", "decisions", "todo", "errors"), SUMMARY),
}
GREY = 245
_NARROWEST = 30  # columns in which a bar still has a cell for every part
_ANSWER, _FREE = 242, 240


class Look(NamedTuple):
    """What the terminal can show."""

    width: int = 80
    colour: bool = False
    blocks: bool = False  # characters beyond ASCII

    def paint(self, text: str, colour: int, *, bold: bool = False, background: int | None = None) -> str:
        """Return coloured text if the terminal has colour."""
        if not self.colour or not text:
            return text
        ground = "" if background is None else f"\x1b[48;5;{background}m"
        return f"\x1b[{'1;' if bold else ''}38;5;{colour}m{ground}{text}\x1b[0m"

    def dim(self, text: str) -> str:
        """Return dimmed text."""
        return self.paint(text, GREY)

    def bold(self, text: str) -> str:
        """Return bold text."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def choose(self, blocks: str, plain: str) -> str:
        """Return `blocks` if the terminal shows Unicode, else `plain`."""
        return blocks if self.blocks else plain


def terminal_look(widest: int) -> Look:
    """Return what standard output can show, at most `widest` columns."""
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Look(width=max(_NARROWEST, min(widest, terminal_width(80))), colour=coloured, blocks=is_utf8(sys.stdout))


class Window(NamedTuple):
    """The content of one call in tokens."""

    parts: Mapping[Kind, int]
    budget: int
    answer: int  # kept free for the answer
    cached: int  # expected prompt cache hit

    @property
    def used(self) -> int:
        """Tokens sent."""
        return sum(self.parts.values())

    @property
    def free(self) -> int:
        """Tokens neither used nor reserved."""
        return max(0, self.budget - self.used - self.answer)


def draw(window: Window, look: Look, width: int) -> list[str]:
    """Draw a window as a bar, the part of it that a prompt cache can hold, and a legend."""
    return [bar(window, look, width), cache_line(window, look, width), *legend(window, look, width)]


def window_of(turn: Turn) -> Window:
    """Measure a turn."""
    parts = dict.fromkeys(KINDS, 0)
    prefix = len(turn.parts.epoch.prefix) + (turn.record.tools is not None)
    volatile = len(turn.items) - len(turn.parts.volatile)
    for at, item in enumerate(turn.items):
        if at < prefix:
            kind = _PREFIX.get(item.kind, OTHER)
        elif at < volatile:
            kind = TAIL
        else:
            kind = NOTE if item.kind == "core_blocks" else VOLATILE
        parts[kind] += item.tokens or 0
    parts[TAIL] += max(0, turn.tokens - sum(parts.values()))  # text around the excerpts
    limits = turn.record.limits
    return Window(parts, turn.budget_tokens or turn.tokens, limits.reserved_tokens, turn.expected_cached_tokens)


def bar(window: Window, look: Look, width: int) -> str:
    """Draw a window as one line: its parts, free space, and the space reserved for the answer."""
    *parts, free, answer = share([*window.parts.values(), window.free, window.answer], width)
    solid = look.colour and look.blocks
    drawn = [
        look.paint(("█" if solid else kind.letter) * count, kind.colour)
        for kind, count in zip(window.parts, parts, strict=True)
    ]
    return "".join([*drawn, look.paint(_free(look) * free, _FREE), look.paint(_answer(look) * answer, _ANSWER)])


def cache_line(window: Window, look: Look, width: int) -> str:
    """Draw a bracket under the bar that marks the expected prompt cache hit."""
    if not window.cached:
        return look.dim("expected cache hit: 0 tokens")
    cells = max(2, round(window.cached / window.budget * width))
    text = f"expected cache hit: {window.cached:,} of {window.used:,} tokens"
    if cells < len(text) + 4 and cells + 1 + len(text) <= width:
        return look.dim(f"{_bracket('', cells, look)} {text}")
    return look.dim(_bracket(text if cells >= len(text) + 4 else f"cache: {window.cached:,}", cells, look))


def _bracket(label: str, cells: int, look: Look) -> str:
    """Return a bracket of `cells` columns that opens upwards, with a label in its middle."""
    middle = f" {label} " if label else ""
    line = middle.center(cells - 2, "-").replace("-", look.choose("─", "-"))
    return look.choose(f"╰{line}╯", f"`{line}'")


def legend(window: Window, look: Look, width: int) -> list[str]:
    """List the parts of a window with their tokens."""
    named = [(mark(kind, look), f" {kind.name} {count:,}") for kind, count in window.parts.items() if count]
    named.append((look.paint(_free(look), _FREE), f" free {window.free:,}"))
    named.append((look.paint(_answer(look), _ANSWER), f" reserved for the reply {window.answer:,}"))
    return wrap(named, width)


def wrap(named: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return marks and labels as lines of at most `width` columns; a mark takes one."""
    lines, used = [""], 0
    for mark, label in named:
        if used and used + len(label) + 3 > width:
            lines.append("")
            used = 0
        gap = "  " if used else ""
        lines[-1] += gap + mark + label
        used += len(gap) + 1 + len(label)
    return lines


def mark(kind: Kind, look: Look) -> str:
    """Return the sign of a part in a legend."""
    return look.paint(look.choose("■", kind.letter) if look.colour else kind.letter, kind.colour)


def _free(look: Look) -> str:
    return look.choose("·", ".")


def _answer(look: Look) -> str:
    return look.choose("░", "-")


def share(amounts: Sequence[int], cells: int) -> list[int]:
    """Divide cells in proportion to amounts; every amount above zero gets at least one cell."""
    total = sum(amounts) or 1
    exact = [amount / total * cells for amount in amounts]
    cells_by_part = [max(1, int(size)) if amount else 0 for size, amount in zip(exact, amounts, strict=True)]
    while sum(cells_by_part) != cells:
        step = 1 if sum(cells_by_part) < cells else -1
        movable = [at for at, count in enumerate(cells_by_part) if amounts[at] and count + step >= 1]
        best = max(movable, key=lambda at: step * (exact[at] - cells_by_part[at]))
        cells_by_part[best] += step
    return cells_by_part
