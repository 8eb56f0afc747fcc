"""Pin a text to a session, list what is pinned, or take a text off."""

import argparse
import sys

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, safe, safe_line, say
from daypack.errors import BadInput, NotFound


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("name", nargs="?", help="name of the pin, e.g. system (default: list the pins)")
    parser.add_argument("text", nargs="?", help="the text (default: standard input)")
    parser.add_argument("--file", metavar="FILE", help="pin the text of a file")
    parser.add_argument("--remove", action="store_true", help="take the pin off")


def run(args: argparse.Namespace) -> int:
    """Do one of the three."""
    given = [args.text is not None, args.file is not None, args.remove]
    if sum(given) > 1 or (any(given) and args.name is None):
        hint = "pin SESSION NAME TEXT, pin SESSION NAME --file FILE, or pin SESSION NAME --remove"
        raise BadInput("these arguments do not go together", operation="pin", place="arguments", hint=hint)
    with open_named(args) as session:
        if args.name is None:
            pins = session.pins
            if args.json:
                print(json_text(pins))
            elif not pins:
                say("nothing is pinned")
            for name, text in () if args.json else pins.items():
                print(f"{safe_line(name)}  {counted(len(text), 'character')}  {safe_line(text[:60])}".rstrip())
            return 0
        if args.remove:
            if not session.unpin(args.name):
                raise NotFound(f"nothing is pinned as {args.name!r}", hint=f"see `daypack pin {args.session}`")
        else:
            session.pin(args.name, _text(args))
        print(json_text(session.pins) if args.json else f"{'removed' if args.remove else 'pinned'} {safe(args.name)}")
    return 0


def _text(args: argparse.Namespace) -> str:
    if args.text is not None:
        return args.text
    try:
        if args.file is not None:
            with open(args.file, "rb") as file:
                return file.read().decode()
        if sys.stdin.isatty():
            say("reading from the terminal; end with Ctrl-D")
        if text := sys.stdin.buffer.read().decode():
            return text
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        place = args.file or "standard input"
        hint = "name a readable UTF-8 file"
        raise BadInput(problem or str(error), operation="pin", place=place, hint=hint) from error
    hint = "give the text as an argument, with --file or on standard input"
    raise BadInput("there is nothing to pin", operation="pin", place="standard input", hint=hint)
