"""Print what `daypack serve --check` finds: one line for each finding, and what to do about it."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from daypack.cli.options import open_named
from daypack.cli.server_options import choose_reach, tls_files
from daypack.cli.terminal import colour, counted, json_text, safe_line

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.serve.checks import Finding, Plan

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def run(args: argparse.Namespace) -> int:
    """Examine what serving needs; return 1 if there is a problem."""
    from daypack.cli.main import EXIT_FAILED  # noqa: PLC0415 — it imports the commands
    from daypack.history.home import find_home  # noqa: PLC0415
    from daypack.memory.tools import open_memory  # noqa: PLC0415
    from daypack.serve.checks import CHECKS, Finding, Plan, run_checks  # noqa: PLC0415

    def open_memories() -> "Memories":
        return open_memory(home=args.home, uid=args.uid, user=args.user, memory=args.memory)

    def check_session(_: "Plan") -> "Iterator[Finding]":
        open_named(args).close()
        yield Finding("session", "ok", f"{args.session} can be opened")

    reach = choose_reach(args)
    plan = Plan(
        find_home(args.home, args.uid),
        open_memories,
        reach.policy,
        host=args.host,
        port=args.port,
        share_port=args.share_port,
        tls_files=tls_files(args),
        connections=args.connections,
    )
    findings: list[Finding] = []
    for finding in run_checks(plan, [*CHECKS, check_session] if args.session else CHECKS):
        findings.append(finding)
        if not args.json:
            _print(finding)
    problems, warnings = (sum(each.state == state for each in findings) for state in ("problem", "warning"))
    if args.json:
        print(json_text({"ready": not problems, "findings": findings}))
    else:
        warned = f", {counted(warnings, 'warning')}" if warnings else ""
        print(f"{counted(problems, 'problem') if problems else 'no problems'}{warned}")
    return EXIT_FAILED if problems else 0


def _print(finding: "Finding") -> None:
    print(f"{colour(finding.state, _COLOURS[finding.state])}: {finding.check}: {safe_line(finding.text)}", flush=True)
    if finding.hint:
        print(f"  → {safe_line(finding.hint)}")
