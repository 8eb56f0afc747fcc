"""The commands `daypack memory export` and `daypack memory import`."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from warnings import catch_warnings, simplefilter

from daypack.cli.input import read_bytes
from daypack.cli.terminal import Progress, counted, json_text, print_note, safe_line
from daypack.errors import StorageFailed
from daypack.memory.store.port import StoreFeed
from daypack.memory.tools import Memories


def export_archive(memories: Memories, memory_id: str, file: str | None) -> int:
    """Write a memory as JSONL to a file or to standard output, and print what was skipped as damaged."""
    with catch_warnings(record=True) as skipped:  # DamageWarning: every record that is not in the export
        simplefilter("always")
        _write_export(memories, memories.export_memory(memory_id), file)
    for warning in skipped:
        print_note(f"  → {safe_line(str(warning.message))}")
    return 0


def _write_export(memories: Memories, lines: Iterator[bytes], file: str | None) -> None:
    if file is None:
        redacted = sum([_write(line, sys.stdout.buffer.write) for line in lines])
        sys.stdout.flush()
    else:
        from daypack.files.atomic import replace  # noqa: PLC0415 — only for files

        gathered = bytearray()
        written = [_write(line, gathered.extend) for line in lines]
        replace(os.path.abspath(file), bytes(gathered))
        print_note(f"{counted(len(written), 'line')} written to {safe_line(file)}")
        redacted = sum(written)
    if redacted and memories.backend.redacting:
        print_note(f"  → {counted(redacted, 'line')} without secrets; DAYPACK_REDACTION=off exports them as stored")


def _write(line: bytes, write: Callable[[bytes], Any]) -> bool:
    """Write a line; return True if a secret was removed from it."""
    write(line)
    return b"[redacted:" in line


def import_archive(memories: Memories, args: argparse.Namespace) -> int:
    """Store the lines of an export and print what was added."""
    progress = Progress("lines read")

    def lines() -> Iterator[bytes]:
        for number, line in enumerate(read_bytes(args.file, "import").splitlines(keepends=True), 1):
            progress.show(number)
            yield line

    before = {memory.memory_id: memory.stats for memory in memories.memories()}
    memory = memories.import_memory(lines(), title=args.title)
    progress.clear()
    _index(memories, memory.memory_id)
    print(json_text(memory) if args.json else memory.memory_id)
    if not args.json:
        existing = before.get(memory.memory_id)
        entries, documents = memory.stats.entries, memory.stats.documents
        if existing is not None:
            print_note("this memory already exists; new entries and documents were added (use --title for a copy):")
            entries, documents = entries - existing.entries, documents - existing.documents
        print_note(f"{counted(entries, 'entry', 'entries')}, {counted(documents, 'document')}")
    return 0


def _index(memories: Memories, memory_id: str) -> None:
    """Index what was imported: hooks of coding agents find what is indexed, and index only a few entries themselves."""
    feed = StoreFeed(memories.backend.store, memories.user, memory_id)
    with suppress(StorageFailed), memories.backend.indexes.use(feed) as index:  # what is stored, a search indexes
        index.add_words()
