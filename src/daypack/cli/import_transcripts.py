"""Import transcripts of other agents, one session each, and memory stores of other systems, one memory for each owner.

Importing again adds only what is new.
"""

import argparse
import os
from contextlib import closing

from daypack.cli import import_all
from daypack.cli.import_stores import find_stores, import_stores
from daypack.cli.main import EXIT_FAILED
from daypack.cli.options import add_place, index_in_background
from daypack.cli.terminal import Progress, counted, json_text, print_error, print_note, safe_line
from daypack.derived.history_index import HistoryIndex
from daypack.errors import BadInput, DaypackError, ExtraMissing
from daypack.history.sessions import Found
from daypack.importers.formats import ENDINGS, FORMATS, find_files, is_of_format
from daypack.importers.import_file import Destination, import_file
from daypack.importers.import_transcript import ImportReport
from daypack.importers.stores.systems import SYSTEMS

_MOST_PROBLEMS = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    names = ", ".join(sorted(FORMATS))
    systems = ", ".join(sorted(SYSTEMS))
    known = f"{names}; of memory stores: {systems} (default: detected for each path)"
    parser.add_argument("format", nargs="?", metavar="FORMAT", help=known)
    parser.add_argument("path", nargs="*", metavar="PATH", help="transcript, memory store, or folder with transcripts")
    parser.add_argument(
        "--session", metavar="NAME", help="name of the session (default: the id or name of the transcript)"
    )
    parser.add_argument(
        "--trust-system",
        action="store_true",
        help="keep system messages as instructions for later turns (default: as quoted history)",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read also what was imported before, to find changes in it (default: continue after it)",
    )
    import_all.configure(parser)
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Import file by file; exit code 1 if a file could not be read."""
    format, paths = _format_and_paths(args)  # noqa: A001 — the word of the command
    if args.all or args.watch or not paths:
        return import_all.run(args, format, paths)
    import_all.refuse_options(args)
    stores = find_stores(format, paths)
    files = [file for path in paths if path not in stores for file in _files(format, path)]
    memories = import_stores(args, list(stores.values())) if stores else []
    if args.session is not None and len(files) > 1:
        problem = f"--session takes one file, got {len(files)}"
        raise BadInput(problem, operation="import", place="arguments", hint="import them one by one, or omit --session")
    agent = None if args.any_agent else args.agent
    place = Destination(args.home, agent, args.uid, args.session, args.trust_system, args.verify)
    reports: list[ImportReport] = []
    failures: list[DaypackError] = []
    for file in files:
        progress = Progress(f"messages of {safe_line(os.path.basename(file))} imported")
        try:
            imported = import_file(format, file, place, progress.show)
        except (BadInput, ExtraMissing) as error:
            progress.clear()
            failures.append(error)
            print_error(error)
            continue
        progress.clear()
        reports += imported
        if not imported and not args.json:
            print_note(f"{safe_line(file)}: nothing to import: no session in it, or each has its own transcript")
        for report in () if args.json else imported:
            _print(report, _name(report, args), detected=format is None)
    if unindexed := [_name(report, args) for report in reports if report.new and _needs_index(place, report)]:
        index_in_background(args, unindexed)
    if args.json:
        failed = [_as_json(error) for error in failures]
        print(json_text({"files": reports, "stores": memories, "failed": failed}))
    elif len(reports) > 1:
        new, messages = sum(report.new for report in reports), sum(report.messages for report in reports)
        print(f"{counted(len(reports), 'transcript')}, {counted(messages, 'message')}, {new:,} new")
    return EXIT_FAILED if failures or any(store["refused"] for store in memories) else 0


def _needs_index(place: Destination, report: ImportReport) -> bool:
    """Return True if the next turn of a session would wait long for its search index."""
    stored = place._replace(agent=report.agent)
    with stored.open(report.session, create=False) as session, closing(HistoryIndex(session.history)) as index:
        return index.is_far_behind


def _name(report: ImportReport, args: argparse.Namespace) -> str:
    """Return the name of a session for the next command: with its agent, unless that is the usual one."""
    return report.session if report.agent == args.agent else str(Found(report.agent, report.session))


def _format_and_paths(args: argparse.Namespace) -> tuple[str | None, list[str]]:
    """Return the format if the first of several arguments names one, and the paths; ./codex is a path."""
    if args.format is None or (args.format in (*FORMATS, *SYSTEMS) and args.path):
        return args.format, args.path
    return None, [args.format, *args.path]


def _files(format: str | None, path: str) -> list[str]:  # noqa: A002
    if not os.path.exists(path):
        hint = "name a transcript file or folder"
        if path in FORMATS or path in SYSTEMS:
            hint = f"name a file or folder after the format: daypack import {path} PATH"
        elif os.sep not in path:
            hint += f"; the formats are {', '.join(sorted((*FORMATS, *SYSTEMS)))}"
        raise BadInput("no such file or folder", operation="import", place=path, hint=hint)
    if not os.path.isdir(path):
        return [path]
    candidates = find_files(format, path)
    files = [file for file in candidates if is_of_format(format, file)]
    if not files:
        kind = f"{format} transcript" if format else "transcript"
        hint = f"{kind}s end in {' or '.join(FORMATS[format].endings if format else ENDINGS)}"
        kind = kind if format else "transcript and no known memory store"
        raise BadInput(f"no {kind} in this folder", operation="import", place=path, hint=hint)
    if len(files) < len(candidates):
        print_note(f"{safe_line(path)}: {counted(len(candidates) - len(files), 'other file')} skipped")
    return files


def _print(report: ImportReport, name: str, *, detected: bool) -> None:
    facts = [
        f"{counted(report.messages, 'message')} ({report.new:,} new)",
        counted(report.tool_calls, "tool call"),
        f"{counted(report.rows, 'row')} stored as events",
    ]
    if report.calls:
        facts.insert(2, counted(report.calls, "recorded request"))
    if report.children:
        facts.insert(2, "1 child" if len(report.children) == 1 else f"{len(report.children)} children")
    if report.changed:
        facts.append(f"{counted(report.changed, 'message')} changed in the transcript since the last import")
    source = f"{safe_line(report.path)} ({report.format})" if detected else safe_line(report.path)
    print(f"{source} → {safe_line(name)}: {', '.join(facts)}")
    if report.quoted:
        what = counted(report.quoted, "system message")
        print_note(f"  → {what} kept as quoted history, not as instructions; --trust-system would store instructions")
    if report.note:
        print_note(f"  → {report.note}")
    for problem in report.problems[:_MOST_PROBLEMS]:
        print(f"  line {problem.line}: {safe_line(problem.problem)}")
    if len(report.problems) > _MOST_PROBLEMS:
        print(f"  … and {counted(len(report.problems) - _MOST_PROBLEMS, 'line')} more; --json lists all")


def _as_json(error: DaypackError) -> dict[str, str]:
    return {"path": error.place, "problem": error.problem, "hint": error.hint}
