"""Switch a block of instructions on or off for a session, or list the switches."""

import argparse
import os

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import json_text, safe_line, say
from daypack.cli.turn_summary import table
from daypack.errors import BadInput
from daypack.history.layout import Layout
from daypack.prompts import SHIPPED_PROMPTS
from daypack.session import Session

_IDENTITY = "identity"  # made by daypack, and the one that is on when nobody said anything
_BLOCKS = os.path.join(SHIPPED_PROMPTS, "blocks")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "name", nargs="?", help="identity, protocol, voice, provenance or one of your own (default: list them)"
    )
    parser.add_argument("state", nargs="?", choices=("on", "off"), metavar="on|off", help="what it shall be")


def run(args: argparse.Namespace) -> int:
    """List or switch."""
    if args.name is not None and args.state is None:
        hint = f"switch {args.session} {args.name} on, or off"
        raise BadInput("on or off?", operation="switch", place="arguments", hint=hint)
    with open_named(args) as session:
        layout = session.history.layout
        if args.name is not None:
            session.switch(args.name, on=args.state == "on")
        switches = _switches(session)
        if args.json:
            print(json_text([{"name": name, "on": on, "text": _text(name, layout)} for name, on in switches.items()]))
        elif args.name is not None:
            print(f"{safe_line(args.name)} is {args.state}")
        else:
            rows = [(name, "on" if on else "off", _told(name, layout)) for name, on in switches.items()]
            print("\n".join(table(("", "", ""), rows)[1:]))
        if args.name is not None and args.state == "on" and _text(args.name, layout) is None:
            say(f"  → it has no text yet: write {safe_line(_own(args.name, layout))}")
    return 0


def _switches(session: Session) -> dict[str, bool]:
    shipped = sorted(name.removesuffix(".md") for name in os.listdir(_BLOCKS) if name.endswith(".md"))
    return {_IDENTITY: True, **dict.fromkeys(shipped, False), **session.turns.inputs.ledger.read().switches}


def _own(name: str, layout: Layout) -> str:
    return os.path.join(layout.prompts, f"{name}.md")


def _text(name: str, layout: Layout) -> str | None:
    """Return where the text of a block comes from: `daypack`, a file of the user, or nowhere."""
    if name == _IDENTITY:
        return "daypack"
    if os.path.exists(_own(name, layout)):
        return _own(name, layout)
    return "daypack" if os.path.exists(os.path.join(_BLOCKS, f"{name}.md")) else None


def _told(name: str, layout: Layout) -> str:
    text = _text(name, layout)
    if text is None:
        return f"no text: {_own(name, layout)} is not there"
    return "daypack's text" if text == "daypack" else f"your text: {text}"
