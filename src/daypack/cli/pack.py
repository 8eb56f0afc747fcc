"""Prepare the next turn: select what the next model call needs, record it, and show what is included and omitted."""

import argparse
from collections.abc import Mapping
from typing import Any

import msgspec

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, compact_in_background, open_named, report_damage
from daypack.cli.turn_summary import add_dialect, print_turn
from daypack.errors import BadInput
from daypack.types.kinds import TARGETS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "--budget",
        metavar="N|JSON",
        help="tokens of the window, or a JSON object with tokens, bytes, items, ms (default: context/budget)",
    )
    parser.add_argument("--target", choices=TARGETS, default="model", help="reader of the pack (default: %(default)s)")
    parser.add_argument("--model", help="model to be called; determines the tokenizer")
    parser.add_argument("--dry-run", action="store_true", help="show the pack without recording it")
    parser.add_argument(
        "--refresh", action="store_true", help="start a new epoch, so that the prefix includes recent changes"
    )
    add_dialect(parser)


def run(args: argparse.Namespace) -> int:
    """Prepare the turn and print it."""
    budget = read_budget(args.budget) if args.budget is not None else None
    with open_named(args) as session:
        if args.refresh:
            session.refresh()
        session.turns.compactions.start = lambda choice: compact_in_background(args, choice)
        turn = session.prepare(budget=budget, model=args.model, target=args.target, dry_run=args.dry_run)
        print_turn(turn, args)
        report_damage(session, set())
        return EXIT_DAMAGE if session.damage else 0


def read_budget(text: str) -> int | Mapping[str, Any]:
    """Parse a budget: a number of tokens, or a JSON object."""
    try:
        return msgspec.json.decode(text, type=int | dict[str, Any])
    except (msgspec.DecodeError, UnicodeError) as error:
        hint = 'pass a number of tokens, or an object such as {"tokens": 32000, "items": 400}'
        raise BadInput(
            f"{text!r} is not a budget: {error}", operation="read budget", place="budget", hint=hint
        ) from error
