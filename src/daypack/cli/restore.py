"""Restore sessions and memories from a backup into a home. What exists is left as it is, unless --replace names it.

Without --apply only the plan is shown: what is new, what exists, and what was erased since the backup was made.
"""

import argparse
import os
import time
from collections.abc import Sequence
from typing import cast

from daypack.cli.main import EXIT_FAILED
from daypack.cli.options import add_place, place_words, record_deed
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line, shell_word
from daypack.errors import BadConfig, BadInput
from daypack.history.home import find_home
from daypack.memory.audit_log.record import Deed, acting
from daypack.upkeep.archive import Guard
from daypack.upkeep.backup.restore import Restored, apply
from daypack.upkeep.backup.restore_plan import BroughtBack, Plan, Request, RestoredItem, plan

_MOST_LINES = 20
_CONFIG = "config.toml"
_MOST_NAMES = 5  # in a command
_DATABASE_LEFT = "a database that is not empty is left as it is: create a new one and name it with --store"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", help="the backup")
    parser.add_argument("--session", metavar="NAME", help="restore only this session")
    parser.add_argument(
        "--replace",
        metavar="PART",
        action="append",
        default=[],
        help="replace this part, named as in the plan (default/work, memory); all for every part that exists "
        "(default: they are left as they are)",
    )
    parser.add_argument("--with-erased", action="store_true", help="restore also what was erased since the backup")
    parser.add_argument("--apply", action="store_true", help="restore (default: only show the plan)")
    parser.add_argument("--plan", metavar="ID", help="with --apply: only if the plan still has this id")
    parser.add_argument("--force", action="store_true", help="replace a session that is in use")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Show the plan or apply it; exit code 1 if the records of a database were left out."""
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
    guard = Guard(time.time(), os.environ.get("DAYPACK_SESSION") or None, args.force)
    if not args.apply:
        return _print_planned(plan(home.root, args.file, request, guard), args)
    restored = apply(home.root, args.file, request, args.plan, guard)
    if restored.restored or restored.completed:
        with acting("cli"):  # afterwards: the log may be restored too
            record_deed(home, _deed(restored))
    if args.json:
        print(json_text({"plan": restored.plan, "applied": restored}))
    else:
        _print_restored(restored)
    _mention_setting(restored, args.store)
    _mention_users([item.user for item in restored.restored], home.uid)
    return EXIT_FAILED if restored.plan.leaves_database else 0


def _deed(restored: Restored) -> Deed:
    """Return what the audit log says: how many parts, and the names of those that were replaced."""
    names = restored.replaced[:_MOST_LINES]
    more = len(restored.replaced) - len(names)
    target = ", ".join(names) + (f" and {more:,} more" if more else "")
    return Deed(action="restore", tool="restore", target=target, count=len(restored.restored) + restored.completed)


def _print_planned(planned: Plan, args: argparse.Namespace) -> int:
    if args.json:
        print(json_text({"plan": planned, "applied": None}))
        return 0
    users = {item.user for item in planned.items}
    for item in planned.items[:_MOST_LINES]:
        name = item.name if len(users) == 1 else f"{item.user}: {item.name}"
        print(f"{_label(item)}  {item.bytes:>13,}  {safe_line(name)}")
    if len(planned.items) > _MOST_LINES:
        print(f"… and {len(planned.items) - _MOST_LINES:,} more; --json lists all")
    _print_erased(planned.erased)
    new = sum(item.state == "new" for item in planned.items)
    counts = [counted(new, "new part")]
    counts += [f"{len(planned.replaced):,} replaced"] if planned.replaced else []
    counts += [f"{len(planned.existing):,} that {_exist(len(planned.existing))}"]
    source = f"from a backup of {planned.created_at}, to {safe_line(planned.root)}"
    print(f"plan {planned.id}: {', '.join(counts)}, {source}")
    if planned.unfinished:
        print_note("a restore was interrupted here: it is completed first")
    _mention_kept(planned.items)
    _mention_tokens([*planned.restored, *planned.replaceable], "will work")
    if planned.restored:
        _mention_conditions(planned)
        print_note(f"restore with `{_command(planned, args)}`")
    if planned.leaves_database:
        print_note(_DATABASE_LEFT)
    if planned.replaceable:
        number = len(planned.replaceable)
        whole = planned.replacing()
        print_note(f"{counted(number, 'part')} that {_exist(number)} will be left as {_they(number)}")
        if not planned.restored:
            _mention_conditions(whole)
        print_note(f"replace also what exists with `{_command(whole, args)}`, or use a new home with --home DIR")
    if not planned.existing and not planned.restored:
        print_note("nothing to restore: everything in the backup is there")
    return 0


def _mention_conditions(planned: Plan) -> None:
    """Say what a plan needs beside --apply."""
    if planned.brought_back:
        print_note("--with-erased brings back what was erased: use a newer backup, or erase it again afterwards")
    if planned.needs_force:
        used = [item.name for item in planned.replaced if item.name in planned.in_use]
        more = f" and {len(used) - 1:,} more" if len(used) > 1 else ""
        print_note(f"--force replaces a session that is in use: {safe_line(used[0])}{more}")


def _command(planned: Plan, args: argparse.Namespace) -> str:
    """Return the whole command that applies a plan."""
    words = ["daypack restore", shell_word(args.file)]
    names = list(dict.fromkeys(item.name for item in planned.replaced))
    words += ["--replace all"] if len(names) > _MOST_NAMES else [f"--replace {shell_word(name)}" for name in names]
    words += [f"--session {shell_word(args.session)}"] if args.session else []
    words += place_words(args)
    words += ["--with-erased"] if planned.brought_back else []
    words += ["--force"] if planned.needs_force else []
    return " ".join([*words, "--apply", "--plan", planned.id])


def _mention_kept(items: Sequence[RestoredItem]) -> None:
    if any(item.state == "kept" for item in items):
        print_note("the audit log of this home is kept: it only grows, and that of the backup is not restored")


def _mention_setting(restored: Restored, given: str | None) -> None:
    """Say that a config.toml of the backup names another database than the one that was restored to."""
    from daypack.config import from_file  # noqa: PLC0415 — only with --store
    from daypack.postgres.address import shown  # noqa: PLC0415

    for item in restored.restored:
        if not given or item.name != _CONFIG:
            continue
        path = os.path.join(restored.plan.root, item.path)
        try:
            store: object = from_file(path).get("store")
        except BadConfig:  # every other command says so
            continue
        named = str(cast("dict[str, object]", store).get("url", "")) if isinstance(store, dict) else ""
        if named and named != given:
            where = f"{safe_line(path)} was restored and names {safe_line(shown(named))}"
            print_note(f"{where}, not {safe_line(shown(given))}: change its [store] url to use what was restored")


def _mention_tokens(items: Sequence[RestoredItem], work: str) -> None:
    """Say which tokens a restored store has."""
    tokens, revoked = sum(item.tokens for item in items), sum(item.revoked for item in items)
    if tokens:
        print_note(f"{counted(tokens, 'token')} of the backup {work}: `daypack token list` lists them")
    if revoked:
        print_note(f"{counted(revoked, 'token')} of the backup {_stay(revoked)} revoked: revoked since it was made")


def _exist(number: int) -> str:
    return "exists" if number == 1 else "exist"


def _they(number: int) -> str:
    return "it is" if number == 1 else "they are"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _stay(number: int) -> str:
    return "stays" if number == 1 else "stay"


def _label(item: RestoredItem) -> str:
    return colour(f"{item.state:<8}", "yellow" if item.state in ("exists", "replaced") else "dim")


def _print_erased(erased: Sequence[BroughtBack]) -> None:
    for found in erased[:_MOST_LINES]:
        what = f"a {found.kind} was erased from it {found.at}, after the backup: {found.marker}"
        print(f"{colour('erased', 'red')}    {safe_line(found.name)}: {safe_line(what)}")
    if len(erased) > _MOST_LINES:
        print(f"… and {len(erased) - _MOST_LINES:,} more; --json lists all")


def _print_restored(restored: Restored) -> None:
    if restored.completed:
        print_note(f"completed an interrupted restore of {counted(restored.completed, 'part')}")
    left = restored.plan.replaceable
    if not restored.restored:
        _print_unchanged(restored.plan)
        return
    _print_erased(restored.plan.brought_back)
    if restored.plan.brought_back:
        print_note("what was erased is back: erase it again with `daypack erase`")
    size = sum(item.bytes for item in restored.restored)
    replaced = f", {len(restored.replaced):,} of them replaced" if restored.replaced else ""
    missing = "; the database was left out" if restored.plan.leaves_database else ""
    print(f"{colour('restored', 'green')} {counted(len(restored.restored), 'part')}, {size:,} bytes{replaced}{missing}")
    if left:
        print_note(
            f"{counted(len(left), 'part')} that {_exist(len(left))} {_was(len(left))} left as {_they(len(left))}"
        )
    if restored.plan.leaves_database:
        print_note(_DATABASE_LEFT)
    _mention_kept(restored.plan.items)
    _mention_tokens(restored.restored, "work")
    print_note("indexes are built again when they are used; `daypack doctor` checks the sessions")


def _print_unchanged(planned: Plan) -> None:
    """Say why nothing was restored."""
    if planned.leaves_database:
        others = "what else you named is as in the backup" if planned.replaceable else "everything else is there"
        others = f"; {others}" if len(planned.items) > 1 else ""
        print(f"nothing was restored: the database is not empty{others}")
        print_note(_DATABASE_LEFT)
    elif planned.existing:
        print("nothing to restore: what you named is as in the backup")
    else:
        print("nothing to restore: everything in the backup is there")
    _mention_kept(planned.items)


def _mention_users(users: Sequence[str], own: str) -> None:
    others = sorted(set(users) - {own})
    if others:
        print_note(f"restored as user {safe_line(others[0])}: add --uid {shell_word(others[0])} to your commands")
