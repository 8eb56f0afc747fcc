"""The Markdown of a context document: sections and lines, parsed and rendered byte for byte, and trimmed to the limit.

    ## Open tasks
    - [ ] Update the tracker (Sam)

Custom headings and lines are kept as they are.
"""

import re
from typing import Literal, NamedTuple

from daypack.types.memory import DOCUMENT_MAX_CHARS

Heading = Literal["Participants", "Facts", "Timeline", "Decisions", "Open tasks"]
HEADINGS: tuple[Heading, ...] = ("Participants", "Facts", "Timeline", "Decisions", "Open tasks")
TRIMMED_CHARS = 4800  # target of trimming, below the limit, so that not every new line trims again
DIAGRAM_MAX_NODES = 10
# NUL, and the code points that Unicode will never assign to a character: no text for people has them.
NOT_A_CHARACTER = re.compile(
    "[\\0\\ufdd0-\\ufdef" + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF)) + "]"
)

_ALIASES: dict[str, Heading] = {
    **{heading.casefold(): heading for heading in HEADINGS},
    **dict.fromkeys(("people", "members", "team"), "Participants"),
    **dict.fromkeys(("stable facts", "key facts", "preferences"), "Facts"),
    **dict.fromkeys(("dates", "events", "history"), "Timeline"),
    **dict.fromkeys(("key decisions", "decisions made"), "Decisions"),
    **dict.fromkeys(
        ("tasks", "active tasks", "todo", "to do", "todos", "to-do", "pending", "open items"), "Open tasks"
    ),
}
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<name>.+?)[ \t]*#*[ \t]*")
_LABEL = re.compile(r"(?:\*\*|__)?(?P<name>[A-Za-z][A-Za-z -]{2,20}?)(?::\s*(?:\*\*|__)|(?:\*\*|__)?\s*:)\s*")
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})")
_BULLET = re.compile(r"[ \t]*(?:[-*+•‣–]|\d{1,3}[.)])[ \t]+")
_TICKED = re.compile(r"[ \t]*(?:[-*+•‣–][ \t]+)?\[[xX]\][ \t]")
_PROTECTED = frozenset({"Participants", "Decisions", "Open tasks"})
_LOWEST_LEVEL = 7  # of a label in place of a heading
_SHORT_CHARS = 120  # of a protected line, if the protected lines alone exceed the limit


class Section(NamedTuple):
    """A heading line (empty before the first heading), which of the five headings it means (or empty), its lines."""

    heading: str
    name: Heading | Literal[""]
    lines: tuple[str, ...]


Sections = tuple[Section, ...]


class _Unit(NamedTuple):
    """Lines that are trimmed together: where they are, how soon they go, their age (0: oldest), their length."""

    section: int
    start: int
    stop: int
    rank: int
    age: float
    chars: int


def parse(text: str) -> Sections:
    """Return the sections of a document; `render` returns the same text."""
    sections: list[Section] = []
    heading, name = "", ""
    lines: list[str] = []
    fence = ""
    for number, line in enumerate(text.split("\n")):
        marked = _FENCE.match(line)
        if marked and (not fence or line.strip() == fence):
            fence = "" if fence else marked["fence"]
        meaning = None if fence else _read_heading(line)
        if meaning is None:
            lines.append(line)
            continue
        if number:
            sections.append(Section(heading, name, tuple(lines)))
        heading, name, lines = line, meaning, []
    sections.append(Section(heading, name, tuple(lines)))
    return tuple(sections)


def render(sections: Sections) -> str:
    """Return the text of a document."""
    lines: list[str] = []
    for number, section in enumerate(sections):
        if number or section.heading:
            lines.append(section.heading)
        lines += section.lines
    return "\n".join(lines)


def bullet_of(line: str) -> str:
    """Return the indentation and bullet of a line as written; empty if it has no bullet."""
    match = _BULLET.match(line)
    return match[0] if match else ""


def is_ticked(line: str) -> bool:
    """Return True if a line is a completed task."""
    return _TICKED.match(line) is not None


def without_finished(text: str) -> str:
    """Return a document without completed tasks and without headings that have nothing below them."""
    kept: list[Section] = []
    below = 0  # the level of the section after it
    for section in reversed(parse(text)):
        lines = _without_ticked(section.lines)
        level = len(section.heading) - len(section.heading.lstrip("#")) or _LOWEST_LEVEL
        if level < below or any(character.isalnum() for line in lines for character in line):
            kept.append(section._replace(lines=lines))
            below = level
    return render(tuple(reversed(kept))).strip()


def fit_document(text: str) -> str:
    """Return a document that put_context accepts: trimmed to the limit, without NUL and without too large diagrams.

    Raw entries may have any code point in them, documents may not. A diagram that cannot be parsed goes as well.
    """
    text = NOT_A_CHARACTER.sub("", text)
    if "mermaid" in text.lower():
        from daypack.text.mermaid import blocks, count_nodes  # noqa: PLC0415 — few documents have diagrams

        for start, stop, source in reversed(list(blocks(text))):
            nodes = count_nodes(source)
            if nodes is None or nodes > DIAGRAM_MAX_NODES:
                text = text[:start] + text[stop:].removeprefix("\n")
    return trim_document(text)


def trim_document(text: str, cap: int = DOCUMENT_MAX_CHARS, target: int = TRIMMED_CHARS) -> str:
    """Return a document of at most `cap` characters; a document that fits is returned unchanged.

    Otherwise the oldest lines of low value are removed until at most `target` characters remain: completed tasks, lines
    under custom headings, facts and dates. Participants, decisions and open tasks are kept, unless they alone are too
    long: then the oldest of them are shortened, and removed only if that is not enough.
    """
    if len(text) <= cap:
        return text
    sections = parse(text)
    units = sorted(_units(sections), key=lambda unit: (unit.rank, unit.age, unit.section))
    over = len(text) - target
    removed: set[tuple[int, int]] = set()
    for unit in units:
        if over <= 0 or unit.rank >= _PROTECTED_RANK:
            break
        removed.update((unit.section, at) for at in range(unit.start, unit.stop))
        over -= unit.chars
    trimmed = render(_without(sections, removed))
    return trimmed if len(trimmed) <= cap else _shorten(trimmed, target)


_PROTECTED_RANK = 4


def _read_heading(line: str) -> Heading | Literal[""] | None:
    """Return which of the five headings a line means (empty: another one); None if it is not a heading."""
    match = _HEADING.fullmatch(line)
    if match:
        return _ALIASES.get(match["name"].strip("*_ :").casefold(), "")
    label = _LABEL.fullmatch(line)
    return _ALIASES.get(label["name"].casefold()) if label else None


def _units(sections: Sections) -> list[_Unit]:
    units: list[_Unit] = []
    for number, section in enumerate(sections):
        ranges: list[tuple[int, int, int]] = []
        at = 0
        while at < len(section.lines):
            stop = _unit_end(section.lines, at)
            ranges.append((at, stop, _rank(sections, number, at)))
            at = stop
        for age, (start, stop, rank) in enumerate(ranges):
            chars = sum(len(line) + 1 for line in section.lines[start:stop])
            units.append(_Unit(number, start, stop, rank, age / len(ranges), chars))
    return units


def _without_ticked(lines: tuple[str, ...]) -> tuple[str, ...]:
    rest: list[str] = []
    at = 0
    while at < len(lines):
        stop = _unit_end(lines, at)
        if not is_ticked(lines[at]):
            rest += lines[at:stop]
        at = stop
    return tuple(rest)


def _unit_end(lines: tuple[str, ...], at: int) -> int:
    """Return where the unit that starts at `at` ends: a fenced block, or a bullet with its continuation lines."""
    marked = _FENCE.match(lines[at])
    if marked:
        closing = (end for end in range(at + 1, len(lines)) if lines[end].strip() == marked["fence"])
        return next(closing, len(lines) - 1) + 1
    stop = at + 1
    if _BULLET.match(lines[at]):
        while stop < len(lines) and lines[stop].startswith(("  ", "\t")) and not _BULLET.match(lines[stop]):
            stop += 1
    return stop


def _rank(sections: Sections, number: int, at: int) -> int:
    """Return how soon a line is removed: from 0 (first) to `_PROTECTED_RANK` (only when no other is left)."""
    section = sections[number]
    line = section.lines[at]
    if not line.strip():
        # One blank line separates; further ones are useless.
        return 0 if at and not section.lines[at - 1].strip() else _PROTECTED_RANK
    if is_ticked(line):
        return 1
    if section.name in _PROTECTED:
        return _PROTECTED_RANK
    if section.name:
        return 3
    # The text before the first of the five headings says what the document is about.
    first = next((index for index, other in enumerate(sections) if other.name), 0)
    return _PROTECTED_RANK if number < first and not _FENCE.match(line) else 2


def _without(sections: Sections, removed: set[tuple[int, int]]) -> Sections:
    remaining: list[Section] = []
    for number, section in enumerate(sections):
        lines = tuple(line for at, line in enumerate(section.lines) if (number, at) not in removed)
        emptied = len(lines) < len(section.lines) and not any(line.strip() for line in lines)
        if section.name or not emptied:
            remaining.append(Section(section.heading, section.name, lines))
    return tuple(remaining)


def _shorten(text: str, target: int) -> str:
    """Return a document of protected lines at `target` characters: the oldest are shortened first, then removed."""
    from daypack.text.trim import trim  # noqa: PLC0415 — few documents need it

    sections = parse(text)
    units = sorted(_units(sections), key=lambda unit: (not sections[unit.section].name, unit.age))
    lines = [list(section.lines) for section in sections]
    over = len(text) - target
    for unit in units:
        for at in range(unit.start, unit.stop):
            line = lines[unit.section][at]
            if over > 0 and len(line) > _SHORT_CHARS:
                lines[unit.section][at] = trim(line, _SHORT_CHARS) or line[:_SHORT_CHARS]
                over -= len(line) - len(lines[unit.section][at])
    removed: set[tuple[int, int]] = set()
    for unit in units:
        if over <= 0:
            break
        for at in range(unit.start, unit.stop):
            removed.add((unit.section, at))
            over -= len(lines[unit.section][at]) + 1
    shortened = tuple(section._replace(lines=tuple(rest)) for section, rest in zip(sections, lines, strict=True))
    return render(_without(shortened, removed))[:target]
