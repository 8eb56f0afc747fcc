"""List the compactions of a session: when, what left the window, tokens before and after, coverage, losses."""

import argparse
from typing import Any

import msgspec

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, safe_line
from daypack.types.compaction import Compaction, Loss

_TRIGGERS = {
    "manual": "by hand",
    "token_pressure": "the window was filling",
    "provider_context_editing": "a provider's window was exceeded",
}
_REASONS = {
    "ungrounded": "history does not say so",
    "meta": "talk about itself",
    "placeholder": "an echo of the prompt",
    "over_limit": "no room",
    "unfinished": "broken off",
    "unreadable": "cannot be read",
    "refused": "the model declined",
    "repeated": "said twice",
    "superseded": "replaced by newer words",
    "carried_out": "gave way to others",
    "unread": "not read",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("--losses", action="store_true", help="name what was not taken over, and why")


def run(args: argparse.Namespace) -> int:
    """Print two lines for each compaction in effect, the newest last."""
    with open_named(args) as session:
        folded = session.turns.compactions.read()
    if args.json:
        print(json_text({"compactions": [_as_json(one) for one in folded.accepted], "undone": folded.undone}))
        return 0
    if not folded.accepted:
        print("no compaction is in effect")
    for one in folded.accepted:
        print(_told(one))
        for loss in one.losses if args.losses else ():
            print(f"  {loss_line(loss)}")
    if folded.undone:
        print(f"taken back: {', '.join(map(safe_line, folded.undone))}")
    return 0


def read_by(model: str) -> str:
    """Say in words who read the messages of a compaction."""
    return "read without a model" if model == "none" else f"read by {safe_line(model)}"


def loss_line(loss: Loss) -> str:
    """Return a loss in one line: why, what, and more about it."""
    detail = f" ({safe_line(loss.detail)})" if loss.detail else ""
    return f"{_REASONS.get(loss.reason) or safe_line(loss.reason)}: {safe_line(loss.what)}{detail}"


def _as_json(one: Compaction) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(one)
    for bulk in ("refs", "swapped", "output"):
        data.pop(bulk, None)
    return {**data, "refs": len(one.refs), "swapped": len(one.swapped)}


def _told(one: Compaction) -> str:
    when = one.at[:19].replace("T", " ")
    count = one.coverage.get("messages", 0)
    read = one.coverage.get("read", 0)
    how = read_by(one.model) if read == count else f"{read:,} of them {read_by(one.model)}"
    why = _TRIGGERS.get(one.trigger) or safe_line(one.trigger)
    losses = one.coverage.get("losses", 0)
    kept = counted(one.coverage.get("bullets", 0), "line")
    lost = f"{kept} taken over, {losses:,} not"
    return (
        f"{one.id}  {when}  {safe_line(one.source)}: {counted(count, 'message')} {how}; {why}\n"
        f"  {one.before_tokens:,} tokens have left the window so far, CONTEXT.md has {one.after_tokens:,}; {lost}"
    )
