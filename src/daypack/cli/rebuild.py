"""Rebuild everything under context/ from the logs; the logs are not changed."""

import argparse

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, print_note, safe_line
from daypack.history.home import find_home
from daypack.upkeep.rebuild import rebuild, verify


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "--verify", action="store_true", help="rebuild in a temporary folder and compare; change nothing"
    )


def run(args: argparse.Namespace) -> int:
    """Rebuild and print what was rebuilt; with --verify, exit code 3 if a file differs."""
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
        print(f"budget    {'as recorded' if built.budget else 'not set'}")
        none = "cannot be rebuilt" if built.problem else "no turn recorded"
        print(f"pack      {built.pack or none}")
    if built.problem:
        print_note(f"the newest pack cannot be rebuilt: {safe_line(built.problem)}")
    return 1 if built.problem else 0


def _verify(args: argparse.Namespace) -> int:
    with open_named(args) as session:
        different = verify(find_home(args.home, args.uid), session.agent, session.name, session.history.config)
    if args.json:
        print(json_text({"same": not different, "different": different}))
    else:
        for difference in different:
            print(f"{safe_line(difference.path)}: {difference.problem}")
        print("some files differ; fix them with `daypack rebuild`" if different else "all files match the history")
    return EXIT_DAMAGE if different else 0
