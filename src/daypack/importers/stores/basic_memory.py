"""basic-memory: a folder of Markdown notes, which are the truth; its database is derived from them.

    ---
    title: Coffee
    permalink: coffee
    ---
    - [method] Pour over gives more flavour #brewing (tasted twice)      an observation: category, text, tags, context
    - requires [[Proper Grinding]]                                      a relation to another note

Each observation is a memory, and so is the other text of a note.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from daypack.errors import BadInput, DaypackError
from daypack.importers.stores.front_matter import split_front_matter
from daypack.importers.stores.records import Link, Orphan, Records, StoredMemory, Unreadable, checked
from daypack.importers.stores.store_files import OPERATION, find_files, read_bytes, starts_with

NAME, TITLE = "basic-memory", "basic-memory"
_LOOKED_AT = 50  # files that decide whether a folder is of notes
_BULLET = re.compile(r"[ \t]*[-*+][ \t]+(.*)")
_OBSERVATION = re.compile(r"\[(?![ xX/>?-]\])(?P<category>[^\[\]()]{1,60})\]\s+(?P<text>.+)")
_CLOCK = re.compile(r"[\d:., -]+")
_CONTEXT = re.compile(r"\s*\((?P<context>[^()]*)\)\s*\Z")
_TAG = re.compile(r"(?<!\S)#([^\s#]+)")
_RELATION = re.compile(r"(?P<kind>[^\s\[\]]+|\"[^\"]+\"|'[^']+')\s+\[\[(?P<target>[^\[\]]+)\]\]\s*(?:\([^()]*\))?\s*\Z")
_LINK = re.compile(r"\[\[([^\[\]|]{1,200})(?:\|[^\[\]]*)?\]\]")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_DIGEST_CHARS = 12


class _Note(NamedTuple):
    path: str
    name: str  # relative to the folder, without .md
    title: str
    fields: dict[str, str]
    body: str
    created_at: str
    updated_at: str


def detect(path: str) -> bool:
    """Return True if a folder has notes with a permalink, or a file is one."""
    if os.path.isdir(path):
        return any(_is_note(file) for file in islice(find_files(path, suffix=".md"), _LOOKED_AT))
    return path.endswith(".md") and _is_note(path)


def read(path: str) -> Records:
    """Yield the observations and texts of all notes, then relations to notes that do not exist."""
    if not os.path.isdir(path) and not path.endswith(".md"):
        raise BadInput("neither a folder nor a Markdown file", operation=OPERATION, place=path)
    root = path if os.path.isdir(path) else os.path.dirname(path)
    notes: list[_Note] = []
    for file in find_files(path, suffix=".md") if os.path.isdir(path) else [path]:
        try:
            notes.append(_read_note(file, root))
        except DaypackError as error:
            yield Unreadable(place=file, problem=error.problem)
    known = {name for note in notes for name in _names(note)}
    for note in notes:
        relations: list[Link] = []
        prose: list[str] = []
        seen: set[str] = set()
        for line, is_code in _lines(note.body):
            bullet = None if is_code else _BULLET.match(line)
            relation = _RELATION.match(bullet[1].strip()) if bullet else None
            if relation:
                relations.append(Link(relation["kind"].strip("\"'"), relation["target"].strip()))
                continue
            relations += [] if is_code else [Link("links_to", target.strip()) for target in _LINK.findall(line)]
            memory = _observation(note, bullet[1].strip(), seen) if bullet else None
            if memory is None:
                prose.append(line)
            else:
                yield checked(memory)
        if text := _prose(prose):
            tags = tuple(filter(None, (tag.strip(" #") for tag in note.fields.get("tags", "").split(","))))
            yield checked(replace(_memory(note, note.name, text, "note"), links=tuple(relations), tags=tags))
        elif not seen:
            yield Orphan(id=note.name, problem="a note without text", place=note.path)
        for relation in dict.fromkeys(relations):
            if relation.target.casefold().rpartition("memory://")[2] not in known:
                problem = f"the relation {relation.kind} names {relation.target[:80]!r}, which is no note"
                yield Orphan(id=note.name, problem=problem, place=note.path)


def _observation(note: _Note, line: str, seen: set[str]) -> StoredMemory | None:
    found = _OBSERVATION.fullmatch(line)
    if found is None or _CLOCK.fullmatch(found["category"]):
        return None
    context = _CONTEXT.search(found["text"])
    text = found["text"][: context.start()] if context else found["text"]
    name = f"{note.name}#{hashlib.sha256(line.encode('utf-8', 'replace')).hexdigest()[:_DIGEST_CHARS]}"
    while name in seen:
        name += "+"
    seen.add(name)
    metadata = {"category": found["category"].strip()} | ({"context": context["context"]} if context else {})
    memory = _memory(note, name, text.strip(), "observation")
    return replace(memory, tags=tuple(_TAG.findall(text)), metadata=metadata)


def _memory(note: _Note, name: str, text: str, kind: str) -> StoredMemory:
    return StoredMemory(
        id=name,
        text=text,
        subject=note.title,
        kind=kind,
        created_at=note.created_at,
        updated_at=note.updated_at,
        place=note.path,
    )


def _read_note(path: str, root: str) -> _Note:
    fields, body = split_front_matter(read_bytes(path).decode("utf-8", "replace"))
    name = os.path.relpath(path, root).removesuffix(".md")
    written = datetime.fromtimestamp(os.stat(path).st_mtime, UTC).isoformat(timespec="seconds")
    created = fields.get("created") or fields.get("modified") or written
    return _Note(
        path=path,
        name=name,
        title=fields.get("title") or os.path.basename(name),
        fields=fields,
        body=body,
        created_at=created,
        updated_at=fields.get("modified") or ("" if created == written else written),
    )


def _names(note: _Note) -> Iterator[str]:
    """Yield the names by which relations may refer to a note."""
    for name in (note.title, note.name, os.path.basename(note.name), note.fields.get("permalink", "")):
        if name:
            yield name.casefold()
            yield name.casefold().replace(" ", "-")


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
            yield line, True
        else:
            yield line, is_code


def _prose(lines: list[str]) -> str:
    """Return the text of a note without headings that have nothing below them."""
    kept: list[str] = []
    for line in lines:
        if line.startswith("#"):
            while kept and (kept[-1].startswith("#") or not kept[-1].strip()):
                kept.pop()
        kept.append(line)
    while kept and (kept[-1].startswith("#") or not kept[-1].strip()):
        kept.pop()
    return "\n".join(kept).strip()


def _is_note(path: str) -> bool:
    fields, _ = split_front_matter(starts_with(path).decode("utf-8", "replace"))
    return "permalink" in fields
