"""Back up your sessions and memories into one file, while they are in use, and verify it by restoring it.

Without --apply only the plan is shown: what the file would contain. Search indexes and downloaded models are left out.
"""

import argparse
from collections.abc import Sequence

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, find_name, place_words, record_deed
from daypack.cli.terminal import Progress, colour, counted, json_text, print_note, safe_line, shell_word
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.memory.audit_log.record import Deed, acting
from daypack.upkeep.backup.apply import Written, apply, target_of
from daypack.upkeep.backup.contents import LeftOut, Request
from daypack.upkeep.backup.plan import Plan, PlannedItem, plan
from daypack.upkeep.backup.records import known_backups
from daypack.upkeep.backup.verify import Verified, verify

_MOST_LINES = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", nargs="?", help="the new backup, or a folder for it; it is never overwritten")
    parser.add_argument("--session", metavar="NAME", help="only this session (default: everything of your user)")
    parser.add_argument("--all-users", action="store_true", help="everything of all users of the home")
    parser.add_argument("--apply", action="store_true", help="make the backup (default: only show the plan)")
    parser.add_argument("--plan", metavar="ID", help="with --apply: only if the plan still has this id")
    parser.add_argument(
        "--verify", action="store_true", help="restore an existing backup to a scratch folder, check it"
    )
    parser.add_argument("--list", action="store_true", help="list the backups that your home knows")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Show the plan, make the backup, verify one or list them; exit code 3 if it contains damage."""
    _check(args)
    home = find_home(args.home, args.uid)
    if args.list:
        return _list(home, args)
    if args.verify:
        verified = verify(args.file)
        if args.json:
            print(json_text({"file": args.file, "verified": verified}))
        else:
            print(f"{_label('verified', verified)} {safe_line(args.file)}: {_contents(verified)}")
            _print_findings(verified)
        return EXIT_DAMAGE if verified.is_damaged else 0
    if args.session:
        args.session = find_name(args, args.session)
    scope = "session" if args.session else "home" if args.all_users else "user"
    request = Request(scope=scope, agent=args.agent, session=args.session)
    return _apply(home, request, args) if args.apply else _plan(home, request, args)


def _check(args: argparse.Namespace) -> None:
    hint = "backup FILE [--session NAME | --all-users] [--apply], backup --verify FILE, or backup --list"
    making = args.session or args.all_users or args.apply or args.plan
    problem = ""
    if args.list and (args.file or args.verify or making):
        problem = "--list takes no other argument"
    elif not args.list and not args.file:
        problem = "file required"
    elif args.verify and making:
        problem = "--verify takes only the file"
    elif args.session and args.all_users:
        problem = "--session and --all-users cannot be combined"
    elif args.plan and not args.apply:
        problem = "--plan requires --apply"
    if problem:
        raise BadInput(problem, operation="backup", place="arguments", hint=hint)


def _plan(home: Home, request: Request, args: argparse.Namespace) -> int:
    target = target_of(home, request, args.file)
    planned = plan(home, request)
    if args.json:
        print(json_text({"plan": planned, "applied": None}))
        return 0
    _print_items(planned)
    _print_left_out(planned.left_out)
    size = f"{counted(sum(item.files for item in planned.items), 'file')}, {planned.bytes:,} bytes"
    print(f"plan {planned.id}: {counted(len(planned.items), 'part')}, {size}, to {safe_line(target)}")
    scope = f" --session {shell_word(args.session)}" if args.session else " --all-users" if args.all_users else ""
    words = " ".join(["daypack backup", f"{shell_word(args.file)}{scope}", *place_words(args), "--apply"])
    print_note(f"make it with `{words}`")
    return 0


def _apply(home: Home, request: Request, args: argparse.Namespace) -> int:
    progress = Progress("parts copied")
    written = apply(home, request, args.file, args.plan, progress.show)
    with acting("cli"):  # afterwards: the log is in the plan too
        name = written.path.rpartition("/")[2]
        deed = Deed(action="backup", tool="backup", target=name)
        is_audited = record_deed(home, deed)
    progress.clear()
    if args.json:
        print(json_text({"plan": None, "applied": written}))
    else:
        _print_written(written, is_audited=is_audited)
    return EXIT_DAMAGE if written.verified.is_damaged else 0


def _print_written(written: Written, *, is_audited: bool) -> None:
    print(f"{_label('backed up', written.verified, ' and verified')}: {_contents(written.verified)}")
    print(f"{safe_line(written.path)}  {written.bytes:,} bytes  {written.verified.digest}")
    _print_left_out(written.left_out)
    _print_findings(written.verified)
    unknowing = ["`daypack erase`"] if written.unrecorded else []
    unknowing += [] if is_audited else ["the audit log"]
    if unknowing:
        who = (
            f"neither {unknowing[0]} nor {unknowing[1]} knows"
            if len(unknowing) > 1
            else f"{unknowing[0]} does not know"
        )
        why = safe_line(written.unrecorded or "it could not be written")
        print_note(f"{who} of this backup: {why}")
    content = "everything your sessions and memories contain, and tokens as digests"
    if written.scope == "session":
        content = "everything that was said in the session"
    print_note(f"it contains {content}: keep it private")


def _label(done: str, verified: Verified, otherwise: str = "") -> str:
    """Return what was done in green, or that there is damage in red."""
    return colour(f"{done}, with damage", "red") if verified.is_damaged else colour(f"{done}{otherwise}", "green")


def _print_items(planned: Plan) -> None:
    users = {item.user for item in planned.items}
    for item in planned.items[:_MOST_LINES]:
        print(f"{item.kind:<9} {item.bytes:>13,}  {_name(item, users)}")
    if len(planned.items) > _MOST_LINES:
        print(f"… and {len(planned.items) - _MOST_LINES:,} more; --json lists all")


def _name(item: PlannedItem, users: set[str]) -> str:
    return safe_line(item.name if len(users) == 1 else f"{item.user}: {item.name}")


def _print_left_out(left_out: Sequence[LeftOut]) -> None:
    for found in left_out[:_MOST_LINES]:
        print(f"{colour('left out', 'yellow')}  {safe_line(found.path)}: {safe_line(found.reason)}")
    if len(left_out) > _MOST_LINES:
        print(f"… and {len(left_out) - _MOST_LINES:,} more; --json lists all")


def _print_findings(verified: Verified) -> None:
    for found in verified.findings[:_MOST_LINES]:
        line = "" if found.line is None else f", line {found.line}"
        label = colour(found.severity, "red" if found.severity == "damage" else "yellow")
        print(f"{label}  {safe_line(found.path)}{line}: {safe_line(found.problem)}")
    if verified.is_damaged:
        print_note("the damage was there before, and is in the backup as it is: `daypack doctor` says what to do")


def _contents(verified: Verified) -> str:
    parts = [counted(verified.sessions, "session"), counted(verified.messages, "message")]
    parts += [counted(verified.events, "event"), counted(verified.memories, "memory", "memories")]
    return ", ".join([*parts, counted(verified.entries, "entry", "entries"), counted(verified.files, "file")])


def _list(home: Home, args: argparse.Namespace) -> int:
    known = known_backups(home.folder)
    if args.json:
        print(json_text(known))
    elif not known:
        print_note(f"no backups of {safe_line(home.folder)} are known: `daypack backup FILE --apply` makes one")
    for backup in () if args.json else known:
        print(f"{backup.created_at}  {backup.scope:<7}  {safe_line(backup.path)}")
    return 0
