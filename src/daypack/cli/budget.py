"""Show or set the token budget of a session."""

import argparse
from typing import Any

import msgspec

from daypack.cli.options import add_place, open_named
from daypack.cli.pack import read_budget
from daypack.cli.terminal import json_text
from daypack.files import atomic
from daypack.session import Session
from daypack.turn.budget import Limits, parse_budget_file
from daypack.turn.policy import DEFAULT_BUDGET_TOKENS
from daypack.types.kinds import TARGETS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "value", nargs="?", help="number of tokens, JSON object, or 0 for no limit (default: show the budget)"
    )


def run(args: argparse.Namespace) -> int:
    """Set the budget if a value is given, then print it."""
    value = read_budget(args.value) if args.value is not None else None
    with open_named(args) as session:
        if value is not None:
            session.set_budget(value)
        limits, source = _limits(session)
    if args.json:
        print(json_text({"set": source, "limits": limits}))
        return 0
    common = limits["model"]
    where = " (default)" if source is None else ""
    print(f"{_describe(common)}{where}")
    for target, own in limits.items():
        if own != common:
            print(f"{target}: {_describe(own)}")
    return 0


def _limits(session: Session) -> tuple[dict[str, Limits], Any]:
    """Return the limits of each target, and the value that was set or None."""
    path = session.history.layout.derived("budget")
    data = atomic.read(path)
    text = session.turns.inputs.ledger.read().budget if data is None else data.decode("utf-8", "replace")
    if text is None:
        return dict.fromkeys(TARGETS, Limits(DEFAULT_BUDGET_TOKENS)), None
    return {target: parse_budget_file(text, target, path) for target in TARGETS}, msgspec.json.decode(
        text.strip() or "0"
    )


def _describe(limits: Limits) -> str:
    texts = [
        f"{limits.tokens:,} tokens, {limits.reserved_tokens:,} of them reserved for the reply" if limits.tokens else "",
        f"{limits.bytes:,} bytes" if limits.bytes else "",
        f"{limits.items:,} items" if limits.items else "",
        f"{limits.ms:,} ms for searching" if limits.ms else "",
    ]
    return "; ".join(filter(None, texts)) or "no limit"
