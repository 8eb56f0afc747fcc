"""Bring back what left the window, by its id: of a stub, a swapped range, a message, an event, a record or a ref."""

import argparse

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, safe, safe_line, say
from daypack.turn.recall import Recalled


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("id", help="sha256-…, msg-12, messages:12-18, tool:CALL, f3, r2, ev-9 or child:NAME")
    parser.add_argument("--lines", metavar="A-B", help="only these lines, counted from 1: 3-40, or 12")


def run(args: argparse.Namespace) -> int:
    """Print the text, and on standard error where it is from."""
    with open_named(args) as session:
        found = session.recall(args.id, args.lines)
    if args.json:
        told = {"id": args.id, "source": found.source, "start": found.start, "stop": found.stop, "lines": found.lines}
        print(json_text({**told, "text": found.text}))
    else:
        say(f"{safe_line(found.source)}, {_which(found)}:")
        print(safe(found.text))
    return 0


def _which(found: Recalled) -> str:
    if (found.start, found.stop) == (1, found.lines):
        return counted(found.lines, "line")
    which = f"line {found.start:,}" if found.start == found.stop else f"lines {found.start:,}-{found.stop:,}"
    return f"{which} of {found.lines:,}"
