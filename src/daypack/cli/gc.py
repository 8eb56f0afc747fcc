"""List removable files of a session (nothing is deleted without --apply), or archive, restore or delete a session.

History, captured text, pins, the budget and the policy (context/gc.policy) are never collected. With --caches: the
folders that are caches of sessions in a database.
"""

import argparse
import os
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from daypack.cli.main import EXIT_DAMAGE, EXIT_FAILED
from daypack.cli.options import add_place, existing_agent, find_name, natural, place_words, since
from daypack.cli.terminal import Progress, colour, counted, json_text, print_error, print_note, safe_line, shell_word
from daypack.errors import BadInput, Damaged, DaypackError, SessionMissing
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.session import open_session
from daypack.text.columns import age
from daypack.upkeep.archive import Guard, Moved, archive, delete, restore, sweep
from daypack.upkeep.gc.apply import Applied, apply
from daypack.upkeep.gc.plan import Plan, plan
from daypack.upkeep.gc.policy import read_policy
from daypack.upkeep.gc.progress import CollectionProgress

_MOVES = ("archive", "restore", "delete")
_MOST_LINES = 40
_UNUSED = "30d"  # a cache that was not used so long is removable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("session", nargs="?", help="name of the session")
    parser.add_argument("--all", action="store_true", help="all sessions of all your agents")
    parser.add_argument(
        "--caches",
        action="store_true",
        help="caches of sessions in databases: unused ones, and those of other databases and deleted sessions",
    )
    parser.add_argument(
        "--older", metavar="AGE", type=_age, help="with --caches: not used for this long (default: 30d; 0d: all)"
    )
    parser.add_argument("--apply", action="store_true", help="delete the removable files (default: only list them)")
    parser.add_argument(
        "--children", action="store_true", help="also collect children that are done, old and unreferenced"
    )
    whole = parser.add_mutually_exclusive_group()
    whole.add_argument("--archive", action="store_true", help="move the whole session to archive/")
    whole.add_argument("--restore", action="store_true", help="move an archived session back")
    whole.add_argument("--delete", action="store_true", help="delete a session permanently; requires --yes")
    parser.add_argument(
        "--number", type=natural, metavar="N", help="which archive, if the session was archived several times"
    )
    parser.add_argument("--force", action="store_true", help="archive or delete a session that is in use")
    parser.add_argument("--yes", action="store_true", help="confirm --delete")
    add_place(parser, session=None)


def _age(text: str) -> str:
    """Refuse what is no age, and keep its spelling for the command that is suggested."""
    since(text)
    return text


def run(args: argparse.Namespace) -> int:
    """Collect or move; exit code 3 if a referenced file is missing."""
    move = next((name for name in _MOVES if getattr(args, name)), None)
    _check(args, move)
    if args.caches:
        return _run_caches(args)
    if args.all:
        return _run_all(args)
    if move:
        return _move(args, move)
    args.session = find_name(args, args.session)
    planned, applied = _collect(args, args.agent, args.session)
    if args.json:
        print(json_text(_as_json(args.agent, planned, applied)))
    else:
        _print(planned, applied, args)
    return EXIT_DAMAGE if planned.missing else 0


def _check(args: argparse.Namespace, move: str | None) -> None:
    hint = "gc SESSION [--apply], gc --all [--apply], or gc SESSION --archive, --restore or --delete --yes"
    if args.caches or args.older is not None:
        others = args.session or args.all or args.children or move
        if others or not args.caches:
            problem = "--caches takes only --older and --apply" if args.caches else "--older requires --caches"
            raise BadInput(problem, operation="gc", place="arguments", hint="gc --caches [--older 30d] [--apply]")
        return
    if bool(args.session) == args.all:
        problem = "a session and --all cannot be combined" if args.all else "session required, or --all"
        raise BadInput(problem, operation="gc", place="arguments", hint=hint)
    if move and (args.all or args.apply or args.children):
        problem = f"--{move} takes one session and cannot be combined with --all, --apply or --children"
        raise BadInput(problem, operation="gc", place="arguments", hint=hint)
    if (args.number is not None and move not in ("restore", "delete")) or (args.yes and move != "delete"):
        problem = "--number requires --restore or --delete, --yes requires --delete"
        raise BadInput(problem, operation="gc", place="arguments", hint=hint)
    if move == "delete" and not args.yes:
        problem = "deletion is permanent; nothing was deleted"
        raise BadInput(
            problem, operation="gc", place=args.session, hint="confirm with --yes, or use --archive to keep a copy"
        )


def _collect(args: argparse.Namespace, agent: str, name: str) -> tuple[Plan, Applied | None]:
    with open_session(name, agent=agent, home=args.home, uid=args.uid, create=False) as session:
        policy = read_policy(session.history)
        planned = plan(session.history, policy, time.time(), children=args.children)
        return planned, apply(session.history, planned) if args.apply else None


# One session


def _print(planned: Plan, applied: Applied | None, args: argparse.Namespace) -> None:
    removals = planned.removals if applied is None else applied.removed
    for removal in removals[:_MOST_LINES]:
        line = f"{removal.kind:<9}  {removal.bytes:>11,}  {safe_line(removal.path)}: {safe_line(removal.reason)}"
        print(line)
    if len(removals) > _MOST_LINES:
        print(f"… and {len(removals) - _MOST_LINES:,} more; --json lists all")
    for (kind, why), number in Counter(
        (file.kind, file.reason) for file in planned.retained if file.kind != "permanent"
    ).items():
        print(f"{colour('kept', 'dim')}       {counted(number, f'{kind} file')}: {safe_line(why)}")
    for missing in planned.missing:
        print(f"{colour('missing', 'red')}    {safe_line(missing.path)}: {safe_line(missing.reason)}")
    freed = sum(removal.bytes for removal in removals)
    if applied is not None:
        event = f"; recorded as {applied.event}" if applied.event else ""
        print(f"{counted(len(removals), 'file')} removed, {freed:,} bytes{event}")
        if applied.skipped:
            print(f"{counted(len(applied.skipped), 'file')} kept: in use since the plan was made")
    elif planned.missing:
        print(f"{counted(len(removals), 'file')} removable, but nothing is removed while a file is missing")
    else:
        children = ["--children"] if args.children else []
        command = _removing(args, shell_word(args.session), *children) if removals else ""
        print(f"{counted(len(removals), 'file')} removable, {freed:,} bytes{command}")


def _removing(args: argparse.Namespace, *words: str) -> str:
    """Return the end of a line that names the command for what was listed."""
    return f"; remove with `{' '.join(['daypack gc', *words, *place_words(args), '--apply'])}`"


def _as_json(agent: str, planned: Plan, applied: Applied | None) -> dict[str, object]:
    return {"agent": agent, "session": planned.session, "plan": planned, "applied": applied}


# Caches


def _run_caches(args: argparse.Namespace) -> int:
    from daypack.upkeep.caches import WORDS, plan_caches, remove_caches  # noqa: PLC0415 — few have a database

    home = find_home(args.home, args.uid)
    planned = plan_caches(home, since(args.older or _UNUSED))
    removed = remove_caches(home, planned) if args.apply else None
    if args.json:
        print(json_text({"plan": planned, "applied": removed}))
        return 0
    shown = planned.removable if removed is None else removed
    for cache in shown[:_MOST_LINES]:
        used = datetime.fromtimestamp(cache.used_at, UTC).isoformat()
        why = WORDS.get(cache.reason) or f"last used {age(used, time.time())} ago"
        print(f"{cache.bytes:>11,}  {safe_line(cache.agent)}/{safe_line(cache.session)}: {why}")
    if len(shown) > _MOST_LINES:
        print(f"… and {len(shown) - _MOST_LINES:,} more; --json lists all")
    freed = f"{counted(len(shown), 'cache')} {'removable' if removed is None else 'removed'}"
    freed += f", {sum(cache.bytes for cache in shown):,} bytes"
    older = ["--older", shell_word(args.older)] if args.older else []
    command = _removing(args, "--caches", *older) if removed is None and shown else ""
    print(f"{freed}; {counted(len(planned.caches) - len(shown), 'cache')} kept{command}")
    return 0


# All sessions


def _run_all(args: argparse.Namespace) -> int:
    home = find_home(args.home, args.uid)
    names = [(agent, name) for agent in home.agents() for name in home.list(agent)]
    results: list[dict[str, object]] = []
    failed: list[DaypackError] = []
    if args.apply:
        sweep(home)
    with CollectionProgress(home.folder, f"children={int(args.children)}", writing=args.apply) as done:
        if done.resumed:
            print_note(f"resuming an interrupted run after {counted(done.resumed, 'session')}")
        progress = Progress(f"of {counted(len(names), 'session')} checked")
        for at, (agent, name) in enumerate(names, 1):
            progress.show(at)
            if done.is_done(agent, name):
                continue
            try:
                planned, applied = _collect(args, agent, name)
            except SessionMissing:
                continue  # deleted meanwhile
            except DaypackError as error:
                progress.clear()
                failed.append(error)
                print_error(error)
                continue
            results.append(_as_json(agent, planned, applied))
            if not args.json:
                _print_session(agent, planned, applied)
            done.mark_done(agent, name)
        progress.clear()
    return _print_total(args, home, results, failed)


def _print_session(agent: str, planned: Plan, applied: Applied | None) -> None:
    removals = planned.removals if applied is None else applied.removed
    if removals or planned.missing:
        missing = f", {len(planned.missing):,} missing" if planned.missing else ""
        name = f"{safe_line(agent)}/{safe_line(planned.session)}"
        freed = sum(removal.bytes for removal in removals)
        print(f"{name}: {counted(len(removals), 'file')}, {freed:,} bytes{missing}")


def _print_total(
    args: argparse.Namespace, home: Home, results: Sequence[dict[str, object]], failed: Sequence[DaypackError]
) -> int:
    plans = [result["plan"] for result in results]
    missing = any(isinstance(plan, Plan) and plan.missing for plan in plans)
    if args.json:
        failures = [{"path": error.place, "problem": error.problem, "hint": error.hint} for error in failed]
        print(json_text({"sessions": results, "failed": failures}))
    elif not results and not failed:
        print_note(f"no sessions in {safe_line(home.folder)}")
    else:
        children = ["--children"] if args.children else []
        done = "collected" if args.apply else f"checked{_removing(args, '--all', *children)}"
        print(f"{counted(len(results), 'session')} {done}")
    if missing or any(isinstance(error, Damaged) for error in failed):
        return EXIT_DAMAGE
    return EXIT_FAILED if failed else 0


# A whole session


def _move(args: argparse.Namespace, move: str) -> int:
    home = find_home(args.home, args.uid)
    agent = existing_agent(home, args.agent)
    guard = Guard(time.time(), os.environ.get("DAYPACK_SESSION") or None, args.force)
    if move == "archive":
        moved = archive(home, agent, args.session, guard)
    elif move == "restore":
        moved = restore(home, agent, args.session, args.number)
    else:
        moved = delete(home, agent, args.session, guard, args.number)
    if args.json:
        print(json_text(moved))
    else:
        print(_describe(moved))
    return 0


def _describe(moved: Moved) -> str:
    size = f"{moved.bytes:,} bytes"
    return f"deleted {safe_line(moved.session)}, {size}" if moved.path is None else f"{safe_line(moved.path)}  {size}"
