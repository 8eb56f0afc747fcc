"""Exports and imports a memory as JSONL: a header, every version of the document, the entries in order, an end.

    {"daypack":"memory","format":1,"title":"Launch","memory_type":"chat","memory_id":"9f…","created_at":"…"}
    {"document":{"content":"…","document_id":"…","created_at":"…"}}
    {"entry":{"raw_entry":"…","summary":"…","entry_id":"…","created_at":"…","role":"user"}}
    {"end":{"documents":1,"entries":1}}

A file written by hand may omit ids, times, summaries and the end. The end lists what was skipped because it is damaged:
{"end":{"documents":1,"entries":1,"damaged":[{"kind":"entry","id":"…","number":2,"problem":"checksum mismatch",…}]}}
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

import msgspec
from msgspec import Struct

from daypack.errors import BadInput, DamageWarning, DaypackError
from daypack.memory.limits import (
    Limits,
    check_about,
    check_description,
    check_document,
    check_raw,
    check_summary,
    check_title,
    check_type,
)
from daypack.memory.store.port import NewDocument, NewEntry, NewMemory, Store, is_id, next_after, split_id
from daypack.memory.times import parse_time
from daypack.types.memory import PLACEHOLDER, About, DamagedRecord, Memory

FORMAT = 1
_KIND = "memory"
_BATCH = 1_000
_OPERATION = "import memory"

Summarise = Callable[[str, About, str], str]
_Part = TypeVar("_Part", bound=Struct)


class _Header(Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    daypack: str
    format: int
    title: str
    memory_type: str = "chat"
    description: str = ""
    memory_id: str | None = None
    created_at: str | None = None


class _Document(Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    content: str
    document_id: str | None = None
    created_at: str | None = None


class _Entry(Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    raw_entry: str
    summary: str | None = None
    entry_id: str | None = None
    created_at: str | None = None
    session: str | None = None
    role: str | None = None
    author: str | None = None
    at: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None


class _End(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    documents: int
    entries: int
    damaged: tuple[DamagedRecord, ...] = ()


class _Line(Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    document: _Document | None = None
    entry: _Entry | None = None
    end: _End | None = None


_HEADER = msgspec.json.Decoder(_Header)
_LINE = msgspec.json.Decoder(_Line)
_ENCODER = msgspec.json.Encoder()


def export_memory(
    store: Store, user: str, memory_id: str, shown: Callable[[Struct], Struct] = lambda record: record
) -> Iterator[bytes]:
    """Yield the lines of a memory as of now; entries added during the export are not included.

    `shown` returns a record as it may leave the store.
    """
    newest = store.newest(user, memory_id)
    memory = cast("Memory", shown(store.memory(user, memory_id)))
    header = _Header(
        daypack=_KIND,
        format=FORMAT,
        title=memory.title,
        memory_type=memory.memory_type,
        description=memory.description,
        memory_id=memory_id,
        created_at=memory.created_at,
    )
    yield _ENCODER.encode(header) + b"\n"
    damaged: dict[tuple[str, int], DamagedRecord] = {}
    documents = entries = last = 0
    while last < newest.documents and (batch := store.documents(user, memory_id, last, _BATCH)):
        for document in batch:
            if isinstance(document, DamagedRecord):
                damaged[document.kind, document.number] = document
            elif document.version <= newest.documents:
                yield _encode(_Line(document=_fields(_Document, shown(document))))
                documents += 1
        last = next_after(batch, last)
    last = 0
    while last < newest.entries and (entry_batch := store.after(user, memory_id, last, _BATCH)):
        for entry in entry_batch:
            if isinstance(entry, DamagedRecord):
                damaged[entry.kind, entry.number] = entry
            elif last < entry.seq <= newest.entries:
                yield _encode(_Line(entry=_fields(_Entry, shown(entry))))
                entries += 1
        last = next_after(entry_batch, last)
    for record in damaged.values():
        warnings.warn(DamageWarning(str(record)), stacklevel=2)
    yield _encode(_Line(end=_End(documents, entries, tuple(damaged.values()))))


def _fields(kind: type[_Part], stored: Struct) -> _Part:
    return kind(**{name: getattr(stored, name) for name in kind.__struct_fields__})


def _encode(line: Struct) -> bytes:
    return _ENCODER.encode(line) + b"\n"


class Archive:
    """The lines of an archive, parsed and checked before anything is stored."""

    def __init__(self, limits: Limits, summarise: Summarise) -> None:
        self.documents: list[NewDocument] = []
        self.entries: list[NewEntry] = []
        self._limits = limits
        self._summarise = summarise
        self._header: _Header | None = None
        self._end: _End | None = None

    def read(self, lines: Iterable[bytes | str]) -> None:
        """Parse all lines; an invalid line raises BadInput with its number."""
        number = 0
        for number, line in enumerate(lines, 1):
            if not isinstance(cast(object, line), str | bytes | bytearray):
                raise _bad(f"expected text or bytes, got {type(line).__name__}", number)
            if not line.strip():
                continue
            try:
                self._take(line)
            except msgspec.MsgspecError as error:
                raise _bad(str(error), number) from error
            except UnicodeError as error:
                raise _bad("not UTF-8", number) from error
            except DaypackError as error:
                raise type(error)(
                    error.problem, operation=_OPERATION, place=f"line {number}", hint=error.hint
                ) from error
        if self._header is None:
            raise _bad("the header is missing", number)
        if self._header.memory_id is not None and self._end is None:
            raise _bad("the end line is missing: the file is truncated", number)

    def _take(self, line: bytes | str) -> None:
        if self._header is None:
            self._header = self._checked_header(_HEADER.decode(line))
            return
        if self._end is not None:
            raise BadInput("there is a line after the end")
        read = _LINE.decode(line)
        if (read.document is not None) + (read.entry is not None) + (read.end is not None) != 1:
            raise BadInput("expected a document, an entry or the end")
        if read.entry is not None:
            self.entries.append(self._entry(read.entry))
        elif read.document is not None:
            self.documents.append(self._document(read.document))
        elif read.end is not None:
            self._end = read.end
            if (read.end.documents, read.end.entries) != (len(self.documents), len(self.entries)):
                counted = f"{read.end.documents:,} documents and {read.end.entries:,} entries"
                raise BadInput(f"lines are missing: the end line counts {counted}")

    def _checked_header(self, header: _Header) -> _Header:
        if (header.daypack, header.format) != (_KIND, FORMAT):
            raise BadInput(f"not an archive of a memory in format {FORMAT}")
        if header.memory_id is not None and not is_id(header.memory_id):
            raise BadInput("memory_id is not a valid id", hint="leave it out to have one assigned")
        check_title(header.title, self._limits)
        check_type(header.memory_type)
        check_description(header.description, self._limits)
        _moment(header.created_at)
        return header

    def _document(self, line: _Document) -> NewDocument:
        content = check_document(line.content, self._limits)
        return NewDocument(content, _checked_id(line.document_id, "document_id"), _moment(line.created_at))

    def _entry(self, line: _Entry) -> NewEntry:
        raw = check_raw(line.raw_entry, self._limits)
        about = About(
            session=line.session,
            role=line.role,
            author=line.author,
            at=line.at,
            tags=line.tags,
            source=line.source,
        )
        about = check_about(about, self._limits)
        if line.summary is None:
            document = self.documents[-1].content if self.documents else ""
            summary = self._summarise(raw, about, document)
        else:
            summary = check_summary(line.summary, self._limits)
        return NewEntry(
            raw=raw,
            summary=summary,
            about=about,
            entry_id=_checked_id(line.entry_id, "entry_id"),
            created_at=_moment(line.created_at),
        )

    def store(self, store: Store, user: str, title: str | None = None) -> Memory:
        """Store the parsed lines, all or none; with a title as a new memory, whatever its id was."""
        header = self._header
        if header is None:
            raise BadInput("the archive was not read", operation=_OPERATION, hint="call read first")
        new = NewMemory(
            title=header.title if title is None else check_title(title, self._limits, _OPERATION),
            memory_type=header.memory_type,
            description=header.description,
            memory_id=header.memory_id if title is None else None,
            created_at=_moment(header.created_at),
        )
        return store.load(user, new, self.documents or (NewDocument(PLACEHOLDER),), self.entries)


def _checked_id(text: str | None, field: str) -> str | None:
    if text is not None and not (is_id(text) and split_id(text)[1]):
        raise BadInput(f"{field} is not a valid id", hint="leave it out to have one assigned")
    return text


def _moment(text: str | None) -> int | None:
    moment = parse_time(text)
    if text is not None and moment is None:
        raise BadInput(f"created_at is {text!r}", hint="write an ISO 8601 time, or leave created_at out")
    return moment


def _bad(problem: str, number: int) -> BadInput:
    return BadInput(
        problem, operation=_OPERATION, place=f"line {number}", hint="nothing was stored; fix the line and import again"
    )
