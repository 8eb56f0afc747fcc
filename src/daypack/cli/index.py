"""Build the search index of sessions, newest messages first, and show the progress.

With --memories: index what was written to the memories in a database, as every `daypack serve` does; for a worker of
its own, run it again and again.
"""

import argparse
import threading

from daypack.cli.options import add_place, find_named
from daypack.cli.terminal import Progress, counted, json_text, print_note, safe_line
from daypack.errors import BadInput, StorageFailed
from daypack.files.atomic import READ_ONLY_HINT
from daypack.history.home import find_home
from daypack.session import Session, open_session


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("session", nargs="*", help="name of a session")
    parser.add_argument("--memories", action="store_true", help="work on all index jobs of the database that are due")
    parser.add_argument("--retry", action="store_true", help="with --memories: also on those that were given up")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Build session by session, or the memories."""
    if bool(args.session) == args.memories or (args.retry and not args.memories):
        hint = "index SESSION …, or index --memories [--retry]"
        raise BadInput("name sessions, or --memories", operation="index", place="arguments", hint=hint)
    if args.memories:
        return _index_memories(args)
    built: list[dict[str, str | int]] = []
    for agent, name in (find_named(args, name) for name in args.session):
        with open_session(name, agent=agent, home=args.home, uid=args.uid, create=False) as session:
            built.append({"session": name, "messages": _build(session)})
        if not args.json:
            print(f"{safe_line(name)}: {counted(int(built[-1]['messages']), 'message')} indexed")
    if args.json:
        print(json_text(built))
    return 0


def _index_memories(args: argparse.Namespace) -> int:
    from daypack.memory.backend import open_backend  # noqa: PLC0415 — only with --memories
    from daypack.memory.indexer import Indexer  # noqa: PLC0415

    backend = open_backend(find_home(args.home, args.uid))
    try:
        indexer = Indexer(backend)
        retried = indexer.jobs.retry_dead() if args.retry else 0
        indexer.run()
        counts = indexer.jobs.counts()
    finally:
        backend.close()
    if args.json:
        print(json_text({"jobs": indexer.done, "failed": indexer.failed, "retried": retried, "left": counts}))
        return 0
    failed = f"{counted(indexer.failed, 'attempt')} failed, " if indexer.failed else ""
    print(f"{counted(indexer.done, 'job')} done, {failed}{counted(counts.dead, 'job')} given up")
    if counts.retrying:
        print_note(
            f"  → {counted(counts.retrying, 'job')} will be tried again after a while, by the next run or a server"
        )
    if counts.dead:
        print_note("  → `daypack doctor` lists them with their problems; --retry tries them again")
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
