"""The three tiers of a session: the fold of its snapshots, and the blocks a turn shows.

{"type":"context.snapshot","data":{"message":"msg-12","round":3,"snapshot":{"memory":{"core":[…]}},"below_threshold":{},"violation_counts":{}}}

History keeps every snapshot whole. The store is their fold: the newest version of every block, also of those that are
not good enough (`low`) or too old to be shown. The projection is what a turn shows of the store.

    [tiers.working]          # in config.toml; the defaults are in types/snapshot.py
    max_decay = 0.65
    max_rounds = 12

    capabilities = [{ name = "memory", scope = "write_once" }]    # there, or in the session's meta.json
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from daypack.errors import BadConfig
from daypack.text.redact.redact import redact
from daypack.text.trim import trim
from daypack.types.carried import UNSEEN, carry, cleared
from daypack.types.history import Event
from daypack.types.kinds import TIERS, Tier
from daypack.types.snapshot import POLICIES, Block, Capability, Snapshot, TierPolicy

SNAPSHOT = "context.snapshot"
MAX_CONTENT_CHARS = 512
MAX_ID_CHARS = 128
MAX_TYPE_CHARS = 32
MAX_TAGS = 8
MAX_TAG_CHARS = 32
# The store keeps what is no longer shown for so many rounds and blocks more; history keeps it for ever.
_STORED_ITEMS: dict[Tier, int] = {"core": 200, "working": 500, "ephemeral": 200}
_STORED_ROUNDS: dict[Tier, int | None] = {"core": None, "working": 120, "ephemeral": 30}
_STORED_CHARS = 4096
_STORED_CAPABILITIES = 32
_TASK_ROUNDS = 12
_CUT_QUOTE = re.compile(r"'[^']*…'|(?<=\.)[^.]*…$")

Policies = Mapping[Tier, TierPolicy]
DEFAULT_CAPABILITIES = (Capability("memory", "write_once"),)  # those of the protocol's own example


class Accepted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of a `context.snapshot` event: the section of a reply. `snapshot` is None if nothing was usable."""

    message: Annotated[str, msgspec.Meta(pattern=r"^msg-[0-9]{1,15}$")]
    round: int
    turn: str | None = None
    raw: dict[str, str] = {}  # the blob with what was cut from the message, when that is long
    snapshot: Snapshot | None = None
    below_threshold: dict[Tier, tuple[str, ...]] = {}  # ids of blocks below the thresholds of that moment
    refused: int = 0  # blocks that could not be used
    violation_counts: dict[str, int] = {}  # how often each rule was broken
    violations: tuple[dict[str, str], ...] = ()  # the first of them


class Store(Struct, omit_defaults=True):
    """The fold of all snapshots."""

    message: int = 0  # the newest message whose section was taken in
    round: int = 0
    refused: int = 0
    violation_counts: dict[str, int] = {}
    blocks: dict[Tier, dict[str, Block]] = field(default_factory=lambda: {tier: {} for tier in TIERS})
    below_threshold: dict[Tier, dict[str, Block]] = field(default_factory=lambda: {tier: {} for tier in TIERS})
    active_task: str = ""
    task_round: int = 0
    capabilities: tuple[Capability, ...] = ()
    carried: dict[str, Any] = {}  # keys that the protocol does not define
    violations: tuple[dict[str, str], ...] = ()  # of the newest reply


class Dropped(Struct, frozen=True):
    """A block that is not shown, and why."""

    tier: Tier
    block: Block
    reason: str
    note: str = ""


class Projection(Struct, frozen=True, kw_only=True):
    """The blocks a turn shows, best first, and the omitted ones."""

    round: int
    core: tuple[Block, ...] = ()
    working: tuple[Block, ...] = ()
    ephemeral: tuple[Block, ...] = ()
    active_task: str = ""
    capabilities: tuple[Capability, ...] = ()
    carried: dict[str, Any] = {}  # keys that the protocol does not define; the next turn hands them back
    omitted: tuple[Dropped, ...] = ()
    refused: int = 0  # blocks that could not be used at all, since the session began
    violation_counts: dict[str, int] = {}  # how often each rule was broken since then
    violations: tuple[dict[str, str], ...] = ()  # what was wrong with the newest reply

    def of(self, tier: Tier) -> tuple[Block, ...]:
        """The blocks of one tier."""
        blocks: tuple[Block, ...] = getattr(self, tier)
        return blocks

    @property
    def dropped(self) -> dict[str, int]:
        """How many blocks are not shown, by reason."""
        counts: dict[str, int] = {}
        for omission in self.omitted:
            counts[omission.reason] = counts.get(omission.reason, 0) + 1
        return {**counts, **({"invalid_block": self.refused} if self.refused else {})}


def find_below_threshold(snapshot: Snapshot, policies: Policies) -> dict[Tier, tuple[str, ...]]:
    """Return the ids of blocks below the thresholds; they do not replace better blocks."""
    found: dict[Tier, tuple[str, ...]] = {}
    for tier in TIERS:
        poor = [block.id for block in _once(snapshot.memory.of(tier)) if policies[tier].shortfall(block)[0]]
        if poor:
            found[tier] = tuple(poor)
    return found


def merge(store: Store, accepted: Accepted) -> None:
    """Add a snapshot. An omitted id, an empty tier and a rejected snapshot change nothing."""
    store.message = max(store.message, int(accepted.message.rpartition("-")[2]))
    store.round = max(store.round, accepted.round)
    store.refused += accepted.refused
    store.violations = accepted.violations
    # Nothing is changed in place: another thread may be looking at it.
    counts = Counter(store.violation_counts)
    counts.update(accepted.violation_counts)
    store.violation_counts = dict(counts)
    snapshot = accepted.snapshot
    if snapshot is None:
        return
    for tier in TIERS:
        blocks, below_threshold = dict(store.blocks[tier]), dict(store.below_threshold[tier])
        poor = frozenset(accepted.below_threshold.get(tier, ()))
        for block in _once(snapshot.memory.of(tier)):
            below_threshold.pop(block.id, None)
            if block.deletes:
                blocks.pop(block.id, None)
                continue
            into = below_threshold if block.id in poor else blocks
            if block.id in into or _make_room(into, tier, accepted.round):
                into[block.id] = _aged(block, into.get(block.id), accepted.round)
        store.blocks[tier] = _remembered(blocks, tier, store.round)
        store.below_threshold[tier] = _remembered(below_threshold, tier, store.round)
    if snapshot.active_task.strip():
        store.active_task, store.task_round = _seen(snapshot.active_task, _STORED_CHARS), accepted.round
    given = snapshot.capabilities[:_STORED_CAPABILITIES]
    named = tuple(
        Capability(_seen(capability.name, MAX_ID_CHARS), _seen(capability.scope, MAX_ID_CHARS)) for capability in given
    )
    store.capabilities = named or store.capabilities
    store.carried, _ = carry(store.carried, snapshot.extra)


def _once(blocks: Iterable[Block]) -> Iterator[Block]:
    """Return each id once: the block of better quality, of two equal ones the newer."""
    best: dict[str, Block] = {}
    for given in blocks:
        block = _stored(given)
        other = best.get(block.id)
        if block.id and (other is None or (block.quality, block.round) >= (other.quality, other.round)):
            best[block.id] = block
    return iter(best.values())


def _stored(block: Block) -> Block:
    """Return a block as the store keeps it: an id as people and models see it, and of long texts the beginning."""
    identity = " ".join(UNSEEN.sub("", block.id).split())
    content = UNSEEN.sub("", block.content)
    return Block(
        id=identity if len(identity) <= MAX_ID_CHARS else "",  # too long to be used as an id
        type=_seen(block.type, _STORED_CHARS),
        decay=block.decay,
        confidence=block.confidence,
        round=block.round,
        tags=tuple(_seen(tag, _STORED_CHARS) for tag in block.tags[: _STORED_ITEMS["core"]]),
        content=content[:_STORED_CHARS],
    )


def _seen(text: str, most: int) -> str:
    return " ".join(UNSEEN.sub("", text).split())[:most]


def _aged(block: Block, former: Block | None, current: int) -> Block:
    """A block that is new, or says something new, is of this round; one that is sent again is as old as it was.

    The round it names itself makes it younger at most: models copy numbers from examples.
    """
    if former is None or former.content != block.content:
        return replace(block, round=current)
    return replace(block, round=min(max(block.round, former.round), current))


def _make_room(blocks: dict[str, Block], tier: Tier, current: int) -> bool:
    """Drop the oldest block that is no longer shown if the store is full; return False if there is none.

    So a flood of new blocks does not erase older ones.
    """
    if len(blocks) < _STORED_ITEMS[tier]:
        return True
    oldest = min(blocks.values(), key=lambda block: block.round)
    rounds = POLICIES[tier].max_rounds
    if rounds is None or current - oldest.round <= rounds:
        return False
    del blocks[oldest.id]
    return True


def _remembered(blocks: dict[str, Block], tier: Tier, current: int) -> dict[str, Block]:
    """Return the blocks without those that have long not been shown; history has them."""
    rounds = _STORED_ROUNDS[tier]
    return {block.id: block for block in blocks.values() if rounds is None or current - block.round <= rounds}


def accepted_among(events: Iterable[Event]) -> Iterator[tuple[Event, Accepted]]:
    """Yield the events of snapshots; events of other writers with the same name are skipped."""
    for event in events:
        if event.type == SNAPSHOT:
            with suppress(msgspec.ValidationError):
                yield event, read_accepted(event.data)


def read_accepted(data: Mapping[str, Any]) -> Accepted:
    """Return the data of an event."""
    return msgspec.convert(data, Accepted)


def project(store: Store, current: int, policies: Policies = POLICIES, *, redacting: bool = False) -> Projection:
    """Return what a turn of round `current` shows of the tiers, and what it does not."""
    show = _cleared if redacting else _short
    shown: dict[Tier, tuple[Block, ...]] = {}
    omitted: list[Dropped] = []
    for tier in TIERS:
        policy = policies[tier]
        kept: list[Block] = []
        contents: set[str] = set()
        for block in sorted(store.blocks[tier].values(), key=_order):
            reason, note = _reason(block, policy, current)
            plain = " ".join(block.content.casefold().split())
            if not reason and plain in contents:
                reason, note = "redundant", "another block says the same"
            if not reason and len(kept) >= policy.max_items:
                reason, note = "over_max_items", f"the tier shows {policy.max_items}"
            if reason:
                omitted.append(Dropped(tier, show(block), reason, note))
            else:
                contents.add(plain)
                kept.append(show(block))
        shown[tier] = tuple(kept)
        omitted += [
            _below(tier, show(poor), policy) for poor in sorted(store.below_threshold[tier].values(), key=_order)
        ]
    task = store.active_task if current - store.task_round <= _TASK_ROUNDS else ""
    task = trim(_clear(task) if redacting else task, MAX_CONTENT_CHARS)
    capabilities, carried, violations = store.capabilities, store.carried, store.violations
    if redacting:
        carried = cleared(carried, _clear)
        capabilities = tuple(
            Capability(_clear(capability.name), _clear(capability.scope)) for capability in capabilities
        )
        violations = tuple(
            {name: _clear_quoted(value) for name, value in violation.items()} for violation in violations
        )
    return Projection(
        round=current,
        core=shown["core"],
        working=shown["working"],
        ephemeral=shown["ephemeral"],
        active_task=task,
        capabilities=capabilities,
        carried=carried,
        omitted=tuple(omitted),
        refused=store.refused,
        violation_counts=store.violation_counts,
        violations=violations,
    )


def _below(tier: Tier, block: Block, policy: TierPolicy) -> Dropped:
    reason, note = policy.shortfall(block)
    return Dropped(tier, block, reason or "threshold_decay", note or "it was below the threshold when it came")


def _reason(block: Block, policy: TierPolicy, current: int) -> tuple[str, str]:
    reason, note = policy.shortfall(block)
    age = current - block.round
    if not reason and policy.max_rounds is not None and age > policy.max_rounds:
        return "expired_by_round", f"{age} rounds old, shown for {policy.max_rounds}"
    return reason, note


def _order(block: Block) -> tuple[float, int, str]:
    return -block.quality, -block.round, block.id


def _short(block: Block) -> Block:
    """Return a block as it is shown: content, type and tags within their caps."""
    tags = tuple(dict.fromkeys(tag[:MAX_TAG_CHARS] for tag in block.tags))[:MAX_TAGS]
    if len(block.content) <= MAX_CONTENT_CHARS and len(block.type) <= MAX_TYPE_CHARS and tags == block.tags:
        return block
    content = trim(block.content, MAX_CONTENT_CHARS)
    return replace(block, content=content, type=block.type[:MAX_TYPE_CHARS], tags=tags)


def _cleared(block: Block) -> Block:
    """Return a block without secrets: taken out before anything is cut, because half a secret is not recognised."""
    texts = {name: _clear(getattr(block, name)) for name in ("id", "type", "content")}
    return _short(replace(block, tags=tuple(map(_clear, block.tags)), **texts))


@lru_cache(maxsize=1024)
def _clear(text: str) -> str:
    return redact(text).text


def _clear_quoted(text: str) -> str:
    """Clear a text that quotes the beginning of others: what was cut may be half a secret, so nothing of it stays."""
    return _clear(_CUT_QUOTE.sub("…", text))


_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARS)]


class _Capability(Struct, forbid_unknown_fields=True):
    """One of the `capabilities` in a config.toml or meta.json."""

    name: _Name
    scope: _Name


class _Policy(Struct, forbid_unknown_fields=True):
    """The settings of a [tiers.NAME] table."""

    max_decay: float | None = None
    min_confidence: float | None = None
    max_items: int | None = None
    max_rounds: int | None = None


def read_policies(settings: Mapping[str, Any], place: str = "config.toml") -> dict[Tier, TierPolicy]:
    """Return the policies with what the [tiers.NAME] tables of a config.toml set."""
    try:
        given = msgspec.convert(settings.get("tiers", {}), dict[Tier, _Policy])
        changed = {tier: replace(POLICIES[tier], **_set(given[tier])) for tier in TIERS if tier in given}
        return {**POLICIES, **msgspec.convert(msgspec.to_builtins(changed), dict[Tier, TierPolicy])}
    except msgspec.ValidationError as error:
        hint = (
            "[tiers.core], [tiers.working] and [tiers.ephemeral] have max_decay, min_confidence, max_items, max_rounds"
        )
        raise BadConfig(str(error), operation="read settings", place=place, hint=hint) from error


def read_capabilities(layers: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[Capability, ...]:
    """Return what the stamp of a turn allows a model, from the first of these settings that says so."""
    for place, settings in layers:
        if "capabilities" in settings:
            try:
                given = msgspec.convert(settings["capabilities"], tuple[_Capability, ...])
                if len({capability.name for capability in given}) < len(given) or len(given) > _STORED_CAPABILITIES:
                    raise msgspec.ValidationError(f"each name once, at most {_STORED_CAPABILITIES} of them")
            except msgspec.ValidationError as error:
                hint = 'capabilities = [{ name = "memory", scope = "write_once" }]'
                problem = f"capabilities: {error}"
                raise BadConfig(problem, operation="read settings", place=place, hint=hint) from error
            return tuple(Capability(capability.name, capability.scope) for capability in given)
    return DEFAULT_CAPABILITIES


def _set(policy: _Policy) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(policy).items() if value is not None}


# Created at import: the library creates decoders without a lock, and two threads at once crash it.
_WARM = tuple(map(msgspec.json.Decoder, (Accepted, Store)))
