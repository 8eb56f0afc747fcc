"""Import the files of all places that are new or have changed, the oldest first; one that fails does not stop the rest.

A memory's document grows with what it is given: taken in the other way round, old facts would replace new ones.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple, Protocol

from daypack.errors import BadInput, DaypackError
from daypack.history.layout import Home
from daypack.history.sessions import DEFAULT_AGENT
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.all_places.scan import Found
from daypack.importers.places import CODEX_HISTORY, PLACES

if TYPE_CHECKING:
    from daypack.importers.all_places.memory_stores import ImportedMemories
    from daypack.importers.import_transcript import ImportReport
    from daypack.importers.transcript import Transcript
    from daypack.memory.project import Project

_SAVE_EVERY = 20  # files: a killed run repeats at most these, which adds nothing


class Capture(Protocol):
    """Captures the words of imported sessions into the memories of their projects."""

    def wants(self, place: str) -> bool:
        """Return True if sessions of a place are captured."""
        ...

    def capture(self, place: str, report: "ImportReport") -> int | None:
        """Capture a session that was imported; return the number of new entries, None if its folder is gone."""
        ...

    def finish(self) -> None:
        """Do what follows the last session."""
        ...


class NoCapture:
    """Captures nothing."""

    def wants(self, place: str) -> bool:  # noqa: ARG002 — required by Capture
        """Return False."""
        return False

    def capture(self, place: str, report: "ImportReport") -> int | None:  # noqa: ARG002
        """Capture nothing."""
        return 0

    def finish(self) -> None:
        """Do nothing."""


class Failure(NamedTuple):
    """A file that could not be imported."""

    path: str
    problem: str
    hint: str = ""


class Done(NamedTuple):
    """What one file has brought."""

    found: Found
    reports: "Sequence[ImportReport]" = ()
    entries: int | None = 0  # new in a memory; None if the folder of the session is gone
    failure: Failure | None = None
    deleted: bool = False  # a session, or a memory, that it brought before was deleted

    @property
    def sessions(self) -> int:
        """How many sessions were read; those of sub-agents belong to the session of their parent."""
        return 0 if self.failure else max(min(1, len(self.reports)), sum(not report.parent for report in self.reports))

    @property
    def is_left_out(self) -> bool:
        """True if the user has deleted what the file had brought."""
        place = PLACES.get(self.found.place)
        if place and place.kind == "memory":
            return self.deleted
        return self.deleted and not self.reports and not self.failure

    @property
    def is_incomplete(self) -> bool:
        """True if the last line of the file is still being written."""
        return any(report.incomplete for report in self.reports)

    @property
    def without_transcript(self) -> int:
        """How many sessions got messages from a file that lacks something, because their transcripts are gone."""
        return sum(bool(report.note and report.new) for report in self.reports)

    @property
    def messages(self) -> int:
        """How many messages are new."""
        return sum(report.new for report in self.reports)


class Taken(NamedTuple):
    """What a run has brought so far."""

    files: int = 0
    sessions: int = 0
    messages: int = 0
    entries: int = 0
    without_folder: int = 0  # sessions whose folder is gone, so that they are in no project's memory
    deleted: int = 0  # files whose sessions the user has deleted
    without_transcript: int = 0  # sessions read from elsewhere, because their transcripts are gone
    failures: tuple[Failure, ...] = ()

    def plus(self, done: Done) -> "Taken":
        """Return it with one file more."""
        return Taken(
            self.files + 1,
            self.sessions + done.sessions,
            self.messages + done.messages,
            self.entries + (done.entries or 0),
            self.without_folder + (done.entries is None),
            self.deleted + done.is_left_out,
            self.without_transcript + done.without_transcript,
            (*self.failures, done.failure) if done.failure else self.failures,
        )


class NewFiles:
    """The files with something to import; `size` is that of all of them, in bytes.

    With `growing`, they are read again when they change, and an incomplete last line is left to that time.
    """

    def __init__(
        self,
        home: Home,
        found: Iterable[Found],
        ledger: Ledger,
        capture: Capture | None = None,
        *,
        growing: bool = False,
    ) -> None:
        self._home = home
        self._ledger = ledger
        self._growing = growing
        self._capture = capture or NoCapture()
        self._stores: dict[str, ImportedMemories] = {}  # of this run, by path
        new = [each for each in found if not self._is_done(each)]
        self.files: Sequence[Found] = sorted(new, key=_order)
        self.size = sum(each.file.size for each in self.files)
        self._project: Project | None = None

    def keep_project(self, project: "Project") -> None:
        """Leave out the files without a session of a project, and the other sessions of those that have one."""
        self._project = project
        self.keep(lambda found: _is_of_project(project, found))

    def count_sessions(self) -> int:
        """Return how many sessions the files have: a file has one, a database any number."""
        databases = [each.file.path for each in self.files if each.file.path.endswith((".db", ".sqlite"))]
        return len(self.files) - len(databases) + sum(map(self._count_stored, databases))

    def _count_stored(self, path: str) -> int:
        from daypack.importers.opencode_store import Store  # noqa: PLC0415 — only for databases
        from daypack.importers.readers.codex_history.store import History, is_history  # noqa: PLC0415

        try:
            if is_history(path):
                stored = [(each.parent, each.cwd) for each in History(path).threads()]
            else:
                stored = [(each.above, each.cwd) for each in Store(path).sessions()]
        except DaypackError:
            return 1  # the import says what is wrong with it
        return sum(not above and (not self._project or _is_in(self._project, cwd)) for above, cwd in stored)

    def keep(self, wanted: Callable[[Found], bool]) -> None:
        """Leave out the files that are not wanted."""
        self.files = [each for each in self.files if wanted(each)]
        self.size = sum(each.file.size for each in self.files)

    def take_in(
        self, on_done: Callable[[Done], None], is_stopped: Callable[[], bool] = lambda: False
    ) -> dict[str, Taken]:
        """Import all files and return what each place has brought; it may be interrupted at any time.

        Whatever is noted of a file is its state before it was read: it may grow meanwhile.
        """
        taken: dict[str, Taken] = {}
        deleted = self._ledger.deleted() if self.files else frozenset[str]()
        try:
            for number, found in enumerate(self.files, 1):
                if is_stopped():
                    break
                if self._is_done(found):  # by another process
                    continue
                done = self._take_in(found, deleted)
                taken[found.place] = taken.get(found.place, Taken()).plus(done)
                on_done(done)
                if number % _SAVE_EVERY == 0:
                    self._ledger.save()
            self._capture.finish()
        finally:
            self._ledger.save()
        return taken

    def _is_done(self, found: Found) -> bool:
        return self._ledger.is_done(found.file, capturing=self._capture.wants(found.place))

    def _take_in(self, found: Found, deleted: frozenset[str]) -> Done:
        place = PLACES.get(found.place)
        if place and place.kind == "memory":
            return self._take_in_memories(found, place.format)
        captures = self._capture.wants(found.place)
        choice = _Choice(deleted, self._project)
        try:
            reports = self._import(found, choice)
        except BadInput as error:
            self._ledger.note_unreadable(found.file)
            return Done(found, failure=_failure(found, error))
        except Exception as error:  # whatever is wrong with a file, the others are imported; it is tried again
            return Done(found, failure=_failure(found, error))
        sessions = [f"{report.agent}/{report.session}" for report in reports]
        done = Done(found, reports, deleted=choice.found_deleted)
        if done.is_incomplete:
            return done  # it is noted when the line is complete
        if choice.found_others:
            self._ledger.note_sessions(found.file.path, sessions)
        else:
            self._ledger.note(found.file, sessions, captured=False)
        if not captures:
            return done
        main = [report for report in reports if not report.parent]
        try:
            counts = [self._capture.capture(found.place, report) for report in main]
        except Exception as error:  # settings of a project that cannot be read, for example
            return Done(found, failure=_failure(found, error))
        if not choice.found_others:
            self._ledger.note(found.file, sessions, captured=True)
        return done._replace(entries=None if None in counts else sum(filter(None, counts)))

    def _take_in_memories(self, found: Found, system: str) -> Done:
        """Import the store that a file belongs to, with the first of its files."""
        from daypack.importers.all_places.memory_stores import fill_memories, store_path  # noqa: PLC0415 — few have one
        from daypack.importers.stores.systems import open_store  # noqa: PLC0415

        path = store_path(found.file, system)
        is_first = path not in self._stores
        try:
            if is_first:
                known = self._ledger.memories_of(path)
                self._stores[path] = fill_memories(self._home, open_store(path, system), known)
            brought = self._stores[path]
        except BadInput as error:
            self._ledger.note_unreadable(found.file)
            return Done(found, failure=_failure(found, error))
        except Exception as error:  # it may be locked now
            return Done(found, failure=_failure(found, error))
        unreadable = [each for each in brought.unreadable if each.startswith(f"{found.file.path}: ")]
        if path != found.file.path and unreadable:
            return Done(found, failure=Failure(found.file.path, unreadable[0][len(found.file.path) + 2 :]))
        self._ledger.note(found.file, brought.memories, captured=True)
        failure = None
        if brought.refused and is_first:
            problem = f"{len(brought.refused):,} of its memories refused; the first: {brought.refused[0]}"
            failure = Failure(path, problem)
        return Done(found, entries=brought.entries if is_first else 0, failure=failure, deleted=brought.erased > 0)

    def _import(self, found: Found, choice: "_Choice") -> "list[ImportReport]":
        from daypack.importers.formats import FORMATS  # noqa: PLC0415 — not for a plan
        from daypack.importers.import_file import Destination, take_in  # noqa: PLC0415

        place = PLACES.get(found.place)
        destination = Destination(
            home=self._home.root, agent=FORMATS[place.format].agent if place else None, uid=self._home.uid
        )
        return take_in(found.file.path, destination._replace(choice=choice, growing=self._growing))


class _Choice:
    """Leaves out the sessions that the user deleted, and those of other projects; sub-agents with their session."""

    def __init__(self, deleted: frozenset[str], project: "Project | None") -> None:
        self._deleted = deleted
        self._project = project
        self._of_project: dict[str, bool] = {}  # by the name of a session
        self.found_deleted = False
        self.found_others = False

    def wants(self, agent: str | None, transcript: "Transcript") -> bool:
        above = transcript.parent[0] if transcript.parent else transcript.session
        names = {f"{each}/{name}" for each in (agent, DEFAULT_AGENT) for name in (transcript.session, above)}
        if not names.isdisjoint(self._deleted):
            self.found_deleted = True
            return False
        if self._project and above not in self._of_project:
            self._of_project[above] = _is_in(self._project, transcript.cwd)
        is_wanted = self._of_project.get(above, True)
        self.found_others |= not is_wanted
        return is_wanted


def _order(found: Found) -> tuple[bool, int, str]:
    """Sort by age; a database that fills in for transcripts comes after them."""
    path = found.file.path
    return fnmatchcase(os.path.basename(path), CODEX_HISTORY), found.file.modified, path


def _is_of_project(project: "Project", found: Found) -> bool:
    """Return True if a session of a file was in a project."""
    from daypack.importers.formats import read_file  # noqa: PLC0415

    try:
        return any(_is_in(project, each.cwd) for each in read_file(None, found.file.path))
    except DaypackError:
        return False


def _is_in(project: "Project", folder: str | None) -> bool:
    from daypack.memory.project import find_project  # noqa: PLC0415

    return bool(folder) and find_project(folder).key == project.key


def _failure(found: Found, error: Exception) -> Failure:
    if isinstance(error, DaypackError):
        return Failure(found.file.path, error.problem, error.hint)
    return Failure(found.file.path, f"{type(error).__name__}: {error}")
