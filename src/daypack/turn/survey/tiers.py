"""The tiers in a turn: core blocks in the prefix, working and ephemeral ones behind the tail, and what is asked for."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from daypack.derived.tiers import Projection, project
from daypack.history.layout import Layout
from daypack.turn.evidence.record import CLOCK
from daypack.turn.items import SEEN_BY_DEFAULT, Entry, Item, Missing, Omission, Scales
from daypack.turn.ledger import STAMP
from daypack.turn.pack.volatile import TOGETHER
from daypack.turn.survey.inputs import TurnInputs, now_of
from daypack.turn.survey.sources import Found, block_text
from daypack.turn.survey.surface import Request
from daypack.types.kinds import PackKind, Tier, context_kind_of
from daypack.types.snapshot import PROTOCOL_VERSION, Block, Runtime

PROTOCOL = "protocol"  # the switch, and the block of instructions behind it
CORE = "blocks:core"
_INSIDE = ("model", "reviewer", "evidence_export")
_CAPABILITIES = ({"name": "memory", "scope": "write"},)
# Tier -> kind, order, priority, and which part of the room it may take at most.
_PLACES: dict[Tier, tuple[PackKind, int, float, int]] = {
    "core": ("core_blocks", 60, 0.66, 12),
    "working": ("working_blocks", 70, 0.62, 12),
    "ephemeral": ("ephemeral_blocks", 71, 0.35, 24),
}


def tier_items(inputs: TurnInputs, request: Request, user: Entry | None, scales: Scales) -> Iterator[Found]:
    """The blocks a model wrote, and the instructions for more where the protocol is on."""
    folded = inputs.ledger.read()
    rounds = folded.rounds + (1 if user and user.message.seq > folded.asked else 0)
    if folded.tiers.message:
        tiers = project(folded.tiers, rounds, inputs.policies, redacting=inputs.redacting)
        found = block_items(tiers, request.limits.room.tokens, scales.tokens)
        # Who may not see the blocks does not learn their ids from those that did not fit.
        yield from (one for one in found if request.target in SEEN_BY_DEFAULT or not isinstance(one, Omission))
    on = folded.switches.get(PROTOCOL, False) if request.protocol is None else request.protocol
    if on and request.target == "model" and inputs.policies:  # a bad setting is told before a reply is paid for
        workspace = inputs.workspace
        runtime = Runtime(
            round=rounds,
            workspace=workspace and os.path.join(os.path.normpath(workspace), ""),
            datetime=now_of(request.start_seconds),
            startup_at=inputs.started_ms,
        )
        yield from protocol_items(runtime, inputs.history.layout)


def block_items(tiers: Projection, room_tokens: int, count: Callable[[str], int]) -> Iterator[Found]:
    """Yield one item for each tier that has blocks, the best of them while they fit."""
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
            lines = [f"{len(unshown)} blocks stand and have no room here"]
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
                metadata=_standing(tiers, shown) if tier == "core" else {},
            )


def _standing(tiers: Projection, shown: list[str]) -> dict[str, Any]:
    """Name the core blocks that are shown, and those that stand without being shown."""
    known = [*(one.id for one in tiers.core), *(one.block.id for one in tiers.omitted if one.tier == "core")]
    held = [one for one in dict.fromkeys(map(_one_line, known)) if one not in shown]
    return {"ids": shown, **({"held": held} if held else {})}


def block_line(tier: Tier, block: Block) -> str:
    """Return a block in one line. A core block names no numbers: they would change a frozen prefix for nothing."""
    about = [_one_line(block.type)]
    if tier != "core":
        about += [f"decay {block.decay:g}", f"confidence {block.confidence:g}", f"round {block.round}"]
    tags = "".join(f" #{_one_line(tag).replace(' ', '-')}" for tag in block.tags)
    return f"- {_one_line(block.id)} ({', '.join(about)}): {_one_line(block.content)}{tags}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def changed_blocks(before: Item, after: Item | None) -> str:
    """Return what of the core blocks is new since a prefix was frozen, and which of them are gone."""
    frozen, current = before.text.split("\n"), after.text.split("\n") if after else []
    known: list[str] = after.metadata["ids"] if after else []
    held: list[str] = after.metadata.get("held", []) if after else []  # they stand, and there is no room to show them
    gone = [one for one in before.metadata["ids"] if one not in known and one not in held]
    new = [line for line in current if line not in frozen]
    return "\n".join([*new, *([f"no longer: {', '.join(gone)}"] if gone else [])])


def protocol_items(runtime: Runtime, layout: Layout) -> Iterator[Found]:
    """Yield the instructions of the protocol, and the object a reply brings back unchanged."""
    text, problem = block_text(PROTOCOL, layout)
    if problem:
        question = f"What does the block {PROTOCOL} say? {problem}"
        yield Missing(id=f"block:{PROTOCOL}", question=question, severity="high", requested=f"prompts/{PROTOCOL}.md")
    yield Item(
        id=f"block:{PROTOCOL}",
        kind="system",
        context_kind="developer_instruction",
        source=f"prompts/{PROTOCOL}.md",
        text=(text or "").strip(),
        title=PROTOCOL,
        authority="system",
        visibility=_INSIDE,
        order=80,
        priority=0.97,
        metadata={TOGETHER: STAMP},
    )
    stamp = {
        "version": PROTOCOL_VERSION,
        "runtime": msgspec.structs.asdict(runtime),
        "capabilities": _CAPABILITIES,
    }
    yield Item(
        id=STAMP,
        kind="runtime_block",
        context_kind="runtime_state",
        source=CLOCK,
        text=msgspec.json.encode(stamp).decode(),
        title="runtime",
        authority="system",
        visibility=("model", "runtime", "reviewer", "evidence_export"),
        order=85,
        priority=0.97,
        metadata={TOGETHER: f"block:{PROTOCOL}"},
    )


def stamp_of(items: tuple[Item, ...]) -> dict[str, Any] | None:
    """Return what a reply must bring back, from the items of a recorded turn; None: the protocol was off."""
    for item in items:
        if item.id == STAMP:
            stamp: dict[str, Any] = msgspec.json.decode(item.text)
            return stamp
    return None
