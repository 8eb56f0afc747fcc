"""Find duplicate, stale and overlong text in the prompt files of a workspace, and its cost in tokens."""

import argparse
import os
from collections.abc import Iterable

from daypack.cli.main import EXIT_FAILED
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import colour, counted, json_text, print_note, safe, safe_line, table
from daypack.errors import BadInput
from daypack.files import atomic
from daypack.history.layout import Layout, find_home
from daypack.text.statements.passages import Document, Lines
from daypack.text.tokens import Counter, counter_for, counter_named
from daypack.upkeep.lint.duplicates import Row
from daypack.upkeep.lint.edits import diff
from daypack.upkeep.lint.prompt_texts import (
    BLOCKS,
    MEMORY,
    injected,
    read_others,
    read_state,
    read_text,
    read_workspace,
)
from daypack.upkeep.lint.report import Report, examine
from daypack.upkeep.lint.similarity import open_similarity
from daypack.upkeep.lint.stale_references import Declared, read_declared
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
    folder, documents, unused, counter = _texts(args)
    home = find_home(args.home, args.uid)
    declared = _declared(args.declares)
    report = examine(documents, counter, declared=declared, unused=unused, similarity=open_similarity(home))
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


def _texts(args: argparse.Namespace) -> tuple[str, list[Document], list[str], Counter]:
    """Return the folder, its texts, the names of unused blocks, and the token counter."""
    others = read_others(args.others)
    if args.session is None:
        folder = os.path.abspath(args.workspace or os.curdir)
        nowhere = Layout(folder, os.path.join(folder, *("-",) * 5))
        texts = read_workspace(folder) + injected(folder, nowhere, None, {})
        return folder, texts + others, list(BLOCKS), counter_for(None)
    with open_named(args) as session:
        folder = os.path.abspath(args.workspace) if args.workspace else session.turns.inputs.workspace
        layout, switches = session.history.layout, session.turns.inputs.ledger.read().switches
        texts = read_workspace(folder) if folder else []
        if state := read_state(layout):
            texts = [text for text in texts if text.name != state.name] + [state]
        texts += injected(folder, layout, session.history.config.model, switches)
        unused = [name for name in BLOCKS if not switches.get(name)]
        return folder, texts + others, unused, counter_named(session.history.tokenizer)


def _declared(path: str | None) -> Declared | None:
    text = read_text(path) if path else None
    if path and text is None:
        raise BadInput("no such file", operation="lint", place=path, hint="name a readable file after --declares")
    return read_declared(text, path) if path and text is not None else None


def _as_json(folder: str, report: Report, written: Written | None, patch: str | None) -> dict[str, object]:
    saved = report.before - report.after
    findings = {name: getattr(report, name) for name in ("duplicates", "conflicts", "history", "stale", "examples")}
    return {
        "workspace": folder,
        "clean": report.clean,
        **findings,
        "removals": report.removals,
        "tokens": {"components": report.costs, "before": report.before, "after": report.after, "saved": saved},
        "changes": {name: diff(name, *texts) for name, texts in report.texts.items()},
        "written": written,
        "patch": patch,
    }


def _lines(folder: str, report: Report, *, declared: bool) -> list[str]:
    lines = [safe_line(folder)]
    lines += _table("duplicates", ("concept", "class", "where"), list(map(_row, report.duplicates)))
    if report.conflicts:
        lines += _table("may contradict each other", ("statements", "differ in", "where"), map(_row, report.conflicts))
    history = [(str(Lines(found.first, found.last)), found.reason) for found in report.history]
    lines += _table("session history in MEMORY.md", ("lines", "why"), history)
    stale = [(f"{f.source} {f.lines}", f"no {f.sort} {f.name}") for f in report.stale]
    unknown = "" if declared else "not checked: pass --declares FILE with the existing tools and layers"
    lines += _table("stale", ("lines", "what"), stale, unknown or "nothing")
    examples = [(f"{f.source} {Lines(f.first, f.last)}", f.short or "too long for one line") for f in report.examples]
    lines += _table("examples that can be shortened", ("lines", "short form"), examples)
    costs = [(f"{cost.before:,}", f"{cost.after:,}", cost.component) for cost in report.costs]
    total = (f"{report.before:,}", f"{report.after:,}", "total")
    lines += _table("tokens per turn", ("before", "after", "component"), [*costs, total], right=2)
    return [*lines, f"  {counted(report.before - report.after, 'token')} per turn can be saved"]


def _row(row: Row) -> tuple[str, ...]:
    return row.concept, row.kind + (f" ({', '.join(row.stale)})" if row.stale else ""), ", ".join(map(str, row.places))


def _table(
    title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]], empty: str = "nothing", right: int = 0
) -> list[str]:
    found = list(rows)
    return [
        "",
        colour(title, "dim"),
        *(f"  {line}" for line in (table(head, found, right=right) if found else [empty])),
    ]


def _print_fix(report: Report, written: Written | None, patch: str | None) -> None:
    removed = [(f"{r.source} {Lines(r.first, r.last)}", r.reason) for r in report.removals]
    print("\n".join(_table("removed", ("lines", "why"), removed)), end="\n\n")
    print(safe((written.diff if written else "") + report.patch()), end="")
    if written:
        print_note(f"rewrote {safe_line(written.path)}; backup: {safe_line(str(written.backup))}")
    else:
        print_note("MEMORY.md is unchanged")
    if patch:
        print_note(f"wrote {safe_line(patch)} for the other files: review it, then run `patch -p1 < {PATCH}`")
