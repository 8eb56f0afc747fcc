"""The snapshot of the hybrid protocol: the JSON object that follows the separator in a response.

{"version":2.3,"runtime":{"round":1,…},"memory":{"core":[…],"working":[…],"ephemeral":[…]},…}
"""

from msgspec import Struct

from daypack.types.fields import Count, Fraction, Timestamp

PROTOCOL_VERSION = 2.3


class Block(Struct, frozen=True):
    """One memory of a tier; the model writes it, the stable `id` lets it be updated."""

    id: str
    type: str
    decay: Fraction
    confidence: Fraction
    round: Count
    tags: tuple[str, ...]
    content: str

    @property
    def importance(self) -> float:
        """1 for what matters most; on the wire this is decay 0, which reads like the opposite."""
        return 1 - self.decay

    @property
    def quality(self) -> float:
        """Importance and confidence in equal parts."""
        return 0.5 * self.importance + 0.5 * self.confidence


class Runtime(Struct, frozen=True):
    """The fields the system owns: a model may read them, never change them."""

    round: Count
    workspace: str
    datetime: Timestamp
    startup_at: Count


# A block under another key would be a memory nobody ages or shows, so it is refused instead of skipped.
class Tiers(Struct, frozen=True, forbid_unknown_fields=True):
    """The three tiers of memory blocks, best block first."""

    core: tuple[Block, ...] = ()
    working: tuple[Block, ...] = ()
    ephemeral: tuple[Block, ...] = ()


class Capability(Struct, frozen=True):
    """Something the model may do, and how far."""

    name: str
    scope: str


class Snapshot(Struct, frozen=True):
    """The whole state that travels with a response."""

    version: float
    runtime: Runtime
    memory: Tiers
    capabilities: tuple[Capability, ...] = ()
    active_task: str = ""
