"""Draw the windows of many calls as a chart. Pure functions."""

from collections import Counter
from collections.abc import Sequence

from daypack.cli.window_bar import OTHER, PREFIX_KINDS, TAIL, TOOLS, VOLATILE, Kind, Look, Window, mark, wrap

PREFIX = Kind("prefix", "P", 33)  # in a chart its parts are too small to be shown separately
STACK = (PREFIX, TAIL, VOLATILE)
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def key(look: Look, width: int) -> list[str]:
    """List the parts of a chart's columns."""
    prefix = f" {PREFIX.name}: {', '.join(kind.name for kind in PREFIX_KINDS if kind not in (TOOLS, OTHER))}"
    others = [(mark(kind, look), f" {kind.name}") for kind in STACK[1:]]
    return wrap([(mark(PREFIX, look), prefix), *others], width)


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
        stack[PREFIX if kind in PREFIX_KINDS else TAIL if kind == TAIL else VOLATILE] += count
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
