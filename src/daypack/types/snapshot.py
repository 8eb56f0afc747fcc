"""The snapshot of the hybrid protocol: the JSON object that follows the separator in a response.

{"version":2.3,"runtime":{"round":1,…},"memory":{"core":[…],"working":[…],"ephemeral":[…]},…}
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from daypack.types.fields import Count, Fraction, Timestamp
from daypack.types.kinds import Tier

PROTOCOL_VERSION = 2.3


class Block(Struct, frozen=True, omit_defaults=True):
    """One memory of a tier; the model writes it, the stable `id` lets it be updated."""

    id: str
    type: str
    decay: Fraction
    confidence: Fraction
    round: Count
    tags: tuple[str, ...]
    content: str
    extra: dict[str, Any] = {}  # fields the protocol does not know; on the wire they stand beside the others

    @property
    def importance(self) -> float:
        """1 for what matters most; on the wire this is decay 0, which reads like the opposite."""
        return 1 - self.decay

    @property
    def quality(self) -> float:
        """Importance and confidence in equal parts."""
        return 0.5 * (1 - self.decay) + 0.5 * self.confidence

    @property
    def deletes(self) -> bool:
        """Whether it says that the block with its id is to go: decay 1 or confidence 0."""
        return self.decay >= 1 or self.confidence <= 0


class Runtime(Struct, frozen=True):
    """The fields the system owns: a model may read them, never change them."""

    round: Count
    workspace: str
    datetime: Timestamp
    startup_at: Count


UNKNOWN = Runtime(0, "", "", 0)  # nobody said


# A block under another key would be a memory nobody ages or shows, so it is refused instead of skipped.
class Tiers(Struct, frozen=True, forbid_unknown_fields=True):
    """The three tiers of memory blocks, best block first."""

    core: tuple[Block, ...] = ()
    working: tuple[Block, ...] = ()
    ephemeral: tuple[Block, ...] = ()

    def of(self, tier: Tier) -> tuple[Block, ...]:
        """The blocks of one tier."""
        blocks: tuple[Block, ...] = getattr(self, tier)
        return blocks


class Capability(Struct, frozen=True):
    """Something the model may do, and how far."""

    name: str
    scope: str


class Snapshot(Struct, frozen=True, omit_defaults=True, eq=False):
    """The whole state that travels with a response. It equals the JSON object it stands for."""

    version: float
    runtime: Runtime
    memory: Tiers
    capabilities: tuple[Capability, ...] = ()
    active_task: str = ""
    extra: dict[str, Any] = {}  # keys the protocol does not know; on the wire they stand beside the others

    def as_object(self) -> dict[str, Any]:
        """Return the JSON object: all known keys, then those the protocol does not know."""
        memory = self.memory
        return {
            "version": self.version,
            "runtime": msgspec.structs.asdict(self.runtime),
            "memory": {tier: [_block_object(one) for one in memory.of(tier)] for tier in _TIERS},
            "capabilities": [{"name": one.name, "scope": one.scope} for one in self.capabilities],
            "active_task": self.active_task,
            **self.extra,
        }

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 — JSON
        return self.as_object()[key]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Snapshot):
            return msgspec.structs.astuple(self) == msgspec.structs.astuple(other)
        return self.as_object() == other if isinstance(other, Mapping) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment] — JSON objects are not hashable either


_TIERS: tuple[Tier, ...] = ("core", "working", "ephemeral")


def _block_object(block: Block) -> dict[str, Any]:
    fields = msgspec.structs.asdict(block)
    extra = fields.pop("extra")
    return {**fields, "tags": list(block.tags), **extra}


class TierPolicy(Struct, frozen=True, kw_only=True):
    """What a tier shows: blocks at most so unimportant, at least so sure, so many, and so many rounds long."""

    max_decay: Fraction
    min_confidence: Fraction
    max_items: Count
    max_rounds: Count | None = None  # None: a block stays

    def shortfall(self, block: Block) -> tuple[str, str]:
        """Return why a block is not good enough: a word for it and the figures; both empty when it is."""
        if block.decay > self.max_decay:
            return "threshold_decay", f"decay {block.decay:g} is over {self.max_decay:g}"
        if block.confidence < self.min_confidence:
            return "threshold_confidence", f"confidence {block.confidence:g} is under {self.min_confidence:g}"
        return "", ""


POLICIES: dict[Tier, TierPolicy] = {
    "core": TierPolicy(max_decay=0.35, min_confidence=0.7, max_items=24),
    "working": TierPolicy(max_decay=0.65, min_confidence=0.55, max_items=48, max_rounds=12),
    "ephemeral": TierPolicy(max_decay=0.8, min_confidence=0.4, max_items=24, max_rounds=3),
}
