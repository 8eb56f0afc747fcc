"""Items: what may go into a pack, each with its words, where they come from, who may see them and what they cost."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from daypack.text.tokens import Counter
from daypack.types.fields import Severity
from daypack.types.history import Message
from daypack.types.kinds import AUTHORITIES, Authority, ContextKind, OmissionReason, PackKind, Target

Placement = Literal["prefix", "volatile"]

# Who sees what when nobody said so. A tool sees only what names it.
SEEN_BY_DEFAULT: tuple[Target, ...] = ("model", "reviewer", "evidence_export")
CHANGED = "~changed"  # ends the id of a note about something that stands in the frozen prefix in an older form


class Cost(NamedTuple):
    """What something takes of a window."""

    tokens: int = 0
    bytes: int = 0
    items: int = 0

    def plus(self, other: "Cost") -> "Cost":
        """Both together."""
        return Cost(self.tokens + other.tokens, self.bytes + other.bytes, self.items + other.items)

    def less(self, other: "Cost") -> "Cost":
        """What is left when the other is taken away, at least nothing."""
        return Cost(
            max(0, self.tokens - other.tokens), max(0, self.bytes - other.bytes), max(0, self.items - other.items)
        )

    def part(self, share: float) -> "Cost":
        """A share of it; a share of few items is at least one."""
        return Cost(int(self.tokens * share), int(self.bytes * share), max(1, int(self.items * share)))

    def at_most(self, other: "Cost") -> "Cost":
        """The smaller of each."""
        return Cost(min(self.tokens, other.tokens), min(self.bytes, other.bytes), min(self.items, other.items))

    def at_least(self, other: "Cost") -> "Cost":
        """The larger of each."""
        return Cost(max(self.tokens, other.tokens), max(self.bytes, other.bytes), max(self.items, other.items))

    def within(self, room: "Cost") -> bool:
        """Whether there is room for it."""
        return self.tokens <= room.tokens and self.bytes <= room.bytes and self.items <= room.items


def total(costs: Iterable[Cost]) -> Cost:
    """The sum of costs."""
    tokens = size = items = 0
    for cost in costs:
        tokens += cost.tokens
        size += cost.bytes
        items += cost.items
    return Cost(tokens, size, items)


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that may stand in a pack as a text of its own. The text is what would be shown: secrets are out."""

    id: str
    kind: PackKind
    context_kind: ContextKind
    source: str
    text: str = ""
    digest: str = ""
    title: str = ""
    authority: Authority = "agent"
    visibility: tuple[Target, ...] = SEEN_BY_DEFAULT
    placement: Placement = "volatile"
    order: int = 0  # among its neighbours; small stands first
    priority: float = 0.5  # who gives way: small first
    range: str | None = None
    span: tuple[int, int] | None = None  # the characters of one message this is an excerpt of
    score: float | None = None
    tokens: int = 0
    bytes: int = 0
    sensitivity: str | None = None
    redacted: tuple[str, ...] = ()  # the kinds of secrets that were taken out
    expires: str | None = None
    media: bool = False  # the content cannot be shown as text
    blocked: bool = False  # a policy of its owner forbids to show it
    problem: str = ""  # why its words cannot be had
    metadata: dict[str, Any] = {}

    @property
    def cost(self) -> Cost:
        """What it takes of a window."""
        return Cost(self.tokens, self.bytes, 1)


class Omission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was left out, and why."""

    item: str
    reason: OmissionReason
    tokens: int | None = None
    high_impact: bool = False
    note: str | None = None
    swap: str | None = None  # the id under which it can be had back


class Missing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something the pack refers to that is not there."""

    id: str
    question: str
    severity: Severity = "medium"
    needed_for: str | None = None
    requested: str | None = None  # where it would have to come from


class Entry(NamedTuple):
    """A message as it would be shown, and what it costs."""

    message: Message
    cost: Cost
    redacted: tuple[str, ...] = ()


def lowest(authorities: Sequence[Authority]) -> Authority:
    """The authority of what was made from several sources: that of the least of them."""
    return AUTHORITIES[max((AUTHORITIES.index(one) for one in authorities), default=len(AUTHORITIES) - 1)]


class Scales:
    """Weighs texts with one counter; a text that comes again is not counted again."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._known: dict[str, int] = {}

    def tokens(self, text: str) -> int:
        """The tokens of a text."""
        found = self._known.get(text)
        if found is None:
            if len(self._known) > 512:
                self._known.clear()
            found = self._known[text] = self.counter.count(text)
        return found
