"""Check a reply of the hybrid protocol: say which rules it breaks, and what daypack makes of it all the same.

The exit code is 1 when a rule is broken that must be kept.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from daypack.cli.main import EXIT_FAILED
from daypack.cli.terminal import colour, counted, json_text, safe_line, say
from daypack.errors import BadInput
from daypack.protocol import Reply, Violation, parse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", nargs="?", default="-", help="a file with the reply (default: standard input)")
    parser.add_argument(
        "--expected", metavar="FILE", help="a JSON file with the version and runtime fields that were sent to the model"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print what is wrong, rule by rule."""
    expected = _read_expected(args.expected) if args.expected else None
    reply = parse(read_reply_file(args.file), expected=expected)
    broken = any(one.level == "must" for one in reply.violations)
    if args.json:
        snapshot = reply.snapshot and reply.snapshot.as_object()
        print(json_text({"text": reply.text, "snapshot": snapshot, "violations": reply.violations, "ok": not broken}))
        return EXIT_FAILED if broken else 0
    print("\n".join(_summary(reply)))
    for line in violation_lines(reply.violations):
        print(line)
    if not reply.violations:
        print(colour("every rule is kept", "green"))
    return EXIT_FAILED if broken else 0


def read_reply_file(name: str) -> str:
    """Return the text of a file, or of standard input."""
    if name == "-" and sys.stdin.isatty():
        say("reading from the terminal; end with Ctrl-D")
    try:
        if name == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as file:
                data = file.read()
    except OSError as error:
        problem = error.strerror or str(error)
        raise BadInput(problem, operation="read reply", place=name, hint="name a readable file") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise BadInput(problem, operation="read reply", place=name, hint="convert it with iconv") from error


def _read_expected(name: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(read_reply_file(name), type=dict[str, Any])
    except msgspec.DecodeError as error:
        hint = "it holds an object with version and runtime"
        raise BadInput(str(error), operation="check reply", place=name, hint=hint) from error


def _summary(reply: Reply) -> Iterable[str]:
    words = counted(len(reply.text), "character")
    yield f"text      {words}{_around(reply)}"
    if reply.snapshot is None:
        yield "snapshot  none"
        return
    memory = reply.snapshot.memory
    tiers = f"{len(memory.core)} core, {len(memory.working)} working, {len(memory.ephemeral)} ephemeral"
    task = reply.snapshot.active_task
    yield f"snapshot  {tiers}{f'; active task: {safe_line(task)}' if task else ''}"


def _around(reply: Reply) -> str:
    if reply.cut is None:
        return ""
    behind = len(reply.text) - reply.cut[0]
    return f", {behind:,} of them behind the snapshot" if behind else ""


def violation_lines(violations: Sequence[Violation]) -> list[str]:
    """Return a line for each thing that is wrong, with all rules it breaks: what must be so first."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for one in sorted(violations, key=lambda one: one.level == "should"):
        grouped.setdefault((one.level, one.where, one.problem), []).append(one.rule)
    lines: list[str] = []
    for (level, where, problem), rules in grouped.items():
        named = colour(" ".join(dict.fromkeys(rules)), "red" if level == "must" else "yellow")
        place = f"{safe_line(where)}: " if where else ""
        lines.append(f"{named}  {place}{safe_line(problem)}{' (should)' if level == 'should' else ''}")
    return lines
