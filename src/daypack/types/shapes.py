"""The small shapes that the objects of the envelope model are made of."""

from typing import Any, Literal

from msgspec import Struct

from daypack.types.fields import (
    Count,
    OmissionReason,
    OverflowStrategy,
    RankingSignal,
    RedactionState,
    SelectorType,
    Target,
)

# A reference to something outside the thirteen objects: an id, or a description by its owner.
Link = str | dict[str, Any]
# Content inside the item itself: text, or structured data of another writer.
Inline = str | dict[str, Any] | tuple[Any, ...]
# The value of each signal for one candidate.
Ranking = dict[RankingSignal, float | bool]


class Selector(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which part of a source: by position, by quotation or by an address inside it."""

    type: SelectorType
    start: Count | None = None
    end: Count | None = None
    exact: str | None = None
    prefix: str | None = None
    suffix: str | None = None
    value: str | None = None


class Shortage(Struct, frozen=True, kw_only=True):
    """The numbers that an omission for want of room rests on: `needed` is more than was `free` of the `limit`."""

    unit: Literal["tokens", "bytes", "items"]
    needed: Count
    free: Count
    limit: Count

    def __str__(self) -> str:
        return f"needs {self.needed:,} {self.unit}, {self.free:,} of {self.limit:,} were free"


class Omission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A candidate that was left out, and why; a range of messages is one omission."""

    item_ref: str
    reason: OmissionReason
    token_estimate: Count | None = None
    # The id that `recall` returns the content for.
    swap_ref: str | None = None
    # Its absence may change the answer.
    high_impact: bool = False
    note: str | None = None
    shortage: Shortage | None = None


class Truncation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item that was shortened to fit."""

    item_ref: str | None = None
    strategy: OverflowStrategy | None = None
    tokens_before: Count | None = None
    tokens_after: Count | None = None
    note: str | None = None


class Segment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a window with its reserved and used tokens."""

    segment_id: str
    role: str | None = None
    target: Target | None = None
    reserved_tokens: Count | None = None
    actual_tokens: Count | None = None
    item_refs: tuple[str, ...] = ()
    order: int | None = None
    truncation_records: tuple[Truncation, ...] = ()


class Block(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Items that are rendered together, at one position of an assembly."""

    block_id: str
    item_refs: tuple[str, ...] = ()
    content_ref: Link | None = None
    wrapper: Link | None = None
    position: int | None = None
    visibility: tuple[Target, ...] = ()
    token_estimate: Count | None = None
    hash: str | None = None
    redaction_state: RedactionState | None = None


class Coverage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much of its sources a summary covers."""

    items_covered: Count | None = None
    estimated_tokens_before: Count | None = None
    estimated_tokens_after: Count | None = None
    source: str | None = None
