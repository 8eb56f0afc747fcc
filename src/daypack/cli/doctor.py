"""Check sessions and memories for damage and suggest repairs. Nothing is changed without --apply.

Without a session: all sessions, or those of --agent, and the memory store with its accounts and search indexes, or the
database that has the memories: there nothing is repaired.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, existing_agent, find_named
from daypack.cli.terminal import colour, counted, json_text, print_note, safe_line
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.history.sessions import Found
from daypack.upkeep.database import find_database
from daypack.upkeep.doctor import Finding, examine_session

if TYPE_CHECKING:
    from daypack.upkeep.store_doctor.trial import Outcome

_MOST_TITLES = 10
_COLOURS = {"damage": "red", "warning": "yellow", "note": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("session", nargs="?", help="name of the session (default: all sessions, and the memories)")
    parser.add_argument("--repair", action="store_true", help="show the plan of a repair of the memory store")
    parser.add_argument("--apply", action="store_true", help="with --repair: repair (default: only show the plan)")
    parser.add_argument("--plan", metavar="ID", help="with --apply: only if the plan still has this id")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit code 3 if there is damage."""
    _check(args)
    home = find_home(args.home, args.uid)
    if args.repair:
        return _repair(home, args)
    names = [find_named(args, args.session)] if args.session else _all_sessions(home, args)
    findings: list[Finding] = []
    for agent, name in names:
        for finding in _examine(home, agent, name):
            findings.append(finding)
            if not args.json:
                _print(finding)
    checked = [counted(len(names), "session")]
    memories = 0
    if not args.session:
        from daypack.upkeep.backup.restore_plan import leftover  # noqa: PLC0415 — only without a session
        from daypack.upkeep.store_doctor.database import examine_store  # noqa: PLC0415

        report = examine_store(home)
        findings += report.findings
        memories = report.memories
        if memories:
            checked.append(
                f"{counted(memories, 'memory', 'memories')} with {counted(report.records, 'record')}",
            )
        others = [*leftover(home.root), *_hook_failures(home)]
        findings += others
        if not args.json:
            for finding in (*report.findings, *others):
                _print(finding)
    damaged = any(finding.severity == "damage" for finding in findings)
    if args.json:
        print(json_text({"sessions": len(names), "memories": memories, "damaged": damaged, "findings": findings}))
    else:
        problems = sum(finding.severity != "note" for finding in findings)
        print(f"{' and '.join(checked)} checked, {counted(problems, 'problem') if problems else 'no problems'}")
    return EXIT_DAMAGE if damaged else 0


def _examine(home: Home, agent: str, name: str) -> Iterator[Finding]:
    """Yield the findings of a session where it is: in files, or in a database with a cache of it here."""
    if home.database is None:
        return examine_session(home.session(agent, name))
    from daypack.upkeep.stored_doctor import examine_stored  # noqa: PLC0415 — few have a database

    return examine_stored(home.session(agent, name))


def _hook_failures(home: Home) -> list[Finding]:
    """Return why hooks do nothing, and whether they failed lately: without a word, so that no agent is disturbed."""
    from daypack.hooks import failures  # noqa: PLC0415 — only without a session
    from daypack.hooks.setup.silenced import find_silenced  # noqa: PLC0415

    silenced = find_silenced(home, os.environ)
    findings = [Finding("warning", setting.place, setting.problem, setting.hint) for setting in silenced]
    for path in (os.path.join(home.folder, failures.LOG), failures.fallback_log()):
        if recent := failures.read_recent(path):
            problem = f"{failures.describe(recent)}; the newest: {recent.newest}"
            findings.append(Finding("warning", path, problem, "fix the cause; delete the file to forget them"))
    return findings


def _all_sessions(home: Home, args: argparse.Namespace) -> list[Found]:
    """Return the sessions of an agent, or of all if none was chosen."""
    agents = home.agents() if args.any_agent else [existing_agent(home, args.agent)]
    return [Found(agent, name) for agent in agents for name in home.list(agent)]


def _check(args: argparse.Namespace) -> None:
    problem = ""
    if args.apply and not args.repair:
        problem = "--apply requires --repair"
    elif args.plan and not args.apply:
        problem = "--plan requires --apply"
    elif args.repair and args.session:
        problem = "--repair takes no session: sessions repair themselves"
    if problem:
        hint = "doctor --repair --apply --plan ID"
        raise BadInput(problem, operation="doctor", place="arguments", hint=hint)


def _repair(home: Home, args: argparse.Namespace) -> int:
    if find_database(home) is not None:
        return _report_database(home, args)
    from daypack.upkeep.store_doctor.report import examine_memories  # noqa: PLC0415 — only for repairs
    from daypack.upkeep.store_doctor.trial import try_repair  # noqa: PLC0415

    planned = examine_memories(home).report()
    damaged = any(finding.severity == "damage" for finding in planned.findings)
    left, outcome = None, None
    if args.apply:
        from daypack.upkeep.store_doctor.apply import apply_repair  # noqa: PLC0415

        left = apply_repair(home, args.plan)
        damaged = any(finding.severity == "damage" for finding in left.findings)
    elif planned.steps:
        outcome = try_repair(home)
    if args.json:
        print(json_text({"plan": planned, "outcome": outcome, "applied": left}))
        return EXIT_DAMAGE if damaged else 0
    _print_findings((planned if left is None else left).findings)
    for step in planned.steps:
        print(f"{colour('done' if left else 'would', 'green' if left else 'yellow')}  {safe_line(step)}")
    if not planned.steps:
        print("nothing to repair")
    elif left is None:
        if outcome is not None:
            _print_outcome(outcome)
        steps = counted(len(planned.steps), "step")
        print(f"plan {planned.id}: {steps}; nothing is deleted, damaged records are kept aside")
        print_note(f"repair with `daypack doctor --repair --apply --plan {planned.id}`")
    else:
        problems = counted(len(left.findings), "problem") if left.findings else "no problems"
        print(f"repaired in {counted(len(planned.steps), 'step')}; {problems} left")
        if left.steps:
            print_note("some can be repaired: `daypack doctor --repair` shows how")
    return EXIT_DAMAGE if damaged else 0


def _report_database(home: Home, args: argparse.Namespace) -> int:
    """Print what is wrong in a database: nothing is repaired there, because nothing but a backup has what was there."""
    from daypack.upkeep.store_doctor.database import RESTORE, examine_store  # noqa: PLC0415 — few have one

    report = examine_store(home)
    damaged = any(finding.severity == "damage" for finding in report.findings)
    if args.json:
        print(json_text({"plan": report, "outcome": None, "applied": None}))
        return EXIT_DAMAGE if damaged else 0
    _print_findings(report.findings)
    if not report.findings:
        print("nothing to repair")
    elif damaged:
        print_note(f"nothing is repaired in a database: {RESTORE}")
    return EXIT_DAMAGE if damaged else 0


def _print_outcome(outcome: "Outcome") -> None:
    """Print what cannot be read after a repair."""
    if outcome.is_complete:
        print("afterwards: everything that can be read now can still be read")
        return
    if outcome.problem:
        print(f"afterwards: as now, for it cannot be repaired: {safe_line(outcome.problem)}")
    if outcome.unlisted:
        shown = ", ".join(safe_line(title) for title in outcome.unlisted[:_MOST_TITLES])
        more = f" and {len(outcome.unlisted) - _MOST_TITLES:,} more" if len(outcome.unlisted) > _MOST_TITLES else ""
        number = counted(len(outcome.unlisted), "memory", "memories")
        print(f"afterwards: {colour(f'{number} not listed any more', 'red')}: {shown}{more}")
    if outcome.moved:
        print(f"afterwards: {counted(outcome.moved, 'record')} in quarantine, which no list or search shows")
    if outcome.unconfirmed:
        number = counted(outcome.unconfirmed, "user or memory", "users or memories")
        print(f"afterwards: {number} to check: names, titles and quotas that no checksum confirms")
    if outcome.unreadable:
        number = counted(outcome.unreadable, "entry", "entries")
        print(f"afterwards: {number} only in the damaged file, which is kept")
    if outcome.left:
        print(f"afterwards: {counted(len(outcome.left), 'problem')} left, which only a backup repairs")
    print_note("a backup keeps more: `daypack backup --list`, then `daypack restore FILE --replace memory`")


def _print_findings(findings: Sequence[Finding]) -> None:
    """Print findings, then each piece of advice once; not that there is --repair, which runs now."""
    from daypack.upkeep.store_doctor.report import REPAIR  # noqa: PLC0415 — only for repairs

    for finding in findings:
        _print_problem(finding)
    for advice in dict.fromkeys(finding.advice for finding in findings if finding.advice != REPAIR):
        print(f"  → {safe_line(advice)}")


def _print(finding: Finding) -> None:
    _print_problem(finding)
    print(f"  → {safe_line(finding.advice)}")


def _print_problem(finding: Finding) -> None:
    place = finding.path
    if finding.line is not None:
        place += f", line {finding.line}"
    if finding.offset is not None:
        place += f", offset {finding.offset}"
    print(f"{colour(finding.severity, _COLOURS[finding.severity])}: {safe_line(place)}: {safe_line(finding.problem)}")
