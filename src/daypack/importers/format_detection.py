"""Read transcript files and detect their formats from the first lines."""

from collections.abc import Callable
from contextlib import closing, suppress
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec

from daypack.importers.lines import FileLines, unreadable
from daypack.importers.opencode_store import is_database, is_store
from daypack.importers.readers import (
    claude_code,
    codex,
    codex_tui_log,
    copilot,
    gemini,
    openai_chat,
    opencode,
    qwen,
    swe_agent,
)
from daypack.importers.readers.codex_history.store import is_history
from daypack.importers.readers.openhands import conversation as openhands
from daypack.importers.transcript import Row, parse_row

HEAD_LINES = 100


class Sample(NamedTuple):
    """The first lines of a file as rows, and its JSON value if the file is a single document."""

    path: str
    rows: tuple[Row, ...]
    document: Any = None


def read_sample(path: str) -> Sample:
    """Read the first lines of a file, or all of it if the first line alone is not JSON; nothing of a database."""
    if is_history(path) or is_database(path):
        return Sample(path, ())
    with closing(FileLines(path).read()) as lines:
        head = [parse_row(number, line.raw) for number, line in enumerate(islice(lines, HEAD_LINES), 1)]
        rows = tuple(row for row in head if row.raw.strip())
        if not rows:
            raise unreadable(path, "is empty", "give a transcript")
        if len(rows) == 1:
            return Sample(path, rows, rows[0].value)
        if not rows[0].problem:
            return Sample(path, rows)
        prefix = b"\n".join(row.raw for row in head)
        document = None
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            document = msgspec.json.decode(b"\n".join((prefix, *(line.raw for line in lines))))
    return Sample(path, rows if document is None else (), document)


def detect_formats(sample: Sample) -> dict[str, int]:
    """Return the formats a file may have, each with the number of sampled rows that show it; empty if unknown."""
    if is_history(sample.path):
        return {codex.FORMAT: 1}
    if is_store(sample.path):
        return {opencode.FORMAT: 1}
    if openhands.is_conversation(sample.path, sample.document) or openhands.is_trajectory(sample.document):
        return {openhands.FORMAT: 1}
    detectors: dict[str, Callable[[Row], bool]] = {
        claude_code.FORMAT: lambda row: claude_code.is_row(row) and not qwen.is_row(row),
        codex.FORMAT: lambda row: codex.is_row(row) or codex_tui_log.is_row(row),
        copilot.FORMAT: copilot.is_row,
        gemini.FORMAT: gemini.is_row,
        qwen.FORMAT: qwen.is_row,
    }
    counts = {name: sum(map(matches, sample.rows)) for name, matches in detectors.items()}
    if found := {name: count for name, count in counts.items() if count}:
        return found
    if gemini.is_document(sample.document):
        return {gemini.FORMAT: 1}
    if swe_agent.is_document(sample.document):
        return {swe_agent.FORMAT: 1}
    values = [row.value for row in sample.rows] or [sample.document]
    chats = sum(map(_is_chat, values))
    return {openai_chat.FORMAT: chats} if chats else {}


def _is_chat(value: object) -> bool:
    if _is_memory(value):
        return False
    if openai_chat.is_message(value) or openai_chat.is_conversation(value):
        return True
    return isinstance(value, list) and any(map(openai_chat.is_conversation, cast(list[object], value)))


def _is_memory(value: object) -> bool:
    """Return True if a value is of a memory store: a memory of mem0, which may have a role, or an agent of Letta."""
    first = next(iter(cast(list[object], value)), None) if isinstance(value, list) else value
    fields = cast(dict[str, object], first) if isinstance(first, dict) else {}
    is_of_mem0 = isinstance(fields.get("memory"), str) and "content" not in fields
    return is_of_mem0 or isinstance(fields.get("core_memory"), list)
