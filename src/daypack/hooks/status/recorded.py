"""What the files of a session say about its window, read from their ends without opening the session.

A status only shows: whatever cannot be read is unknown. Nothing is verified, indexed or written.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple, cast

from daypack.history.layout import Home, Layout
from daypack.hooks.status.status import Cache, LastCompaction, RecordedSession, Window
from daypack.memory.project.repository import Project, find_project
from daypack.plain_files import open_fd

LINE_BYTES = 1 << 19  # of the events that a status line looks through
PAGE_BYTES = 1 << 26
_FIRST_BYTES = 1 << 16
_HEAD_BYTES = 200  # of a message: seq and time come first
_MOST_EXAMINED = 200  # sessions of other projects before one of this project
_COMPACTED = ("context.compaction.completed", "import.compacted")
_USAGE, _TURN, _ROW, _UNDONE = "context.usage", "context.turn", "import.row", "context.compaction.undone"
# Of rows of transcripts: Claude Code after a compaction, Codex after every request.
_BOUNDARY, _TOKEN_COUNT = b'"compact_boundary"', b'"token_count"'
_MARKS = (*(f'"type":"{name}"'.encode() for name in (*_COMPACTED, _USAGE, _TURN, _UNDONE)), _BOUNDARY, _TOKEN_COUNT)


class Usage(NamedTuple):
    """What the newest events say."""

    window: Window | None = None
    cache: Cache | None = None
    compaction: LastCompaction | None = None


def find_recorded(home: Home, session: str) -> Layout | None:
    """Return the session that a host names, of whichever agent it is."""
    for agent in home.agents():
        layout = home.session(agent, session)
        if os.path.isfile(layout.messages):
            return layout
    return None


def newest_of(home: Home, project: Project) -> Layout | None:
    """Return the session of a project, of any agent, that was appended to last; not one of a sub-agent."""
    found: list[tuple[int, str, str]] = []
    for agent in home.agents():
        names, folder = home.list(agent), home.sessions(agent)
        known = frozenset(names)
        for name in names:
            if name.rpartition("--")[0] in known:
                continue
            with suppress(OSError):
                found.append((os.stat(f"{folder}/{name}/messages.jsonl").st_mtime_ns, agent, name))
    belongs: dict[str, bool] = {}
    for _, agent, name in sorted(found, reverse=True)[:_MOST_EXAMINED]:
        layout = home.session(agent, name)
        folder = _first_line(layout.cwd)
        if folder not in belongs:
            belongs[folder] = bool(folder) and _key_of(folder) == project.key
        if belongs[folder]:
            return layout
    return None


def _key_of(folder: str) -> str:
    try:
        return find_project(folder).key
    except Exception:  # its .daypack.toml is wrong; another session may be fine
        return ""


def read_recorded(layout: Layout) -> RecordedSession:
    """Return how much of a session is recorded, and since when nothing more."""
    messages, at = _newest_message(layout.messages)
    return RecordedSession(
        layout.agent, layout.name, messages, at, _read_json(layout.derived("recap")).get("title") or ""
    )


def _newest_message(path: str) -> tuple[int, str]:
    """Return the number and the time of the last whole message."""
    for line in _lines_from_the_end(path, PAGE_BYTES):
        head = line[:_HEAD_BYTES]
        number = head.partition(b'"seq":')[2].partition(b",")[0].strip()
        at = head.partition(b'"ts":"')[2].partition(b'"')[0]
        return (int(number) if number.isdigit() else 0), at.decode(errors="replace")
    return 0, ""


def read_usage(layout: Layout, max_bytes: int) -> Usage:
    """Return window, cache and last compaction, as far as the newest events say."""
    newest = _Newest()
    for line in _lines_from_the_end(layout.events, max_bytes):
        if not any(mark in line for mark in _MARKS):
            continue
        event = _parse(line)
        if newest.compaction and event.get("ts") != newest.compaction.at:
            break  # what is before it was about another window
        newest.read(event)
    recap = _read_json(layout.derived("recap"))
    lost, kept = _count(recap, "lost"), recap.get("kept")
    left = max(0, lost - (len(cast("list[object]", kept)) if isinstance(kept, list) else 0))
    compaction = newest.compaction
    if compaction is None and lost:
        compaction = LastCompaction(left=left, through=lost)
    elif compaction and not compaction.through:
        compaction = compaction._replace(left=left, through=lost)
    return Usage(newest.window(), newest.cache, compaction)


class _Newest:
    """Collects what the newest events say, given from the newest to the oldest."""

    def __init__(self) -> None:
        self.cache: Cache | None = None
        self.compaction: LastCompaction | None = None
        self._used: int | None = None
        self._size = 0
        self._undone: set[object] = set()

    def window(self) -> Window | None:
        used = self._used
        if used is None and self.compaction:
            used = self.compaction.after_tokens or None
        return None if used is None else Window(used, self._size)

    def read(self, event: dict[str, Any]) -> None:
        kind, data = event.get("type"), _object(event, "data")
        row = _object(data, "row")
        if self.compaction and (kind not in _COMPACTED or self.compaction.through):
            return  # only the event of a compaction says more than its row
        if kind == _USAGE:
            self._call(_count(data, "input_tokens"), _count(data, "cached_tokens"))
        elif kind == _TURN:
            used = data.get("used")
            self._size = self._size or _count(_object(data, "limits"), "tokens")
            self._call(_integer(cast("list[object]", used)[0]) if isinstance(used, list) and used else 0, None)
        elif kind == _UNDONE:
            self._undone.add(data.get("compaction"))
        elif kind in _COMPACTED and event.get("id") not in self._undone:
            self.compaction = _compaction(event, data)
        elif kind == _ROW and row.get("subtype") == "compact_boundary":
            stated = _object(row, "compactMetadata")
            names = {"trigger": "trigger", "before_tokens": "preTokens", "after_tokens": "postTokens"}
            self.compaction = _compaction(event, {ours: stated.get(theirs) for ours, theirs in names.items()})
        elif kind == _ROW and (info := _object(_object(row, "payload"), "info")):
            usage = _object(info, "last_token_usage")
            self._size = self._size or _count(info, "model_context_window")
            self._call(_count(usage, "input_tokens"), _count(usage, "cached_input_tokens"))

    def _call(self, used: int, cached: int | None) -> None:
        if self._used is None and used:
            self._used = used
            self.cache = None if cached is None else Cache(hit_share=min(1.0, cached / used))


def _compaction(event: dict[str, Any], data: dict[str, Any]) -> LastCompaction:
    through, kept, trigger = _count(data, "through"), data.get("kept"), data.get("trigger")
    staying = len(cast("list[object]", kept)) if isinstance(kept, list) else 0
    return LastCompaction(
        at=str(event.get("ts") or ""),
        trigger=trigger if isinstance(trigger, str) else "",
        left=max(0, through - staying),
        through=through,
        before_tokens=_count(data, "before_tokens"),
        after_tokens=_count(data, "after_tokens"),
    )


# Files


def _lines_from_the_end(path: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the whole lines of a log, newest first, as long as they are within the last bytes."""
    try:
        fd = open_fd(path, os.O_NOFOLLOW)
    except OSError:
        return
    try:
        end = os.fstat(fd).st_size
        least, size = max(0, end - max_bytes), _FIRST_BYTES
        rest, is_whole = b"", False  # the bytes from `end` up to an LF, or to the end of a line that was cut off
        while end > least:
            start = max(least, end - size)
            first, *lines = (os.pread(fd, end - start, start) + rest).split(b"\n")
            if lines and not is_whole:
                lines.pop()
                is_whole = True
            yield from (line for line in reversed(lines) if line)
            rest, end, size = first, start, 4 * size
        if not end and rest and is_whole:
            yield rest
    except OSError:
        return
    finally:
        os.close(fd)


def _first_line(path: str) -> str:
    with suppress(OSError):
        fd = open_fd(path, os.O_NOFOLLOW)
        try:
            return os.fsdecode(os.read(fd, _FIRST_BYTES).partition(b"\n")[0])
        finally:
            os.close(fd)
    return ""


def _read_json(path: str) -> dict[str, Any]:
    data = b""
    with suppress(OSError):
        fd = open_fd(path, os.O_NOFOLLOW)
        try:
            data = os.read(fd, PAGE_BYTES)
        finally:
            os.close(fd)
    return _parse(data)


def _parse(data: bytes) -> dict[str, Any]:
    import json  # noqa: PLC0415 — not msgspec, see `status`

    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _count(fields: dict[str, Any], name: str) -> int:
    return _integer(fields.get(name))


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
