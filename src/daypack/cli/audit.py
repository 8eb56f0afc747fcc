"""Report what has rotted in a memory store, and what an import would keep.

Reads stores of mem0, Letta, basic-memory, claude-mem, the MCP reference memory and daypack itself, offline and without
the other program. Nothing in the store is run or changed. No model is used.
"""

import argparse
import os
import sys
from datetime import UTC, date, datetime

from daypack.cli.options import natural
from daypack.cli.terminal import Progress, colour, counted, is_utf8, json_text, print_note, safe_line, shell_word
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.importers.audit.report import Example, Report, Row, examine
from daypack.importers.stores.systems import SYSTEMS, Store, open_store
from daypack.text.tokens import counter_for

_EXAMPLES = 3
_BAR = 10
_TEXT_CHARS = 100
_OF_THE_LOG = ("list", "verify", "cut")
_PLURAL = {"exact duplicate": "exact duplicates", "near duplicate": "near duplicates"}
_MEANING = {
    "exact duplicate": "the same words as an older memory",
    "near duplicate": "says no more than another memory",
    "contradiction": "another memory says otherwise",
    "stale date": "a plan whose day has passed",
    "dangling pronoun": "begins with he or it, and names none",
    "recalled text": "was recalled and stored again",
    "secret": "has a secret of a known format",
    "junk": "a courtesy, a prompt, a dump of an error",
    "empty": "no text",
    "orphan": "belongs to no memory or points to none",
    "unreadable": "could not be read",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="PATH", help="file or folder of the store, for example ~/.mem0")
    known = f"the system, if it is not recognised: {', '.join(SYSTEMS)}"
    parser.add_argument("--as", dest="system", metavar="SYSTEM", default="", help=known)
    parser.add_argument(
        "--examples", type=natural, metavar="N", default=_EXAMPLES, help="examples of each (default: 3)"
    )
    parser.add_argument(
        "--today", metavar="DATE", default="", help="the day that plans are compared with (default: today)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace) -> int:
    """Print the report; findings are no failure."""
    if args.path in _OF_THE_LOG and not os.path.exists(args.path):
        problem = f"no such file or folder; the log of who read memories is `daypack audit-log {args.path}`"
        hint = f"daypack audit-log {args.path}"
        raise BadInput(problem, operation="audit", place=args.path, hint=hint)
    store = open_store(args.path, args.system)
    progress = Progress("memories read")
    try:
        report = examine(
            store.read(),
            today=_today(args.today),
            examples=args.examples,
            count_tokens=counter_for(None).count,
            progress=progress.show,
        )
    finally:
        progress.clear()
    command = _command(store)
    if args.json:
        print(json_text({"system": store.system.name, "path": store.path, "report": report, "import": command}))
        return 0
    print("\n".join(_lines(store, report)))
    if report.kept and command:
        print_note(f"  → {command}")
    return 0


def _today(text: str) -> date:
    try:
        return date.fromisoformat(text) if text else datetime.now(UTC).date()
    except ValueError:
        raise BadInput(f"not a date: {text!r}", operation="audit", place="--today", hint="--today 2026-11-18") from None


def _command(store: Store) -> str:
    """Return the command that imports the store; "" if it is that of the usual home."""
    from daypack.importers.all_places.memory_stores import is_own  # noqa: PLC0415 — needs the memories

    return "" if is_own(find_home(), store) else f"daypack import {store.system.name} {shell_word(store.path)}"


def _lines(store: Store, report: Report) -> list[str]:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.kinds.items() if len(report.kinds) > 1)
    lines = [
        f"{store.system.title} at {safe_line(store.path)}",
        f"{counted(report.memories, 'memory', 'memories')}{f' ({kinds})' if kinds else ''}, {report.tokens:,} tokens",
    ]
    if report.first:
        lines[-1] += f", {safe_line(report.first[:10])} to {safe_line(report.last[:10])}"
    if report.owners:
        lines[-1] += f", {counted(report.owners, 'owner')}"
    lines.append("")
    width = max((len(f"{row.count:,}") for row in report.rows), default=1)
    for row in report.rows:
        share = row.count / report.memories if report.memories and row.kind not in ("orphan", "unreadable") else 0.0
        percent = f"{share:6.1%}" if share else " " * 6
        lines.append(f"{row.kind:<17}{row.count:>{width},}  {percent}  {_bar(share)}  {_MEANING[row.kind]}")
        lines += [line for example in row.examples for line in _shown(row, example)]
    if not report.rows:
        lines.append("nothing found")
    return [*lines, "", *_kept(report)] if report.memories else lines


def _shown(row: Row, example: Example) -> list[str]:
    name = safe_line(example.id[:48])
    when = f" {safe_line(example.written_at[:10])}" if example.written_at else ""
    text = _cut(example.text)
    if not text:
        return [colour(f"    {name or safe_line(example.place)}: {_cut(example.problem)}", "dim")]
    lines = [f"    {text}", colour(f"      {name}{when}: {safe_line(example.problem)}", "dim")]
    if example.other_text and row.kind != "exact duplicate":
        when = f" {safe_line(example.other_written_at[:10])}" if example.other_written_at else ""
        lines.insert(1, colour(f"      {safe_line(example.other_id[:48])}{when}: {_cut(example.other_text)}", "dim"))
    return lines


def _kept(report: Report) -> list[str]:
    share = report.kept / report.memories
    by_class = ", ".join(counted(count, kind, _PLURAL.get(kind, kind)) for kind, count in report.left_out.items())
    memories = f"{report.kept:,} of {counted(report.memories, 'memory', 'memories')}"
    tokens = f"{report.kept_tokens:,} of {report.tokens:,} tokens"
    lines = [f"an import keeps   {memories}, {tokens}  {_bar(share)}  {share:.1%}"]
    if by_class:
        lines.append(f"it leaves out     {by_class}")
    return lines


def _bar(share: float) -> str:
    full, free = ("█", "·") if is_utf8(sys.stdout) else ("#", ".")
    filled = round(share * _BAR) or (1 if share else 0)
    return full * filled + free * (_BAR - filled)


def _cut(text: str) -> str:
    line = safe_line(" ".join(text.split()))
    return line if len(line) <= _TEXT_CHARS else f"{line[: _TEXT_CHARS - 2]} …"
