"""List the compactions of a session: time, messages, tokens before and after, coverage, losses."""

import argparse
from typing import Any

import msgspec

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, safe_line
from daypack.turn.evidence.words import LOSSES, TRIGGERS
from daypack.types.compaction import Compaction, Loss


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("--losses", action="store_true", help="list what CONTEXT.md does not hold, and why")


def run(args: argparse.Namespace) -> int:
    """Print two lines per active compaction, the newest last."""
    with open_named(args) as session:
        folded = session.turns.compactions.read()
    if args.json:
        print(
            json_text(
                {"compactions": [_as_json(compaction) for compaction in folded.accepted], "undone": folded.undone}
            )
        )
        return 0
    if not folded.accepted:
        print("no active compactions")
    for compaction in folded.accepted:
        print(_describe(compaction))
        for loss in compaction.losses if args.losses else ():
            print(f"  {loss_line(loss)}")
    if folded.undone:
        print(f"undone: {', '.join(map(safe_line, folded.undone))}")
    return 0


def read_by(model: str) -> str:
    """Return which model read the messages of a compaction, in words."""
    return "without a model" if model == "none" else f"with {safe_line(model)}"


def loss_line(loss: Loss) -> str:
    """Return a loss as one line: reason, text, detail."""
    detail = f" ({safe_line(loss.detail)})" if loss.detail else ""
    return f"{LOSSES.get(loss.reason) or safe_line(loss.reason)}: {safe_line(loss.what)}{detail}"


def _as_json(compaction: Compaction) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(compaction)
    for bulk in ("refs", "swapped", "output"):
        data.pop(bulk, None)
    return {**data, "refs": len(compaction.refs), "swapped": len(compaction.swapped)}


def _describe(compaction: Compaction) -> str:
    when = compaction.at[:19].replace("T", " ")
    coverage = compaction.coverage
    count, read = coverage.get("messages", 0), coverage.get("read", 0)
    how = read_by(compaction.model) if read == count else f"({read:,} {read_by(compaction.model)})"
    why = TRIGGERS.get(compaction.trigger) or safe_line(compaction.trigger)
    losses = coverage.get("losses", len(compaction.losses))
    kept = f"{counted(coverage.get('bullets', 0), 'line')} kept, {losses:,} lost"
    if sentences := coverage.get("sentences"):
        own, covered = coverage.get("sentences_kept", 0), coverage.get("sentences_covered", 0)
        kept = (
            f"{counted(coverage.get('bullets', 0), 'line')}; {counted(sentences, 'sentence')}: "
            f"{own:,} kept, {covered:,} covered, {sentences - own - covered:,} lost"
        )
    tokens = f"{compaction.before_tokens:,} tokens compacted so far into a CONTEXT.md of {compaction.after_tokens:,}"
    return (
        f"{compaction.id}  {when}  {safe_line(compaction.source)}: {counted(count, 'message')} {how}; {why}\n"
        f"  {tokens}; {kept}"
    )
