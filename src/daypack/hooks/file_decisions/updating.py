"""Brings the indexes of a project up to date when a session of it is taken in.

Of the session only its newest part is read again: what was found before that stays. Without an index, the newest
sessions of the project are read, whichever agent they are of.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from daypack.derived.raw_history import raw_of
from daypack.derived.readings import superseded
from daypack.derived.rules.supersession import superseded_by
from daypack.errors import DaypackError, MemoryMissing
from daypack.files import atomic
from daypack.files.lock import held_after_waiting
from daypack.history.layout import Home
from daypack.history.session import History
from daypack.history.sessions import CHILD
from daypack.hooks.file_decisions import finding
from daypack.hooks.file_decisions.edits import Workplace
from daypack.hooks.file_decisions.index import (
    MAX_DECISIONS,
    MAX_PATHS,
    MAX_RENAMED,
    DecisionIndex,
    FileDecision,
    entries_file,
    read_index,
    write_index,
)
from daypack.hooks.recap.writing import reach
from daypack.memory.backend import open_backend
from daypack.memory.project import Project, find_project, project_memory
from daypack.memory.project.memory import USER, decisions_file
from daypack.session import Session, open_session
from daypack.types.memory import Entry
from daypack.types.records import Rule

_SESSION_BYTES = 1 << 20  # of the newest messages of a session, after every turn
_REBUILT_BYTES = 4 << 20  # of each session, for a new index
_REBUILT_SESSIONS = 40  # the newest
_ENTRIES = 500  # that are read in one go
_MAX_ENTRIES = 20_000  # of a memory, the newest
_WAIT_SECONDS = 60.0
_ADDED = "added"


class _Stored(NamedTuple):
    """A session on disk, and where it worked."""

    agent: str
    session: str
    project: Project
    folder: str


def update_decisions(session: Session, project: Project, home: Home) -> None:
    """Find what a session decided about files, and add it to the index of its project."""
    path = decisions_file(home, project)
    atomic.make_folders(os.path.dirname(path))
    with held_after_waiting(f"{path}.lock", _WAIT_SECONDS, "another take-in of the project"):
        index = read_index(path)
        if index is None:
            index = DecisionIndex()
            others = (place for place in _sessions(home, _name(session)) if place.project.key == project.key)
            for place in islice(others, _REBUILT_SESSIONS):
                index = _with_stored(index, home, place)
        index = _with_session(index, session.history, _workplace(session, project), _SESSION_BYTES)
        write_index(path, _bounded(index))


def build_missing_decisions(home: Home, seconds: float) -> int:
    """Make the indexes that projects with sessions lack, so that the first edit has them; return how many were made.

    The project with the newest session comes first. What is not made in time is made at the next take-in.
    """
    deadline = time.monotonic() + seconds
    projects: dict[str, list[_Stored]] = {}
    for place in _sessions(home):
        projects.setdefault(place.project.key, []).append(place)
    return sum(_build_missing(home, places[:_REBUILT_SESSIONS], deadline) for places in projects.values())


def _build_missing(home: Home, places: Sequence[_Stored], deadline: float) -> bool:
    try:
        project = find_project(places[0].folder)
    except DaypackError:  # its settings cannot be read: the take-in reports it
        return False
    path = decisions_file(home, project)
    if project.off or read_index(path) is not None:
        return False
    index = DecisionIndex()
    for place in places:
        if time.monotonic() > deadline:
            return False
        index = _with_stored(index, home, place)
    atomic.make_folders(os.path.dirname(path))
    with held_after_waiting(f"{path}.lock", _WAIT_SECONDS, "another take-in of the project"):
        if read_index(path) is None:
            write_index(path, _bounded(index))
    if memory_id := project_memory(home, project, create=False):
        update_entry_decisions(home, memory_id)
    return True


def update_entry_decisions(home: Home, memory_id: str) -> None:
    """Find what new entries of a memory decide about files; not those that were said in a session of this home."""
    backend = open_backend(home)
    if backend.server is None and not os.path.exists(home.store):
        return
    path = entries_file(home, memory_id)
    index = read_index(path) or DecisionIndex()
    store = backend.store
    known: dict[str, bool] = {}
    try:
        newest = store.newest(USER, memory_id).entries
        after = max(index.entries, newest - _MAX_ENTRIES)
        found: list[FileDecision] = []
        while after < newest:
            for entry in store.after(USER, memory_id, after, _ENTRIES):
                if isinstance(entry, Entry) and not _is_local(home, entry.session or "", known):
                    found += finding.find_in_entry(entry)
            after += _ENTRIES
    except MemoryMissing:  # erased since
        return
    finally:
        backend.close()
    if newest != index.entries:
        write_index(path, _bounded(replace(index, entries=newest, decisions=(*index.decisions, *found))))


def _workplace(session: Session, project: Project) -> Workplace:
    folder = _folder_of(session.layout.cwd)
    is_inside = f"{folder}/".startswith(f"{project.top}/")  # the folder of an imported session may be another machine's
    return Workplace(_name(session), folder if is_inside else project.top, project.top)


def _name(session: Session) -> str:
    return f"{session.agent}/{session.name}"


def _folder_of(path: str) -> str:
    return (atomic.read(path) or b"").decode(errors="surrogateescape").rstrip("\n")


def _with_session(index: DecisionIndex, history: History, place: Workplace, most_bytes: int) -> DecisionIndex:
    newest = history.messages.reader.newest().seq
    if not newest or index.sessions.get(place.session) == newest:
        return index
    first = reach(history, newest, most_bytes)
    raw = raw_of(history.messages.records(first, newest), first, newest, redacting=True)
    found = finding.find_in_messages(raw, place)
    kept = [known for known in index.decisions if known.session != place.session or known.seq < first]
    return replace(
        index,
        sessions={**index.sessions, place.session: newest},
        decisions=(*kept, *found.decisions),
        renamed=tuple(dict.fromkeys((*index.renamed, *found.renamed))),
        paths=tuple(dict.fromkeys((*index.paths, *found.paths))),
    )


def _with_stored(index: DecisionIndex, home: Home, stored: _Stored) -> DecisionIndex:
    place = Workplace(f"{stored.agent}/{stored.session}", stored.folder, stored.project.top)
    try:
        with open_session(stored.session, agent=stored.agent, home=home.root, uid=home.uid, create=False) as session:
            return _with_session(index, session.history, place, _REBUILT_BYTES)
    except DaypackError:  # damaged, or being erased: the others are read
        return index


def _sessions(home: Home, without: str = "") -> Iterator[_Stored]:
    """Yield the sessions whose folder still exists, newest first, without children; of a database, those that are here.

    Sessions of other machines worked in folders of theirs.
    """
    home = home.here
    dated: list[tuple[float, str, str]] = []
    for agent in home.agents():
        for name in home.list(agent):
            if CHILD not in name and f"{agent}/{name}" != without:
                try:
                    dated.append((os.stat(home.session(agent, name).messages).st_mtime, agent, name))
                except OSError:  # it has no messages
                    continue
    projects: dict[str, Project] = {}
    for _, agent, name in sorted(dated, reverse=True):
        folder = _folder_of(home.session(agent, name).cwd)
        if folder not in projects and os.path.isdir(folder):
            projects[folder] = find_project(folder, with_settings=False)
        if folder in projects:
            yield _Stored(agent, name, projects[folder], folder)


def _is_local(home: Home, session: str, known: dict[str, bool]) -> bool:
    agent, _, name = session.rpartition("/")
    if session not in known:
        try:
            known[session] = bool(agent and name) and home.here.has(agent, name)
        except DaypackError:  # no name of a session
            known[session] = False
    return known[session]


def _bounded(index: DecisionIndex) -> DecisionIndex:
    """Return an index without decisions that a later one supersedes or repeats, and of bounded size."""
    ordered = sorted(index.decisions, key=lambda decision: (decision.at, decision.seq))
    decisions = _current(ordered)[-MAX_DECISIONS:]
    sessions = dict(sorted(index.sessions.items())[-MAX_PATHS:])
    return replace(
        index,
        sessions=sessions,
        decisions=tuple(decisions),
        renamed=index.renamed[-MAX_RENAMED:],
        paths=index.paths[-MAX_PATHS:],
    )


def _current(ordered: Sequence[FileDecision]) -> list[FileDecision]:
    by_file: dict[str, list[int]] = {}
    for at, decision in enumerate(ordered):
        for file in decision.files:
            by_file.setdefault(file, []).append(at)
    gone: set[int] = set()
    for numbers in by_file.values():
        group = [(at, ordered[at]) for at in numbers]
        gone.update(_repeated(group))
        gone.update(_replaced([pair for pair in group if pair[1].kind == "rule"]))
        stated = [pair for pair in group if pair[1].kind in ("decision", "reason")]
        gone.update(stated[at][0] for at in superseded([(number, decision.text) for number, decision in stated]))
    return [decision for at, decision in enumerate(ordered) if at not in gone]


def _repeated(group: Iterable[tuple[int, FileDecision]]) -> Iterator[int]:
    newest: dict[str, int] = {}
    for at, decision in group:
        words = " ".join(decision.text.split()).casefold()
        if words in newest:
            yield newest[words]
        newest[words] = at


def _replaced(group: Sequence[tuple[int, FileDecision]]) -> Iterator[int]:
    """Yield the standing rules that a later one on the same matter replaces."""
    rules = [Rule(id=str(at), text=decision.text, source=_ADDED, position=at) for at, decision in group]
    for number, rule in enumerate(rules):
        yield from map(int, superseded_by(rule, rules[:number]))
