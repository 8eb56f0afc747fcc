"""References to files and artifacts: those that the prefix shows, from context/refs.jsonl."""

import os
from collections.abc import Iterator
from heapq import nsmallest

from msgspec.json import Decoder

from daypack.derived.swap import SHORT_ID
from daypack.history.layout import Layout
from daypack.turn.items import Missing
from daypack.turn.policy import MAX_REF_CHARS, MIN_REF_CHARS
from daypack.turn.survey.sources import Found, derived_item, read_records
from daypack.types.names import one_line
from daypack.types.records import Ref
from daypack.types.source import is_source_ref

_TOUCHED = ("read", "written", "created", "deleted", "failed")
_MAX_QUESTIONS = 2  # about files that no longer exist
_LINE_CHARS = 12  # of a line: its id, its kind and what separates them
_MOST_SHOWN = MAX_REF_CHARS // _LINE_CHARS + 1


class Refs:
    """The references of one session. A long session has thousands, so the file is only read after it changed."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._version: tuple[int, ...] | None = None
        self._count = 0
        self._newest: list[tuple[int, Ref]] = []  # with their lines, the most recently used first
        self._missing: list[Missing] = []

    def find(self, workspace: str, room_tokens: int) -> Iterator[Found]:
        """Return the references that fit a part of the room, and questions about files that are gone."""
        self._refresh()
        yield from self._missing
        if not self._newest:
            return
        # The most recently used ones; the others are found by search.
        shown: list[tuple[int, Ref]] = []
        chars = max(MIN_REF_CHARS, min(MAX_REF_CHARS, room_tokens // 5))
        for line, ref in self._newest:
            chars -= len(_short(ref.path, workspace)) + len(ref.summary) + _LINE_CHARS
            if shown and chars < 0:
                break
            shown.append((line, ref))
        gone = [ref for _, ref in shown if _is_gone(ref, workspace)]
        for ref in gone[:_MAX_QUESTIONS]:
            question = f"Where is {ref.path}? The pack refers to it ({ref.id}), and it does not exist."
            yield Missing(id=f"ref:{ref.id}", question=question, severity="low", requested=_source(ref.path))
        lines = [
            one_line(f"- {ref.id} {ref.kind} {_short(ref.path, workspace)}: {ref.summary}") for _, ref in sorted(shown)
        ]
        if self._count > len(shown):
            lines.append(f"- {self._count - len(shown)} older references are in context/refs.jsonl")
        yield derived_item(self._layout, "refs", "refs", "\n".join(lines), (80, 0.5))

    def _refresh(self) -> None:
        """Read the file if it is not the one that was read last."""
        version = _version(self._layout.derived("refs"))
        if version is None or version != self._version:
            refs, self._missing = read_records(self._layout, "refs", Ref)
            self._count = len(refs)
            self._newest = nsmallest(_MOST_SHOWN, enumerate(refs), key=lambda numbered: _order(numbered[1]))
            self._version = version


def _version(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None  # reading it reports the problem
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _order(ref: Ref) -> tuple[bool, int]:
    """Sort by last use; files that were only listed or named come after those that were read or written."""
    return not any(verb in ref.summary for verb in _TOUCHED) and ref.kind == "file", -_last(ref.source)


def _last(source: str | None) -> int:
    digits = (source or "").rpartition(":")[2].rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 1 << 60


def _short(path: str, workspace: str) -> str:
    """Return a short path: relative to the workspace, ids by their first characters."""
    inside = path.removeprefix(workspace.rstrip(os.sep) + os.sep) if workspace else path
    at = inside.find("sha256-")
    return inside[: at + SHORT_ID] if at >= 0 else inside


def _is_gone(ref: Ref, workspace: str) -> bool:
    if ref.kind != "file" or "://" in ref.path or "deleted" in ref.summary:
        return False
    path = os.path.join(workspace or os.sep, ref.path)
    if os.path.isabs(ref.path) and not os.path.exists(os.path.dirname(path)):
        return False  # a path of another machine
    return not os.path.exists(path)


# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_WARM = Decoder(Ref)


def _source(path: str) -> str:
    """Return a path as a source ref: a name alone could be anything."""
    return path if is_source_ref(path) else f"./{path}"
