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
    """One memory of a tier, written by the model; a block with the same `id` replaces it."""

    id: str
    type: str
    decay: Fraction
    confidence: Fraction
    round: Count
    tags: tuple[str, ...]
    content: str
    extra: dict[str, Any] = {}  # fields the protocol does not define; in the JSON they are next to the others

    @property
    def importance(self) -> float:
        """1 for the most important blocks; the protocol writes this as decay 0."""
        return 1 - self.decay

    @property
    def quality(self) -> float:
        """Importance and confidence in equal parts."""
        return 0.5 * (1 - self.decay) + 0.5 * self.confidence

    @property
    def deletes(self) -> bool:
        """True if the block deletes the block with its id: decay 1 or confidence 0."""
        return self.decay >= 1 or self.confidence <= 0


class Runtime(Struct, frozen=True):
    """The fields that the host sets and a model must return unchanged."""

    round: Count
    workspace: str
    datetime: Timestamp
    startup_at: Count


UNKNOWN = Runtime(0, "", "", 0)  # for a host that sent no runtime fields


# Unknown keys are refused instead of skipped: blocks under another key would never be aged or shown.
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
    """The whole state in a response. It compares equal to its JSON object."""

    version: float
    runtime: Runtime
    memory: Tiers
    capabilities: tuple[Capability, ...] = ()
    active_task: str = ""
    extra: dict[str, Any] = {}  # keys the protocol does not define; in the JSON they are next to the others

    def as_object(self) -> dict[str, Any]:
        """Return the JSON object: the keys of the protocol, then the others."""
        memory = self.memory
        return {
            "version": self.version,
            "runtime": msgspec.structs.asdict(self.runtime),
            "memory": {tier: [_block_object(block) for block in memory.of(tier)] for tier in _TIERS},
            "capabilities": [{"name": capability.name, "scope": capability.scope} for capability in self.capabilities],
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
    """The limits for the blocks that a tier shows: decay, confidence, number of blocks, and age in rounds."""

    max_decay: Fraction
    min_confidence: Fraction
    max_items: Count
    max_rounds: Count | None = None  # None: blocks never expire

    def shortfall(self, block: Block) -> tuple[str, str]:
        """Return why a block is below the thresholds, as a reason and the figures; both empty if it is not."""
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
