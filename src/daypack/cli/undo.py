"""Take a compaction back by appending that it was; the next turn packs as if it had not been made."""

import argparse

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import json_text, safe_line


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "compaction", nargs="?", metavar="EV", help="its event; those built on it go too (default: the newest)"
    )


def run(args: argparse.Namespace) -> int:
    """Undo and say what counts now."""
    with open_named(args) as session:
        before = session.compactions
        undone = session.undo(args.compaction)
        now = session.compactions
    with_it = [one.id for one in before if one not in now and one.id != undone.id]
    current = now[-1] if now else None
    if args.json:
        print(json_text({"undone": undone.id, "source": undone.source, "current": current.id if current else None}))
        return 0
    print(f"{safe_line(undone.id)} ({safe_line(undone.source)}) is taken back")
    if with_it:
        print(f"and what was built on it: {', '.join(map(safe_line, with_it))}")
    if current:
        print(f"{safe_line(current.id)} counts now: the window begins behind message {current.through}")
    else:
        print("no compaction counts now: every message may stand in the window again")
    return 0
