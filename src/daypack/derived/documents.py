"""The derived files of compactions: the fold of their events, each file written whole.

    CONTEXT.md  summary.md  facts.jsonl  decisions.jsonl  todo.md  errors.jsonl  refs.jsonl  swap/  compaction.json

`compaction.json` is written last and names the event the others were made from. Where it names another one, or is
missing, the files are made again: a crash between the event and the files, or a deleted folder, costs only time.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from daypack.derived import dedup
from daypack.derived.records import Folded, document
from daypack.derived.swap import chunk_for
from daypack.derived.template import render
from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.history.session import History
from daypack.types.records import Ref, SwapRecord, Todo

NAMES = ("context_doc", "summary", "facts", "decisions", "todo", "errors", "refs")
_INDEX = "index.jsonl"
_CHUNKS = "chunk"
_OUTPUT_REFS = 12  # the largest outputs of the newest compaction that are named in refs.jsonl


def documents(folded: Folded) -> dict[str, bytes]:
    """Return the bytes of each file by its name in the layout."""
    records = folded.records
    task = f"{records.task.text}\n" if records.task else ""
    return {
        "context_doc": render(document(records)).encode(),
        "summary": task.encode(),
        "facts": _lines(records.facts),
        "decisions": _lines(records.decisions),
        "todo": "".join(f"{todo_line(todo)}\n" for todo in records.todos).encode(),
        "errors": _lines(records.errors),
        "refs": _lines((*folded.refs.values(), *swap_refs(folded))),
    }


def todo_line(todo: Todo) -> str:
    """Return one line of todo.md."""
    return f"- [{'x' if todo.done else ' '}] {todo.text} ({todo.id}, {todo.source})"


def write(history: History, folded: Folded) -> None:
    """Bring the files in line with the fold; when all compactions were taken back they go.

    To be called with the session's lock.
    """
    layout, current = history.layout, folded.current
    mark = layout.derived("compaction")
    if current is None:
        dedup.refresh(history, swapped=folded.swapped.values())
        if not folded.undone:
            return  # the other files were not made by a compaction
        for name in NAMES:
            _remove(layout.derived(name))
        _write_swap(history, folded, ())
        _remove(mark)
        return
    atomic.make_folders(layout.context)
    for name, data in documents(folded).items():
        _replace(layout.derived(name), data)
    _write_swap(history, folded, current.swapped)
    dedup.refresh(history, swapped=folded.swapped.values())
    mark_data = {
        "compaction": current.id,
        "source": f"messages:1-{current.through}",
        "before_tokens": current.before_tokens,
        "after_tokens": current.after_tokens,
        "coverage": current.coverage,
        "losses": [f"{loss.reason}: {loss.what}" for loss in current.losses],
        "refresh": current.refresh,
    }
    _replace(mark, msgspec.json.format(msgspec.json.encode(mark_data), indent=2) + b"\n")


def made_from(history: History) -> str | None:
    """Return the event the files were made from, as they say; None when they do not."""
    try:
        data = atomic.read(history.layout.derived("compaction"))
        return None if data is None else msgspec.json.decode(data, type=_Mark).compaction
    except (DaypackError, msgspec.DecodeError, UnicodeError):
        return None


class _Mark(msgspec.Struct):
    compaction: str


def _remove(path: str) -> None:
    if os.path.lexists(path):
        atomic.remove(path)


def _replace(path: str, data: bytes) -> None:
    """Replace a file unless it says the same."""
    if atomic.read(path) != data:
        atomic.replace(path, data, durable=False)


def _lines(records: Iterable[Any]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def swap_refs(folded: Folded) -> list[Ref]:
    """Name what the newest compaction swapped out: the range, and the largest outputs."""
    current = folded.current
    if current is None:
        return []
    outputs = sorted((swap for swap in current.swapped if swap.kind != "message_range"), key=lambda swap: -swap.tokens)
    ranges = [swap for swap in current.swapped if swap.kind == "message_range"]
    return [_ref_of(at, swap) for at, swap in enumerate((*ranges, *outputs[:_OUTPUT_REFS]), 1)]


def _ref_of(at: int, swap: SwapRecord) -> Ref:
    whole = swap.kind == "message_range"  # its chunk is a file
    kind = "swap" if whole else "tool_output"
    source = f"messages:{swap.range}" if swap.range else f"messages:{(swap.event or '').removeprefix('msg-')}"
    path = f"context/swap/chunk/{swap.id}" if whole else f"swap:{swap.id}"
    return Ref(id=f"s{at}", path=path, kind=kind, summary=swap.summary, source=source, tokens=swap.tokens)


def _write_swap(history: History, folded: Folded, newest: Sequence[SwapRecord]) -> None:
    folder = history.layout.derived("swap")
    index = os.path.join(folder, _INDEX)
    if not folded.swapped:
        atomic.discard(index)
        return
    chunks = os.path.join(folder, _CHUNKS)
    atomic.make_folders(chunks, durable=False)
    kept = {swap.id: chunk for swap in newest if swap.kind == "message_range" and (chunk := chunk_for(history, swap))}
    for name, chunk in kept.items():
        # Index after chunk: a reader that sees the name can read the bytes.
        _replace(os.path.join(chunks, name), chunk)
    _replace(index, _lines(folded.swapped.values()))
    for name in os.listdir(chunks):
        if name in folded.swapped and name not in kept:
            atomic.discard(os.path.join(chunks, name))
