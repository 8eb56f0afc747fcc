"""Derived records: one value per line of the files under `context/`, and the pack.

    facts.jsonl        {"id":"f1","text":"…","source":"messages:12-18"}
    swap/index.jsonl   {"id":"sha256-…","kind":"message_range","source":"messages.jsonl","range":"1-120",…}

Records keep their id across compactions. `source` is the part of history they were read from, `compaction` the event
that recorded them. Of too many records those with the smallest `weight` are dropped; `confirmed` counts the later
compactions that read the same words.
"""

from msgspec import Struct, field

from daypack.types.fields import ContextKind, Count, RefKind, SwapKind
from daypack.types.kinds import PackKind, Target
from daypack.types.shapes import Omission

PACK_VERSION = "1"


class Fact(Struct, frozen=True, omit_defaults=True):
    """A stable fact; a line of `facts.jsonl`."""

    id: str
    text: str
    source: str
    weight: float = 0.0
    confirmed: Count = 0
    compaction: str | None = None
    purpose: str | None = None  # of a command that worked, which is kept as it was typed


class Decision(Struct, frozen=True, omit_defaults=True):
    """An accepted decision; a line of `decisions.jsonl`."""

    id: str
    decision: str
    source: str
    weight: float = 0.0
    confirmed: Count = 0
    compaction: str | None = None


class Todo(Struct, frozen=True, omit_defaults=True):
    """Open work; a line of `todo.md`."""

    id: str
    text: str
    source: str
    done: bool = False
    weight: float = 0.0
    compaction: str | None = None
    keys: tuple[str, ...] = ()  # the list or task of a plan that it comes from


class ErrorRecord(Struct, frozen=True, omit_defaults=True):
    """An error, its cause and its resolution as far as they are known; a line of `errors.jsonl`."""

    id: str
    error: str
    source: str
    resolution: str | None = None
    compaction: str | None = None
    cause: str | None = None
    keys: tuple[str, ...] = ()  # steps that have to succeed for it to be resolved


class Ref(Struct, frozen=True, omit_defaults=True):
    """A reference to a file, artifact, tool output or swapped chunk; a line of `refs.jsonl`."""

    id: str
    path: str
    kind: RefKind
    summary: str
    source: str | None = None
    hash: str | None = None
    tokens: Count | None = None
    compaction: str | None = None


class Rule(Struct, frozen=True, omit_defaults=True):
    """A standing rule of the user, word for word."""

    id: str
    text: str
    source: str  # the message it was found in, or "added"
    position: Count  # the message that it was given in or after
    pinned: bool = False  # never superseded, never cut


class Summary(Struct, frozen=True, omit_defaults=True):
    """The current task in words; the value of `summary.md`."""

    text: str
    source: str
    weight: float = 0.0
    compaction: str | None = None
    done: bool = False  # the agent has reported on it since


class ContextDoc(Struct, frozen=True, omit_defaults=True):
    """The contents of `CONTEXT.md`: a task and four lists of one-sentence bullets."""

    task: str = ""
    decisions: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class SwapRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Content that left the window; a line of `swap/index.jsonl`."""

    id: str
    kind: SwapKind
    source: str
    range: str | None = None
    event: str | None = None
    summary: str
    tokens: Count


class SwapReference(Struct, frozen=True, omit_defaults=True):
    """A swap chunk that points into raw history instead of holding a copy."""

    source: str
    start_event: str
    end_event: str
    hash: str


class HistoryHit(Struct, frozen=True):
    """A place in a session's history that a search found."""

    text: str
    source: str
    score: float


class DedupRecord(Struct, frozen=True, omit_defaults=True):
    """One content, stored once, and everything that refers to it; a line of `dedup/index.jsonl`."""

    hash: str
    refs: tuple[str, ...]
    bytes: Count
    tokens: Count


class PackItem(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing in a pack: what it is, where it comes from and what it costs."""

    kind: PackKind
    source: str
    range: str | None = None
    tokens: Count
    context_kind: ContextKind | None = None
    item_ref: str | None = None
    # The digest of the content.
    hash: str | None = None
    refs: tuple[str, ...] = ()


class Pack(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The working set of one model call; the value of `pack.json`."""

    # A factory, because a plain default would be left out when written.
    schema_version: str = field(default_factory=lambda: PACK_VERSION)
    session: str
    agent: str
    budget_tokens: Count
    items: tuple[PackItem, ...]
    target: Target = "model"
    context_id: str | None = None
    token_method: str | None = None
    # The part that the provider's prompt cache can reuse, because it does not change: its digest and size.
    prefix_sha256: str | None = None
    stable_tokens: Count | None = None
    expected_cached_tokens: Count | None = None
    omitted: tuple[Omission, ...] = ()

    @property
    def tokens(self) -> int:
        """The tokens of all items."""
        return sum(item.tokens for item in self.items)
