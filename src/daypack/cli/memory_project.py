"""The command `daypack memory project`: which memory the project in this folder has."""

import argparse
import os

from msgspec import Struct
from msgspec.structs import replace

from daypack.cli.terminal import json_text, print_note, safe_line
from daypack.errors import BadInput, MemoryMissing
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.memory.project.memory import USER, choose_memory, ensure_memory, expected_memory, read_project_file
from daypack.memory.project.repository import Project, find_project
from daypack.memory.store.port import is_id
from daypack.memory.tools import Memories, open_memory


class Report(Struct, frozen=True, kw_only=True):
    """A project and its memory. `problem`: why it has none now; then `memory_id` is what a new one gets.

    `decided_by` is the path of a .daypack.toml, "--set", or "" for the project's own memory.
    """

    key: str
    name: str
    folder: str
    memory_id: str
    title: str = ""
    entries: int = 0
    problem: str = ""
    hint: str = ""
    decided_by: str = ""


def run_project(args: argparse.Namespace) -> int:
    """Show the project of the current folder and its memory, or choose a memory for it."""
    home, project = find_home(args.home, args.uid), find_project(os.getcwd())
    with open_memory(home=home.root, uid=home.uid, user=USER) as memories:
        if args.chosen or args.reset:
            _check_undecided(project)
            choose_memory(home, project, memories.find_memory(args.chosen) if args.chosen else None)
        report = memories.backend.shown(_report(memories, home, project))
    if args.json:
        print(json_text(report))
        return 0
    for label, value in _facts(report):
        print(f"{label:<11} {safe_line(value)}")
    hint = report.hint or "`daypack memory search QUERY` searches it, `daypack memory show` shows its newest entries"
    print_note(f"  → {safe_line(hint)}")
    return 0


def _check_undecided(project: Project) -> None:
    """Refuse a choice that .daypack.toml would make useless."""
    if project.off or project.memory is not None:
        problem, hint = "this file says which memory the project has", "change it there, or remove memory from it"
        raise BadInput(problem, operation="memory project", place=project.settings, hint=hint)


def _report(memories: Memories, home: Home, project: Project) -> Report:
    report = Report(key=project.key, name=project.name, folder=project.top, memory_id="")
    stored = read_project_file(home, project)
    chosen = "--set" if stored and stored.chosen else ""
    report = replace(report, decided_by=project.settings if project.off or project.memory else chosen)
    try:
        memory = memories.get_memory(ensure_memory(memories, home, project, create=False))
    except MemoryMissing as error:
        expected = expected_memory(home, project)
        return replace(
            report, memory_id=expected if is_id(expected) else "", problem=error.problem, hint=error.hint or ""
        )
    return replace(report, memory_id=memory.memory_id, title=memory.title, entries=memory.stats.entries)


def _facts(report: Report) -> list[tuple[str, str]]:
    facts = [("project", report.name), ("key", report.key), ("folder", report.folder)]
    if report.problem:
        facts.append(("memory", f"none: {report.problem}"))
    else:
        facts += [("memory", f"{report.memory_id}  {report.title}"), ("entries", f"{report.entries:,}")]
    return facts + ([("decided by", report.decided_by)] if report.decided_by else [])
