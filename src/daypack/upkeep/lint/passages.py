"""Split a Markdown text into parts with line numbers: sections, blocks, items, sentences and fenced examples.

    ## Narration            section, to the line before the next heading of its level
    Say what you do:        block (lines without a gap), with this line as its title
    - Before a tool call.   item; each of its sentences is a part too

A part has the terms it is compared by. Fenced code is not prose: it is in `fences` and never compared.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from daypack.upkeep.lint.vocabulary import HEADING_FILLER, is_common, plain, terms_of, words_of

Kind = Literal["section", "block", "item", "sentence"]
Role = Literal["instruction", "memory", "state", "injected"]

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_ROW = re.compile(r"\s*\|")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}$|\s*\|?[\s:|-]+\|[\s:|-]*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'*_)`]*\s+(?=[\"'*_(`]*[A-Z0-9])|(?<=[。！？])")
_CLAUSE_END = re.compile(r"[:;,]\s|\s[-—–→]\s|[—–→]|\*\*|[()]")
_TITLE = re.compile(r"\s*(?:\*\*(.+?)\*\*:?|(.{1,80}):)\s*$")


class Lines(NamedTuple):
    """Lines from `first` to `last` inclusive, counted from 1."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"L{self.first}" if self.first == self.last else f"L{self.first}-{self.last}"

    def overlap(self, other: "Lines") -> int:
        """Return the number of common lines."""
        return max(0, min(self.last, other.last) - max(self.first, other.first) + 1)

    @property
    def length(self) -> int:
        """The number of lines."""
        return self.last - self.first + 1


class Part:
    """A part of a text; `children` are the items of a section or block, the sentences of an item."""

    __slots__ = ("children", "kind", "lines", "parent", "source", "subjects", "terms", "text", "title")

    def __init__(self, kind: Kind, source: str, lines: Lines, text: str, title: str = "") -> None:
        self.kind = kind
        self.source = source
        self.lines = lines
        self.text = text
        self.title = title
        self.terms = frozenset(terms_of(text))
        self.subjects = _subjects(title)  # the terms of its title
        self.children: list[Part] = []
        self.parent: Part | None = None

    def __repr__(self) -> str:
        return f"{self.kind} {self.source} {self.lines}"


def _subjects(title: str) -> frozenset[str]:
    terms = frozenset(terms_of(title)) - HEADING_FILLER
    return frozenset(term for term in terms if not is_common(term)) or terms


class Fence(NamedTuple):
    """A fenced block: its lines including the fences, its language and its content."""

    lines: Lines
    language: str
    body: tuple[str, ...]


class Document:
    """One text of a prompt, split into parts."""

    def __init__(self, name: str, text: str, role: Role = "instruction", *, by_line: bool = False) -> None:
        self.name = name
        self._by_line = by_line  # each line is an item
        self.text = text
        self.role: Role = role
        self.rows = text.split("\n")
        self.fences = tuple(_fences(self.rows))
        self._code = {number for fence in self.fences for number in range(fence.lines.first, fence.lines.last + 1)}
        self.headings = tuple(self._headings())
        self.blocks = tuple(self._blocks())
        self.sections = tuple(self._sections())

    def row(self, number: int) -> str:
        """Return a line, counted from 1."""
        return self.rows[number - 1]

    @cached_property
    def items(self) -> tuple[Part, ...]:
        """All items, in order."""
        return tuple(item for block in self.blocks for item in block.children)

    @cached_property
    def sentences(self) -> tuple[Part, ...]:
        """All sentences, in order."""
        return tuple(sentence for item in self.items for sentence in item.children)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """All parts that are compared, without those that equal their parent."""
        blocks = [block for block in self.blocks if len(block.children) > 1]
        sentences = [sentence for sentence in self.sentences if sentence.parent and len(sentence.parent.children) > 1]
        return (*self.sections, *blocks, *self.items, *sentences)

    def block_at(self, lines: Lines) -> Part | None:
        """Return the block that contains these lines."""
        return next((block for block in self.blocks if block.lines.overlap(lines) == lines.length), None)

    def section_at(self, lines: Lines) -> Part | None:
        """Return the innermost section that contains these lines."""
        enclosing = [
            section
            for section in self.sections
            if section.lines.first <= lines.first and lines.last <= section.lines.last
        ]
        return min(enclosing, key=lambda section: section.lines.length, default=None)

    def _headings(self) -> Iterator[tuple[int, int, str]]:
        for number, row in enumerate(self.rows, 1):
            if number not in self._code and (match := _HEADING.match(row)):
                yield number, len(match[1]), match[2]

    def _sections(self) -> Iterator[Part]:
        headings = self.headings
        # A single top-level heading is the title of the file, not a section.
        titled = len([level for _, level, _ in headings if level == 1]) == 1 and headings[0][1] == 1
        for at, (number, level, title) in enumerate(headings):
            if titled and at == 0:
                continue
            following = (start for start, depth, _ in headings[at + 1 :] if depth <= level)
            last = next(following, len(self.rows) + 1) - 1
            while last > number and not self.row(last).strip():
                last -= 1
            prose = [self.row(line) for line in range(number, last + 1) if line not in self._code]
            section = Part("section", self.name, Lines(number, last), "\n".join(prose), title)
            section.children = [item for item in self.items if section.lines.overlap(item.lines)]
            yield section

    def _blocks(self) -> Iterator[Part]:
        starts = {number for number, _, _ in self.headings}
        run: list[int] = []
        for number in range(1, len(self.rows) + 2):
            inside = number <= len(self.rows) and bool(self.row(number).strip())
            if inside and number not in self._code and number not in starts and not _RULE.match(self.row(number)):
                run.append(number)
            elif run:
                following = self.rows[number : number + 1]
                lead = len(run) == 1 and _TITLE.match(self.row(run[0])) and following and _BULLET.match(following[0])
                if lead and not inside and number not in starts:
                    continue  # a title, a blank line, its list
                yield self._block(run)
                run = []

    def _block(self, numbers: Sequence[int]) -> Part:
        rows = [self.row(number) for number in numbers]
        title = _TITLE.match(rows[0]) if len(rows) > 1 and not _BULLET.match(rows[0]) else None
        name = (title[1] or title[2] or "").rstrip(":") if title else ""
        block = Part("block", self.name, Lines(numbers[0], numbers[-1]), "\n".join(rows), name)
        for group in [[number] for number in numbers] if self._by_line else _grouped(numbers, rows):
            text = "\n".join(self.row(number) for number in group)
            item = Part("item", self.name, Lines(group[0], group[-1]), text)
            item.parent = block
            item.children = list(_sentences(item))
            block.children.append(item)
        return block


def _fences(rows: Sequence[str]) -> Iterator[Fence]:
    opened: tuple[int, str, str] | None = None
    for number, row in enumerate(rows, 1):
        match = _FENCE.match(row)
        if opened is None and match:
            opened = number, match[1], row.strip().strip("`~").strip()
        elif opened and match and match[1][0] == opened[1][0] and len(match[1]) >= len(opened[1]):
            yield Fence(Lines(opened[0], number), opened[2], tuple(rows[opened[0] : number - 1]))
            opened = None


def _grouped(numbers: Sequence[int], rows: Sequence[str]) -> list[list[int]]:
    """Group lines into items: a bullet, a table row and the line after a title begin an item."""
    groups: list[list[int]] = []
    for number, row in zip(numbers, rows, strict=True):
        begins = not groups or _BULLET.match(row) or _ROW.match(row)
        if begins or (len(groups[-1]) == 1 and _TITLE.match(rows[numbers.index(groups[-1][0])])):
            groups.append([number])
        else:
            groups[-1].append(number)
    return groups


def _sentences(item: Part) -> Iterator[Part]:
    bullet = _BULLET.match(item.text)
    start = bullet.end() if bullet else 0
    for stop in (*(match.end() for match in _SENTENCE_END.finditer(item.text, start)), len(item.text)):
        text = item.text[start:stop]
        if plain(text).strip(" .\n"):
            first = item.lines.first + item.text.count("\n", 0, start)
            last = first + text.rstrip().count("\n")
            sentence = Part("sentence", item.source, Lines(first, last), text.strip())
            sentence.parent = item
            yield sentence
        start = stop


def clauses_of(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a sentence, and of each clause between its colons, dashes and bold marks."""
    whole = words_of(_BULLET.sub("", text, count=1))
    yield whole
    for clause in _CLAUSE_END.split(text):
        if clause.strip() and (words := words_of(clause)) != whole:
            yield words
