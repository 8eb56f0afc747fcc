"""`daypack import PATH` of a memory store: which paths are stores, and the report on what was imported."""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from daypack.cli.terminal import Progress, counted, print_note, safe_line, shell_word
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.importers.all_places.memory_stores import ImportedMemories, fill_memories
from daypack.importers.formats import find_files, is_of_format
from daypack.importers.stores.systems import SYSTEMS, Store, detect_store, open_store

_MOST_PROBLEMS = 10


def find_stores(format: str | None, paths: Sequence[str]) -> dict[str, Store]:  # noqa: A002 — the word of the command
    """Return the paths that are memory stores; a path that is or has a transcript is none."""
    if format in SYSTEMS:
        return {path: open_store(path, format or "") for path in paths}
    if format:
        return {}
    found = {path: _detect(path) for path in paths if os.path.exists(path)}
    return {path: store for path, store in found.items() if store}


def import_stores(args: argparse.Namespace, stores: Sequence[Store]) -> list[dict[str, Any]]:
    """Import stores, print what each has brought unless it is wanted as JSON, and return the reports."""
    for name in ("session", "trust_system"):
        if getattr(args, name):
            problem = (
                f"--{name.replace('_', '-')} is for transcripts, and {safe_line(stores[0].path)} is a memory store"
            )
            raise BadInput(problem, operation="import", place="arguments", hint=f"daypack import {stores[0].path}")
    home = find_home(args.home, args.uid)
    reports: list[dict[str, Any]] = []
    for store in stores:
        progress = Progress(f"memories of {safe_line(os.path.basename(store.path))} imported")
        try:
            brought = fill_memories(home, store, progress=progress.show)
        finally:
            progress.clear()
        reports.append(_as_json(store, brought))
        if not args.json:
            _print(store, brought)
    return reports


def _detect(path: str) -> Store | None:
    if os.path.isdir(path):
        is_transcript = any(is_of_format(None, file) for file in find_files(None, path))
    else:
        is_transcript = is_of_format(None, path)
    return None if is_transcript else detect_store(os.path.abspath(path))


def _print(store: Store, brought: ImportedMemories) -> None:
    source = f"{safe_line(store.path)} ({store.system.name})"
    for filled in brought.filled:
        new = f"{counted(filled.new_entries, 'new entry', 'new entries')}"
        print(f"{source} → {safe_line(filled.title)}: {counted(filled.memories, 'memory', 'memories')}, {new}")
    if not brought.filled:
        print(f"{source}: no memory to import")
    if brought.left_out:
        what = f"{brought.left_out:,} of {counted(brought.stored, 'memory', 'memories')} left out"
        print_note(f"  → {what}; why: daypack audit {shell_word(store.path)}")
    for memory_id in brought.hidden:
        print_note(f"  → a memory that you hid here was not filled; daypack memory erase {memory_id} --restore")
    for kind, problems in (("refused", brought.refused), ("unreadable", brought.unreadable)):
        for problem in problems[:_MOST_PROBLEMS]:
            print(f"  {kind}: {safe_line(problem)}")
        if len(problems) > _MOST_PROBLEMS:
            print(f"  … and {len(problems) - _MOST_PROBLEMS:,} more; --json lists all")


def _kept(brought: ImportedMemories) -> int:
    return sum(filled.memories for filled in brought.filled)


def _as_json(store: Store, brought: ImportedMemories) -> dict[str, Any]:
    return {
        "path": store.path,
        "system": store.system.name,
        "stored": brought.stored,
        "kept": _kept(brought),
        "new_entries": brought.entries,
        "memories": [filled._asdict() for filled in brought.filled],
        "left_out": brought.left_out,
        "hidden": list(brought.hidden),
        "refused": list(brought.refused),
        "unreadable": list(brought.unreadable),
    }
