"""Promote facts that recur in sessions, or were confirmed, into MEMORY.md of the workspace."""

import argparse
from contextlib import ExitStack

from daypack.cli.options import add_place, natural
from daypack.cli.terminal import counted, json_text, safe, safe_line, say
from daypack.errors import BadInput
from daypack.history.layout import find_home
from daypack.history.session import History
from daypack.session import Session, open_session
from daypack.upkeep.reflect.reflector import MAX_BULLETS, Reflected, Reflector


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("sessions", nargs="+", metavar="session", help="the names of the sessions to look at")
    parser.add_argument("--workspace", metavar="DIR", help="the folder of MEMORY.md (default: the sessions' workspace)")
    parser.add_argument("--dry-run", action="store_true", help="write nothing, show what would be written")
    parser.add_argument(
        "--max-bullets",
        type=natural,
        default=MAX_BULLETS,
        metavar="N",
        help=f"at most N bullets (default: {MAX_BULLETS})",
    )
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Reflect and show what changed."""
    with ExitStack() as stack:
        opened = [
            stack.enter_context(open_session(name, agent=args.agent, home=args.home, uid=args.uid, create=False))
            for name in dict.fromkeys(args.sessions)
        ]
        reflector = Reflector(args.workspace or _workspace(opened), find_home(args.home, args.uid))
        named: list[tuple[str, History]] = [(f"{one.agent}/{one.name}", one.history) for one in opened]
        found = reflector.reflect(named, max_bullets=args.max_bullets, dry_run=args.dry_run)
    if args.json:
        print(json_text({"dry_run": args.dry_run, "reflected": found}))
    else:
        _print(found, dry_run=args.dry_run)
    return 0


def _workspace(sessions: list[Session]) -> str:
    folders = {one.turns.inputs.workspace for one in sessions}
    if len(folders) > 1 or not all(folders):
        hint = "name the folder of MEMORY.md with --workspace"
        raise BadInput("the sessions have no workspace in common", operation="reflect", place="arguments", hint=hint)
    return folders.pop()


def _print(found: Reflected, *, dry_run: bool) -> None:
    if found.written.diff:
        print(safe(found.written.diff), end="")
    for one in found.refused:
        print(f"left out  {safe_line(one.text)}: {safe_line(one.reason)}")
    verb = "would be promoted" if dry_run else "promoted"
    print(f"{counted(len(found.promoted), 'fact')} {verb} into {safe_line(found.written.path)}")
    if found.written.backup:
        say(f"the former text is in {safe_line(found.written.backup)}")
