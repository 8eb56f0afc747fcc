"""The tiers in a turn: core blocks in the prefix, working and ephemeral ones after the tail, protocol instructions."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from daypack.derived.tiers import Projection, project
from daypack.history.layout import Layout
from daypack.turn.items import RUNTIME, SEEN_BY_DEFAULT, STAMP, Entry, Item, Missing, Omission
from daypack.turn.pack.volatile import TOGETHER
from daypack.turn.policy import CORE_PART, EPHEMERAL_PART, WORKING_PART
from daypack.turn.surface import Request
from daypack.turn.survey.inputs import TurnInputs, now_of
from daypack.turn.survey.sources import Found, block_text
from daypack.types.kinds import PackKind, Tier, context_kind_of
from daypack.types.names import one_line
from daypack.types.snapshot import PROTOCOL_VERSION, Block, Runtime

PROTOCOL = "protocol"  # the switch, and the name of its instructions
_INSIDE = ("model", "reviewer", "evidence_export")
# Tier -> kind, order, priority, and the divisor of its part of the room.
_PLACES: dict[Tier, tuple[PackKind, int, float, int]] = {
    "core": ("core_blocks", 60, 0.66, CORE_PART),
    "working": ("working_blocks", 70, 0.62, WORKING_PART),
    "ephemeral": ("ephemeral_blocks", 71, 0.35, EPHEMERAL_PART),
}


def tier_items(inputs: TurnInputs, request: Request, user: Entry | None, *, protocol: bool) -> Iterator[Found]:
    """Return the blocks that the model wrote, and the protocol's instructions where it is on."""
    folded = inputs.ledger.read()
    rounds = folded.rounds + (1 if user and user.message.seq > folded.last_user else 0)
    carried: dict[str, Any] = {}
    if folded.tiers.message:
        tiers = project(folded.tiers, rounds, inputs.policies, redacting=inputs.redacting)
        carried = tiers.carried
        found = block_items(tiers, request.limits.room_beside(request.tools).tokens, inputs.meter(request.model).tokens)
        # A target that may not see blocks does not learn their ids from a record of those that did not fit.
        inside = request.target in SEEN_BY_DEFAULT
        yield from (thing for thing in found if inside or not isinstance(thing, Omission))
    if protocol and request.target == "model" and inputs.policies:  # an invalid setting fails before a call is paid
        workspace = inputs.workspace
        runtime = Runtime(
            round=rounds,
            workspace=workspace and os.path.join(os.path.normpath(workspace), ""),
            datetime=now_of(request.start_seconds),
            startup_at=inputs.started_ms,
        )
        stamp = {
            "version": PROTOCOL_VERSION,
            "runtime": msgspec.structs.asdict(runtime),
            "capabilities": [msgspec.structs.asdict(capability) for capability in inputs.capabilities],
        }
        yield from protocol_items({**stamp, **carried, **stamp}, inputs.history.layout)


def block_items(tiers: Projection, room_tokens: int, count: Callable[[str], int]) -> Iterator[Found]:
    """Return one item for each tier that has blocks, with the best blocks that fit."""
    for tier, (kind, order, priority, part) in _PLACES.items():
        room = room_tokens // part
        lines = [f"active task: {_one_line(tiers.active_task)}"] if tier == "working" and tiers.active_task else []
        room -= sum(map(count, lines))
        shown: list[str] = []
        unshown: list[str] = []
        for block in tiers.of(tier):
            line = block_line(tier, block)
            tokens = count(line) + 1
            if tokens > room:
                unshown.append(block.id)
                continue
            room -= tokens
            lines.append(line)
            shown.append(_one_line(block.id))
        if unshown:
            note = f"{len(unshown)} of {len(tiers.of(tier))} blocks did not fit: {', '.join(unshown[:8])}"
            yield Omission(item=f"blocks:{tier}", reason="budget_limit", note=note)
        if tier == "core" and unshown and not lines:
            lines = [f"{len(unshown)} active blocks did not fit"]
        if lines:
            yield Item(
                id=f"blocks:{tier}",
                kind=kind,
                context_kind=context_kind_of(kind),
                source=f"tiers/{tier}",
                text="\n".join(lines),
                title=f"{tier} blocks",
                visibility=_INSIDE,
                placement="prefix" if tier == "core" else "volatile",
                order=order,
                priority=priority,
                metadata=_core_ids(tiers, shown) if tier == "core" else {},
            )


def _core_ids(tiers: Projection, shown: list[str]) -> dict[str, Any]:
    """Return the ids of the core blocks that are shown, and of active ones without space."""
    active = [block.id for block in tiers.core]
    active += [omitted.block.id for omitted in tiers.omitted if omitted.tier == "core"]
    without_space = [block for block in dict.fromkeys(map(_one_line, active)) if block not in shown]
    return {"ids": shown, **({"without_space": without_space} if without_space else {})}


def block_line(tier: Tier, block: Block) -> str:
    """Return a block in one line. Core blocks have no numbers: those would change a frozen prefix for nothing."""
    about = [_one_line(block.type)]
    if tier != "core":
        about += [f"decay {block.decay:g}", f"confidence {block.confidence:g}", f"round {block.round}"]
    tags = "".join(f" #{_one_line(tag).replace(' ', '-')}" for tag in block.tags)
    return f"- {_one_line(block.id)} ({', '.join(about)}): {_one_line(block.content)}{tags}"


def _one_line(text: str) -> str:
    return one_line(" ".join(text.split()))


def protocol_items(stamp: Mapping[str, Any], layout: Layout) -> Iterator[Found]:
    """Return the instructions of the protocol, and the object that a reply begins with."""
    text, problem = block_text(PROTOCOL, layout)
    if problem:
        question = f"What does the block {PROTOCOL} say? {problem}"
        yield Missing(id=f"block:{PROTOCOL}", question=question, severity="high", requested=f"prompts/{PROTOCOL}.md")
    yield Item(
        id=f"block:{PROTOCOL}",
        kind="system",
        context_kind="developer_instruction",
        source=f"prompts:{PROTOCOL}.md",
        text=(text or "").strip(),
        title=PROTOCOL,
        authority="system",
        visibility=_INSIDE,
        order=80,
        priority=0.97,
        metadata={TOGETHER: STAMP},
    )
    yield Item(
        id=STAMP,
        kind="runtime_block",
        context_kind="runtime_state",
        source=RUNTIME,
        text=msgspec.json.encode(stamp).decode(),
        title="runtime",
        authority="system",
        visibility=("model", "runtime", "reviewer", "evidence_export"),
        order=85,
        priority=0.97,
        metadata={TOGETHER: f"block:{PROTOCOL}"},
    )
