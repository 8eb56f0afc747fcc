"""The arguments of the nine tools: one Struct each, which is the input schema and knows which method it calls.

`about` and `where` are flattened: models fill flat arguments more reliably than nested ones. Caps stand in the schema
only: the memory decides about what is over them, and names the length it saw.
"""

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

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

if TYPE_CHECKING:
    from daypack.memory.tools import Memories

MemoryId = Annotated[str, Meta(description="The memory's id, as create_memory returned it.")]
Session = Annotated[str, Meta(description="The conversation it belongs to.")]
Role = Annotated[str, Meta(description="Who spoke: user, assistant, tool or person.")]
Author = Annotated[str, Meta(description="The speaker's name.")]
At = Annotated[str, Meta(description="When it was said; ISO 8601 can be filtered by.")]
Source = Annotated[str, Meta(description="Where in a history it stands: messages:12.")]
Tags = Annotated[tuple[str, ...], Meta(description="Labels to find it by.")]


def _text(description: str, most: int, least: int = 0) -> Meta:
    lengths = {"maxLength": most} | ({"minLength": least} if least else {})
    return Meta(description=description, extra_json_schema=lengths)


def _number(description: str, least: int, most: int) -> Meta:
    return Meta(description=description, extra_json_schema={"minimum": least, "maximum": most})


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call was given. A text that was left out is UNSET."""

    def call(self, memories: "Memories") -> Struct:
        """Do what the tool is for and return its result."""
        raise NotImplementedError


class CreateMemory(Arguments, frozen=True, kw_only=True):
    """Arguments of create_memory."""

    title: Annotated[str, _text(f"What it is about, 1 to {TITLE_MAX_CHARS} characters.", TITLE_MAX_CHARS, 1)]
    memory_type: Annotated[str, Meta(description="Which prompts fit it: chat, task or project.")] = "chat"
    description: Annotated[str, _text("A longer description.", DESCRIPTION_MAX_CHARS)] = ""

    def call(self, memories: "Memories") -> Memory:
        """Create it."""
        return memories.create_memory(self.title, self.memory_type, self.description)


class GetMemory(Arguments, frozen=True, kw_only=True):
    """Arguments of get_memory."""

    memory_id: MemoryId

    def call(self, memories: "Memories") -> Memory:
        """Read what is known of it."""
        return memories.get_memory(self.memory_id)


class Metadata(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same as the flat arguments, for callers that keep them together; `date` is another word for `at`."""

    session: str | UnsetType = UNSET
    role: str | UnsetType = UNSET
    author: str | UnsetType = UNSET
    at: str | UnsetType = UNSET
    date: str | UnsetType = UNSET
    tags: tuple[str, ...] = ()
    source: str | UnsetType = UNSET


class AddEntry(Arguments, frozen=True, kw_only=True):
    """Arguments of add_entry."""

    memory_id: MemoryId
    raw_entry: Annotated[str, Meta(description="The message, word for word; at most 9,000 bytes unless set otherwise.")]
    summary: (
        Annotated[
            str,
            _text(
                "One summary for search: names instead of pronouns, past tense, dates and ids kept; "
                f"at most {SUMMARY_MAX_CHARS} characters. Left out: one is made.",
                SUMMARY_MAX_CHARS,
            ),
        ]
        | UnsetType
    ) = UNSET
    session: Session | UnsetType = UNSET
    role: Role | UnsetType = UNSET
    author: Author | UnsetType = UNSET
    at: At | UnsetType = UNSET
    tags: Tags = ()
    source: Source | UnsetType = UNSET
    client_key: (
        Annotated[str, Meta(description="A key of yours: the same call again stores nothing twice.")] | UnsetType
    ) = UNSET
    metadata: (
        Annotated[
            Metadata, Meta(description="session, role, author, at (or date) and tags in one object instead of flat.")
        ]
        | UnsetType
    ) = UNSET

    def call(self, memories: "Memories") -> Added:
        """Store it."""
        more = self.metadata or Metadata()
        about = About(
            session=_given(self.session or more.session),
            role=_given(self.role or more.role),
            author=_given(self.author or more.author),
            at=_given(self.at or more.at or more.date),
            tags=self.tags or more.tags,
            source=_given(self.source or more.source),
        )
        summary, key = _given(self.summary), _given(self.client_key)
        return memories.add_entry(self.memory_id, self.raw_entry, summary, about=about, client_key=key)


class ListEntries(Arguments, frozen=True, kw_only=True):
    """Arguments of list_entries."""

    memory_id: MemoryId
    limit: Annotated[int, _number("How many, newest first.", 1, LIST_MAX_ENTRIES)] = 25
    before: Annotated[str, Meta(description="Only entries older than this entry id or time.")] | UnsetType = UNSET
    after: Annotated[str, Meta(description="Only entries newer than this entry id or time.")] | UnsetType = UNSET

    def call(self, memories: "Memories") -> EntryPage:
        """Read a page of them."""
        return memories.list_entries(self.memory_id, self.limit, _given(self.before), _given(self.after))


class GetContext(Arguments, frozen=True, kw_only=True):
    """Arguments of get_context."""

    memory_id: MemoryId

    def call(self, memories: "Memories") -> ContextDocument:
        """Read the current document."""
        return memories.get_context(self.memory_id)


class PutContext(Arguments, frozen=True, kw_only=True):
    """Arguments of put_context."""

    memory_id: MemoryId
    # Announced as text; an empty object is taken too, it stands for the initial document.
    content: Annotated[
        Any,
        Meta(
            description=f"The whole document, Markdown, at most {DOCUMENT_MAX_CHARS} characters.",
            extra_json_schema={"type": "string", "maxLength": DOCUMENT_MAX_CHARS},
        ),
    ]

    def call(self, memories: "Memories") -> ContextDocument:
        """Write it as the new current document."""
        return memories.put_context(self.memory_id, self.content)


class AwaitConsistency(Arguments, frozen=True, kw_only=True):
    """Arguments of await_consistency."""

    memory_id: MemoryId | UnsetType = UNSET
    token: (
        Annotated[str, Meta(description="Of a write: wait for that one only. Left out: for all so far.")] | UnsetType
    ) = UNSET
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

    def call(self, memories: "Memories") -> Consistency:
        """Wait."""
        return memories.await_consistency(_given(self.memory_id), _given(self.token), self.timeout_ms, self.level)


class GetUser(Arguments, frozen=True, kw_only=True):
    """Arguments of get_user: there are none."""

    def call(self, memories: "Memories") -> User:
        """Read the profile."""
        return memories.get_user()


class SearchMemories(Arguments, frozen=True, kw_only=True):
    """Arguments of search_memories."""

    memory_id: MemoryId
    query: Annotated[str, Meta(description="What to look for: a question, words, a name, a number.")]
    top_k: Annotated[int, _number("How many entries, best first.", 1, SEARCH_MAX_ENTRIES)] = 10
    explain: Annotated[bool, Meta(description="Also tell the parts each score is made of.")] = False
    since: Annotated[str, Meta(description="Only entries of this time or later, ISO 8601.")] | UnsetType = UNSET
    until: Annotated[str, Meta(description="Only entries of this time or earlier, ISO 8601.")] | UnsetType = UNSET
    tags: Annotated[tuple[str, ...], Meta(description="Only entries that have all these tags.")] = ()
    role: Annotated[str, Meta(description="Only entries of this role.")] | UnsetType = UNSET
    author: Annotated[str, Meta(description="Only entries of this speaker.")] | UnsetType = UNSET
    session: Annotated[str, Meta(description="Only entries of this conversation.")] | UnsetType = UNSET

    def call(self, memories: "Memories") -> SearchResult:
        """Search."""
        where = Where(
            since=_given(self.since),
            until=_given(self.until),
            tags=self.tags,
            role=_given(self.role),
            author=_given(self.author),
            session=_given(self.session),
        )
        return memories.search_memories(self.memory_id, self.query, self.top_k, explain=self.explain, where=where)


def _given(value: str | UnsetType) -> str | None:
    return None if value is UNSET else value
