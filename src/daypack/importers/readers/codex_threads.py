"""Which rollout files of Codex belong together: each sub-agent is a thread with a file of its own.

    {"type":"session_meta","payload":{"id":"<thread>","session_id":"<session>","thread_source":"subagent",…}}

The files of a day are in one folder, named by the ids of their threads, which grow with time. Codex may compress old
ones (`.jsonl.zst`). A session that is resumed on another day stays in its file; the files of its new sub-agents are in
the folder of that day.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from daypack.errors import BadInput, ExtraMissing
from daypack.importers.lines import FileLines, Line
from daypack.importers.transcript import object_of, parse_row, text_of
from daypack.plain_files import open_plain

_THREAD = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl(?:\.zst)?$")
_DAY = re.compile(r"\d{4}/\d\d/\d\d$")
_MAX_BYTES = 1 << 20  # of a first row, which has the instructions of the session
_known: dict[str, "Thread"] = {}  # a first row never changes


class Thread(NamedTuple):
    """The thread of a file, and the session it is a sub-agent of; empty if it is the session itself."""

    id: str
    parent: str = ""


def thread_of(payload: dict[str, Any]) -> Thread | None:
    """Return the thread that the first row of a file names."""
    thread = text_of(payload.get("id"))
    if thread is None:
        return None
    is_sub_agent = payload.get("thread_source") == "subagent" or "subagent" in object_of(payload.get("source"))
    parent = text_of(payload.get("session_id")) or text_of(payload.get("parent_thread_id")) if is_sub_agent else None
    return Thread(thread, parent if parent and parent != thread else "")


def thread_in(path: str) -> str:
    """Return the thread that the name of a rollout file has; "" if it has none."""
    thread = _THREAD.search(path)
    return thread[1] if thread else ""


def find_sub_agents(path: str, session: str) -> Iterator[str]:
    """Yield the files of a session's sub-agents that are beside its file, or in the folder of its last day."""
    for folder in _folders(path):
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            thread = _THREAD.search(file)
            if thread and thread[1] > session:
                found = read_thread(os.path.join(folder, file))
                if found and found.parent == session:
                    yield os.path.join(folder, file)


def find_session(path: str) -> str | None:
    """Return the file of the session that a sub-agent's file belongs to; None if it is no sub-agent's."""
    thread = read_thread(path) if _THREAD.search(path) else None
    if thread is None or not thread.parent:
        return None
    folder = os.path.dirname(os.path.abspath(path))
    days = [folder]
    if _DAY.search(folder):
        root = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
        days += [found for found, folders, _ in os.walk(root) if not folders and found != folder]
    for day in days:
        for file in os.listdir(day):
            if file.endswith((f"{thread.parent}.jsonl", f"{thread.parent}.jsonl.zst")):
                return os.path.join(day, file)
    return None


def read_thread(path: str) -> Thread | None:
    """Return the thread of a file, from its first row."""
    if path not in _known:
        line = _first_line(path)
        fields = parse_row(1, line.raw).fields if line.complete and b'"session_meta"' in line.raw else {}
        thread = thread_of(object_of(fields.get("payload")))
        if thread is None:
            return None
        _known[path] = thread
    return _known[path]


def _first_line(path: str) -> Line:
    """Return the first line of a file; an incomplete one if it cannot be read."""
    nothing = Line(b"", complete=False)
    if path.endswith(".jsonl"):
        try:
            with open_plain(path) as file:
                line = file.readline(_MAX_BYTES)
        except OSError:
            return nothing
        return Line(line, line.endswith(b"\n"))
    try:
        with closing(FileLines(path).read()) as lines:
            return next(lines, nothing)
    except (BadInput, ExtraMissing):
        return nothing


def _folders(path: str) -> Iterator[str]:
    folder = os.path.dirname(os.path.abspath(path))
    yield folder
    if _DAY.search(folder):
        root = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
        last = time.localtime(os.stat(path).st_mtime)
        newest = os.path.join(root, time.strftime("%Y/%m/%d", last))
        if newest != folder:
            yield newest
