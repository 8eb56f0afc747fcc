"""Snapshots for the tests of the tiers, judged as `accept` judges them, and what they amount to."""

from collections.abc import Iterable, Sequence
from typing import Any

from daypack.derived.tiers import (
    Accepted,
    Policies,
    Projection,
    Store,
    accepted_among,
    find_below_threshold,
    merge,
    project,
)
from daypack.types.history import Event
from daypack.types.kinds import Tier
from daypack.types.snapshot import POLICIES, Block, Runtime, Snapshot, Tiers

LIMITS: dict[Tier, tuple[float, float]] = {"core": (0.35, 0.7), "working": (0.65, 0.55), "ephemeral": (0.8, 0.4)}
SHOWN: dict[Tier, int] = {"core": 24, "working": 48, "ephemeral": 24}
STORED: dict[Tier, int] = {"core": 200, "working": 500, "ephemeral": 200}


def made(identity: str = "a", content: str = "", **fields: Any) -> Block:
    numbers: dict[str, Any] = {"decay": 0.1, "confidence": 0.9, "round": 1, "tags": (), **fields}
    return Block(id=identity, type=numbers.pop("type", "note"), content=content or f"About {identity}.", **numbers)


def took(number: int, tiers: dict[Tier, Sequence[Block]] | None = None, **fields: Any) -> Accepted:
    """What round `number` brought, judged by the policies as `accept` does."""
    memory = Tiers(**{tier: tuple(blocks) for tier, blocks in (tiers or {}).items()})
    policies: Policies = fields.pop("policies", POLICIES)
    known = {key: fields.pop(key) for key in ("capabilities", "active_task", "extra") if key in fields}
    snapshot = Snapshot(2.3, Runtime(number, "/w/", "2026-02-25T10:00:00.000Z", 1), memory, **known)
    return Accepted(
        message=f"msg-{2 * number}",
        round=number,
        snapshot=snapshot,
        below_threshold=find_below_threshold(snapshot, policies),
        **fields,
    )


def folded(*accepted: Accepted) -> Store:
    store = Store()
    for one in accepted:
        merge(store, one)
    return store


def after(*rounds: Sequence[Block], tier: Tier = "core", at: int | None = None) -> Projection:
    """What is shown when each round brought these blocks in one tier."""
    store = folded(*(took(number, {tier: blocks}) for number, blocks in enumerate(rounds, 1)))
    return project(store, at or len(rounds))


def ids(blocks: Sequence[Block]) -> list[str]:
    return [one.id for one in blocks]


def fold_tiers(events: Iterable[Event]) -> Store:
    """What the snapshots among events amount to."""
    store = Store()
    for _, accepted in accepted_among(events):
        merge(store, accepted)
    return store
