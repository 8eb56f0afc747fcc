"""Show what the next turn would contain; nothing is recorded and nothing is compacted."""

import argparse

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named, report_damage, work_in_background
from daypack.cli.terminal import print_note, safe_line
from daypack.cli.turn_summary import add_window, print_turn, read_budget, read_numbers
from daypack.turn.turn import Turn


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    add_window(parser)


def run(args: argparse.Namespace) -> int:
    """Print the turn that `daypack prepare` would record now."""
    budget = read_budget(args.budget) if args.budget is not None else None
    with open_named(args, window=read_numbers(args.window)) as session:
        if args.refresh:
            session.refresh()
        work_in_background(session, args)
        turn = session.prepare(budget=budget, model=args.model, target=args.target, dry_run=True)
        print_turn(turn, args)
        if _drops_messages(turn):
            print_note(f"messages do not fit: `daypack prepare {safe_line(args.session)}` may compact them first")
        report_damage(session, set())
        return EXIT_DAMAGE if session.damage else 0


def _drops_messages(turn: Turn) -> bool:
    """Return True if messages leave the window with this turn, which a recorded turn would compact."""
    reasons = (omission.reason for omission in turn.omitted if omission.item.startswith("messages:"))
    return bool(turn.new_epoch) and turn.target == "model" and "budget_limit" in reasons
