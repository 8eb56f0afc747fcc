"""Prepare the next turn: pack what the next call needs, record the proof of it, and say what is in and what is not."""

import argparse
from collections.abc import Mapping
from typing import Any

import msgspec

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, compact_behind, open_named, tell_damage
from daypack.cli.turn_summary import add_dialect, print_turn
from daypack.errors import BadInput
from daypack.types.kinds import TARGETS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "--budget",
        metavar="N|JSON",
        help="tokens of the whole window, or an object with tokens, bytes, items, ms (default: context/budget)",
    )
    parser.add_argument("--target", choices=TARGETS, default="model", help="whom it is for (default: %(default)s)")
    parser.add_argument("--model", help="the model that is called; decides how tokens are counted")
    parser.add_argument("--dry-run", action="store_true", help="record nothing: tell what would fit")
    parser.add_argument("--refresh", action="store_true", help="begin a new epoch, so that the prefix takes in changes")
    add_dialect(parser)


def run(args: argparse.Namespace) -> int:
    """Prepare and print."""
    budget = read_budget(args.budget) if args.budget is not None else None
    with open_named(args) as session:
        if args.refresh:
            session.refresh()
        session.turns.compactions.start = lambda choice: compact_behind(args, choice)
        turn = session.prepare(budget=budget, model=args.model, target=args.target, dry_run=args.dry_run)
        print_turn(turn, args)
        tell_damage(session, set())
        return EXIT_DAMAGE if session.damage else 0


def read_budget(text: str) -> int | Mapping[str, Any]:
    """Read a budget from the command line: a number of tokens, or a JSON object."""
    try:
        return msgspec.json.decode(text, type=int | dict[str, Any])
    except (msgspec.DecodeError, UnicodeError) as error:
        hint = 'give a number of tokens, or an object such as {"tokens": 32000, "items": 400}'
        raise BadInput(f"{text!r} is no budget: {error}", operation="read budget", place="budget", hint=hint) from error
