"""The requests of the nine tools: one Struct per tool, which is also its JSON input schema on a server.

`about` and `where` are flat here: models fill flat arguments more reliably than nested ones. Length limits appear in
the schema only; the memory enforces them, so that the error can name the actual length.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from daypack.errors import BadInput
from daypack.types.memory import (
    DESCRIPTION_MAX_CHARS,
    DOCUMENT_MAX_CHARS,
    LIST_MAX_ENTRIES,
    SEARCH_MAX_ENTRIES,
    SUMMARY_MAX_CHARS,
    TITLE_MAX_CHARS,
    About,
    Added,
    Consistency,
    ContextDocument,
    EntryPage,
    Level,
    Memory,
    SearchResult,
    User,
    Where,
)

Result = TypeVar("Result", bound=Struct)

# Empty: the default memory, if there is one.
MemoryId = Annotated[str, Meta(description="The memory's id, as create_memory returned it.")]


def _text(description: str, max_chars: int, min_chars: int = 0) -> Meta:
    lengths = {"maxLength": max_chars} | ({"minLength": min_chars} if min_chars else {})
    return Meta(description=description, extra_json_schema=lengths)


def _number(description: str, minimum: int, maximum: int) -> Meta:
    return Meta(description=description, extra_json_schema={"minimum": minimum, "maximum": maximum})


# Hints for a call without memory_id; the second is for users of a server other than its own, who have no default.
NO_DEFAULT = (
    "pass memory_id, or set a default memory with --memory, DAYPACK_MEMORY, `default` in the [memory] table of "
    "config.toml, or open_memory(memory=…)"
)
NO_DEFAULT_HERE = "pass memory_id: GET /api/memories and the MCP resource daypack://memories list your memories"


class Request(Struct, Generic[Result], frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of one call. Encoded as JSON, it leaves out what has its default value."""

    tool: ClassVar[str]
    result: ClassVar[type[Struct]]


class CreateMemory(Request[Memory], frozen=True, kw_only=True):
    """Arguments of create_memory."""

    tool: ClassVar[str] = "create_memory"
    result: ClassVar[type[Struct]] = Memory

    title: Annotated[str, _text(f"What it is about, 1 to {TITLE_MAX_CHARS} characters.", TITLE_MAX_CHARS, 1)]
    memory_type: Annotated[str, Meta(description="Which prompts fit it: chat, task or project.")] = "chat"
    description: Annotated[str, _text("A longer description.", DESCRIPTION_MAX_CHARS)] = ""


class GetMemory(Request[Memory], frozen=True, kw_only=True):
    """Arguments of get_memory."""

    tool: ClassVar[str] = "get_memory"
    result: ClassVar[type[Struct]] = Memory

    memory_id: MemoryId = ""


class Metadata(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same fields as the flat arguments, for callers that keep them in one object; `date` is an alias of `at`."""

    session: str | None = None
    role: str | None = None
    author: str | None = None
    at: str | None = None
    date: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None


class AddEntry(Request[Added], frozen=True, kw_only=True):
    """Arguments of add_entry."""

    tool: ClassVar[str] = "add_entry"
    result: ClassVar[type[Struct]] = Added

    memory_id: MemoryId = ""
    raw_entry: Annotated[str, Meta(description="The message, word for word; at most 9,000 bytes unless configured.")]
    summary: (
        Annotated[
            str,
            _text(
                "One summary for search: names instead of pronouns, past tense, dates and ids unchanged; "
                f"at most {SUMMARY_MAX_CHARS} characters. If omitted, one is generated.",
                SUMMARY_MAX_CHARS,
            ),
        ]
        | None
    ) = None
    session: Annotated[str, Meta(description="The conversation it belongs to.")] | None = None
    role: Annotated[str, Meta(description="Who spoke: user, assistant, tool or person.")] | None = None
    author: Annotated[str, Meta(description="The speaker's name.")] | None = None
    at: Annotated[str, Meta(description="The time of the message; only ISO 8601 times can be filtered by.")] | None = (
        None
    )
    tags: Annotated[tuple[str, ...], Meta(description="Labels to find it by.")] = ()
    source: Annotated[str, Meta(description="Its place in a session's history, for example messages:12.")] | None = None
    client_key: (
        Annotated[str, Meta(description="Your idempotency key: repeating the call stores nothing twice.")] | None
    ) = None
    metadata: Metadata | None = None

    @property
    def about(self) -> About:
        """The fields beside the text; a flat argument takes precedence over `metadata`."""
        more = self.metadata or Metadata()
        return About(
            session=self.session or more.session,
            role=self.role or more.role,
            author=self.author or more.author,
            at=self.at or more.at or more.date,
            tags=self.tags or more.tags,
            source=self.source or more.source,
        )


class ListEntries(Request[EntryPage], frozen=True, kw_only=True):
    """Arguments of list_entries."""

    tool: ClassVar[str] = "list_entries"
    result: ClassVar[type[Struct]] = EntryPage

    memory_id: MemoryId = ""
    limit: Annotated[int, _number("How many, newest first.", 1, LIST_MAX_ENTRIES)] = 25
    before: Annotated[str, Meta(description="Only entries older than this entry id or time.")] | None = None
    after: Annotated[str, Meta(description="Only entries newer than this entry id or time.")] | None = None


class GetContext(Request[ContextDocument], frozen=True, kw_only=True):
    """Arguments of get_context."""

    tool: ClassVar[str] = "get_context"
    result: ClassVar[type[Struct]] = ContextDocument

    memory_id: MemoryId = ""


class PutContext(Request[ContextDocument], frozen=True, kw_only=True):
    """Arguments of put_context."""

    tool: ClassVar[str] = "put_context"
    result: ClassVar[type[Struct]] = ContextDocument

    memory_id: MemoryId = ""
    # The schema says text; an empty object is accepted too and means the initial document.
    content: Annotated[
        Any,
        Meta(
            description=f"The whole document, Markdown, at most {DOCUMENT_MAX_CHARS} characters.",
            extra_json_schema={"type": "string", "maxLength": DOCUMENT_MAX_CHARS},
        ),
    ]


class AwaitConsistency(Request[Consistency], frozen=True, kw_only=True):
    """Arguments of await_consistency."""

    tool: ClassVar[str] = "await_consistency"
    result: ClassVar[type[Struct]] = Consistency

    memory_id: MemoryId | None = None
    token: (
        Annotated[str, Meta(description="The token of a write: wait for that write only. If omitted, for all so far.")]
        | None
    ) = None
    timeout_ms: Annotated[int, Meta(ge=0, le=600_000, description="How long to wait at most, in milliseconds.")] = (
        10_000
    )
    level: Annotated[
        Level,
        Meta(
            description="durable: on disk; visible: readable; searchable: found by search_memories.",
            extra_json_schema={"type": "string"},
        ),
    ] = "searchable"


class GetUser(Request[User], frozen=True, kw_only=True):
    """Arguments of get_user: there are none."""

    tool: ClassVar[str] = "get_user"
    result: ClassVar[type[Struct]] = User


class SearchMemories(Request[SearchResult], frozen=True, kw_only=True):
    """Arguments of search_memories."""

    tool: ClassVar[str] = "search_memories"
    result: ClassVar[type[Struct]] = SearchResult

    memory_id: MemoryId = ""
    query: Annotated[str, Meta(description="What to look for: a question, words, a name, a number.")]
    top_k: Annotated[int, _number("At most how many entries, best first.", 1, SEARCH_MAX_ENTRIES)] = 10
    explain: Annotated[bool, Meta(description="Also return the parts of each score.")] = False
    since: Annotated[str, Meta(description="Only entries of this time or later, ISO 8601.")] | None = None
    until: Annotated[str, Meta(description="Only entries of this time or earlier, ISO 8601.")] | None = None
    tags: Annotated[tuple[str, ...], Meta(description="Only entries that have all these tags.")] = ()
    role: Annotated[str, Meta(description="Only entries of this role.")] | None = None
    author: Annotated[str, Meta(description="Only entries of this speaker.")] | None = None
    session: Annotated[str, Meta(description="Only entries of this conversation.")] | None = None

    @property
    def where(self) -> Where:
        """The filters."""
        return Where(
            since=self.since,
            until=self.until,
            tags=self.tags,
            role=self.role,
            author=self.author,
            session=self.session,
        )


REQUESTS: tuple[type[Request[Any]], ...] = (
    CreateMemory,
    GetMemory,
    AddEntry,
    ListEntries,
    GetContext,
    PutContext,
    AwaitConsistency,
    GetUser,
    SearchMemories,
)


# Arguments of a Python call that may have several forms

_Fields = TypeVar("_Fields", About, Where)


def read_about(about: object) -> About:
    """Return `about` with checked types; numbers and times become text."""
    return About() if about is None else _converted(about, About, "about", AddEntry.tool)


def read_where(where: object) -> Where:
    """Return `where` with checked types; numbers and times become text."""
    return Where() if where is None else _converted(where, Where, "where", SearchMemories.tool)


def read_number(value: object, argument: str, tool: str) -> int:
    """Return a whole number that is given as a number or as text."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 20:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{argument} is {repr(value)[:64]}", operation=tool, hint=f"{argument} must be a whole number")
    return value


def _converted(value: object, kind: type[_Fields], argument: str, tool: str) -> _Fields:
    if isinstance(value, kind):
        value = msgspec.structs.asdict(value)
    if not isinstance(value, Mapping):
        raise BadInput(f"{argument} must be an object, not {type(value).__name__}", operation=tool)
    fields = cast(Mapping[object, object], value)
    if unknown := [str(name) for name in fields if name not in kind.__struct_fields__]:
        hint = f"{argument} has {', '.join(kind.__struct_fields__)}"
        raise BadInput(f"{argument} has no {', '.join(unknown)}", operation=tool, hint=hint)
    try:
        return msgspec.convert({name: _as_text(field) for name, field in fields.items() if field is not None}, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{argument}: {error}", operation=tool) from error


def _as_text(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # many programs number their sessions
    return value.isoformat() if isinstance(value, (date, datetime)) else value


# msgspec inspects a type at its first use, which is not thread-safe: do it here.
_WARM = tuple(msgspec.json.Decoder(kind) for kind in (About, Where))
