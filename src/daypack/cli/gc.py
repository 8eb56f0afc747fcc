"""Say which derived files of a session may go and why, and remove them; or put a whole session aside.

History, captured text, pins, the budget and the policy (context/gc.policy) are never collected.
"""

import argparse
import os
import time
from collections import Counter
from collections.abc import Sequence

from daypack.cli.main import EXIT_DAMAGE, EXIT_FAILED
from daypack.cli.options import add_place, natural
from daypack.cli.terminal import Progress, colour, counted, json_text, safe_line, say
from daypack.errors import BadInput, Damaged, DaypackError, SessionMissing
from daypack.history.layout import Home, find_home
from daypack.session import open_session
from daypack.upkeep.archive import Guard, Moved, archive, delete, restore, sweep
from daypack.upkeep.gc.apply import Applied, apply
from daypack.upkeep.gc.plan import Plan, plan
from daypack.upkeep.gc.policy import read_policy
from daypack.upkeep.gc.progress import CollectionProgress

_WHOLE = ("archive", "restore", "delete")
_MOST_LINES = 40


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("session", nargs="?", help="the session's name")
    parser.add_argument("--all", action="store_true", help="all sessions of all your agents, instead of one")
    parser.add_argument("--apply", action="store_true", help="remove what may go (default: only say what would)")
    parser.add_argument("--children", action="store_true", help="collect children too: done, old, and named by nobody")
    whole = parser.add_mutually_exclusive_group()
    whole.add_argument("--archive", action="store_true", help="put the session aside, as it is, under archive/")
    whole.add_argument("--restore", action="store_true", help="bring back a session that was put aside")
    whole.add_argument("--delete", action="store_true", help="delete a session for good; needs --yes")
    parser.add_argument("--number", type=natural, metavar="N", help="which one, of a session put aside several times")
    parser.add_argument("--force", action="store_true", help="archive or delete it although it is at work")
    parser.add_argument("--yes", action="store_true", help="really delete")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Do what is asked; exit code 3 when something is missing that is referred to."""
    whole = next((name for name in _WHOLE if getattr(args, name)), None)
    _check(args, whole)
    if args.all:
        return _run_all(args)
    if whole:
        return _move(args, whole)
    planned, applied = _collect(args, args.agent, args.session)
    if args.json:
        print(json_text(_as_json(args.agent, planned, applied)))
    else:
        _print(planned, applied, args)
    return EXIT_DAMAGE if planned.missing else 0


def _check(args: argparse.Namespace, whole: str | None) -> None:
    hint = "gc SESSION [--apply], gc --all [--apply], or gc SESSION --archive, --restore or --delete --yes"
    if bool(args.session) == args.all:
        raise BadInput("name one session, or --all", operation="gc", place="arguments", hint=hint)
    if whole and (args.all or args.apply or args.children):
        problem = f"--{whole} is for one session, and stands alone"
        raise BadInput(problem, operation="gc", place="arguments", hint=hint)
    if (args.number is not None and whole not in ("restore", "delete")) or (args.yes and whole != "delete"):
        problem = "--number is for --restore and --delete, --yes for --delete"
        raise BadInput(problem, operation="gc", place="arguments", hint=hint)
    if whole == "delete" and not args.yes:
        problem = "a deletion cannot be taken back: nothing was deleted"
        raise BadInput(problem, operation="gc", place=args.session, hint="add --yes, or put it aside with --archive")


def _collect(args: argparse.Namespace, agent: str, name: str) -> tuple[Plan, Applied | None]:
    with open_session(name, agent=agent, home=args.home, uid=args.uid, create=False) as session:
        policy = read_policy(session.history)
        planned = plan(session.history, policy, time.time(), children=args.children)
        return planned, apply(session.history, planned) if args.apply else None


# One session


def _print(planned: Plan, applied: Applied | None, args: argparse.Namespace) -> None:
    going = planned.removals if applied is None else applied.removed
    for one in going[:_MOST_LINES]:
        print(f"{one.kind:<9}  {one.bytes:>11,}  {safe_line(one.path)}: {safe_line(one.reason)}")
    if len(going) > _MOST_LINES:
        print(f"… and {len(going) - _MOST_LINES:,} more; --json lists all")
    for (kind, why), number in Counter(
        (one.kind, one.reason) for one in planned.retained if one.kind != "permanent"
    ).items():
        print(f"{colour('stays', 'dim')}      {counted(number, f'{kind} file')}: {safe_line(why)}")
    for one in planned.missing:
        print(f"{colour('missing', 'red')}    {safe_line(one.path)}: {safe_line(one.reason)}")
    freed = sum(one.bytes for one in going)
    if applied is not None:
        told = f", recorded as {applied.event}" if applied.event else ""
        print(f"{counted(len(going), 'file')} removed, {freed:,} bytes{told}")
        if applied.skipped:
            print(f"{counted(len(applied.skipped), 'file')} of the plan stayed: they are needed now")
    elif planned.missing:
        print(f"{counted(len(going), 'file')} may go, but nothing is removed while something is missing")
    else:
        then = f"; `daypack gc {safe_line(args.session)} --apply` removes them" if going else ""
        print(f"{counted(len(going), 'file')} may go, {freed:,} bytes{then}")


def _as_json(agent: str, planned: Plan, applied: Applied | None) -> dict[str, object]:
    return {"agent": agent, "session": planned.session, "plan": planned, "applied": applied}


# All sessions


def _run_all(args: argparse.Namespace) -> int:
    home = find_home(args.home, args.uid)
    names = [(agent, name) for agent in home.agents() for name in home.list(agent)]
    found: list[dict[str, object]] = []
    failed: list[DaypackError] = []
    if args.apply:
        sweep(home)
    with CollectionProgress(home.folder, f"children={int(args.children)}", writing=args.apply) as done:
        if done.resumed:
            say(f"going on after {counted(done.resumed, 'session')} of an interrupted run")
        progress = Progress(f"of {counted(len(names), 'session')} looked at")
        for at, (agent, name) in enumerate(names, 1):
            progress.show(at)
            if done.is_done(agent, name):
                continue
            try:
                planned, applied = _collect(args, agent, name)
            except SessionMissing:
                continue  # it went while the others were looked at
            except DaypackError as error:
                progress.clear()
                failed.append(error)
                _complain(error)
                continue
            found.append(_as_json(agent, planned, applied))
            if not args.json:
                _print_brief(agent, planned, applied)
            done.mark_done(agent, name)
        progress.clear()
    return _tell_all(args, home, found, failed)


def _print_brief(agent: str, planned: Plan, applied: Applied | None) -> None:
    going = planned.removals if applied is None else applied.removed
    if going or planned.missing:
        lost = f", {counted(len(planned.missing), 'thing')} missing" if planned.missing else ""
        freed = sum(one.bytes for one in going)
        print(f"{safe_line(agent)}/{safe_line(planned.session)}: {counted(len(going), 'file')}, {freed:,} bytes{lost}")


def _tell_all(
    args: argparse.Namespace, home: Home, found: Sequence[dict[str, object]], failed: Sequence[DaypackError]
) -> int:
    plans = [one["plan"] for one in found]
    missing = any(isinstance(one, Plan) and one.missing for one in plans)
    if args.json:
        told = [{"path": error.place, "problem": error.problem, "hint": error.hint} for error in failed]
        print(json_text({"sessions": found, "failed": told}))
    elif not found and not failed:
        say(f"nothing to do in {safe_line(home.folder)}")
    else:
        which = "collected" if args.apply else "planned; `daypack gc --all --apply` removes what may go"
        print(f"{counted(len(found), 'session')} {which}")
    if missing or any(isinstance(error, Damaged) for error in failed):
        return EXIT_DAMAGE
    return EXIT_FAILED if failed else 0


def _complain(error: DaypackError) -> None:
    say(f"daypack: {safe_line(error.problem)} [{safe_line(error.place)}]")
    say(f"  → {safe_line(error.hint)}")


# A whole session


def _move(args: argparse.Namespace, whole: str) -> int:
    home = find_home(args.home, args.uid)
    guard = Guard(time.time(), os.environ.get("DAYPACK_SESSION") or None, args.force)
    if whole == "archive":
        moved = archive(home, args.agent, args.session, guard)
    elif whole == "restore":
        moved = restore(home, args.agent, args.session, args.number)
    else:
        moved = delete(home, args.agent, args.session, guard, args.number)
    if args.json:
        print(json_text(moved))
    else:
        print(_told(moved))
    return 0


def _told(moved: Moved) -> str:
    size = f"{moved.bytes:,} bytes"
    return f"deleted {safe_line(moved.session)}, {size}" if moved.path is None else f"{safe_line(moved.path)}  {size}"
