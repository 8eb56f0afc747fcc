"""Find references to tools or layers that no longer exist, given a list of those that do.

    [tools]
    read_file
    [layers]
    Working memory

A name counts as a tool or layer if it is in a list, or among headings, of which at least one entry is declared, if
it is called (`fax_out(number)`), or if it is called a tool or a layer. What is stale there is stale under any heading.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from daypack.errors import BadInput
from daypack.text.statements.passages import TITLE_LEVEL, Document, Part, Span
from daypack.text.statements.wording import terms_of

Sort = Literal["tool", "layer"]
_LAYER_WORDS = 4  # of a name
_NAME = re.compile(
    r"\s*(?:[-*+•]|\d{1,3}[.)]|\|)?\s*(?:\*\*(.+?)\*\*|`([^`]+)`|([^:|—–(→]{2,60}?)\s*(?::\s|[|—–(→]|\s-\s))"
)
_LAYERS = re.compile(r"\b(?:layer|tier)s?\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"`?[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*(?:\(.*\))?`?")
# A call, or a name in backquotes that is used or called a tool; a name before "layer".
_MENTIONS: dict[Sort, re.Pattern[str]] = {
    "tool": re.compile(
        r"`(\w+)\([^`]*\)`|`(\w+)` tool\b|\btool `(\w+)`|^\s*(?:[-*+•]\s+)?`(\w+_\w+)`"
        r"|\b(?:[Uu]s(?:e|ing)|[Cc]all(?:ing)?|[Rr]un(?:ning)?|[Ii]nvok(?:e|ing)|[Vv]ia) (?:`(\w+_\w+)`|(\w+_\w+)\()"
    ),
    "layer": re.compile(r"\b[Tt]he ((?:[A-Z][\w-]+ ?){1,3}) ?(?:layer|tier)\b"),
}


class Declared(Struct, frozen=True):
    """The tools and layers that exist."""

    tools: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


class Stale(Span, frozen=True, omit_defaults=True):
    """Lines of a text about a tool or layer that is not declared; `mixed`: they are about a declared one too."""

    name: str
    sort: Sort
    mixed: bool = False


def read_declared(text: str, place: str = "") -> Declared:
    """Parse a list of names, one per line, under [tools] and [layers]."""
    names: dict[str, list[str]] = {"tools": [], "layers": []}
    section = ""
    for number, row in enumerate(text.splitlines(), 1):
        line = row.strip().removeprefix("- ").strip(" `*")
        heading = line[1:-1].strip().lower() if line.startswith("[") and line.endswith("]") else ""
        if not line or line.startswith("#"):
            continue
        if (heading or section) not in names:
            problem = f"unknown section {line}" if heading else "name outside of a section"
            hint = "start with [tools] or [layers], with one name per line below"
            raise BadInput(problem, operation="read declarations", place=f"{place}, line {number}", hint=hint)
        section = heading or section
        names[section] += [] if heading else [line]
    return Declared(tuple(names["tools"]), tuple(names["layers"]))


def find_stale(documents: Sequence[Document], declared: Declared) -> tuple[Stale, ...]:
    """Return the lines about tools or layers that are not declared."""
    kinds: tuple[tuple[Sort, tuple[str, ...]], ...] = (("layer", declared.layers), ("tool", declared.tools))
    own = [document for document in documents if document.role == "instruction"]
    found: list[Stale] = []
    for sort, names in kinds:
        if not names:
            continue
        listed = [stale for document in own for stale in _listed(document, names, sort)]
        gone = {stale.name.split("(")[0].strip() for stale in listed}
        for item in [item for document in own for item in document.items]:
            called = [next(filter(None, match.groups())).strip() for match in _MENTIONS[sort].finditer(item.text)]
            lost = [name for name in (*sorted(gone), *called) if not _exists(name, names) and _mentions(item, name)]
            if lost:
                mixed = any(_mentions(item, name) for name in (*declared.tools, *declared.layers))
                listed.append(Stale(item.source, *item.lines, lost[0], sort, mixed))
        found += listed
    return tuple(_without_overlaps(found))


def _listed(document: Document, names: Sequence[str], sort: Sort) -> Iterator[Stale]:
    """Yield items and sections among declared ones."""
    lists: dict[str, list[tuple[Part, str]]] = defaultdict(list)
    for item in document.items:
        section = document.section_at(item.lines)
        match = _NAME.match(item.text)
        if match:
            name = next(group for group in match.groups() if group)
            lists[f"{section.title} {section.lines}" if section else ""].append((item, name.strip(" :")))
    levels = {number: level for number, level, _ in document.headings if level < TITLE_LEVEL}
    for section in document.sections:
        if (level := levels.get(section.lines.first)) and (sort == "tool" or _LAYERS.search(section.text)):
            lists[str(level)].append((section, section.title.strip("`* ")))
    for title, entries in lists.items():
        about_layers = sort == "layer" and _LAYERS.search(title)
        if about_layers or any(_spellings(name) & _spellings(other) for _, name in entries for other in names):
            for part, name in entries:
                named = _IDENTIFIER.fullmatch(name) if sort == "tool" else len(name.split()) <= _LAYER_WORDS
                if named and not _exists(name, names):
                    yield Stale(document.name, *part.lines, name.strip("`"), sort)


def _mentions(item: Part, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", item.text) is not None


def _exists(name: str, names: Sequence[str]) -> bool:
    """Return True if a name has all the words of a declared one, and perhaps more."""
    declared = [spelling for other in names for spelling in _spellings(other)]
    return any(expected <= spelling for spelling in _spellings(name) for expected in declared)


def _spellings(name: str) -> set[frozenset[str]]:
    """Return the terms of a name without its brackets and of each bracket, without words such as "memory"."""
    texts = [re.sub(r"\(.*?\)", "", name), *re.findall(r"\((.*?)\)", name)]
    return {terms_of(text) - terms_of("memory layer tool") or terms_of(text) for text in texts if terms_of(text)}


def _without_overlaps(found: Sequence[Stale]) -> Iterator[Stale]:
    kept: list[Stale] = []
    for stale in sorted(found, key=lambda stale: stale.first - stale.last):
        if not any(other.source == stale.source and stale.lines.gap(other.lines) == 0 for other in kept):
            kept.append(stale)
    yield from sorted(kept, key=lambda stale: (stale.source, stale.first))
