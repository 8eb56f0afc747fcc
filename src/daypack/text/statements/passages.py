"""Split a Markdown text into parts with line numbers: sections, items, sentences and fenced examples.

    ## Narration            section, to the line before the next heading of its level
    Say what you do:        section too: a title, and the list after it
    - Before a tool call.   item; each of its sentences is a part

Headings, titles and fenced code are not statements and are never compared.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct

from daypack.forks import cached_property
from daypack.text.statements.wording import Wording, plain, wording_of

Role = Literal["instruction", "memory", "state", "injected"]

BULLET = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}$|\s*\|?[\s:|-]+\|[\s:|-]*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'*_)`]*\s+(?=[\"'*_(`]*[A-Z0-9])|(?<=[。！？])")
_TITLE = re.compile(r"\s*(?:\*\*(.+?)\*\*:?|(\S+(?: \S+){0,4}):)\s*$")
TITLE_LEVEL = 7  # below every heading


class Lines(NamedTuple):
    """Lines from `first` to `last` inclusive, counted from 1."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"L{self.first}" if self.first == self.last else f"L{self.first}-{self.last}"

    @property
    def numbers(self) -> range:
        """The numbers of the lines."""
        return range(self.first, self.last + 1)

    def gap(self, other: "Lines") -> int:
        """Return how many lines apart two spans are; 0 if they overlap."""
        return max(0, self.first - other.last, other.first - self.last)

    def within(self, other: "Lines") -> bool:
        """Return True if the other lines include all of these."""
        return other.first <= self.first and self.last <= other.last


class Span(Struct, frozen=True):
    """Lines of a text that something is found in."""

    source: str
    first: int
    last: int

    @property
    def lines(self) -> Lines:
        """The lines without the text."""
        return Lines(self.first, self.last)

    def __str__(self) -> str:
        return f"{self.source} {self.lines}"


class Part:
    """A part of a text; `parts` are the items of a section, or the sentences of an item."""

    def __init__(self, source: str, lines: Lines, text: str, title: str = "") -> None:
        self.source = source
        self.lines = lines
        self.text = text
        self.title = title
        self.parts: list[Part] = []

    @cached_property
    def wording(self) -> Wording:
        """The words by which the part is compared."""
        return wording_of(self.text)

    @property
    def is_lead(self) -> bool:
        """True if it only introduces the lines after it."""
        return self.text.rstrip("* ").endswith(":")

    def __repr__(self) -> str:
        return f"{self.source} {self.lines}"


class Fence(NamedTuple):
    """A fenced block: its lines including the fences, its language and its content."""

    lines: Lines
    language: str
    body: tuple[str, ...]


class Document:
    """One text of a prompt, split into parts; `by_line`: each line is an item."""

    def __init__(self, name: str, text: str, role: Role = "instruction", *, by_line: bool = False) -> None:
        self.name = name
        self.text = text
        self.role: Role = role
        self._mark = text[: len(text) - len(text.removeprefix("\ufeff"))]
        self._newline = "\r\n" if "\r\n" in text and text.count("\r\n") == text.count("\n") else "\n"
        self.rows = text.removeprefix(self._mark).split(self._newline)
        self.fences = tuple(_fences(self.rows))
        code = {number for fence in self.fences for number in fence.lines.numbers}
        self._prose = [n for n, row in enumerate(self.rows, 1) if n not in code and row.strip()]
        self.headings = [(n, len(match[1]), match[2]) for n in self._prose if (match := _HEADING.match(self.row(n)))]
        self.headings = sorted(self.headings + ([] if by_line else list(self._titles())))
        self.items = list(self._items(by_line=by_line))
        self.statements = [sentence for item in self.items for sentence in item.parts]
        self.sections = list(self._sections())

    @cached_property
    def whole(self) -> Part:
        """The whole text as one section under its name, with its sentences as parts."""
        last = max((statement.lines.last for statement in self.statements), default=1)
        part = Part(self.name, Lines(1, last), f"{self.name}\n{self.text}", self.name)
        part.parts = self.statements
        return part

    def row(self, number: int) -> str:
        """Return a line, counted from 1."""
        return self.rows[number - 1]

    def joined(self, rows: Iterable[str]) -> str:
        """Return other rows as a text with the line ends and the byte order mark of this one."""
        return self._mark + self._newline.join(rows)

    def section_at(self, lines: Lines) -> Part | None:
        """Return the innermost section that contains these lines."""
        around = [section for section in self.sections if lines.within(section.lines)]
        return max(around, key=lambda section: (section.lines.first, -section.lines.last), default=None)

    def _titles(self) -> Iterator[tuple[int, int, str]]:
        """Yield the lines that are titles of the list, or of the lines, after them."""
        for number in self._prose:
            row, before = self.row(number), self.row(number - 1) if number > 1 else ""
            match = None if BULLET.match(row) or row.lstrip().startswith("|") else _TITLE.match(row)
            after = self.rows[number : number + 2]
            listed = any(BULLET.match(line) for line in after[: 1 if after and after[0].strip() else 2])
            first = not before.strip() or bool(_HEADING.match(before))
            if match and (listed or (match[1] and first)):
                yield number, TITLE_LEVEL, (match[1] or match[2]).strip("*: ")

    def _sections(self) -> Iterator[Part]:
        # A single top-level heading is the title of the file, not a section.
        top = [number for number, level, _ in self.headings if level == 1]
        for at, (number, level, title) in enumerate(self.headings):
            if level == 1 and len(top) == 1 and at == 0:
                continue
            last = next((n for n, depth, _ in self.headings[at + 1 :] if depth <= level), len(self.rows) + 1) - 1
            if level == TITLE_LEVEL:
                last = self._end_of_list(number, last)
            while last > number and not self.row(last).strip():
                last -= 1
            lines = Lines(number, last)
            prose = [self.row(n) for n in self._prose if number <= n <= last]
            section = Part(self.name, lines, "\n".join(prose), title)
            section.parts = [item for item in self.items if item.lines.within(lines)]
            yield section

    def _end_of_list(self, number: int, last: int) -> int:
        """Return the last line of the first list or paragraph after a title; a loose list may have single gaps."""
        end = number + 1 if number < last and not self.row(number + 1).strip() else number
        for n in range(end + 1, last + 1):
            blank, following = not self.row(n).strip(), self.rows[n : n + 1]
            if _HEADING.match(self.row(n)) or (blank and not (following and BULLET.match(following[0]))):
                break
            end = n
        return end

    def _items(self, *, by_line: bool) -> Iterator[Part]:
        starts = {number for number, _, _ in self.headings}
        group: list[int] = []
        for number in [*self._prose, 0]:
            row = self.row(number) if number else ""
            apart = number in starts or not number or bool(_RULE.match(row))
            begins = by_line or apart or bool(BULLET.match(row)) or row.lstrip().startswith("|")
            if group and (begins or number != group[-1] + 1):
                yield self._item(group)
                group = []
            if not apart:
                group.append(number)

    def _item(self, numbers: list[int]) -> Part:
        item = Part(self.name, Lines(numbers[0], numbers[-1]), "\n".join(map(self.row, numbers)))
        bullet = BULLET.match(item.text)
        start = bullet.end() if bullet else 0
        for stop in (*(match.end() for match in _SENTENCE_END.finditer(item.text, start)), len(item.text)):
            text = item.text[start:stop]
            if plain(text).strip(" .\n\r|"):
                first = item.lines.first + item.text.count("\n", 0, start)
                item.parts.append(Part(self.name, Lines(first, first + text.rstrip().count("\n")), text.strip()))
            start = stop
        return item


def _fences(rows: list[str]) -> Iterator[Fence]:
    opened: tuple[int, str, str] | None = None
    for number, row in enumerate(rows, 1):
        match = _FENCE.match(row)
        if opened is None and match:
            opened = number, match[1], row.strip().strip("`~").strip()
        elif opened and match and match[1][0] == opened[1][0] and len(match[1]) >= len(opened[1]):
            yield Fence(Lines(opened[0], number), opened[2], tuple(rows[opened[0] : number - 1]))
            opened = None
