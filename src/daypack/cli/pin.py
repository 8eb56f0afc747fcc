"""Pin a text to a session, so that every turn includes it; list or remove pins."""

import argparse

from daypack.cli.input import read_text
from daypack.cli.options import add_place, open_named, shown
from daypack.cli.terminal import counted, json_text, print_note, safe, safe_line, shell_word
from daypack.errors import BadInput, NotFound


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("name", nargs="?", help="name of the pin, e.g. system (default: list all pins)")
    parser.add_argument("text", nargs="?", help="text to pin; - is standard input (default: -)")
    parser.add_argument("--file", metavar="FILE", help="pin the text of a file")
    parser.add_argument("--remove", action="store_true", help="remove the pin")


def run(args: argparse.Namespace) -> int:
    """Pin, list or remove."""
    given = [args.text is not None, args.file is not None, args.remove]
    if sum(given) > 1 or (any(given) and args.name is None):
        hint = "pin SESSION NAME TEXT, pin SESSION NAME --file FILE, or pin SESSION NAME --remove"
        raise BadInput("these arguments cannot be combined", operation="pin", place="arguments", hint=hint)
    with open_named(args) as session:
        if args.name is None:
            pins = shown(session, session.pins)
            if args.json:
                print(json_text(pins))
            elif not pins:
                print_note(f"no pins; add one with `daypack pin {shell_word(args.session)} NAME TEXT`")
            for name, text in () if args.json else pins.items():
                print(f"{safe_line(name)}  {counted(len(text), 'character')}  {safe_line(text[:60])}".rstrip())
            return 0
        if args.remove:
            if not session.unpin(args.name):
                raise NotFound(
                    f"no pin named {args.name!r}", hint=f"list them with `daypack pin {shell_word(args.session)}`"
                )
        else:
            session.pin(args.name, _text(args))
        done = f"{'removed' if args.remove else 'pinned'} {safe(args.name)}"
        print(json_text(shown(session, session.pins)) if args.json else done)
    return 0


def _text(args: argparse.Namespace) -> str:
    if args.text not in (None, "-"):
        return args.text
    if text := read_text(args.file or "-", "pin"):
        return text
    hint = "pass the text as an argument, with --file or on standard input"
    raise BadInput("nothing to pin: the text is empty", operation="pin", place=args.file or "standard input", hint=hint)
