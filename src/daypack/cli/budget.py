"""Show or set the token budget of a session."""

import argparse

from daypack.cli.options import add_place, open_named, read_budget
from daypack.cli.terminal import json_text
from daypack.turn.budget import Limits, parse_budget
from daypack.types.kinds import TARGETS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "value",
        nargs="?",
        help="tokens such as 32000 or 32k, JSON object, or 0 for no limit (default: show the budget)",
    )


def run(args: argparse.Namespace) -> int:
    """Set the budget if a value is given, then print it."""
    value = read_budget(args.value, "budget") if args.value is not None else None
    with open_named(args) as session:
        if value is not None:
            session.set_budget(value)
        limits = {target: session.turns.limits(target) for target in TARGETS}
        text = session.turns.budget_text
        recorded = bool(session.turns.inputs.ledger.read().turns)
    source = None if text is None else parse_budget(text)
    if args.json:
        print(json_text({"set": source, "limits": limits}))
        return 0
    common = limits["model"]
    where = "" if source is not None else " (of the last turn)" if recorded else " (default)"
    print(f"{_describe(common)}{where}")
    for target, own in limits.items():
        if own != common:
            print(f"{target}: {_describe(own)}")
    return 0


def _describe(limits: Limits) -> str:
    texts = [
        f"{limits.tokens:,} tokens, {limits.reserved_tokens:,} of them reserved for the reply" if limits.tokens else "",
        f"{limits.bytes:,} bytes" if limits.bytes else "",
        f"{limits.items:,} items" if limits.items else "",
        f"{limits.ms:,} ms for searching" if limits.ms else "",
    ]
    return "; ".join(filter(None, texts)) or "no limit"
