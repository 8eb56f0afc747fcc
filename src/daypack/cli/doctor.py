"""Check a session, or all sessions of an agent, for damage and suggest repairs. Nothing is changed."""

import argparse

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, find_name
from daypack.cli.terminal import colour, counted, json_text, safe_line
from daypack.history.layout import find_home
from daypack.upkeep.doctor import Finding, examine_session

_COLOURS = {"damage": "red", "warning": "yellow", "note": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("session", nargs="?", help="name of the session (default: all sessions of the agent)")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit code 3 if there is damage."""
    home = find_home(args.home, args.uid)
    names = [find_name(args, args.session)] if args.session else home.list(args.agent)
    findings: list[Finding] = []
    for name in names:
        for finding in examine_session(home.session(args.agent, name)):
            findings.append(finding)
            if not args.json:
                _print(finding)
    damaged = any(finding.severity == "damage" for finding in findings)
    if args.json:
        print(json_text({"sessions": len(names), "damaged": damaged, "findings": findings}))
    else:
        problems = sum(finding.severity != "note" for finding in findings)
        print(
            f"{counted(len(names), 'session')} checked, {counted(problems, 'problem') if problems else 'no problems'}"
        )
    return EXIT_DAMAGE if damaged else 0


def _print(finding: Finding) -> None:
    place = finding.path
    if finding.line is not None:
        place += f", line {finding.line}"
    if finding.offset is not None:
        place += f", offset {finding.offset}"
    print(f"{colour(finding.severity, _COLOURS[finding.severity])}: {safe_line(place)}: {safe_line(finding.problem)}")
    print(f"  → {safe_line(finding.advice)}")
