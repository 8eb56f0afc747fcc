"""Pictures of windows, made of blocks: coloured where the terminal has colour, letters elsewhere. Pure functions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from daypack.turn.turn import Turn


class Kind(NamedTuple):
    """A part of a window: what it is called, its letter where there is no colour, its colour where there is."""

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
KINDS = (INSTRUCTIONS, MEMORY, CORE, SUMMARY, REFS, TAIL, NOTE, VOLATILE)  # as they stand in a window
PREFIX = Kind("prefix", "P", 33)  # in a chart: a single one of its parts is too small to be seen there
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

    def paint(self, text: str, colour: int, *, bold: bool = False, behind: int | None = None) -> str:
        """Return a text in a colour, if there is one."""
        if not self.colour or not text:
            return text
        ground = "" if behind is None else f"\x1b[48;5;{behind}m"
        return f"\x1b[{'1;' if bold else ''}38;5;{colour}m{ground}{text}\x1b[0m"

    def dim(self, text: str) -> str:
        """Return a text that stands back."""
        return self.paint(text, GREY)

    def bold(self, text: str) -> str:
        """Return a text that stands out."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def choose(self, blocks: str, plain: str) -> str:
        """Return one of two texts, by what the terminal can show."""
        return blocks if self.blocks else plain


class Window(NamedTuple):
    """What one call was given, in tokens."""

    parts: Mapping[Kind, int]
    budget: int
    answer: int  # kept free for the answer
    cached: int  # what a prompt cache has from the call before

    @property
    def used(self) -> int:
        """All that was sent."""
        return sum(self.parts.values())

    @property
    def free(self) -> int:
        """What could have been sent besides."""
        return max(0, self.budget - self.used - self.answer)


def window_of(turn: Turn) -> Window:
    """Measure a turn."""
    parts = dict.fromkeys(KINDS, 0)
    prefix = len(turn.parts.epoch.prefix)
    behind = len(turn.items) - len(turn.parts.volatile)
    for at, item in enumerate(turn.items):
        if at < prefix:
            kind = _PREFIX.get(item.kind, SUMMARY)
        elif at < behind:
            kind = TAIL
        else:
            kind = NOTE if item.kind == "core_blocks" else VOLATILE
        parts[kind] += item.tokens or 0
    limits = turn.record.limits
    return Window(parts, turn.budget_tokens or turn.tokens, limits.reserved_tokens, turn.expected_cached_tokens)


def bar(window: Window, look: Look, width: int) -> str:
    """Draw a window as one line: what is in it, what is free, what is kept for the answer."""
    *parts, free, answer = share([*window.parts.values(), window.free, window.answer], width)
    solid = look.colour and look.blocks
    drawn = [
        look.paint(("█" if solid else kind.letter) * count, kind.colour)
        for kind, count in zip(window.parts, parts, strict=True)
    ]
    return "".join([*drawn, look.paint(_free(look) * free, _FREE), look.paint(_answer(look) * answer, _ANSWER)])


def cache_line(window: Window, look: Look, width: int) -> str:
    """Draw how far from its beginning a prompt cache can reuse a call, to stand below its bar."""
    if not window.cached:
        return look.dim("the prompt cache has nothing of it yet")
    cells = max(2, round(window.cached / window.budget * width))
    told = f"the prompt cache can reuse {window.cached:,} of {window.used:,}"
    if cells < len(told) + 4 and cells + 1 + len(told) <= width:
        return look.dim(f"{_bracket('', cells, look)} {told}")
    return look.dim(_bracket(told if cells >= len(told) + 4 else f"cache: {window.cached:,}", cells, look))


def _bracket(words: str, cells: int, look: Look) -> str:
    """Return a bracket of so many cells that is open upwards, with words in its middle."""
    middle = f" {words} " if words else ""
    line = middle.center(cells - 2, "-").replace("-", look.choose("─", "-"))
    return look.choose(f"╰{line}╯", f"`{line}'")


def legend(window: Window, look: Look, width: int) -> list[str]:
    """Name the parts of a window, with their tokens."""
    named = [(_mark(kind, look), f" {kind.name} {count:,}") for kind, count in window.parts.items() if count]
    named.append((look.paint(_free(look), _FREE), f" free {window.free:,}"))
    named.append((look.paint(_answer(look), _ANSWER), f" kept for the answer {window.answer:,}"))
    return _wrapped(named, width)


def key(look: Look, width: int) -> list[str]:
    """Name the parts of a chart's columns."""
    prefix = f" {PREFIX.name}: {', '.join(kind.name for kind in _PARTS)}"
    others = [(_mark(kind, look), f" {kind.name}") for kind in STACK[1:]]
    return _wrapped([(_mark(PREFIX, look), prefix), *others], width)


def _wrapped(named: Sequence[tuple[str, str]], width: int) -> list[str]:
    lines, used = [""], 0
    for mark, words in named:
        if used and used + len(words) + 3 > width:
            lines.append("")
            used = 0
        gap = "  " if used else ""
        lines[-1] += gap + mark + words
        used += len(gap) + 1 + len(words)
    return lines


def _mark(kind: Kind, look: Look) -> str:
    return look.paint(look.choose("■", kind.letter) if look.colour else kind.letter, kind.colour)


def _free(look: Look) -> str:
    return look.choose("·", ".")


def _answer(look: Look) -> str:
    return look.choose("░", "-")


def share(amounts: Sequence[int], cells: int) -> list[int]:
    """Divide cells by amounts; what is there at all has one at least."""
    total = sum(amounts) or 1
    exact = [amount / total * cells for amount in amounts]
    found = [max(1, int(one)) if amount else 0 for one, amount in zip(exact, amounts, strict=True)]
    while sum(found) != cells:
        step = 1 if sum(found) < cells else -1
        movable = [at for at, count in enumerate(found) if amounts[at] and count + step >= 1]
        best = max(movable, key=lambda at: step * (exact[at] - found[at]))
        found[best] += step
    return found


def chart(windows: Sequence[Window], look: Look, width: int, height: int) -> list[str]:
    """Draw calls as columns, side by side: prefix, tail, volatile. What reaches the top fills its window."""
    columns = [_levels(one, height) for one in sample(windows, width)]
    return ["".join(_cell(one[row * 8 : row * 8 + 8], look) for one in columns) for row in reversed(range(height))]


def sample(windows: Sequence[Window], width: int) -> list[Window]:
    """Return at most `width` calls, evenly spread, first and last among them."""
    if len(windows) <= width:
        return list(windows)
    return [windows[round(at * (len(windows) - 1) / (width - 1))] for at in range(width)]


def _stack(window: Window) -> dict[Kind, int]:
    found = dict.fromkeys(STACK, 0)
    for kind, count in window.parts.items():
        found[PREFIX if kind in _PARTS else TAIL if kind == TAIL else VOLATILE] += count
    return found


def _levels(window: Window, height: int) -> list[Kind | None]:
    """Return what stands at each eighth of a row, from the bottom up; None: nothing."""
    room, above = window.budget - window.answer, 0
    levels: list[Kind | None] = []
    for kind, count in _stack(window).items():
        above += count
        levels += [kind] * (round(above / room * height * 8) - len(levels))
    return (levels + [None] * height * 8)[: height * 8]


def _cell(levels: Sequence[Kind | None], look: Look) -> str:
    """Draw eight levels as one character, which has room for two colours: the kinds with most of them."""
    filled = [one for one in levels if one]
    if not filled:
        return " "
    first, *others = (kind for kind, _ in Counter(reversed(filled)).most_common(2))
    if not look.colour or not look.blocks:
        return first.letter if len(filled) >= 4 else " "
    if not others or len(filled) < len(levels):
        return look.paint(_EIGHTHS[len(filled)], first.colour)
    lower, upper = sorted((first, others[0]), key=filled.index)
    return look.paint(_EIGHTHS[filled.index(upper)], lower.colour, behind=upper.colour)
