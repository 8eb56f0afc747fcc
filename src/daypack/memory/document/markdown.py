"""The page a context document is written on: headings and lines, read and written back byte for byte, and trimmed.

    ## Open tasks
    - [ ] Update the tracker (Sam)

Whoever keeps a document may give it headings and lines of his own: they are kept as they stand.
"""

import re
from typing import Literal, NamedTuple

from daypack.types.memory import DOCUMENT_MAX_CHARS

Heading = Literal["Participants", "Facts", "Timeline", "Decisions", "Open tasks"]
HEADINGS: tuple[Heading, ...] = ("Participants", "Facts", "Timeline", "Decisions", "Open tasks")
TRIMMED_CHARS = 4800  # where trimming ends once it has begun: the next lines must not begin it again
DIAGRAM_MAX_NODES = 10

_ALIASES: dict[str, Heading] = {
    **{one.casefold(): one for one in HEADINGS},
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
_SHORT_CHARS = 120  # what is left of a protected line when there are too many of them


class Section(NamedTuple):
    """A heading as it is written (empty: before the first), what it stands for (empty: nothing known), its lines."""

    heading: str
    name: Heading | Literal[""]
    lines: tuple[str, ...]


Page = tuple[Section, ...]


class _Unit(NamedTuple):
    """Lines that stay or go together: where they are, how soon they go, how old they are (0: oldest), their length."""

    section: int
    start: int
    stop: int
    rank: int
    age: float
    chars: int


def parse(text: str) -> Page:
    """Return a document as sections; `render` gives back the same text."""
    sections: list[Section] = []
    heading, name = "", ""
    lines: list[str] = []
    fence = ""
    for number, line in enumerate(text.split("\n")):
        marked = _FENCE.match(line)
        if marked and (not fence or line.strip() == fence):
            fence = "" if fence else marked["fence"]
        found = None if fence else _read_heading(line)
        if found is None:
            lines.append(line)
            continue
        if number:
            sections.append(Section(heading, name, tuple(lines)))
        heading, name, lines = line, found, []
    sections.append(Section(heading, name, tuple(lines)))
    return tuple(sections)


def render(page: Page) -> str:
    """Return the text of a page."""
    lines: list[str] = []
    for number, section in enumerate(page):
        if number or section.heading:
            lines.append(section.heading)
        lines += section.lines
    return "\n".join(lines)


def bullet_of(line: str) -> str:
    """Return how a line begins: its indentation and bullet, as they are written; empty for one without."""
    found = _BULLET.match(line)
    return found[0] if found else ""


def is_ticked(line: str) -> bool:
    """Whether a line is a task that is done."""
    return _TICKED.match(line) is not None


def fit_document(text: str) -> str:
    """Return a document as it may be written: without diagrams that are too large or cannot be counted, and trimmed."""
    if "mermaid" in text.lower():
        from daypack.text.mermaid import blocks, count_nodes  # noqa: PLC0415 — few documents have diagrams

        for start, stop, source in reversed(list(blocks(text))):
            nodes = count_nodes(source)
            if nodes is None or nodes > DIAGRAM_MAX_NODES:
                text = text[:start] + text[stop:].removeprefix("\n")
    return trim_document(text)


def trim_document(text: str, cap: int = DOCUMENT_MAX_CHARS, target: int = TRIMMED_CHARS) -> str:
    """Return a document of at most `cap` characters; one that fits is returned as it is.

    The oldest lines of low value go first, until at most `target` characters are left: what is done, what stands under
    headings of its own, facts and dates. Participants, decisions and open tasks are kept, unless they alone are too
    much: then the oldest of them are shortened, and only then removed.
    """
    if len(text) <= cap:
        return text
    page = parse(text)
    units = sorted(_units(page), key=lambda unit: (unit.rank, unit.age, unit.section))
    over = len(text) - target
    gone: set[tuple[int, int]] = set()
    for unit in units:
        if over <= 0 or unit.rank >= _KEPT:
            break
        gone.update((unit.section, at) for at in range(unit.start, unit.stop))
        over -= unit.chars
    kept = render(_without(page, gone))
    return kept if len(kept) <= cap else _shorten(kept, target)


_KEPT = 4


def _read_heading(line: str) -> Heading | Literal[""] | None:
    """Return what a heading stands for; None for a line that is none."""
    found = _HEADING.fullmatch(line)
    if found:
        return _ALIASES.get(found["name"].strip("*_ :").casefold(), "")
    label = _LABEL.fullmatch(line)
    return _ALIASES.get(label["name"].casefold()) if label else None


def _units(page: Page) -> list[_Unit]:
    units: list[_Unit] = []
    for number, section in enumerate(page):
        own: list[tuple[int, int, int]] = []
        at = 0
        while at < len(section.lines):
            stop = _unit_end(section.lines, at)
            own.append((at, stop, _rank(page, number, at)))
            at = stop
        for age, (start, stop, rank) in enumerate(own):
            chars = sum(len(line) + 1 for line in section.lines[start:stop])
            units.append(_Unit(number, start, stop, rank, age / len(own), chars))
    return units


def _unit_end(lines: tuple[str, ...], at: int) -> int:
    """Return where the lines that belong to the one at `at` end: a fenced block, a bullet with its further lines."""
    marked = _FENCE.match(lines[at])
    if marked:
        closing = (end for end in range(at + 1, len(lines)) if lines[end].strip() == marked["fence"])
        return next(closing, len(lines) - 1) + 1
    stop = at + 1
    if _BULLET.match(lines[at]):
        while stop < len(lines) and lines[stop].startswith(("  ", "\t")) and not _BULLET.match(lines[stop]):
            stop += 1
    return stop


def _rank(page: Page, number: int, at: int) -> int:
    """Return how soon a line goes: 0 at once, `_KEPT` never before all others are gone."""
    section = page[number]
    line = section.lines[at]
    if not line.strip():
        # One blank line parts what is left; more say nothing.
        return 0 if at and not section.lines[at - 1].strip() else _KEPT
    if is_ticked(line):
        return 1
    if section.name in _PROTECTED:
        return _KEPT
    if section.name:
        return 3
    # What stands before the first heading of the five says whose document it is.
    first = next((at for at, one in enumerate(page) if one.name), 0)
    return _KEPT if number < first and not _FENCE.match(line) else 2


def _without(page: Page, gone: set[tuple[int, int]]) -> Page:
    kept: list[Section] = []
    for number, section in enumerate(page):
        lines = tuple(line for at, line in enumerate(section.lines) if (number, at) not in gone)
        emptied = len(lines) < len(section.lines) and not any(line.strip() for line in lines)
        if section.name or not emptied:
            kept.append(Section(section.heading, section.name, lines))
    return tuple(kept)


def _shorten(text: str, target: int) -> str:
    """Return a page of nothing but protected lines at `target` characters: oldest shortened first, then removed."""
    from daypack.text.trim import trim  # noqa: PLC0415 — hardly anybody has so much that must be kept

    page = parse(text)
    units = sorted(_units(page), key=lambda unit: (not page[unit.section].name, unit.age))
    lines = [list(section.lines) for section in page]
    over = len(text) - target
    for unit in units:
        for at in range(unit.start, unit.stop):
            line = lines[unit.section][at]
            if over > 0 and len(line) > _SHORT_CHARS:
                lines[unit.section][at] = trim(line, _SHORT_CHARS) or line[:_SHORT_CHARS]
                over -= len(line) - len(lines[unit.section][at])
    gone: set[tuple[int, int]] = set()
    for unit in units:
        if over <= 0:
            break
        for at in range(unit.start, unit.stop):
            gone.add((unit.section, at))
            over -= len(lines[unit.section][at]) + 1
    shortened = tuple(section._replace(lines=tuple(own)) for section, own in zip(page, lines, strict=True))
    return render(_without(shortened, gone))[:target]
