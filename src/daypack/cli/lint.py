"""Find duplicate, stale and overlong text in the prompt files of a workspace, and its cost in tokens."""

import argparse
import os

from daypack.cli.main import EXIT_FAILED
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import colour, counted, json_text, print_note, safe, safe_line, table
from daypack.errors import BadInput
from daypack.files import atomic
from daypack.history.layout import Layout, find_home
from daypack.text.tokens import Counter, counter_for, counter_named
from daypack.upkeep.lint.edits import diff
from daypack.upkeep.lint.passages import Document, Lines
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
from daypack.upkeep.lint.stale_references import Declared, read_declared
from daypack.upkeep.reflect.reflector import Reflector, Written

PATCH = "daypack-lint.patch"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "workspace", nargs="?", help="folder to check (default: the workspace of the session, else this folder)"
    )
    parser.add_argument(
        "--session", metavar="NAME", help="also check the instruction blocks and the CONTEXT.md of this session"
    )
    parser.add_argument(
        "--with",
        action="append",
        default=[],
        dest="others",
        metavar="FILE",
        help="another file that is part of the prompt; may be repeated",
    )
    parser.add_argument(
        "--declares", metavar="FILE", help="file that lists the existing tools and layers, under [tools] and [layers]"
    )
    parser.add_argument("--fix", action="store_true", help=f"rewrite MEMORY.md, and write {PATCH} for the other files")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Print the report, and fix if asked; exit code 1 if there are findings that were not fixed."""
    folder, documents, unused, counter = _texts(args)
    report = examine(documents, counter, declared=_declared(args.declares), unused=unused)
    written, patch = _fix(args, folder, report) if args.fix else (None, None)
    if args.json:
        print(json_text(_as_json(folder, report, written, patch)))
    else:
        print("\n".join(_lines(folder, report, declared=bool(args.declares))))
        if args.fix:
            _print_fix(written, patch)
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
    if path is None:
        return None
    text = read_text(path)
    if text is None:
        raise BadInput("no such file", operation="lint", place=path, hint="name a readable file after --declares")
    return read_declared(text, path)


def _fix(args: argparse.Namespace, folder: str, report: Report) -> tuple[Written | None, str | None]:
    written = patch = None
    if MEMORY in report.texts:
        written = Reflector(folder, find_home(args.home, args.uid)).rewrite(*report.texts[MEMORY])
    if text := report.patch():
        patch = os.path.join(folder, PATCH)
        atomic.publish(patch, text.encode())
    return written, patch


def _as_json(folder: str, report: Report, written: Written | None, patch: str | None) -> dict[str, object]:
    return {
        "workspace": folder,
        "clean": report.clean,
        "duplicates": report.duplicates,
        "history": report.history,
        "stale": report.stale,
        "examples": report.examples,
        "removals": report.removals,
        "tokens": {
            "components": report.costs,
            "before": report.before,
            "after": report.after,
            "saved": report.before - report.after,
        },
        "changes": {name: diff(name, *texts) for name, texts in report.texts.items()},
        "written": written,
        "patch": patch,
    }


def _lines(folder: str, report: Report, *, declared: bool) -> list[str]:
    lines = [safe_line(folder), "", colour("duplicates", "dim")]
    rows = [
        (row.concept, row.kind + (f" ({', '.join(row.stale)})" if row.stale else ""), ", ".join(map(str, row.places)))
        for row in report.duplicates
    ]
    lines += _table(("concept", "class", "where"), rows)
    lines += ["", colour("session history in MEMORY.md", "dim")]
    lines += _table(
        ("lines", "why"), [(_line_range(found.first, found.last), found.reason) for found in report.history]
    )
    lines += ["", colour("stale", "dim")]
    if declared:
        stale = [
            (f"{found.source} {_line_range(found.first, found.last)}", f"no {found.sort} {found.name}")
            for found in report.stale
        ]
        lines += _table(("lines", "what"), stale)
    else:
        lines.append("  not checked: pass --declares FILE with the existing tools and layers")
    lines += ["", colour("examples that can be shortened", "dim")]
    examples = [
        (f"{found.source} {_line_range(found.first, found.last)}", found.short or "too long for one line")
        for found in report.examples
    ]
    lines += _table(("lines", "short form"), examples)
    lines += ["", colour("tokens per turn", "dim")]
    costs = [(f"{cost.before:,}", f"{cost.after:,}", cost.component) for cost in report.costs]
    total = (f"{report.before:,}", f"{report.after:,}", "total")
    lines += [f"  {line}" for line in table(("before", "after", "component"), [*costs, total], right=2)]
    lines.append(f"  {counted(report.before - report.after, 'token')} per turn can be saved")
    return lines


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"  {line}" for line in table(head, rows)] if rows else ["  nothing"]


def _line_range(first: int, last: int) -> str:
    return str(Lines(first, last))


def _print_fix(written: Written | None, patch: str | None) -> None:
    print()
    if written:
        print(safe(written.diff), end="")
        print_note(f"rewrote {safe_line(written.path)}; backup: {safe_line(str(written.backup))}")
    else:
        print_note("MEMORY.md is unchanged")
    if patch:
        print_note(f"wrote {safe_line(patch)} for the other files: review it, then run `patch -p1 < {PATCH}`")
