"""Items: what can go into a pack, with its text, origin, visibility and cost; and records of what did not."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct, json

from daypack.text.tokens import Counter
from daypack.types.authority import INSTRUCTING, Authority
from daypack.types.fields import OmissionReason, Severity
from daypack.types.history import Message
from daypack.types.kinds import PackKind, Target
from daypack.types.shapes import Link, Shortage
from daypack.types.shapes import Omission as OmissionRecord

Placement = Literal["prefix", "tail", "volatile"]
# How the content of an item by reference is reached: recalled from this session, read, opened, or asked of its owner.
Access = Literal["recall", "file", "url", "owner"]

# Who sees an item that names no visibility. A tool sees only items that name it.
SEEN_BY_DEFAULT: tuple[Target, ...] = ("model", "reviewer", "evidence_export")
CHANGED = "~changed"  # suffix of the id of a note about a newer form of a prefix item
RUNTIME = "daypack:runtime"  # source of items with the current time
CLOCK = "clock"  # id of the item that is only the time
CORE_BLOCKS = "blocks:core"  # id of the item with the core blocks of the hybrid protocol
RULES = "rules"  # id of the item with the standing rules
SHOWN = "shown"  # metadata key of a shorter form: how much of the whole it shows
UNSEARCHED = "excerpts"  # how the ids of what could not be searched begin
STAMP = "runtime:stamp"  # id of the item that a reply of the hybrid protocol returns unchanged


class Cost(NamedTuple):
    """Tokens, bytes and items taken from a window."""

    tokens: int = 0
    bytes: int = 0
    items: int = 0

    def plus(self, other: "Cost") -> "Cost":
        """Return the sum."""
        return Cost(self.tokens + other.tokens, self.bytes + other.bytes, self.items + other.items)

    def less(self, other: "Cost") -> "Cost":
        """Return the difference, never below zero."""
        return Cost(
            max(0, self.tokens - other.tokens), max(0, self.bytes - other.bytes), max(0, self.items - other.items)
        )

    def part(self, share: float) -> "Cost":
        """Return a share, at least one item."""
        return Cost(int(self.tokens * share), int(self.bytes * share), max(1, int(self.items * share)))

    def at_most(self, other: "Cost") -> "Cost":
        """Return the minimum of each field."""
        return Cost(min(self.tokens, other.tokens), min(self.bytes, other.bytes), min(self.items, other.items))

    def at_least(self, other: "Cost") -> "Cost":
        """Return the maximum of each field."""
        return Cost(max(self.tokens, other.tokens), max(self.bytes, other.bytes), max(self.items, other.items))

    def fits(self, room: "Cost") -> bool:
        """Return True if no field exceeds the room's."""
        return self.tokens <= room.tokens and self.bytes <= room.bytes and self.items <= room.items


# Upper bound over all counters: the introduction of the quoted part of a prefix, and the message that it is in.
AROUND_QUOTED = Cost(52, 124, 0)


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    tokens = size = items = 0
    for cost in costs:
        tokens += cost.tokens
        size += cost.bytes
        items += cost.items
    return Cost(tokens, size, items)


class Reference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the content of an item is that is passed by reference, and what is known about it."""

    ref: Link
    mode: str = "ref"  # the content mode that its owner stated
    access: Access = "owner"
    size: int | None = None  # bytes
    digest: str = ""
    mime_type: str = ""
    problem: str = ""  # why it was not found in this session
    title: str = ""  # of the content, where the title of the item says more


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text that can go into a pack. The text is redacted: it is what a target would see."""

    id: str
    kind: PackKind
    context_kind: str  # one of CONTEXT_KINDS, or a kind of another runtime, which counts as custom
    source: str
    text: str = ""
    digest: str = ""
    title: str = ""
    authority: Authority = "agent"
    visibility: tuple[str, ...] = SEEN_BY_DEFAULT  # targets; those of other runtimes too
    placement: Placement = "volatile"
    order: int = 0  # position within its placement, ascending
    priority: float = 0.5  # items of low priority are omitted first
    range: str | None = None
    score: float | None = None
    tokens: int = 0
    bytes: int = 0
    sensitivity: str | None = None
    redacted: tuple[str, ...] = ()  # kinds of secrets removed from it
    expires: str | None = None
    media: bool = False  # the content has no text form
    blocked: bool = False  # a policy of its owner forbids showing it
    problem: str = ""  # why its text is not available
    reference: Reference | None = None  # its text is one line about where the content is
    stated: dict[str, Any] = {}  # what its owner states about it, for the envelope
    stated_digest: str = ""  # of a recorded item: the blob with what was stated
    metadata: dict[str, Any] = {}

    @property
    def cost(self) -> Cost:
        """What the item takes from a window."""
        return Cost(self.tokens, self.bytes, 1)

    @property
    def answers_user(self) -> bool:
        """True if it was found for a user message."""
        return self.kind == "memory_entries"

    @property
    def instructs(self) -> bool:
        """True if it may be in the system prompt; everything else is quoted to the model."""
        return self.authority in INSTRUCTING

    @property
    def redaction_state(self) -> str:
        """What was done to its text: by redaction, else by its owner."""
        return "masked" if self.redacted else str(self.stated.get("redaction_state") or "none")


class Excerpt(Item, frozen=True, kw_only=True, omit_defaults=True):
    """A part of one earlier message, found by searching history."""

    seq: int
    span: tuple[int, int]  # first and last character of the searchable text; (0, 0): all of it
    step: bool = False  # found with what the agent does, not with the user's words

    @property
    def answers_user(self) -> bool:
        """True if it was found for a user message."""
        return not self.step


def cost_of(items: Iterable[Item]) -> Cost:
    """Return the sum of the costs of items."""
    tokens = size = count = 0
    for item in items:
        tokens += item.tokens
        size += item.bytes
        count += 1
    return Cost(tokens, size, count)


def prefix_cost(items: Sequence[Item]) -> Cost:
    """Return the cost of the items of a prefix, with the text around those that are quoted."""
    cost = cost_of(items)
    for item in items:
        if not item.instructs:
            return cost.plus(AROUND_QUOTED)
    return cost


class Omission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item or range of messages that is not in the pack, and the reason."""

    item: str
    reason: OmissionReason
    tokens: int | None = None
    high_impact: bool = False
    note: str | None = None
    swap: str | None = None  # the id under which `recall` returns it
    shortage: Shortage | None = None  # the numbers, when it did not fit

    @property
    def details(self) -> str:
        """The numbers and the note."""
        return "; ".join(text for text in (str(self.shortage or ""), self.note) if text)

    def recorded(self) -> OmissionRecord:
        """Return it as packs and envelopes have it."""
        return OmissionRecord(
            item_ref=self.item,
            reason=self.reason,
            token_estimate=self.tokens,
            swap_ref=self.swap,
            high_impact=self.high_impact,
            note=self.note,
            shortage=self.shortage,
        )

    def explain(self, details: str | None) -> str:
        """Return the reason with details; of a reason outside the vocabulary, only the details."""
        return self.reason if not details else details if self.reason == "custom" else f"{self.reason}: {details}"


class Missing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that the pack refers to and that was not available."""

    id: str
    question: str
    severity: Severity = "medium"
    needed_for: str | None = None
    requested: Link | None = None  # where it would come from
    blocked_actions: tuple[str, ...] = ()
    candidate_sources: tuple[Link, ...] = ()
    asked_at: str = ""  # of a question: when it was asked
    status: str = "open"  # of a question
    resolution_refs: tuple[Link, ...] = ()

    @property
    def sources(self) -> tuple[Link, ...]:
        """Where the answer may be: the candidates, else the place that it was requested from."""
        return self.candidate_sources or ((self.requested,) if self.requested else ())


class Entry(NamedTuple):
    """A message as it would be sent, redacted, and its cost."""

    message: Message
    cost: Cost
    redacted: tuple[str, ...] = ()


CALLER = "caller:"  # start of the source of an item that the caller passed


def message_range(first: int, last: int) -> str:
    """Return the reference to a range of messages: `messages:3`, or `messages:3-9`."""
    return f"messages:{first}-{last}" if last > first else f"messages:{first}"


class TokenMeter:
    """Counts tokens with one counter and remembers recent results; `model` decides what images cost."""

    def __init__(self, counter: Counter, model: str | None = None) -> None:
        self.counter = counter
        self.model = model
        self._counts: dict[str, int] = {}

    def tokens(self, text: str) -> int:
        """Return the tokens of a text."""
        count = self._counts.get(text)
        if count is None:
            if len(self._counts) > 512:
                self._counts.clear()
            count = self._counts[text] = self.counter.count(text)
        return count


def stamp_of(items: tuple[Item, ...]) -> dict[str, Any] | None:
    """Return the object that a reply must return, from the items of a turn; None if the protocol was off."""
    for item in items:
        if item.id == STAMP:
            stamp: dict[str, Any] = json.decode(item.text)
            return stamp
    return None
