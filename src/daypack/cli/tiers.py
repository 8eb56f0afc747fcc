"""Show the model's own memory in its three tiers: core, working, ephemeral; and what is not shown to it, and why."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, safe_line
from daypack.cli.turn_summary import table
from daypack.derived.tiers import Dropped, Projection
from daypack.types.kinds import TIERS
from daypack.types.snapshot import Block

_HEAD = ("tier", "id", "type", "age", "importance", "confidence", "content")
_SAMPLES = 5
_REASONS = {
    "threshold_decay": "not important enough",
    "threshold_confidence": "not sure enough",
    "expired_by_round": "too old",
    "over_max_items": "no room in the tier",
    "redundant": "said twice",
    "invalid_block": "refused: not a usable block",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("--all", action="store_true", help="name every block that is not shown, not only a few")


def run(args: argparse.Namespace) -> int:
    """Print the tiers as a table."""
    with open_named(args) as session:
        tiers = session.tiers
        on = session.turns.inputs.ledger.read().switches.get("protocol", False)
    if args.json:
        print(json_text({**_as_json(tiers), "protocol": on}))
        return 0
    print("\n".join(_told(tiers, args.session, on=on, few=None if args.all else _SAMPLES)))
    return 0


def _told(tiers: Projection, name: str, *, on: bool, few: int | None) -> Iterator[str]:
    shown = ", ".join(f"{len(tiers.of(tier))} {tier}" for tier in TIERS)
    yield f"round {tiers.round}; the protocol is {'on' if on else 'off'}; shown where they fit: {shown}"
    if not on and not any(tiers.of(tier) for tier in TIERS):
        yield f"  → turn it on with `daypack switch {safe_line(name)} protocol on`"
    if tiers.active_task:
        yield f"active task: {safe_line(tiers.active_task)}"
    rows = [_row(tier, block, tiers.round) for tier in TIERS for block in tiers.of(tier)]
    if rows:
        yield ""
        yield from table(_HEAD, rows)
    if dropped := tiers.dropped:
        yield ""
        yield "not shown"
        for reason, count in dropped.items():
            yield f"  {_REASONS.get(reason, reason)}: {counted(count, 'block')}"
            some = [one for one in tiers.omitted if one.reason == reason]
            yield from (f"    {_left(one)}" for one in some[:few])
            if few is not None and len(some) > few:
                yield f"    and {len(some) - few:,} more (--all)"
    if tiers.violation_counts:
        yield ""
        most = sorted(tiers.violation_counts.items(), key=lambda one: (-one[1], one[0]))
        rules = ", ".join(f"{rule} × {count:,}" if count > 1 else rule for rule, count in most[:few])
        more = f" and {len(most) - few:,} others (--all)" if few is not None and len(most) > few else ""
        yield f"rules that replies broke, most often first: {rules}{more}"
        yield "  → what they say stands in docs/design.md, Hybrid protocol"


def _row(tier: str, block: Block, current: int) -> Sequence[str]:
    tags = "".join(f" #{tag}" for tag in block.tags)
    numbers = (str(max(0, current - block.round)), f"{block.importance:.2f}", f"{block.confidence:.2f}")
    return (tier, _cut(block.id, 40), _cut(block.type, 24), *numbers, f"{block.content}{tags}")


def _left(one: Dropped) -> str:
    figures = f"importance {one.block.importance:.2f}, confidence {one.block.confidence:.2f}, round {one.block.round}"
    return f"{one.tier} {safe_line(_cut(one.block.id, 40))} ({figures}): {safe_line(_cut(one.block.content, 120))}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _as_json(tiers: Projection) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(tiers)
    for tier in TIERS:
        data[tier] = [_block(block, tiers.round) for block in tiers.of(tier)]
    data["omitted"] = [
        {**fields, "block": _block(omission.block, tiers.round)}
        for fields, omission in zip(data["omitted"], tiers.omitted, strict=True)
    ]
    return {**data, "dropped": tiers.dropped}


def _block(block: Block, current: int) -> dict[str, Any]:
    importance = round(block.importance, 6)
    return {**msgspec.to_builtins(block), "importance": importance, "age": max(0, current - block.round)}
