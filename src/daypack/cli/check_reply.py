"""Check a model's reply against the rules of the hybrid protocol.

The exit code is 1 if the reply breaks a mandatory rule.
"""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import to_builtins

from daypack.cli.input import read_text
from daypack.cli.main import EXIT_FAILED
from daypack.cli.terminal import colour, counted, json_text, safe_line
from daypack.errors import BadInput
from daypack.protocol import Reply, Violation, parse
from daypack.protocol.rule_texts import RULES


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", nargs="?", default="-", help="file with the reply (default: standard input)")
    parser.add_argument(
        "--expected", metavar="FILE", help="JSON file with the version and runtime fields sent to the model"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace) -> int:
    """Print the broken rules."""
    expected = _read_expected(args.expected) if args.expected else None
    reply = parse(read_text(args.file, "check reply"), expected=expected)
    broken = any(violation.level == "must" for violation in reply.violations)
    if args.json:
        snapshot = reply.snapshot and reply.snapshot.as_object()
        violations = [{**to_builtins(found), "sentence": RULES.get(found.rule, "")} for found in reply.violations]
        print(json_text({"text": reply.text, "snapshot": snapshot, "violations": violations, "ok": not broken}))
        return EXIT_FAILED if broken else 0
    print("\n".join(_summary(reply)))
    for line in (*violation_lines(reply.violations), *rule_lines(violation.rule for violation in reply.violations)):
        print(line)
    if not reply.violations:
        print(colour("no rule is broken", "green"))
    return EXIT_FAILED if broken else 0


def _read_expected(name: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(read_text(name, "check reply"), type=dict[str, Any])
    except msgspec.DecodeError as error:
        hint = "the file must hold an object with version and runtime"
        raise BadInput(str(error), operation="check reply", place=name, hint=hint) from error


def _summary(reply: Reply) -> Iterable[str]:
    yield f"text      {counted(len(reply.text), 'character')}{_after_snapshot(reply)}"
    if reply.snapshot is None:
        yield "snapshot  none"
        return
    memory = reply.snapshot.memory
    tiers = f"{len(memory.core)} core, {len(memory.working)} working, {len(memory.ephemeral)} ephemeral"
    task = reply.snapshot.active_task
    yield f"snapshot  {tiers}{f'; active task: {safe_line(task)}' if task else ''}"


def _after_snapshot(reply: Reply) -> str:
    if reply.cut is None:
        return ""
    after = len(reply.text) - reply.cut[0]
    return f", {after:,} of them after the snapshot" if after else ""


def violation_lines(violations: Sequence[Violation]) -> list[str]:
    """Return one line per problem with the rules it breaks, mandatory rules first."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for violation in sorted(violations, key=lambda violation: violation.level == "should"):
        key = (violation.level, violation.where, violation.problem)
        grouped.setdefault(key, []).append(violation.rule)
    lines: list[str] = []
    for (level, where, problem), rules in grouped.items():
        named = colour(" ".join(dict.fromkeys(rules)), "red" if level == "must" else "yellow")
        place = f"{safe_line(where)}: " if where else ""
        lines.append(f"{named}  {place}{safe_line(problem)}{' (should)' if level == 'should' else ''}")
    return lines


def rule_lines(rules: Iterable[str]) -> list[str]:
    """Return what each broken rule demands, one line per rule."""
    found = [rule for rule in dict.fromkeys(rules) if rule in RULES]
    if not found:
        return []
    width = max(map(len, found))
    return ["", colour("what these rules demand", "dim"), *(f"  {rule:<{width}}  {RULES[rule]}" for rule in found)]
