"""Find duplicate, stale and overlong text in the prompt files of a workspace, and its cost in tokens."""

import argparse
import os
from collections.abc import Iterable, Sequence

from daypack.cli.main import EXIT_FAILED
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import colour, counted, json_text, print_note, safe, safe_line, table
from daypack.files import atomic
from daypack.history.home import find_home
from daypack.history.layout import Layout
from daypack.text.statements.passages import Document
from daypack.text.tokens import Counter, counter_for, counter_named
from daypack.upkeep.lint.duplicates import Row
from daypack.upkeep.lint.edits import diff
from daypack.upkeep.lint.matches import open_similarity
from daypack.upkeep.lint.prompt_texts import BLOCKS, MEMORY, injected, read_others, read_text, read_workspace
from daypack.upkeep.lint.report import Report, examine
from daypack.upkeep.lint.stale_references import read_declared
from daypack.upkeep.reflect.reflector import Reflector, Written

PATCH = "daypack-lint.patch"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    where = "folder to check (default: the workspace of the session, else this folder)"
    parser.add_argument("workspace", nargs="?", help=where)
    of_session = "also check the instruction blocks and the CONTEXT.md of this session"
    parser.add_argument("--session", metavar="NAME", help=of_session)
    also = "another file that is part of the prompt; may be repeated"
    parser.add_argument("--with", action="append", default=[], dest="others", metavar="FILE", help=also)
    listed = "file that lists the existing tools and layers, under [tools] and [layers]"
    parser.add_argument("--declares", metavar="FILE", help=listed)
    parser.add_argument("--fix", action="store_true", help=f"rewrite MEMORY.md, and write {PATCH} for the other files")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Print the report, and fix if asked; exit code 1 if there are findings that were not fixed."""
    others = read_others(args.others)
    folder, documents, unused, counter = _texts(args)
    home = find_home(args.home, args.uid)
    declared = read_declared(read_text(args.declares), args.declares) if args.declares else None
    similarity = open_similarity(home)
    report = examine(documents + others, counter, declared=declared, unused=unused, similarity=similarity)
    written = patch = None
    if args.fix and MEMORY in report.texts:
        written = Reflector(folder, home).rewrite(*report.texts[MEMORY])
    if args.fix and (text := report.patch()):
        patch = os.path.join(folder, PATCH)
        atomic.publish(patch, text.encode())
    if args.json:
        print(json_text(_as_json(folder, report, written, patch)))
    else:
        print("\n".join(_lines(folder, report, declared=bool(args.declares))))
        if args.fix:
            _print_fix(report, written, patch)
    return 0 if report.clean or args.fix else EXIT_FAILED


def _texts(args: argparse.Namespace) -> tuple[str, list[Document], Sequence[str], Counter]:
    """Return the folder, its texts, the names of unused blocks, and the token counter."""
    if args.session is None:
        folder = os.path.abspath(args.workspace or os.curdir)
        nowhere = Layout(folder, os.path.join(folder, *("-",) * 5))
        return folder, read_workspace(folder) + injected(folder, nowhere, None, {}), BLOCKS, counter_for(None)
    with open_named(args) as session:
        folder = os.path.abspath(args.workspace) if args.workspace else session.turns.inputs.workspace
        layout, switches = session.history.layout, session.turns.inputs.ledger.read().switches
        texts = read_workspace(folder, layout) + injected(folder, layout, session.history.config.model, switches)
        unused = [name for name in BLOCKS if not switches.get(name)]
        return folder, texts, unused, counter_named(session.history.tokenizer)


def _as_json(folder: str, report: Report, written: Written | None, patch: str | None) -> dict[str, object]:
    findings = ("duplicates", "conflicts", "history", "stale", "examples", "removals")
    before, after = report.before, report.after
    return {
        "workspace": folder,
        "clean": report.clean,
        **{name: getattr(report, name) for name in findings},
        "tokens": {"components": report.costs, "before": before, "after": after, "saved": before - after},
        "changes": {name: diff(name, *texts) for name, texts in report.texts.items()},
        "written": written,
        "patch": patch,
    }


def _lines(folder: str, report: Report, *, declared: bool) -> list[str]:
    lines = [safe_line(folder)]
    lines += _table("duplicates", ("concept", "class", "where"), map(_row, report.duplicates))
    if report.conflicts:
        lines += _table("may contradict each other", ("statements", "differ in", "where"), map(_row, report.conflicts))
    history = [(str(entry.lines), entry.reason) for entry in report.history]
    lines += _table("session history in MEMORY.md", ("lines", "why"), history)
    stale = [(str(entry), f"no {entry.sort} {entry.name}") for entry in report.stale]
    unknown = "" if declared else "not checked: pass --declares FILE with the existing tools and layers"
    lines += _table("stale", ("lines", "what"), stale, unknown or "nothing")
    examples = [(str(example), example.short or "too long for one line") for example in report.examples]
    lines += _table("examples that can be shortened", ("lines", "short form"), examples)
    costs = [(cost.before, cost.after, cost.component) for cost in report.costs]
    costs = [(f"{b:,}", f"{a:,}", name) for b, a, name in (*costs, (report.before, report.after, "total"))]
    lines += _table("tokens per turn", ("before", "after", "component"), costs, right=2)
    return [*lines, f"  {counted(report.before - report.after, 'token')} per turn can be saved"]


def _row(row: Row) -> tuple[str, ...]:
    return row.concept, row.kind + (f" ({', '.join(row.stale)})" if row.stale else ""), ", ".join(map(str, row.places))


def _table(
    title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]], empty: str = "nothing", right: int = 0
) -> list[str]:
    found = list(rows)
    lines = table(head, found, right=right) if found else [empty]
    return ["", colour(title, "dim"), *(f"  {line}" for line in lines)]


def _print_fix(report: Report, written: Written | None, patch: str | None) -> None:
    removed = [(str(removal), removal.reason) for removal in report.removals]
    print("\n".join(_table("removed", ("lines", "why"), removed)), end="\n\n")
    print(safe((written.diff if written else "") + report.patch()), end="")
    backup = f"; backup: {safe_line(str(written.backup))}" if written else ""
    print_note(f"rewrote {safe_line(written.path)}{backup}" if written else "MEMORY.md is unchanged")
    if patch:
        print_note(f"wrote {safe_line(patch)} for the other files: review it, then run `patch -p1 < {PATCH}`")
