"""Find references to tools or layers that no longer exist, given a list of those that do.

    [tools]
    read_file
    [layers]
    Working memory

A name counts as a tool or layer if it is in a list, or among headings, of which at least one entry is declared. So a
list of pens is not mistaken for a list of tools.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from daypack.errors import BadInput
from daypack.upkeep.lint.passages import Document, Lines, Part
from daypack.upkeep.lint.vocabulary import terms_of

Sort = Literal["tool", "layer"]
_SECTIONS = ("tools", "layers")
_NAME = re.compile(
    r"\s*(?:[-*+•]|\d{1,3}[.)]|\|)?\s*(?:\*\*(.+?)\*\*|`([^`]+)`|([^:|—–(→]{2,60}?)\s*(?::\s|[|—–(→]|\s-\s))"
)
_LAYER = re.compile(r"\b(?:layer|tier|memory|memories)s?\b", re.I)
_IDENTIFIER = re.compile(r"`?[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*(?:\(.*\))?`?")


class Declared(Struct, frozen=True):
    """The tools and layers that exist."""

    tools: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


class Stale(Struct, frozen=True):
    """Lines of a text about a tool or layer that is not declared."""

    source: str
    first: int
    last: int
    name: str
    sort: Sort


def read_declared(text: str, place: str = "") -> Declared:
    """Parse a list of names, one per line, under [tools] and [layers]."""
    names: dict[str, list[str]] = {section: [] for section in _SECTIONS}
    section = ""
    for number, row in enumerate(text.splitlines(), 1):
        line = row.strip().removeprefix("- ").strip(" `*")
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip().lower()
            if section not in names:
                hint = "use [tools] and [layers], with one name per line below"
                where = f"{place}, line {number}"
                raise BadInput(f"unknown section {line}", operation="read declarations", place=where, hint=hint)
        elif not section:
            hint = "start with [tools] or [layers]"
            where = f"{place}, line {number}"
            raise BadInput("name outside of a section", operation="read declarations", place=where, hint=hint)
        else:
            names[section].append(line)
    return Declared(tuple(names["tools"]), tuple(names["layers"]))


def find_stale(documents: Sequence[Document], declared: Declared) -> tuple[Stale, ...]:
    """Return the lines about tools or layers that are not declared."""
    found: list[Stale] = []
    for document in documents:
        if document.role != "instruction":
            continue
        kinds: tuple[tuple[Sort, tuple[str, ...]], ...] = (("layer", declared.layers), ("tool", declared.tools))
        for sort, names in kinds:
            if names:
                found += _stale_sections(document, names, sort)
                found += _stale_items(document, names, sort)
    return tuple(_without_overlaps(found))


def _stale_items(document: Document, names: Sequence[str], sort: Sort) -> Iterator[Stale]:
    for block in document.blocks:
        named = [(item, _name(item)) for item in block.children]
        named = [(item, name) for item, name in named if name]
        if not any(_exists(name, names) for _, name in named) and not _about_layers(document, block, sort):
            continue
        if sort == "layer" and not _LAYER.search(f"{_title_at(document, block)} {block.text}"):
            continue
        for item, name in named:
            if not _exists(name, names) and (sort == "layer" or _IDENTIFIER.fullmatch(name)):
                yield Stale(document.name, item.lines.first, item.lines.last, name.strip("`"), sort)


def _stale_sections(document: Document, names: Sequence[str], sort: Sort) -> Iterator[Stale]:
    levels = {number: level for number, level, _ in document.headings}
    for section in document.sections:
        name = section.title.strip("`* ")
        if _exists(name, names) or len(name.split()) > (4 if sort == "layer" else 1):
            continue
        level = levels[section.lines.first]
        siblings = [other for other in document.sections if levels[other.lines.first] == level and other is not section]
        if any(_exists(sibling.title, names) for sibling in siblings) and _is_name(section, sort):
            yield Stale(document.name, section.lines.first, section.lines.last, name, sort)


def _is_name(section: Part, sort: Sort) -> bool:
    """Return True if a heading is the name of a tool or layer, not another heading among them."""
    if sort == "tool":
        return bool(_IDENTIFIER.fullmatch(section.title.strip("* ")))
    return bool(_LAYER.search(section.text))


def _about_layers(document: Document, block: Part, sort: Sort) -> bool:
    return sort == "layer" and bool(re.search(r"\b(?:layer|tier)s?\b", _title_at(document, block), re.I))


def _title_at(document: Document, block: Part) -> str:
    section = document.section_at(block.lines)
    return f"{section.title if section else ''} {block.title}"


def _name(item: Part) -> str:
    """Return the name at the start of an item: bold, in backquotes, or before a colon."""
    match = _NAME.match(item.text)
    return next((group.strip(" :") for group in match.groups() if group), "") if match else ""


def _exists(name: str, names: Sequence[str]) -> bool:
    declared = [spelling for other in names for spelling in _spellings(other)]
    return any(expected <= spelling for spelling in _spellings(name) for expected in declared)


def _spellings(name: str) -> list[frozenset[str]]:
    """Return the terms of a name without its brackets and of each bracket, without words such as "memory"."""
    texts = [re.sub(r"\(.*?\)", "", name), *re.findall(r"\((.*?)\)", name)]
    found = [frozenset(terms_of(text)) - {"memory", "layer", "tool"} or frozenset(terms_of(text)) for text in texts]
    return [terms for terms in found if terms]


def _without_overlaps(found: Sequence[Stale]) -> Iterator[Stale]:
    kept: list[Stale] = []
    for reference in sorted(found, key=lambda reference: (reference.source, reference.first - reference.last)):
        lines = Lines(reference.first, reference.last)
        if not any(
            other.source == reference.source and lines.overlap(Lines(other.first, other.last)) for other in kept
        ):
            kept.append(reference)
    yield from sorted(kept, key=lambda reference: (reference.source, reference.first))
