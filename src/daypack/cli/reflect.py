"""Promote facts that recur in sessions or were confirmed into MEMORY.md of the workspace."""

import argparse
from contextlib import ExitStack

from daypack.cli.options import add_place, find_named, natural
from daypack.cli.terminal import counted, json_text, print_note, safe, safe_line, terminal_width
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.history.session import History
from daypack.session import Session, open_session
from daypack.text.columns import fit
from daypack.upkeep.reflect.reflector import MAX_BULLETS, Reflected, Reflector

_EXAMPLES = 3  # of the facts that are not promoted for one reason
_PIPE_COLUMNS = 160  # where output is not a terminal


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("sessions", nargs="+", metavar="session", help="names of the sessions to read")
    parser.add_argument(
        "--workspace", metavar="DIR", help="folder of MEMORY.md (default: the workspace of the sessions)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the change without writing it")
    parser.add_argument(
        "--max-bullets",
        type=natural,
        default=MAX_BULLETS,
        metavar="N",
        help=f"at most N bullets (default: {MAX_BULLETS})",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="list every fact that is not promoted")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Reflect and print the change to MEMORY.md."""
    with ExitStack() as stack:
        opened = [
            stack.enter_context(open_session(name, agent=agent, home=args.home, uid=args.uid, create=False))
            for agent, name in dict.fromkeys(find_named(args, name) for name in args.sessions)
        ]
        reflector = Reflector(args.workspace or _workspace(opened), find_home(args.home, args.uid))
        named: list[tuple[str, History]] = [(f"{session.agent}/{session.name}", session.history) for session in opened]
        reflected = reflector.reflect(named, max_bullets=args.max_bullets, dry_run=args.dry_run)
    if args.json:
        print(json_text({"dry_run": args.dry_run, "reflected": reflected}))
    else:
        _print(reflected, dry_run=args.dry_run, most=None if args.verbose else _EXAMPLES)
    return 0


def _workspace(sessions: list[Session]) -> str:
    folders = {session.turns.inputs.workspace for session in sessions}
    if len(folders) > 1 or not all(folders):
        hint = "name the folder of MEMORY.md with --workspace"
        raise BadInput("the sessions have no common workspace", operation="reflect", place="arguments", hint=hint)
    return folders.pop()


def _print(reflected: Reflected, *, dry_run: bool, most: int | None) -> None:
    if reflected.written.diff:
        print(safe(reflected.written.diff), end="")
    texts: dict[str, list[str]] = {}
    for refusal in reflected.refused:
        texts.setdefault(refusal.reason, []).append(refusal.text)
    room = terminal_width(_PIPE_COLUMNS) - 2
    for reason, found in texts.items():
        print(f"not promoted: {counted(len(found), 'fact')}, {safe_line(reason)}")
        for text in found[:most]:
            print(f"  {safe_line(text) if most is None else fit(text, room)}")
        if len(found) > len(found[:most]):
            print(f"  … and {len(found) - len(found[:most]):,} more; -v lists all")
    verb = "would be promoted" if dry_run else "promoted"
    print(f"{counted(len(reflected.promoted), 'fact')} {verb} into {safe_line(reflected.written.path)}")
    if reflected.written.backup:
        print_note(f"backup: {safe_line(reflected.written.backup)}")
