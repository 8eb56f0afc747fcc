"""Create, list and show sessions."""

import argparse
from typing import Any

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, print_note, safe_line
from daypack.config import Settings
from daypack.errors import DaypackError
from daypack.files.offsets import DAMAGED, UNCOUNTED
from daypack.history.layout import find_home
from daypack.session import Session, open_session


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.set_defaults(actions=True)
    actions = parser.add_subparsers(dest="action", required=True, metavar="new|list|show")
    summaries = {
        "new": "Create a session; an existing one is not changed.",
        "list": "List the sessions of an agent.",
        "show": "Show the state, folder and size of a session.",
    }
    new, listing, show = (actions.add_parser(name, help=what, description=what) for name, what in summaries.items())
    add_place(new)
    new.add_argument("--model", help="model of the session; determines the tokenizer")
    add_place(listing, session=None)
    add_place(show)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    return {"new": _new, "list": _list, "show": _show}[args.action](args)


def _new(args: argparse.Namespace) -> int:
    settings: Settings = {"model": args.model} if args.model else {}
    with open_session(args.session, agent=args.agent, home=args.home, uid=args.uid, **settings) as session:
        print(json_text(describe(session)) if args.json else safe_line(str(session.path)))
    return 0


def _list(args: argparse.Namespace) -> int:
    home = find_home(args.home, args.uid)
    rows: list[dict[str, Any]] = []
    for name in home.list(args.agent):
        try:
            with open_session(name, agent=args.agent, home=args.home, uid=args.uid, create=False) as session:
                rows.append(describe(session))
        except DaypackError as error:
            rows.append({"session": name, "agent": args.agent, "error": f"{error.problem} [{error.place}]"})
    if args.json:
        print(json_text(rows))
        return 0
    width = max([len(row["session"]) for row in rows], default=0)
    for row in rows:
        facts = row.get("error", "")
        if not facts:
            facts = f"{row['state']:<9}  updated {row['updated_at']}  {counted(row['messages'], 'message')}"
        print(f"{safe_line(row['session']):<{width}}  {safe_line(facts)}")
    if not rows:
        print_note(f"no sessions of agent {safe_line(args.agent)} in {safe_line(home.folder)}")
    return 0


def _show(args: argparse.Namespace) -> int:
    with open_named(args) as session:
        pins, tokens = list(session.pins), _tokens(session)
        facts = describe(session) | {"tokens": tokens, "pins": pins}
    if args.json:
        print(json_text(facts))
        return 0
    for name, value in (facts | {"pins": ", ".join(pins)}).items():
        shown = f"{value:,}" if isinstance(value, int) else str(value or "–")
        print(f"{name:<11} {safe_line(shown)}")
    return 0


def describe(session: Session) -> dict[str, Any]:
    """Return the facts of a session as shown by `session show`."""
    layout, facets = session.history.layout, session.history.facets
    return {
        "session": session.name,
        "agent": session.agent,
        "path": layout.folder,
        "state": facets.state(),
        "created_at": facets.read(layout.created_at),
        "updated_at": facets.read(layout.updated_at),
        "cwd": facets.read(layout.cwd),
        "model": session.meta.get("model"),
        "tokenizer": session.history.tokenizer,
        "messages": len(session.messages()),
        "events": len(session.events()),
    }


def _tokens(session: Session) -> int:
    reader, total = session.history.messages.reader, 0
    for at, slot in enumerate(reader.slots(0, reader.count())):
        counted = slot.tokens != UNCOUNTED and not slot.flags & DAMAGED
        total += slot.tokens if counted else sum(map(session.history.count_tokens, reader.read(at, at + 1)))
    return total
