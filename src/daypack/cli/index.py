"""Build the search index of sessions, newest messages first, and show the progress."""

import argparse
import threading

from daypack.cli.options import add_place, find_named
from daypack.cli.terminal import Progress, counted, json_text, safe_line
from daypack.errors import StorageFailed
from daypack.files.atomic import READ_ONLY_HINT
from daypack.session import Session, open_session


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("session", nargs="+", help="name of a session")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Build session by session."""
    built: list[dict[str, str | int]] = []
    for agent, name in (find_named(args, name) for name in args.session):
        with open_session(name, agent=agent, home=args.home, uid=args.uid, create=False) as session:
            built.append({"session": name, "messages": _build(session)})
        if not args.json:
            print(f"{safe_line(name)}: {counted(int(built[-1]['messages']), 'message')} indexed")
    if args.json:
        print(json_text(built))
    return 0


def _build(session: Session) -> int:
    """Build the index, alone or together with another process; return how many messages it covers."""
    index = session.turns.inputs.history_search.index
    if index.in_memory:
        problem = "the search index cannot be written here"
        raise StorageFailed(problem, operation="index", place=str(session.path), hint=READ_ONLY_HINT)
    progress = Progress(f"messages of {safe_line(session.name)} to index")
    index.on_progress = progress.show
    if not index.build_alone(threading.Event()):
        index.build()
    progress.clear()
    return index.end - 1
