"""Memories, their entries and context documents, users, and what the memory tools return."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from daypack.types.fields import Count, Timestamp

TITLE_MAX_CHARS = 50
DESCRIPTION_MAX_CHARS = 500
SUMMARY_MAX_CHARS = 512
SUMMARY_TOKENS = 80  # about what a summary should have; characters decide
DOCUMENT_MAX_CHARS = 5000
ENTRY_MAX_BYTES = 9000
LIST_MAX_ENTRIES = 50
SEARCH_MAX_ENTRIES = 100

Title = Annotated[str, Meta(min_length=1, max_length=TITLE_MAX_CHARS)]
Description = Annotated[str, Meta(max_length=DESCRIPTION_MAX_CHARS)]
EntrySummary = Annotated[str, Meta(max_length=SUMMARY_MAX_CHARS)]
Content = Annotated[str, Meta(max_length=DOCUMENT_MAX_CHARS)]
Limit = Annotated[int, Meta(ge=1, le=LIST_MAX_ENTRIES)]
Level = Literal["durable", "visible", "searchable"]

# What a new memory holds until somebody writes its document (compared exactly).
PLACEHOLDER = (
    "This is default context that's created with the memory. "
    "Instructions for AI Agent: Provide relevant context as soon as it's available."
)


class About(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is known of a raw entry beside its text; search uses all of it.

    `at` is when it was said, as the caller writes times (ISO 8601 can be filtered by); `source` is where in a history
    the message stands ("messages:12").
    """

    session: str | None = None
    role: str | None = None
    author: str | None = None
    at: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None


class Where(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Which entries a search may return: all that is given must hold; an entry needs all the tags.

    `since` and `until` are ISO 8601 times, both included; they look at `at`, where an entry has none or one that is no
    ISO time at when it was stored.
    """

    since: str | None = None
    until: str | None = None
    tags: tuple[str, ...] = ()
    role: str | None = None
    author: str | None = None
    session: str | None = None


class Stats(Struct, frozen=True):
    """How much a memory holds."""

    entries: Count = 0
    documents: Count = 0
    bytes: Count = 0


class Memory(Struct, frozen=True, kw_only=True):
    """What is known about a memory without reading it."""

    memory_id: str
    title: Title
    memory_type: str
    created_at: Timestamp
    description: Description = ""
    stats: Stats = Stats()
    deleted_at: Timestamp | None = None
    # Of the write that made it; a memory that is only read has none.
    token: str | None = None


class Entry(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One raw message with its one summary; written once, never changed. `seq` counts within the memory, from 1."""

    entry_id: str
    memory_id: str
    seq: int
    created_at: Timestamp
    raw_entry: str
    summary: EntrySummary
    session: str | None = None
    role: str | None = None
    author: str | None = None
    at: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None


class RawEntry(Struct, frozen=True):
    """An entry without its summary: context documents are built from raw text only."""

    text: str
    author: str | None = None
    role: str | None = None
    at: str | None = None
    source: str | None = None


class Added(Struct, frozen=True, kw_only=True):
    """What `add_entry` did. `replayed`: the client key was known, this is the answer of the first time."""

    memory_id: str
    entry_id: str
    seq: int
    created_at: Timestamp
    summary: EntrySummary
    token: str
    replayed: bool = False
    # What was stored all the same, and might be better: a summary of many tokens.
    notes: tuple[str, ...] = ()


class ContextDocument(Struct, frozen=True, kw_only=True):
    """The context document of a memory as one `put_context` left it; the latest is current, none is lost."""

    document_id: str
    memory_id: str
    version: int
    created_at: Timestamp
    content: Content
    # Of the write that made it; a document that is only read has none.
    token: str | None = None


class EntryPage(Struct, frozen=True, kw_only=True):
    """Entries, newest first, with the cursors that lead on in both directions (each an entry id)."""

    memory_id: str
    entries: tuple[Entry, ...]
    count: Count
    applied_limit: Limit
    next_before: str | None = None
    next_after: str | None = None


class Hit(Entry, frozen=True, omit_defaults=True, kw_only=True):
    """An entry that a search found, with its score and, when asked for, the parts the score is made of."""

    score: float
    score_parts: dict[str, float] | None = None


class SearchResult(Struct, frozen=True, kw_only=True):
    """Ranked entries, best first, with the latest context document and the one that fits the query best."""

    memory_id: str
    entries: tuple[Hit, ...]
    count: Count
    latest_context: str | None = None
    context_timestamp: Timestamp | None = None
    best_context: str | None = None
    best_context_timestamp: Timestamp | None = None
    best_context_score: float | None = None
    # What the search had to do without: vectors that are not ready, an embedder that does not answer.
    notes: tuple[str, ...] = ()


class FailedWrite(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A write that did not become durable; nothing of it is stored."""

    operation: str
    problem: str
    memory_id: str | None = None
    client_key: str | None = None


class Consistency(Struct, frozen=True, kw_only=True):
    """What a barrier found out about the writes before it. Only "consistent" says that all of them hold.

    `level` is what was asked for. `search_index` says whether a search finds them too; `problem` why it does not, or
    what took too long.
    """

    status: Literal["consistent", "failed", "timeout"]
    level: Level
    token: str
    search_index: bool
    failed_writes: tuple[FailedWrite, ...] = ()
    problem: str | None = None


class Usage(Struct, frozen=True):
    """What a user has stored so far."""

    memories: Count = 0
    entries: Count = 0
    bytes: Count = 0


class Quotas(Struct, frozen=True):
    """What a user may store; a missing number is no limit."""

    memories: Count | None = None
    entries: Count | None = None
    bytes: Count | None = None
    used: Usage = Usage()


class User(Struct, frozen=True, kw_only=True):
    """A profile: who the memories belong to."""

    user_id: str
    name: str
    email: str = ""
    quotas: Quotas = Quotas()


class Remembered(Struct, frozen=True):
    """One entry a memory found for a turn."""

    id: str
    text: str
    score: float = 0.0
    when: str = ""
