"""Memories, their entries and context documents, users, and what the memory tools return."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from daypack.types.fields import Count, Timestamp
from daypack.types.kinds import Role

TITLE_MAX_CHARS = 50
DESCRIPTION_MAX_CHARS = 500
SUMMARY_MAX_CHARS = 512
DOCUMENT_MAX_CHARS = 5000
LIST_MAX_ENTRIES = 50

Title = Annotated[str, Meta(min_length=1, max_length=TITLE_MAX_CHARS)]
Description = Annotated[str, Meta(max_length=DESCRIPTION_MAX_CHARS)]
EntrySummary = Annotated[str, Meta(max_length=SUMMARY_MAX_CHARS)]
Content = Annotated[str, Meta(max_length=DOCUMENT_MAX_CHARS)]
Limit = Annotated[int, Meta(ge=1, le=LIST_MAX_ENTRIES)]


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


class Entry(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One raw message with its one summary; written once, never changed."""

    entry_id: str
    memory_id: str
    created_at: Timestamp
    raw_entry: str
    summary: EntrySummary
    role: Role | None = None
    tags: tuple[str, ...] = ()
    # Where in a history the message stands ("messages:12"), when it came from one.
    source: str | None = None


class ContextDocument(Struct, frozen=True, kw_only=True):
    """The context document of a memory as one `put_context` left it; the latest is current, none is lost."""

    document_id: str
    memory_id: str
    created_at: Timestamp
    content: Content


class EntryPage(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Entries, newest first, with the cursors that lead on in both directions."""

    entries: tuple[Entry, ...]
    count: Count
    applied_limit: Limit
    next_before: Timestamp | None = None
    next_after: Timestamp | None = None


class Hit(Entry, frozen=True, kw_only=True):
    """An entry that a search found, with its score and the parts the score is made of."""

    score: float
    score_parts: dict[str, float] = {}


class SearchResult(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Ranked entries, best first, with the latest context document and the one that fits the query best."""

    entries: tuple[Hit, ...]
    count: Count
    latest_context: str | None = None
    context_timestamp: Timestamp | None = None
    best_context: str | None = None
    best_context_timestamp: Timestamp | None = None
    best_context_score: float | None = None


class FailedWrite(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A write that was accepted but did not become durable."""

    operation: str
    problem: str
    entry_id: str | None = None


class Consistency(Struct, frozen=True, kw_only=True):
    """What a barrier found out about the writes before it."""

    status: Literal["consistent", "failed", "timeout"]
    failed_writes: tuple[FailedWrite, ...] = ()
    # Whether the search index was waited for too.
    search_index: bool


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


class User(Struct, frozen=True):
    """A profile: who the memories belong to."""

    name: str
    email: str
    quotas: Quotas = Quotas()
