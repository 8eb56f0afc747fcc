"""Compute everything under context/ again from the logs; nothing is added to them."""

import argparse

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, safe_line, say
from daypack.history.layout import find_home
from daypack.upkeep.rebuild import rebuild, verify


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("--verify", action="store_true", help="rebuild elsewhere and compare; change nothing here")


def run(args: argparse.Namespace) -> int:
    """Rebuild and say what there is again; with --verify, exit code 3 when a file says something else."""
    if args.verify:
        return _verify(args)
    with open_named(args) as session:
        built = rebuild(session.history, session.turns)
    if args.json:
        print(json_text(built))
    else:
        print(f"indexes   {counted(built.messages, 'message')}, {counted(built.events, 'event')}")
        print(f"pins      {built.pins}")
        print(f"children  {built.children}")
        print(f"compacted {counted(built.compactions, 'time')}")
        print(f"budget    {'as it was recorded' if built.budget else 'none was recorded'}")
        none = "cannot be made again" if built.problem else "no turn was recorded"
        print(f"pack      {built.pack or none}")
    if built.problem:
        say(f"the newest pack cannot be made again: {safe_line(built.problem)}")
    return 1 if built.problem else 0


def _verify(args: argparse.Namespace) -> int:
    with open_named(args) as session:
        different = verify(find_home(args.home, args.uid), session.agent, session.name, session.history.config)
    if args.json:
        print(json_text({"same": not different, "different": different}))
    else:
        for one in different:
            print(f"{safe_line(one.path)}: {one.problem}")
        print(
            "some files differ: `daypack rebuild` makes them again" if different else "every file is what history says"
        )
    return EXIT_DAMAGE if different else 0
