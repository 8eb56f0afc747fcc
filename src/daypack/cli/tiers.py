"""Show the model's own memory in its three tiers (core, working, ephemeral), and blocks that are not shown to it."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, safe_line, shell_word, table
from daypack.derived.tiers import Dropped, Projection
from daypack.protocol.rule_texts import RULES
from daypack.turn.evidence.words import DROPPED_BLOCKS
from daypack.types.kinds import TIERS
from daypack.types.snapshot import Block

_HEAD = ("tier", "id", "type", "age", "importance", "confidence", "content")
_SAMPLES = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("--all", action="store_true", help="list every block that is not shown")


def run(args: argparse.Namespace) -> int:
    """Print the tiers as a table."""
    with open_named(args) as session:
        tiers = session.tiers
        on = session.turns.inputs.ledger.read().switches.get("protocol", False)
    if args.json:
        print(json_text({**_as_json(tiers), "protocol": on}))
        return 0
    print("\n".join(_describe(tiers, args.session, on=on, limit=None if args.all else _SAMPLES)))
    return 0


def _describe(tiers: Projection, name: str, *, on: bool, limit: int | None) -> Iterator[str]:
    shown = ", ".join(f"{len(tiers.of(tier))} {tier}" for tier in TIERS)
    yield f"round {tiers.round}; the protocol is {'on' if on else 'off'}; blocks: {shown}"
    if not on and not any(tiers.of(tier) for tier in TIERS):
        yield f"  → turn it on with `daypack switch {shell_word(name)} protocol on`"
    if tiers.active_task:
        yield f"active task: {safe_line(tiers.active_task)}"
    rows = [_row(tier, block, tiers.round) for tier in TIERS for block in tiers.of(tier)]
    if rows:
        yield ""
        yield from table(_HEAD, rows)
    if tiers.dropped:
        yield ""
        yield "not shown"
        for reason, count in tiers.dropped.items():
            yield f"  {DROPPED_BLOCKS.get(reason, reason)}: {counted(count, 'block')}"
            some = [dropped for dropped in tiers.omitted if dropped.reason == reason]
            yield from (f"    {_dropped(dropped)}" for dropped in some[:limit])
            if limit is not None and len(some) > limit:
                yield f"    and {len(some) - limit:,} more (--all)"
    if tiers.violation_counts:
        yield ""
        yield "rules broken by replies, most frequent first"
        most = sorted(tiers.violation_counts.items(), key=lambda rule: (-rule[1], rule[0]))
        rows = [(f"{count:,} ×", rule, RULES.get(rule, "")) for rule, count in most[:limit]]
        yield from (f"  {line}" for line in table(("", "", ""), rows, right=1)[1:])
        if limit is not None and len(most) > limit:
            yield f"  and {len(most) - limit:,} others (--all)"


def _row(tier: str, block: Block, round_now: int) -> Sequence[str]:
    tags = "".join(f" #{tag}" for tag in block.tags)
    numbers = (str(max(0, round_now - block.round)), f"{block.importance:.2f}", f"{block.confidence:.2f}")
    return (tier, _cut(block.id, 40), _cut(block.type, 24), *numbers, f"{block.content}{tags}")


def _dropped(dropped: Dropped) -> str:
    block = dropped.block
    figures = f"importance {block.importance:.2f}, confidence {block.confidence:.2f}, round {block.round}"
    return f"{dropped.tier} {safe_line(_cut(block.id, 40))} ({figures}): {safe_line(_cut(block.content, 120))}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _as_json(tiers: Projection) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(tiers)
    for tier in TIERS:
        data[tier] = [_block(block, tiers.round) for block in tiers.of(tier)]
    data["omitted"] = [
        {**fields, "block": _block(dropped.block, tiers.round)}
        for fields, dropped in zip(data["omitted"], tiers.omitted, strict=True)
    ]
    return {**data, "dropped": tiers.dropped}


def _block(block: Block, current: int) -> dict[str, Any]:
    importance = round(block.importance, 6)
    return {**msgspec.to_builtins(block), "importance": importance, "age": max(0, current - block.round)}
