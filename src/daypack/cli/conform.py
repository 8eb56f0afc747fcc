"""Check envelope documents of any runtime against the rules of docs/envelope.md.

The exit code is 3 if a rule is broken, 2 if a document cannot be read.
"""

import argparse
import os
from collections.abc import Iterator

import msgspec

from daypack.cli.input import read_bytes
from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.parser import EXIT_USAGE
from daypack.cli.terminal import colour, counted, json_text, print_error, safe_line, table
from daypack.errors import BadInput
from daypack.turn.conformance.report import Report, Verdict, conform
from daypack.turn.conformance.rules.rulebook import RULES

_MAX_LINES = 5  # failures of one rule that are printed; --json has all
_COLOURS = {"passed": "green", "failed": "red", "not_applicable": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "file", metavar="FILE|DIR", help="an envelope document, or a folder with *.json; - is standard input"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace) -> int:
    """Check one document, or each of a folder."""
    folder = args.file != "-" and os.path.isdir(args.file)
    names = _documents(args.file) if folder else [args.file]
    reports: dict[str, Report | BadInput] = {}
    for name in names:
        try:
            reports[name] = conform(read_bytes(name, "conform"), name)
        except BadInput as error:
            if not folder:
                raise
            reports[name] = error
    if args.json:
        print(json_text(_as_json(reports) if folder else _report_json(args.file, reports[args.file])))
    else:
        for line in _summary(reports) if folder else _details(reports[args.file]):
            print(line)
        for report in reports.values():
            if isinstance(report, BadInput):
                print_error(report)
    return _exit_code(reports)


def _documents(folder: str) -> list[str]:
    names = sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith(".json"))
    if not names:
        hint = "name a folder with envelope documents, or one file"
        raise BadInput("no *.json in this folder", operation="conform", place=folder, hint=hint)
    return names


def _exit_code(reports: dict[str, Report | BadInput]) -> int:
    if any(isinstance(report, Report) and report.failed for report in reports.values()):
        return EXIT_DAMAGE
    return EXIT_USAGE if any(isinstance(report, BadInput) for report in reports.values()) else 0


def _details(report: Report | BadInput) -> Iterator[str]:
    if isinstance(report, BadInput):
        return
    yield f"context  {safe_line(report.context_id)}"
    verdicts = [(verdict.rule, verdict.outcome.replace("_", " "), _checked(verdict)) for verdict in report.verdicts]
    head, *lines = table(("rule", "verdict", "checked"), verdicts)
    yield head
    for verdict, line in zip(report.verdicts, lines, strict=True):
        yield colour(line, _COLOURS[verdict.outcome])
        yield from _failures(verdict)
    yield from (f"{colour('warning', 'yellow')}  {safe_line(warning)}" for warning in report.warnings)
    yield _sentence(report)


def _summary(reports: dict[str, Report | BadInput]) -> Iterator[str]:
    for name, report in reports.items():
        if isinstance(report, BadInput):
            yield f"{safe_line(name)}: {colour('unreadable', 'red')}"
            continue
        yield f"{safe_line(name)}: {_sentence(report)}"
        for verdict in report.verdicts:
            if verdict.outcome == "failed":
                yield colour(f"  {verdict.rule}", "red")
                yield from _failures(verdict)
    found = [report for report in reports.values() if isinstance(report, Report)]
    good = sum(report.conforms for report in found)
    unread = len(reports) - len(found)
    yield f"{counted(len(reports), 'document')}: {good:,} conform, {len(found) - good:,} do not, {unread:,} unreadable"


def _failures(verdict: Verdict) -> Iterator[str]:
    for failure in verdict.failures[:_MAX_LINES]:
        yield f"    {safe_line(failure.path)}: {safe_line(failure.problem)}"
    if (more := len(verdict.failures) - _MAX_LINES) > 0:
        yield f"    and {more:,} more (--json lists all)"


def _checked(verdict: Verdict) -> str:
    return f"{verdict.checked:,}" if verdict.checked else ""


def _sentence(report: Report) -> str:
    parts = [f"{report.count('passed')} rules passed"]
    if report.failed:
        parts.append(colour(f"{len(report.failed)} failed ({', '.join(report.failed)})", "red"))
    parts.append(f"{report.count('not_applicable')} not applicable")
    if report.warnings:
        parts.append(counted(len(report.warnings), "warning"))
    return f"{'conforms' if report.conforms else 'does not conform'}: {', '.join(parts)}"


def _as_json(reports: dict[str, Report | BadInput]) -> dict[str, object]:
    return {
        "documents": [_report_json(name, report) for name, report in reports.items()],
        "conforms": all(isinstance(report, Report) and report.conforms for report in reports.values()),
    }


def _report_json(name: str, report: Report | BadInput) -> dict[str, object]:
    if isinstance(report, BadInput):
        return {"file": name, "conforms": False, "error": {"problem": report.problem, "place": report.place}}
    sentences = {rule.id: rule.sentence for rule in RULES}
    verdicts = [{**msgspec.to_builtins(verdict), "sentence": sentences[verdict.rule]} for verdict in report.verdicts]
    return {
        "file": name,
        "context_id": report.context_id,
        "conforms": report.conforms,
        "failed": report.failed,
        "verdicts": verdicts,
        "warnings": report.warnings,
    }
