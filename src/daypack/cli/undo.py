"""Undo a compaction: the next turn is packed as if it had not been made. Nothing is deleted."""

import argparse

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import json_text, safe_line


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "compaction",
        nargs="?",
        metavar="EV",
        help="event of the compaction; later ones built on it are undone too (default: the newest)",
    )


def run(args: argparse.Namespace) -> int:
    """Undo and print the compaction that is active now."""
    with open_named(args) as session:
        before = session.compactions
        undone = session.undo(args.compaction)
        now = session.compactions
    others = [compaction.id for compaction in before if compaction not in now and compaction.id != undone.id]
    current = now[-1] if now else None
    if args.json:
        print(json_text({"undone": undone.id, "source": undone.source, "current": current.id if current else None}))
        return 0
    print(f"{safe_line(undone.id)} ({safe_line(undone.source)}) is undone")
    if others:
        print(f"also undone, because built on it: {', '.join(map(safe_line, others))}")
    if current:
        print(f"{safe_line(current.id)} is active now: the window starts after message {current.through}")
    else:
        print("no compaction is active now: all messages can be in the window again")
    return 0
