"""Memories, their entries and context documents, users, and what the memory tools return."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from daypack.types.fields import Count, Timestamp

TITLE_MAX_CHARS = 50
DESCRIPTION_MAX_CHARS = 500
SUMMARY_MAX_CHARS = 512
SUMMARY_TOKENS = 80  # recommended; the limit in characters is enforced
DOCUMENT_MAX_CHARS = 5000
ENTRY_MAX_BYTES = 9000
LIST_MAX_ENTRIES = 50
LIST_MAX_MEMORIES = 100
SEARCH_MAX_ENTRIES = 100

# The longest texts of the records below, by field.
MAX_CHARS = {
    "title": TITLE_MAX_CHARS,
    "description": DESCRIPTION_MAX_CHARS,
    "summary": SUMMARY_MAX_CHARS,
    "content": DOCUMENT_MAX_CHARS,
}

Title = Annotated[str, Meta(min_length=1, max_length=TITLE_MAX_CHARS)]
Description = Annotated[str, Meta(max_length=DESCRIPTION_MAX_CHARS)]
EntrySummary = Annotated[str, Meta(max_length=SUMMARY_MAX_CHARS)]
Content = Annotated[str, Meta(max_length=DOCUMENT_MAX_CHARS)]
Limit = Annotated[int, Meta(ge=1, le=LIST_MAX_ENTRIES)]
Level = Literal["durable", "visible", "searchable"]

# The document of a new memory until its first put_context (compared exactly).
PLACEHOLDER = (
    "This is default context that's created with the memory. "
    "Instructions for AI Agent: Provide relevant context as soon as it's available."
)


# The note of a search that found nothing worth returning.
NOTHING_RELEVANT = "nothing relevant: no entry of this memory is about the query"


class About(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The facts about a raw entry other than its text; search uses all of them.

    `at` is the time of the message, in the caller's format (only ISO 8601 can be filtered by); `source` is its place in
    a history ("messages:12").
    """

    session: str | None = None
    role: str | None = None
    author: str | None = None
    at: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None


class Where(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A filter for search results: an entry must match every given field and have all the tags.

    `since` and `until` are ISO 8601 times, both inclusive. They apply to `at`, or to the time of storage if `at` is
    missing or not an ISO time.
    """

    since: str | None = None
    until: str | None = None
    tags: tuple[str, ...] = ()
    role: str | None = None
    author: str | None = None
    session: str | None = None


class DamagedRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A stored record that was skipped because it is not what was written; the other records were returned.

    `number` is the seq of an entry or the version of a document. `id` is empty if it cannot be read either.
    """

    kind: Literal["entry", "document", "memory", "user", "token"]
    id: str
    number: Count = 0
    problem: str = "checksum mismatch"
    advice: str = "run `daypack doctor --repair` where the store is, or restore a backup"

    @property
    def seq(self) -> int:
        """The number, as of an entry."""
        return self.number

    @property
    def version(self) -> int:
        """The number, as of a document."""
        return self.number

    def __str__(self) -> str:
        number = f" {self.number}" if self.number else ""
        named = f" ({self.id})" if self.id else ""
        return f"{self.kind}{number}{named} is damaged and was skipped: {self.problem}; {self.advice}"


class Stats(Struct, frozen=True):
    """How much a memory holds."""

    entries: Count = 0
    documents: Count = 0
    bytes: Count = 0


class Memory(Struct, frozen=True, kw_only=True):
    """The description of a memory, without its entries."""

    memory_id: str
    title: Title
    memory_type: str
    created_at: Timestamp
    description: Description = ""
    stats: Stats = Stats()
    deleted_at: Timestamp | None = None
    # The token of the write that made it; None if the memory was only read.
    token: str | None = None


class MemoryPage(Struct, frozen=True, kw_only=True):
    """Memories of one user, oldest first, with the cursor for the next page (a memory id); None: there are no more."""

    memories: tuple[Memory, ...]
    count: Count
    applied_limit: Annotated[int, Meta(ge=1, le=LIST_MAX_MEMORIES)]
    next_after: str | None = None
    # What was skipped because it is damaged.
    damaged: tuple[DamagedRecord, ...] = ()


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
    """The result of `add_entry`. `replayed`: the client key was known, and this is the first result again."""

    memory_id: str
    entry_id: str
    seq: int
    created_at: Timestamp
    summary: EntrySummary
    token: str
    replayed: bool = False
    # Warnings about what was stored, for instance a summary of many tokens.
    notes: tuple[str, ...] = ()


class ContextDocument(Struct, frozen=True, kw_only=True):
    """One version of a memory's context document; each `put_context` adds a version, and the latest is current."""

    document_id: str
    memory_id: str
    version: int
    created_at: Timestamp
    content: Content
    # The token of the write that made it; None if the document was only read.
    token: str | None = None
    # Later versions that were skipped because they are damaged.
    damaged: tuple[DamagedRecord, ...] = ()


class EntryPage(Struct, frozen=True, kw_only=True):
    """Entries, newest first, with the cursors for the next page in both directions (each an entry id)."""

    memory_id: str
    entries: tuple[Entry, ...]
    count: Count
    applied_limit: Limit
    next_before: str | None = None
    next_after: str | None = None
    # What was skipped because it is damaged.
    damaged: tuple[DamagedRecord, ...] = ()


class Hit(Entry, frozen=True, omit_defaults=True, kw_only=True):
    """An entry that a search found, with its score and, when asked for, the parts the score is made of.

    Scores compare the hits of one search; `relevance` is absolute, and 1 is the floor that the best of them reach.
    """

    score: float
    score_parts: dict[str, float] | None = None
    relevance: float = 1.0
    superseded_by: str | None = None  # the hit, ranked above this one, that states a newer value of the same matter


class SearchResult(Struct, frozen=True, kw_only=True):
    """Ranked entries, best first, with the latest context document and the version that matches the query best.

    Entries that are not relevant to the query are left out: there may be fewer than asked for, or none.
    """

    memory_id: str
    entries: tuple[Hit, ...]
    count: Count
    latest_context: str | None = None
    context_timestamp: Timestamp | None = None
    best_context: str | None = None
    best_context_timestamp: Timestamp | None = None
    best_context_score: float | None = None
    # NOTHING_RELEVANT, and what the search could not use: vectors that are not ready, an embedder that does not answer.
    notes: tuple[str, ...] = ()
    # What was skipped because it is damaged.
    damaged: tuple[DamagedRecord, ...] = ()


class FailedWrite(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A write that did not become durable; nothing of it is stored."""

    operation: str
    problem: str
    memory_id: str | None = None
    client_key: str | None = None


class Consistency(Struct, frozen=True, kw_only=True):
    """The result of a barrier for the writes before it. Only "consistent" guarantees all of them.

    `level` is the level the caller requested. `search_index` is True if a search finds the writes too; `problem` says
    why it does not, or what timed out.
    """

    status: Literal["consistent", "failed", "timeout"]
    level: Level
    token: str
    search_index: bool
    failed_writes: tuple[FailedWrite, ...] = ()
    problem: str | None = None
    # What no search finds because it is damaged; it does not make a barrier fail.
    damaged: tuple[DamagedRecord, ...] = ()


class Usage(Struct, frozen=True):
    """How much a user has stored."""

    memories: Count = 0
    entries: Count = 0
    bytes: Count = 0


class Quotas(Struct, frozen=True):
    """How much a user may store; None is no limit."""

    memories: Count | None = None
    entries: Count | None = None
    bytes: Count | None = None
    used: Usage = Usage()


class User(Struct, frozen=True, kw_only=True):
    """The profile of the user that memories belong to."""

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
