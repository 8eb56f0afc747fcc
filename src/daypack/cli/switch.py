"""Turn an instruction block of a session on or off, or list the blocks."""

import argparse
import os

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import json_text, safe_line, shell_word, table
from daypack.errors import BadInput
from daypack.history.layout import Layout
from daypack.prompts import SHIPPED_PROMPTS
from daypack.session import Session
from daypack.turn.survey.survey import IDENTITY
from daypack.turn.switches import block_names

_BLOCKS = os.path.join(SHIPPED_PROMPTS, "blocks")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "name", nargs="?", help="identity, protocol, voice, provenance or a block of your own (default: list all)"
    )
    parser.add_argument("state", nargs="?", choices=("on", "off"), metavar="on|off", help="new state")


def run(args: argparse.Namespace) -> int:
    """List the blocks or switch one."""
    if args.name is not None and args.state is None:
        problem, hint = "state required: on or off", f"daypack switch {shell_word(args.session)} {args.name} on"
        if args.name in ("on", "off"):  # `daypack switch identity on`
            problem, hint = "session required", f"daypack switch SESSION {args.session} {args.name}"
        raise BadInput(problem, operation="switch", place="arguments", hint=hint)
    with open_named(args) as session:
        layout = session.history.layout
        if args.name is not None:
            session.switch(args.name, on=args.state == "on")
        switches = _switches(session)
        if args.json:
            print(
                json_text([{"name": name, "on": on, "source": _source(name, layout)} for name, on in switches.items()])
            )
        elif args.name is not None:
            print(f"{safe_line(args.name)} is {args.state}: {_effect(args.name, session)}")
        else:
            rows = [(name, "on" if on else "off", _describe_source(name, layout)) for name, on in switches.items()]
            print("\n".join(table(("", "", ""), rows)[1:]))
    return 0


def _effect(name: str, session: Session) -> str:
    """Return when the new state counts."""
    if "model" not in session.turns.inputs.ledger.read().turns:
        return "it counts from the first turn on"
    if name == IDENTITY:
        return f"it counts from the next epoch on (`daypack prepare {shell_word(session.name)} --refresh` begins one)"
    return "it counts from the next turn on, as a note until an epoch begins"


def _switches(session: Session) -> dict[str, bool]:
    names = block_names(session.layout)
    return {**dict.fromkeys(names, False), **session.turns.inputs.ledger.read().switches}


def _own_file(name: str, layout: Layout) -> str:
    return os.path.join(layout.prompts, f"{name}.md")


def _source(name: str, layout: Layout) -> str | None:
    """Return the source of a block's text: `daypack`, a file of the user, or None."""
    if name == IDENTITY:
        return "daypack"
    if os.path.exists(_own_file(name, layout)):
        return _own_file(name, layout)
    return "daypack" if os.path.exists(os.path.join(_BLOCKS, f"{name}.md")) else None


def _describe_source(name: str, layout: Layout) -> str:
    text = _source(name, layout)
    if text is None:
        return f"no text: {_own_file(name, layout)} does not exist"
    return "text of daypack" if text == "daypack" else f"your text: {text}"
