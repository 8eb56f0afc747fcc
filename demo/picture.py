"""Draw windows as bars and charts: in colour if the terminal supports it, otherwise with letters. Pure functions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from daypack.turn.turn import Turn


class Kind(NamedTuple):
    """A part of a window: its name, its letter without colour, and its colour."""

    name: str
    letter: str
    colour: int


INSTRUCTIONS = Kind("instructions", "I", 39)
CORE = Kind("core", "B", 205)
MEMORY = Kind("memory", "M", 141)
SUMMARY = Kind("CONTEXT.md", "C", 214)
REFS = Kind("refs", "R", 172)  # and what child agents answered
TAIL = Kind("tail", "T", 71)
NOTE = Kind("core note", "b", 205)  # core blocks that are newer than the prefix
VOLATILE = Kind("volatile", "V", 187)
KINDS = (INSTRUCTIONS, MEMORY, CORE, SUMMARY, REFS, TAIL, NOTE, VOLATILE)  # in the order of a window
PREFIX = Kind("prefix", "P", 33)  # in a chart its parts are too small to be shown separately
STACK = (PREFIX, TAIL, VOLATILE)
_PARTS = KINDS[: KINDS.index(TAIL)]
_PREFIX = {
    "system": INSTRUCTIONS,
    "core_blocks": CORE,
    "memory_document": MEMORY,
    "refs": REFS,
    "child_result": REFS,
    "child_refs": REFS,
}
GREY = 245
_ANSWER, _FREE = 242, 240
_EIGHTHS = " ▁▂▃▄▅▆▇█"


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


def window_of(turn: Turn) -> Window:
    """Measure a turn."""
    parts = dict.fromkeys(KINDS, 0)
    prefix = len(turn.parts.epoch.prefix)
    volatile = len(turn.items) - len(turn.parts.volatile)
    for at, item in enumerate(turn.items):
        if at < prefix:
            kind = _PREFIX.get(item.kind, SUMMARY)
        elif at < volatile:
            kind = TAIL
        else:
            kind = NOTE if item.kind == "core_blocks" else VOLATILE
        parts[kind] += item.tokens or 0
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
    named = [(_mark(kind, look), f" {kind.name} {count:,}") for kind, count in window.parts.items() if count]
    named.append((look.paint(_free(look), _FREE), f" free {window.free:,}"))
    named.append((look.paint(_answer(look), _ANSWER), f" reserved for the answer {window.answer:,}"))
    return _wrapped(named, width)


def key(look: Look, width: int) -> list[str]:
    """List the parts of a chart's columns."""
    prefix = f" {PREFIX.name}: {', '.join(kind.name for kind in _PARTS)}"
    others = [(_mark(kind, look), f" {kind.name}") for kind in STACK[1:]]
    return _wrapped([(_mark(PREFIX, look), prefix), *others], width)


def _wrapped(named: Sequence[tuple[str, str]], width: int) -> list[str]:
    lines, used = [""], 0
    for mark, label in named:
        if used and used + len(label) + 3 > width:
            lines.append("")
            used = 0
        gap = "  " if used else ""
        lines[-1] += gap + mark + label
        used += len(gap) + 1 + len(label)
    return lines


def _mark(kind: Kind, look: Look) -> str:
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


def chart(windows: Sequence[Window], look: Look, width: int, height: int) -> list[str]:
    """Draw calls as columns of prefix, tail and volatile parts; a column of full height is a full window."""
    columns = [_levels(window, height) for window in sample(windows, width)]
    rows = reversed(range(height))
    return ["".join(_cell(column[row * 8 : row * 8 + 8], look) for column in columns) for row in rows]


def sample(windows: Sequence[Window], width: int) -> list[Window]:
    """Return at most `width` calls, evenly spread, including the first and the last."""
    if len(windows) <= width:
        return list(windows)
    return [windows[round(at * (len(windows) - 1) / (width - 1))] for at in range(width)]


def _stack(window: Window) -> dict[Kind, int]:
    stack = dict.fromkeys(STACK, 0)
    for kind, count in window.parts.items():
        stack[PREFIX if kind in _PARTS else TAIL if kind == TAIL else VOLATILE] += count
    return stack


def _levels(window: Window, height: int) -> list[Kind | None]:
    """Return the part shown at each eighth of a row, from the bottom up; None if empty."""
    room, above = window.budget - window.answer, 0
    levels: list[Kind | None] = []
    for kind, count in _stack(window).items():
        above += count
        levels += [kind] * (round(above / room * height * 8) - len(levels))
    return (levels + [None] * height * 8)[: height * 8]


def _cell(levels: Sequence[Kind | None], look: Look) -> str:
    """Draw eight levels as one character in at most two colours: those of the most frequent parts."""
    filled = [kind for kind in levels if kind]
    if not filled:
        return " "
    first, *others = (kind for kind, _ in Counter(reversed(filled)).most_common(2))
    if not look.colour or not look.blocks:
        return first.letter if len(filled) >= 4 else " "
    if not others or len(filled) < len(levels):
        return look.paint(_EIGHTHS[len(filled)], first.colour)
    lower, upper = sorted((first, others[0]), key=filled.index)
    return look.paint(_EIGHTHS[filled.index(upper)], lower.colour, background=upper.colour)
