"""The sessions that already happened: the transcripts that agents left, taken in like those of today.

<home>/past.json   {"/home/ada/.claude/projects/-src-app/5ac2….jsonl":[1763424000000000000,48211,""]}

The file says which transcripts were taken in, with their modification time and size: an interrupted run continues, a
second one has nothing to do, and a session that the user deleted does not come back. Of a transcript that could not be
read, it also has the version of daypack: another may be able to.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

import daypack
from daypack.errors import BadInput, DaypackError
from daypack.files import atomic
from daypack.files.lock import held_after_waiting
from daypack.history.layout import Home
from daypack.hooks.call import AGENTS, HostName
from daypack.hooks.setup.agents import Agent
from daypack.hooks.state import SessionState
from daypack.importers.places import PLACES

if TYPE_CHECKING:
    from daypack.memory.project import Project
    from daypack.session import Session

_SAVE_EVERY = 20  # transcripts: a killed run repeats at most these, which adds nothing
_WAIT_SECONDS = 60.0  # for the take-in of a session that is running now


_Known = tuple[int, int, str]


class Transcript(NamedTuple):
    """A transcript of an agent's session."""

    host: HostName
    path: str
    modified: int  # ns
    size: int


class Failure(NamedTuple):
    """A transcript that could not be taken in."""

    path: str
    problem: str


class TakenIn(NamedTuple):
    """What a run has brought so far."""

    sessions: int = 0
    messages: int = 0
    entries: int = 0
    without_folder: int = 0  # sessions whose folder is gone, so that they are in no project's memory
    failures: tuple[Failure, ...] = ()

    def plus_failure(self, path: str, problem: str) -> "TakenIn":
        """Return it with one failure more."""
        return self._replace(failures=(*self.failures, Failure(path, problem)))

    def plus(self, messages: int, entries: int | None) -> "TakenIn":
        """Return it with one session more; `entries` is None if its folder is gone."""
        return self._replace(
            sessions=self.sessions + 1,
            messages=self.messages + messages,
            entries=self.entries + (entries or 0),
            without_folder=self.without_folder + (entries is None),
        )


class _UnreadableError(Exception):
    """A transcript of a format that is not known."""


class _Newest(NamedTuple):
    """The newest session of a project."""

    session: str
    agent: str
    project: "Project"


class Past:
    """The transcripts of some agents that were not taken in yet, the oldest first.

    A memory's document grows with what it is given: taken in the other way round, old facts would replace new ones.
    """

    def __init__(self, home: Home, agents: Iterable[Agent], *, project: "Project | None" = None) -> None:
        """With `project`, only the transcripts of sessions in it."""
        self._home = home
        self._path = os.path.join(home.folder, "past.json")
        self._known = self._read()
        found = (transcript for agent in agents for transcript in _find(agent))
        new = [each for each in found if self._known.get(each.path) not in (_done(each), _unreadable(each))]
        self.transcripts: Sequence[Transcript] = sorted(
            (each for each in new if project is None or _is_of(project, each)), key=lambda each: each.modified
        )
        self.size = sum(transcript.size for transcript in self.transcripts)
        self._newest: dict[str, _Newest] = {}

    def take_in(self, on_progress: "Callable[[TakenIn, int], None]") -> TakenIn:
        """Take in all transcripts; it may be interrupted at any time. `on_progress` gets the bytes that are done."""
        taken, done = TakenIn(), 0
        try:
            for number, transcript in enumerate(self.transcripts, 1):
                try:
                    taken = taken.plus(*self._take_in(transcript))
                    self._known[transcript.path] = _done(transcript)
                except _UnreadableError as error:
                    self._known[transcript.path] = _unreadable(transcript)
                    taken = taken.plus_failure(transcript.path, str(error))
                except Exception as error:  # whatever is wrong with a transcript, the others are taken in
                    taken = taken.plus_failure(transcript.path, _describe(error))
                done += transcript.size
                on_progress(taken, done)
                if number % _SAVE_EVERY == 0:
                    self._write()
            self._write_recaps()
        finally:
            self._write()
        return taken

    def _take_in(self, transcript: Transcript) -> tuple[int, int | None]:
        """Take in one transcript; return the numbers of new messages and of new entries in the project's memory."""
        from daypack.importers.import_file import Destination, take_in  # noqa: PLC0415 — not for a plan

        agent = AGENTS[transcript.host]
        try:
            reports = take_in(transcript.path, Destination(home=self._home.root, agent=agent, uid=self._home.uid))
        except BadInput as error:
            raise _UnreadableError(error.problem) from error
        new = sum(report.new for report in reports)
        if not reports or reports[0].parent:
            return new, 0  # of a sub-agent: its words are not captured
        main = reports[0]
        state = SessionState(self._home, agent, main.session)
        with (
            held_after_waiting(state.lock, _WAIT_SECONDS, "another take-in of the session"),
            self._open(main.session, main.agent or agent) as session,
        ):
            return new, self._capture(session)

    def _open(self, name: str, agent: str) -> "Session":
        from daypack.importers.import_file import Destination  # noqa: PLC0415

        return Destination(self._home.root, agent, self._home.uid).open(name, create=False)

    def _capture(self, session: "Session") -> int | None:
        """Capture a session into the memory of its project; None if its folder is gone."""
        from daypack.hooks.intake.capture import capture_session  # noqa: PLC0415
        from daypack.memory.project import find_project, project_memory  # noqa: PLC0415

        folder = (atomic.read(session.history.layout.cwd) or b"").decode(errors="replace").rstrip("\n")
        if not os.path.isdir(folder):
            return None
        project = find_project(folder)
        if "memory" not in session.meta and (memory := project_memory(self._home, project)):
            session.bind_memory(memory)
        self._newest[project.key] = _Newest(session.name, session.agent, project)
        return capture_session(session, end=True) if session.meta.get("memory") else 0

    def _write_recaps(self) -> None:
        """Leave the state of the newest session of each project for the next one."""
        from daypack.hooks.recap.writing import write_recap  # noqa: PLC0415

        for newest in self._newest.values():
            with self._open(newest.session, newest.agent) as session:
                write_recap(session, newest.project)

    def _read(self) -> "dict[str, _Known]":
        try:
            return msgspec.json.decode(atomic.read(self._path) or b"{}", type=dict[str, _Known])
        except msgspec.MsgspecError:  # without it, transcripts are read again and add nothing
            return {}

    def _write(self) -> None:
        atomic.make_folders(self._home.folder)
        atomic.replace(self._path, msgspec.json.encode(self._known))


def _describe(error: Exception) -> str:
    """Return what is wrong in one line."""
    return error.problem if isinstance(error, DaypackError) else f"{type(error).__name__}: {error}"


def _done(transcript: Transcript) -> _Known:
    return transcript.modified, transcript.size, ""


def _unreadable(transcript: Transcript) -> _Known:
    return transcript.modified, transcript.size, daypack.__version__


def _find(agent: Agent) -> Iterator[Transcript]:
    for found in PLACES[agent.host].find_files(os.environ):
        yield Transcript(agent.host, found.path, found.modified, found.size)


def _is_of(project: "Project", transcript: Transcript) -> bool:
    """Return True if a session was in a project."""
    from daypack.importers.formats import read_file  # noqa: PLC0415
    from daypack.memory.project import find_project  # noqa: PLC0415

    try:
        folder = next((each.cwd for each in read_file(None, transcript.path) if each.cwd), "")
        return bool(folder) and find_project(folder).key == project.key
    except DaypackError:
        return False
