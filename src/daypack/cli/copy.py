"""Copy your sessions and memories from a home to a database, or back, and compare every byte.

SRC and DST are each the root folder of a home or postgresql://USER@HOST/NAME. Without --apply only the plan is shown.
Nothing is overwritten, the source is only read, and an interrupted copy continues when the command is run again. What
the target has of another origin is a conflict: it is listed, and everything else is copied.
"""

import argparse
import os

from daypack.cli.main import EXIT_FAILED
from daypack.cli.terminal import Progress, colour, counted, json_text, print_note, safe_line, shell_word
from daypack.errors import BadConfig, BadInput
from daypack.upkeep.copy.apply import Copied, apply
from daypack.upkeep.copy.plan import Plan, Request, is_address, plan

_MOST_LINES = 20
_WAY_OUT = (
    "what conflicts is not copied, and not overwritten; archive a session that is in files"
    " (`daypack gc SESSION --archive`) or delete it at one side (`… --delete --yes`), then copy again"
)
_WORDS = {
    "new": "new",
    "continued": "continues",
    "unfinished": "to finish",
    "same": "same",
    "newer": "newer there",
    "conflict": "conflict",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    place = "root folder of a home, or postgresql://USER@HOST/NAME"
    parser.add_argument("source", metavar="SRC", type=_place, help=f"where to copy from: {place}")
    parser.add_argument("target", metavar="DST", type=_place, help=f"where to copy to: {place}")
    parser.add_argument("--session", metavar="AGENT/NAME", help="only this session")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--sessions-only", action="store_true", help="leave memories out")
    what.add_argument("--memories-only", action="store_true", help="leave sessions out")
    parser.add_argument("--apply", action="store_true", help="copy (default: only show the plan)")
    parser.add_argument("--plan", metavar="ID", help="with --apply: only if the plan still has this id")
    parser.add_argument("--user", default="local", help="user who owns the memories (default: %(default)s)")
    parser.add_argument("--uid", help="user folder (default: DAYPACK_UID or your user id)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def _place(text: str) -> str:
    if not is_address(text):
        return text
    from daypack.postgres.address import check_address  # noqa: PLC0415 — only for a database

    try:
        return check_address(text, "the argument")
    except BadConfig as error:
        raise argparse.ArgumentTypeError(f"{error.problem}: {error.hint}") from None


def run(args: argparse.Namespace) -> int:
    """Show the plan or apply it; exit code 1 if the target has something else of the same name."""
    request = _read_request(args)
    progress = Progress("sessions compared" if not args.apply else "sessions copied")
    if args.apply:
        copied = apply(request, args.plan, progress.show)
        progress.clear()
        if args.json:
            print(json_text({"plan": copied.plan, "applied": copied}))
        else:
            _print_copied(copied)
        return EXIT_FAILED if copied.conflicts else 0
    planned = plan(request, progress.show)
    progress.clear()
    if args.json:
        print(json_text({"plan": planned, "applied": None}))
    else:
        _print_plan(planned, args)
    return EXIT_FAILED if planned.conflicts else 0


def _read_request(args: argparse.Namespace) -> Request:
    problem = ""
    if args.plan and not args.apply:
        problem = "--plan requires --apply"
    elif args.session and args.memories_only:
        problem = "--session and --memories-only cannot be combined"
    elif args.session and "/" not in args.session:
        problem = "--session takes AGENT/NAME"
    if problem:
        hint = "copy SRC DST [--session AGENT/NAME] [--sessions-only | --memories-only] [--apply [--plan ID]]"
        raise BadInput(problem, operation="copy", place="arguments", hint=hint)
    agent, _, name = (args.session or "").partition("/")
    return Request(
        source=args.source,
        target=args.target,
        uid=args.uid or os.environ.get("DAYPACK_UID") or str(os.getuid()),
        user=args.user,
        session=(agent, name) if args.session else None,
        sessions=not args.memories_only,
        memories=not args.sessions_only,
    )


def _print_plan(planned: Plan, args: argparse.Namespace) -> None:
    lines = [
        (_WORDS[found.state], f"{found.bytes:,} bytes, {counted(found.blobs, 'blob')}", found.name, found.problem)
        for found in planned.sessions
    ]
    lines += [
        (
            _WORDS[found.state],
            f"{counted(found.entries, 'entry', 'entries')}, {counted(found.documents, 'document')}",
            f"memory {found.title} ({found.memory_id[:8]})",
            found.problem,
        )
        for found in planned.memories
    ]
    lines.sort(key=lambda line: line[0] != "conflict")
    for state, size, name, problem in lines[:_MOST_LINES]:
        shown = f"{state:<11}"
        if problem:
            print(f"{colour(shown, 'red')} {safe_line(name)}: {safe_line(problem)}")
        else:
            print(f"{shown} {size:>28}  {safe_line(name)}")
    if len(lines) > _MOST_LINES:
        print(f"… and {len(lines) - _MOST_LINES:,} more; --json lists all")
    _print_left_out(planned)
    copied = [found for found in planned.sessions if found.is_copied]
    memories = [found for found in planned.memories if found.is_copied]
    if planned.conflicts:
        print_note(_WAY_OUT)
    if planned.is_empty:
        print(f"the target has everything{' else' if planned.conflicts else ''}; nothing to copy")
        return
    size = sum(found.bytes for found in copied)
    total = f"{counted(len(copied), 'session')}, {size:,} bytes, {counted(len(memories), 'memory', 'memories')}"
    print(f"plan {planned.id}: {total}, to {safe_line(planned.target)}")
    target = "DST" if is_address(args.target) else shell_word(args.target)
    source = "SRC" if is_address(args.source) else shell_word(args.source)
    print_note(f"copy with `daypack copy {source} {target} … --apply --plan {planned.id}`")


def _print_left_out(planned: Plan) -> None:
    torn = [found for found in planned.sessions if found.torn and found.is_copied]
    for found in torn[:_MOST_LINES]:
        why = f"{found.torn:,} bytes after the last line, an append in progress or cut off"
        print(f"{colour('left out', 'yellow')}    {safe_line(found.name)}: {why}")
    if damaged := sum(found.damaged for found in planned.memories):
        print(f"{colour('left out', 'yellow')}    {counted(damaged, 'damaged record')} of memories: `daypack doctor`")
    if planned.deleted_memories:
        number = counted(planned.deleted_memories, "deleted memory", "deleted memories")
        print(f"{colour('left out', 'yellow')}    {number}: restore them first, `daypack memory restore`")


def _print_copied(copied: Copied) -> None:
    if not copied.sessions and not copied.memories:
        print(f"the target has everything{' else' if copied.conflicts else ''}; nothing was copied")
        _print_conflicts(copied)
        return
    size = sum(session.bytes for session in copied.sessions)
    memories = counted(len(copied.memories), "memory", "memories")
    done = colour("copied and compared", "green")
    print(f"{done}: {counted(len(copied.sessions), 'session')}, {size:,} bytes, {memories}")
    for session in copied.grew[:_MOST_LINES]:
        name = f"{safe_line(session.agent)}/{safe_line(session.session)}"
        print_note(f"{name} got {session.grew:,} bytes meanwhile, which are not in the copy: run it again")
    _print_left_out(copied.plan)
    print_note(f"the source is as it was; the copy is at {safe_line(copied.plan.target)}")
    _print_conflicts(copied)


def _print_conflicts(copied: Copied) -> None:
    for problem in copied.conflicts[:_MOST_LINES]:
        print(f"{colour('conflict', 'red')}    {safe_line(problem)}")
    if len(copied.conflicts) > _MOST_LINES:
        print(f"… and {len(copied.conflicts) - _MOST_LINES:,} more; --json lists all")
    if copied.conflicts:
        print_note(f"{counted(len(copied.conflicts), 'conflict')} not copied: {_WAY_OUT}")
