"""Print omitted history by its id: a stub, a swapped range, a message, an event, a record or a ref."""

import argparse

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, print_note, safe, safe_line
from daypack.turn.recall import Recalled


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("id", help="id: sha256-…, msg-12, messages:12-18, tool:CALL, f3, r2, ev-9 or child:NAME")
    parser.add_argument("--lines", metavar="A-B", help="only these lines, counted from 1, e.g. 3-40 or 12")


def run(args: argparse.Namespace) -> int:
    """Print the text to standard output and its source to standard error."""
    with open_named(args) as session:
        recalled = session.recall(args.id, args.lines)
    if args.json:
        facts = {
            "id": args.id,
            "source": recalled.source,
            "start": recalled.start,
            "stop": recalled.stop,
            "lines": recalled.lines,
        }
        print(json_text({**facts, "text": recalled.text}))
    else:
        print_note(f"{safe_line(recalled.source)}, {_describe_lines(recalled)}:")
        print(safe(recalled.text))
    return 0


def _describe_lines(recalled: Recalled) -> str:
    if (recalled.start, recalled.stop) == (1, recalled.lines):
        return counted(recalled.lines, "line")
    lines = (
        f"line {recalled.start:,}" if recalled.start == recalled.stop else f"lines {recalled.start:,}-{recalled.stop:,}"
    )
    return f"{lines} of {recalled.lines:,}"
