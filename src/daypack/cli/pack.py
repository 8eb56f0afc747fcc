"""Show what the next turn would contain; nothing is recorded and nothing is compacted."""

import argparse

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import print_note, shell_word
from daypack.cli.turn_summary import add_window, prepare_turn, read_numbers
from daypack.turn.turn import Turn


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    add_window(parser)


def run(args: argparse.Namespace) -> int:
    """Print the turn that `daypack prepare` would record now."""
    with open_named(args, window=read_numbers(args.window)) as session:
        turn = prepare_turn(session, args, dry_run=True)
        if _drops_messages(turn):
            print_note(f"messages do not fit: `daypack prepare {shell_word(args.session)}` may compact them first")
        return EXIT_DAMAGE if session.damage else 0


def _drops_messages(turn: Turn) -> bool:
    """Return True if messages leave the window with this turn, which a recorded turn would compact."""
    reasons = (omission.reason for omission in turn.omitted if omission.item.startswith("messages:"))
    return bool(turn.new_epoch) and turn.target == "model" and "budget_limit" in reasons
