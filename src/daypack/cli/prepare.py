"""Prepare the next turn: select what the next model call needs, record it, and show what is included and omitted."""

import argparse

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named, report_damage, work_in_background
from daypack.cli.turn_summary import add_window, print_turn, read_budget, read_numbers


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    add_window(parser)


def run(args: argparse.Namespace) -> int:
    """Prepare the turn, record it and print it."""
    budget = read_budget(args.budget) if args.budget is not None else None
    with open_named(args, window=read_numbers(args.window)) as session:
        if args.refresh:
            session.refresh()
        work_in_background(session, args)
        turn = session.prepare(budget=budget, model=args.model, target=args.target)
        print_turn(turn, args)
        report_damage(session, set())
        return EXIT_DAMAGE if session.damage else 0
