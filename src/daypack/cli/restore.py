"""Restore sessions and memories from a backup into a home, without overwriting anything that you do not name.

Without --apply only the plan is shown: what is new, what exists, and what was erased since the backup was made.
"""

import argparse
import os
import time
from collections.abc import Sequence

from daypack.cli.options import add_place
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line, shell_word
from daypack.errors import BadInput
from daypack.history.layout import find_home
from daypack.memory.audit.log import AuditLog
from daypack.memory.audit.record import Deed, acting
from daypack.upkeep.archive import Guard
from daypack.upkeep.backup.restore import Restored, apply
from daypack.upkeep.backup.restore_plan import BroughtBack, Plan, Request, RestoredItem, is_replaced, plan

_MOST_LINES = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", help="the backup")
    parser.add_argument("--session", metavar="NAME", help="restore only this session")
    parser.add_argument(
        "--replace",
        metavar="PART",
        action="append",
        default=[],
        help="replace this part, named as in the plan (default/work, memory); all for every part that exists",
    )
    parser.add_argument("--with-erased", action="store_true", help="restore also what was erased since the backup")
    parser.add_argument("--apply", action="store_true", help="restore (default: only show the plan)")
    parser.add_argument("--plan", metavar="ID", help="with --apply: only if the plan still has this id")
    parser.add_argument("--force", action="store_true", help="replace a session that is in use")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Show the plan or apply it."""
    if args.plan and not args.apply:
        hint = "restore FILE --apply --plan ID"
        raise BadInput("--plan requires --apply", operation="restore", place="arguments", hint=hint)
    home = find_home(args.home, args.uid)
    request = Request(
        user=args.uid,
        agent=args.agent,
        session=args.session,
        replace=tuple(args.replace),
        with_erased=args.with_erased,
    )
    if not args.apply:
        return _print_planned(plan(home.root, args.file, request), request, args)
    guard = Guard(time.time(), os.environ.get("DAYPACK_SESSION") or None, args.force)
    restored = apply(home.root, args.file, request, args.plan, guard)
    with acting("cli"):  # afterwards: the log may be restored too
        AuditLog(home.audit).record(Deed(action="recover", tool="restore"), durable=True)
    if args.json:
        print(json_text({"plan": restored.plan, "applied": restored}))
    else:
        _print_restored(restored)
    _mention_users([item.user for item in restored.restored], home.uid)
    return 0


def _print_planned(planned: Plan, request: Request, args: argparse.Namespace) -> int:
    if args.json:
        print(json_text({"plan": planned, "applied": None}))
        return 0
    users = {item.user for item in planned.items}
    for item in planned.items[:_MOST_LINES]:
        name = item.name if len(users) == 1 else f"{item.user}: {item.name}"
        print(f"{_label(item, request)}  {item.bytes:>13,}  {safe_line(name)}")
    if len(planned.items) > _MOST_LINES:
        print(f"… and {len(planned.items) - _MOST_LINES:,} more; --json lists all")
    _print_erased(planned.erased)
    new = sum(item.state == "new" for item in planned.items)
    counts = f"{counted(new, 'new part')}, {len(planned.existing):,} that {_exist(len(planned.existing))}"
    print(f"plan {planned.id}: {counts}, from a backup of {planned.created_at}, to {safe_line(planned.root)}")
    if planned.unfinished:
        print_note("a restore was interrupted here: it is completed first")
    kept = [item for item in planned.existing if not is_replaced(item, request)]
    if kept:
        print_note(
            f"nothing is overwritten: add --replace {shell_word(kept[0].name)}, or use a new home with --home DIR"
        )
    elif planned.erased and not request.with_erased:
        print_note("what was erased would be brought back: use a newer backup, or add --with-erased and erase it again")
    else:
        print_note(f"restore with `daypack restore {shell_word(args.file)} … --apply --plan {planned.id}`")
    return 0


def _exist(number: int) -> str:
    return "exists" if number == 1 else "exist"


def _label(item: RestoredItem, request: Request) -> str:
    label = "replaced" if item.state == "exists" and is_replaced(item, request) else item.state
    return colour(f"{label:<8}", "yellow" if item.state == "exists" else "dim")


def _print_erased(erased: Sequence[BroughtBack]) -> None:
    for found in erased[:_MOST_LINES]:
        what = f"a {found.kind} was erased from it {found.at}, after the backup: {found.marker}"
        print(f"{colour('erased', 'red')}    {safe_line(found.name)}: {safe_line(what)}")
    if len(erased) > _MOST_LINES:
        print(f"… and {len(erased) - _MOST_LINES:,} more; --json lists all")


def _print_restored(restored: Restored) -> None:
    if restored.completed:
        print_note(f"completed an interrupted restore of {counted(restored.completed, 'part')}")
    _print_erased(restored.plan.erased)
    if restored.plan.erased:
        print_note("what was erased is back: erase it again with `daypack erase`")
    if not restored.restored:
        print("nothing to restore: everything in the backup is there")
        return
    size = sum(item.bytes for item in restored.restored)
    replaced = f", {len(restored.replaced):,} of them replaced" if restored.replaced else ""
    print(f"{colour('restored', 'green')} {counted(len(restored.restored), 'part')}, {size:,} bytes{replaced}")
    print_note("indexes are built again when they are used; `daypack doctor` checks the sessions")


def _mention_users(users: Sequence[str], own: str) -> None:
    others = sorted(set(users) - {own})
    if others:
        print_note(f"restored as user {safe_line(others[0])}: add --uid {shell_word(others[0])} to your commands")
