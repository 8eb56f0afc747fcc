"""Say what is wrong with a session, or with all of an agent's sessions: where, and what to do. It only reads."""

import argparse
import os

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place
from daypack.cli.terminal import colour, counted, json_text, safe_line
from daypack.errors import SessionMissing
from daypack.history.layout import find_home
from daypack.upkeep.doctor import Finding, examine_session

_COLOURS = {"damage": "red", "warning": "yellow", "note": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("session", nargs="?", help="the session's name (default: all of the agent's sessions)")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit code 3 when there is damage."""
    home = find_home(args.home, args.uid)
    names = [args.session] if args.session else home.list(args.agent)
    found: list[Finding] = []
    for name in names:
        layout = home.session(args.agent, name)
        if not os.path.isdir(layout.folder):
            raise SessionMissing("no such session", place=layout.folder, hint="see `daypack session list`")
        for finding in examine_session(layout):
            found.append(finding)
            if not args.json:
                _print(finding)
    damaged = any(finding.severity == "damage" for finding in found)
    if args.json:
        print(json_text({"sessions": len(names), "damaged": damaged, "findings": found}))
    else:
        wrong = [one for one in found if one.severity != "note"]
        print(
            f"{counted(len(names), 'session')} examined, {counted(len(wrong), 'thing') if wrong else 'nothing'} wrong"
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
