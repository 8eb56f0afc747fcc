"""Compute everything under context/ again from the logs; nothing is added to them."""

import argparse

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, say
from daypack.upkeep.rebuild import rebuild


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)


def run(args: argparse.Namespace) -> int:
    """Rebuild and say what there is again."""
    with open_named(args) as session:
        built = rebuild(session.history, session.turns)
    if args.json:
        print(json_text(built))
    else:
        print(f"indexes   {counted(built.messages, 'message')}, {counted(built.events, 'event')}")
        print(f"pins      {built.pins}")
        print(f"children  {built.children}")
        print(f"budget    {'as it was recorded' if built.budget else 'none was recorded'}")
        print(f"pack      {built.pack or 'no turn was recorded'}")
    if built.problem:
        say(f"the newest pack cannot be made again: {built.problem}")
    return 1 if built.problem else 0
