"""The health of a home: its store, hook failures, disk use, search indexes; and the findings of doctor."""

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from daypack import __version__
from daypack.errors import BadInput, DaypackError, SessionMissing
from daypack.files import read_only
from daypack.files.offsets import HEADER, SLOT
from daypack.history.layout import Home, Layout
from daypack.history.sessions import Found
from daypack.hooks import failures
from daypack.memory.search.lookup import WORDS
from daypack.search.fts_tables import FtsTables
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.text.redact.records import redact_any
from daypack.upkeep.doctor import Finding, examine_session
from daypack.upkeep.find.index import read_sessions

if TYPE_CHECKING:
    from sqlite3 import Connection

_SECONDS = 1.0  # for one request to count files, or to examine sessions
_INDEX_SECONDS = 0.3  # to compare the search indexes of sessions with their logs
_BUSY_SECONDS = 0.2  # for a process that writes to an index
_LINES = 20  # of hook failures
_MEMORIES = "memories"  # the cursor of the last step of doctor
_SEARCH = "search.sqlite"


def show_health(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return the state of a home in figures."""
    indexes = [_find_index(home.home), _memory_indexes(home, asked.viewer.user), _session_indexes(home.home)]
    usage = _DiskUse(home.home, time.monotonic() + _SECONDS)
    return {
        "store": _check_store(home),
        "hooks": _hook_failures(home.home),
        "disk": usage.rows(),
        "incomplete": usage.incomplete,
        "indexes": indexes,
        "version": __version__,
        "python": platform.python_version(),
        "home": home.home.sessions_place,
    }


def _check_store(home: OpenedHome) -> dict[str, Any]:
    """Look whether the memories can be read and written, where they are, and whether index jobs were given up."""
    server = home.memories.backend.server if home.memories is not None else None
    place = None if server is None else server.database.place
    problem = None
    try:
        if home.memories is not None:
            home.memories.backend.check()
        if server is not None and (dead := server.jobs.counts().dead):
            problem = f"{dead:,} index jobs were given up; `daypack doctor` lists them"
        elif home.memories is not None and (failed := home.memories.backend.index_problem):
            problem = f"the search index: {redact_any(failed)}; it is tried again"
        elif server is not None and server.copy is not None and (trouble := server.copy.reads.replica.problem):
            problem = f"the replica is not used: {redact_any(trouble)}; the primary answers"
    except DaypackError as error:
        problem = redact_any(str(error))
    return {"ok": problem is None, "problem": problem, "place": place}


def _hook_failures(home: Home) -> dict[str, Any]:
    paths = os.path.join(home.folder, failures.LOG), failures.fallback_log()
    recent = [found for found in map(failures.read_recent, paths) if found]
    lines = sorted((line for path in paths for line in failures.read_lines(path, _LINES)), reverse=True)[:_LINES]
    return {
        "number": sum(found.number for found in recent),
        "since": min((found.since for found in recent), default=None),
        "newest": max((found.newest.partition(" ")[0] for found in recent), default=None),
        "lines": redact_any(lines),
    }


# Disk use


class _DiskUse:
    """The sizes of the files of a home by what they are; not all of them if counting takes too long."""

    def __init__(self, home: Home, deadline: float) -> None:
        self.incomplete = False
        self._deadline = deadline
        self._bytes = dict.fromkeys(_KINDS, 0)
        self._files = dict.fromkeys(_KINDS, 0)
        self._count(home.folder, ())

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each kind of files, in a fixed order."""
        kinds = [kind for kind in _KINDS if kind != _CACHES or self._files[kind]]  # most homes have none
        return [{"what": kind, "bytes": self._bytes[kind], "files": self._files[kind]} for kind in kinds]

    def _count(self, folder: str, parts: tuple[str, ...]) -> None:
        below: list[str] = []
        with suppress(OSError), os.scandir(folder) as entries:  # removed meanwhile, or of another user
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
                else:
                    kind = _kind_of((*parts, entry.name))
                    with suppress(OSError):
                        self._bytes[kind] += entry.stat(follow_symlinks=False).st_size
                        self._files[kind] += 1
        # Sessions, of which there may be many, are counted last.
        for name in sorted(below, key=lambda name: (not parts and name in ("agent", "store"), name)):
            if time.monotonic() > self._deadline:
                self.incomplete = True
                return
            self._count(os.path.join(folder, name), (*parts, name))


_LOGS, _BLOBS, _DERIVED = "logs of sessions", "blobs of sessions", "derived files of sessions"
_SESSION_INDEXES, _FIND_INDEX = "search indexes of sessions", "index of find"
_STORE, _MEMORY_INDEXES = "memory store", "search indexes of memories"
_AUDIT, _MODELS, _OTHER = "audit log", "models", "other files"
_CACHES = "caches of sessions in a database"
_KINDS = (
    *(_LOGS, _BLOBS, _DERIVED, _SESSION_INDEXES, _FIND_INDEX),
    *(_CACHES, _STORE, _MEMORY_INDEXES, _AUDIT, _MODELS, _OTHER),
)
_SESSION_DEPTH = 4  # agent/<agent>/session/<session>


def _kind_of(parts: tuple[str, ...]) -> str:
    """Return what a file is, by its path in the home."""
    top = parts[0]
    if top == "memory":
        return _MEMORY_INDEXES if parts[1] == "index" else _STORE
    if top != "agent":
        return {"store": _CACHES, "find": _FIND_INDEX, "audit": _AUDIT, "model": _MODELS}.get(top, _OTHER)
    if len(parts) <= _SESSION_DEPTH or parts[2] != "session":
        return _OTHER
    within = parts[_SESSION_DEPTH:]
    if within[0] == "blob":
        return _BLOBS
    if within[0] == "context":
        return _SESSION_INDEXES if within[-1].startswith(_SEARCH) else _DERIVED
    return _LOGS


# Search indexes


class _Log(NamedTuple):
    """A session and the status of its messages.jsonl."""

    session: Found
    status: os.stat_result


def _logs(home: Home) -> list[_Log]:
    """Return the sessions, those that were written last first."""
    found: list[_Log] = []
    home = home.here
    for agent in home.agents():
        with suppress(DaypackError):  # a folder of another agent may be unreadable
            for name in home.list(agent):
                with suppress(OSError):
                    path = os.path.join(home.sessions(agent), name, "messages.jsonl")
                    found.append(_Log(Found(agent, name), os.lstat(path)))
    return sorted(found, key=lambda log: (-log.status.st_mtime_ns, log.session))


def _find_index(home: Home) -> dict[str, Any]:
    rows = _read(home.find_index, read_sessions)
    if rows is None:
        return _state(_FIND_INDEX, home.find_index, "the next search over all sessions builds it")
    known = {row.key: (row.inode, row.size, row.changed) for row in rows}
    logs = _logs(home)
    current = sum(
        known.get(tuple(log.session)) == (log.status.st_ino, log.status.st_size, log.status.st_mtime_ns) for log in logs
    )
    return _progress(_FIND_INDEX, current, len(logs), "sessions are indexed; the next search adds the others")


def _memory_indexes(home: OpenedHome, user: str) -> dict[str, Any]:
    """Compare the indexes of the user's memories with the store."""
    if home.memories is None:
        return _row(_MEMORY_INDEXES, "missing", "there are no memories")
    memories = home.memories.as_user(user)
    current = total = 0
    try:
        if (server := memories.backend.server) is not None:
            jobs = server.jobs.counts()
            waiting = jobs.due + jobs.leased + jobs.retrying
            words = f"{waiting:,} index jobs wait, {jobs.dead:,} were given up"
            return _row(_MEMORY_INDEXES, "behind" if waiting or jobs.dead else "current", words)
        for memory in memories.memories():
            newest = memories.backend.store.newest(user, memory.memory_id).entries
            path = os.path.join(home.home.memory_indexes, memory.memory_id, WORDS)
            total += 1
            current += not newest or (_read(path, lambda file: FtsTables(file).totals().newest) or 0) >= newest
    except DaypackError as error:
        return _row(_MEMORY_INDEXES, "damaged", str(error))
    return _progress(_MEMORY_INDEXES, current, total, "memories are indexed; searching the others indexes them")


def _session_indexes(home: Home) -> dict[str, Any]:
    """Compare the indexes of sessions with their logs, those written last first, as many as there is time for."""
    deadline = time.monotonic() + _INDEX_SECONDS
    compared = current = 0
    for log in _logs(home):
        layout = home.session(*log.session)
        path = layout.derived("search")
        if os.path.exists(path):
            compared += 1
            current += bool(_read(path, partial(_covers, lines=_lines(layout))))
        if time.monotonic() > deadline:
            break
    if not compared:
        return _row(_SESSION_INDEXES, "missing", "a session is indexed when its history is first searched")
    words = "session indexes are complete; the next search in a session adds what is new"
    return _progress(_SESSION_INDEXES, current, compared, words)


def _covers(file: "Connection", lines: int) -> bool:
    tables = FtsTables(file)
    return tables.totals().newest >= lines and tables.gap() is None


def _lines(layout: Layout) -> int:
    """Return how many lines the log of a session has, by its sidecar."""
    try:
        return (os.stat(layout.index("messages")).st_size - HEADER.size) // SLOT.size
    except OSError:
        return 0


def _read(path: str, work: "Callable[[Connection], Any]") -> Any:  # noqa: ANN401 — what `work` returns
    """Return what a function reads from an index; None if the file is missing or cannot be read."""
    import sqlite3  # noqa: PLC0415 — 5 ms

    if not os.path.exists(path):
        return None
    try:
        with closing(read_only.connect(path, seconds=_BUSY_SECONDS)) as file:
            return work(file)
    except (sqlite3.Error, OSError, DaypackError, TypeError, ValueError):  # another format, or damaged
        return None


def _progress(what: str, current: int, total: int, words: str) -> dict[str, Any]:
    state = "current" if current == total else "behind"
    return _row(what, state, f"{current:,} of {total:,} {words.partition(';')[0] if state == 'current' else words}")


def _state(what: str, path: str, remedy: str) -> dict[str, Any]:
    """Return the row of an index that could not be read."""
    if os.path.exists(path):
        return _row(what, "damaged", f"it cannot be read; {remedy}")
    return _row(what, "missing", remedy)


def _row(what: str, state: str, words: str) -> dict[str, Any]:
    return {"what": what, "state": state, "words": words}


# Doctor


def examine(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Examine sessions for about a second, those written last first, and the memories at the end.

    `examined` counts the steps since the first request, of which the memories are the last.
    """
    place, logs = home.home, _logs(home.home)
    start = at = _start(logs, asked.text("cursor", ""))
    deadline, findings = time.monotonic() + _SECONDS, list[dict[str, Any]]()
    if start == len(logs):
        findings += (_finding(found, None) for found in _examine_rest(place))
        return {"examined": len(logs) + 1, "total": len(logs) + 1, "findings": findings, "next": None}
    while at == start or (at < len(logs) and time.monotonic() < deadline):
        session = logs[at].session
        findings += (_finding(found, session) for found in _examine_session(place, session))
        at += 1
    following = _cursor(logs[at]) if at < len(logs) else _MEMORIES
    return {"examined": at, "total": len(logs) + 1, "findings": findings, "next": following}


def _start(logs: list[_Log], cursor: str) -> int:
    """Return the position of the session that a cursor names; if that has changed since, of the next older one."""
    if cursor in ("", _MEMORIES):
        return len(logs) if cursor else 0
    moment, colon, name = cursor.partition(":")
    if not (colon and moment.isascii() and moment.isdigit() and "/" in name):
        raise BadInput("cursor is not one of doctor", operation="doctor", place="cursor", hint="leave it out to begin")
    agent, _, session = name.partition("/")
    wanted = -int(moment[:20]), Found(agent, session)
    return sum((-log.status.st_mtime_ns, log.session) < wanted for log in logs)


def _cursor(log: _Log) -> str:
    return f"{log.status.st_mtime_ns}:{log.session}"


def _examine_session(home: Home, session: Found) -> Iterator[Finding]:
    examine = examine_session if home.database is None else _examine_stored
    try:
        yield from examine(home.session(*session))
    except SessionMissing:
        return  # deleted since it was listed
    except DaypackError as error:
        yield Finding("damage", error.place, error.problem, error.hint)


def _examine_stored(layout: Layout) -> Iterator[Finding]:
    from daypack.upkeep.stored_doctor import examine_stored  # noqa: PLC0415 — few have a database

    return examine_stored(layout)


def _examine_rest(home: Home) -> list[Finding]:
    """Examine the memories, interrupted restores and the settings of hooks, as `daypack doctor` does."""
    from daypack.hooks.setup.silenced import find_silenced  # noqa: PLC0415 — only for this step
    from daypack.upkeep.backup.restore_plan import leftover  # noqa: PLC0415
    from daypack.upkeep.store_doctor.database import examine_store  # noqa: PLC0415

    silenced = [Finding("warning", found.place, found.problem, found.hint) for found in find_silenced(home, os.environ)]
    return [*examine_store(home).findings, *leftover(home.root), *silenced]


def _finding(found: Finding, session: Found | None) -> dict[str, Any]:
    return {
        "agent": session.agent if session else None,
        "session": session.name if session else None,
        "severity": found.severity,
        "path": found.path,
        "line": found.line,
        "problem": redact_any(found.problem),
        "advice": redact_any(found.advice),
    }
