"""Prepare the next turn: select what the next model call needs, record it, and show what is included and omitted."""

import argparse

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.turn_summary import add_window, prepare_turn, read_numbers


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    add_window(parser)


def run(args: argparse.Namespace) -> int:
    """Prepare the turn, record it and print it."""
    with open_named(args, window=read_numbers(args.window)) as session:
        prepare_turn(session, args, dry_run=False)
        return EXIT_DAMAGE if session.damage else 0
