"""What a prompt text tells of and nobody has any more, by a list of what there is.

    [tools]
    read_file
    [layers]
    Working memory

A name counts as a tool or layer when it stands where other names of that sort stand: in a list, or among headings, one
of which is declared. So a list of pens is not taken for a list of tools.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from daypack.errors import BadInput
from daypack.upkeep.lint.passages import Document, Lines, Part
from daypack.upkeep.lint.vocabulary import terms_of

_SORTS = ("tools", "layers")
_NAME = re.compile(
    r"\s*(?:[-*+•]|\d{1,3}[.)]|\|)?\s*(?:\*\*(.+?)\*\*|`([^`]+)`|([^:|—–(→]{2,60}?)\s*(?::\s|[|—–(→]|\s-\s))"
)
_LAYER = re.compile(r"\b(?:layer|tier|memory|memories)s?\b", re.I)
_IDENTIFIER = re.compile(r"`?[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*(?:\(.*\))?`?")


class Declared(Struct, frozen=True):
    """What there is."""

    tools: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


class Stale(Struct, frozen=True):
    """Lines of a text about something that is not declared."""

    source: str
    first: int
    last: int
    name: str
    sort: str  # tool or layer


def read_declared(text: str, place: str = "") -> Declared:
    """Read a list of what there is: names, one in a line, under [tools] and [layers]."""
    names: dict[str, list[str]] = {sort: [] for sort in _SORTS}
    sort = ""
    for number, row in enumerate(text.splitlines(), 1):
        line = row.strip().removeprefix("- ").strip(" `*")
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            sort = line[1:-1].strip().lower()
            if sort not in names:
                hint = "use [tools] and [layers], and one name in each line below"
                where = f"{place}, line {number}"
                raise BadInput(f"no section {line}", operation="read declarations", place=where, hint=hint)
        elif not sort:
            hint = "begin with [tools] or [layers]"
            where = f"{place}, line {number}"
            raise BadInput("a name without a section", operation="read declarations", place=where, hint=hint)
        else:
            names[sort].append(line)
    return Declared(tuple(names["tools"]), tuple(names["layers"]))


def find_stale(documents: Sequence[Document], declared: Declared) -> tuple[Stale, ...]:
    """Return what is told of a tool or layer that does not exist."""
    found: list[Stale] = []
    for document in documents:
        if document.role != "instruction":
            continue
        for sort, names in (("layer", declared.layers), ("tool", declared.tools)):
            if names:
                found += _stale_sections(document, names, sort)
                found += _stale_items(document, names, sort)
    return tuple(_once(found))


def _stale_items(document: Document, names: Sequence[str], sort: str) -> Iterator[Stale]:
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


def _stale_sections(document: Document, names: Sequence[str], sort: str) -> Iterator[Stale]:
    levels = {number: level for number, level, _ in document.headings}
    for section in document.sections:
        name = section.title.strip("`* ")
        if _exists(name, names) or len(name.split()) > (4 if sort == "layer" else 1):
            continue
        level = levels[section.lines.first]
        siblings = [one for one in document.sections if levels[one.lines.first] == level and one is not section]
        if any(_exists(one.title, names) for one in siblings) and _is_name(section, sort):
            yield Stale(document.name, section.lines.first, section.lines.last, name, sort)


def _is_name(section: Part, sort: str) -> bool:
    """Whether a heading is a name of the sort, and not a heading of another kind among them."""
    if sort == "tool":
        return bool(_IDENTIFIER.fullmatch(section.title.strip("* ")))
    return bool(_LAYER.search(section.text))


def _about_layers(document: Document, block: Part, sort: str) -> bool:
    return sort == "layer" and bool(re.search(r"\b(?:layer|tier)s?\b", _title_at(document, block), re.I))


def _title_at(document: Document, block: Part) -> str:
    section = document.section_at(block.lines)
    return f"{section.title if section else ''} {block.title}"


def _name(item: Part) -> str:
    """Return the name an item begins with: bold, in backquotes, or before a colon."""
    match = _NAME.match(item.text)
    return next((one.strip(" :") for one in match.groups() if one), "") if match else ""


def _exists(name: str, names: Sequence[str]) -> bool:
    said = _spellings(name)
    return any(one == meant or meant < one for one in said for other in names for meant in _spellings(other))


def _spellings(name: str) -> list[frozenset[str]]:
    """Return what a name may be known by: without what stands in brackets, that alone, without the word memory."""
    texts = [re.sub(r"\(.*?\)", "", name), *re.findall(r"\((.*?)\)", name)]
    found = [frozenset(terms_of(text)) - {"memory", "layer", "tool"} or frozenset(terms_of(text)) for text in texts]
    return [one for one in found if one]


def _once(found: Sequence[Stale]) -> Iterator[Stale]:
    kept: list[Stale] = []
    for one in sorted(found, key=lambda one: (one.source, one.first - one.last)):
        lines = Lines(one.first, one.last)
        if not any(other.source == one.source and lines.overlap(Lines(other.first, other.last)) for other in kept):
            kept.append(one)
    yield from sorted(kept, key=lambda one: (one.source, one.first))
