"""Print omitted history by its id: a stub, a swapped range, a message, an event, a record or a ref.
Of a file that was read or written several times, list these steps with their ids."""

import argparse
import sys

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, print_note, safe, safe_line, shell_word
from daypack.turn.recall import Recalled

_SCREEN_LINES = 400  # of a text that is printed to a terminal without --lines, as in the tool of a model


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
        _print(recalled, args)
    return 0


def is_terminal() -> bool:
    """Return True if a person reads the output."""
    return sys.stdout.isatty()


def _print(recalled: Recalled, args: argparse.Namespace) -> None:
    """Print a text; on a terminal a long one only in part, unless lines were asked for."""
    print_note(f"{safe_line(recalled.source)}, {_describe_lines(recalled)}:")
    lines = recalled.text.split("\n")
    if args.lines or not is_terminal() or recalled.lines <= _SCREEN_LINES:
        print(safe(recalled.text))
        return
    print(safe("\n".join(lines[:_SCREEN_LINES])))
    rest = f"--lines {_SCREEN_LINES + 1}-{min(2 * _SCREEN_LINES, recalled.lines)}"
    command = f"daypack recall {shell_word(args.session)} {shell_word(args.id)} {rest}"
    print_note(f"… {counted(recalled.lines - _SCREEN_LINES, 'more line')}; `{command}` continues")


def _describe_lines(recalled: Recalled) -> str:
    if (recalled.start, recalled.stop) == (1, recalled.lines):
        return counted(recalled.lines, "line")
    lines = (
        f"line {recalled.start:,}" if recalled.start == recalled.stop else f"lines {recalled.start:,}-{recalled.stop:,}"
    )
    return f"{lines} of {recalled.lines:,}"
