"""Import a file: each of its transcripts into a session, and sub-agents as children of their parents."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from daypack.config import Settings
from daypack.errors import BadInput, SessionMissing
from daypack.history.home import find_home
from daypack.history.sessions import DEFAULT_AGENT, agent_of
from daypack.importers.formats import FORMATS, find_parent, read_file, read_sub_agent
from daypack.importers.import_events import ImportLog
from daypack.importers.import_start import find_start
from daypack.importers.import_transcript import (
    ImportReport,
    Manner,
    Problem,
    import_transcript,
    importing,
    record_child,
)
from daypack.importers.imported_files import ImportedFiles, status_of
from daypack.importers.transcript import Transcript
from daypack.session import Session, open_session


class Choice(Protocol):
    """Chooses the sessions of a file that are imported."""

    def wants(self, agent: str | None, transcript: Transcript) -> bool:
        """Return True if a transcript is imported into a session of an agent."""
        ...


class Destination(NamedTuple):
    """Where imported sessions are stored, and how; `session` overrides the name that a file gives its session.

    If `agent` is None, a session is stored with the agent that wrote the transcript. With that agent, one that an
    earlier import stored with the default agent is continued there.
    System messages of a transcript are stored as quoted history, which instructs no later turn; `trust_system` stores
    them as instructions. `verify` reads also what was imported before; `changed_only` leaves out sub-agents' files that
    have not changed. `choice` leaves out sessions. `growing` leaves out a last line that is still being written.
    """

    home: str | None = None
    agent: str | None = DEFAULT_AGENT
    uid: str | None = None
    session: str | None = None
    trust_system: bool = False
    verify: bool = False
    changed_only: bool = False
    choice: Choice | None = None
    growing: bool = False

    def open(self, name: str, model: str | None = None, *, create: bool = True) -> Session:
        """Open a session at this destination."""
        settings: Settings = {"model": model} if model else {}
        agent = self.agent or DEFAULT_AGENT
        session = open_session(name, agent=agent, home=self.home, uid=self.uid, create=create, **settings)
        session.history.dated_by_messages = True
        return session

    def leaves_out(self, transcript: Transcript) -> bool:
        """Return True if a transcript is not imported."""
        return self.choice is not None and not self.choice.wants(self.agent, transcript)

    def settled(self, transcript: Transcript) -> "Destination":
        """Return the destination of a transcript and its sub-agents, with an agent."""
        own = FORMATS[transcript.origin.format].agent
        if self.agent not in (None, own):
            return self
        name = transcript.parent[0] if transcript.parent else transcript.session
        home = find_home(self.home, self.uid)
        agent = agent_of(home, own, name)
        if agent != own and self.session is None:
            with open_session(name, agent=agent, home=self.home, uid=self.uid, create=False) as session:
                origin = transcript.origin
                source = origin.source.rpartition("/")[0] if transcript.parent else origin.source
                agent = agent if ImportLog(session.history, origin._replace(source=source)).begun else own
        return self._replace(agent=agent)


def import_file(
    format: str | None,  # noqa: A002 — the word of the command; None detects it
    path: str,
    destination: Destination,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[ImportReport]:
    """Store the new part of a file and of its sub-agents' files, and return one report per transcript in them."""
    reports: list[ImportReport] = []
    continued: dict[str, str] = {}
    for found in read_file(format, path, destination.session):
        if found.earlier_session and _is_continued(found, destination):
            continued[found.session] = found.earlier_session
        transcript = found._replace(session=continued.get(found.session, found.session))
        place = destination.settled(transcript)
        if place.leaves_out(transcript) or (transcript.note and _is_filled(transcript, place)):
            continue
        report = _import(transcript, place, on_progress)
        if reports and (reports[-1].path, reports[-1].session) == (report.path, report.session):
            _add_extra_rows(reports[-1], report)
            continue
        reports.append(report)
        if transcript.parent:
            _record_with_parent(transcript, place)
        reports += _import_sub_agents(transcript, report, place, on_progress)
    return reports


def take_in(
    path: str, destination: Destination, on_progress: Callable[[int], None] = lambda _: None
) -> list[ImportReport]:
    """Store what is new of a session and of its sub-agents, given the file of any of them.

    The first report is that of the session, the others are those of sub-agents that changed. The file of a sub-agent
    whose session has no file yet is imported alone; it becomes a child when that is imported.
    """
    return import_file(None, find_parent(path) or path, destination._replace(changed_only=True), on_progress)


def _is_continued(transcript: Transcript, destination: Destination) -> bool:
    """Return True if an earlier version imported this file, as it was then, into the session it named."""
    earlier = transcript._replace(session=transcript.earlier_session)
    with suppress(SessionMissing), destination.settled(earlier).open(earlier.session, create=False) as session:
        log = ImportLog(session.history, transcript.origin)
        log.read_all()
        start = find_start(transcript.lines, log.boundaries)
        return start.boundary.lines > 0 and not start.changed
    return False


def _is_filled(transcript: Transcript, destination: Destination) -> bool:
    """Return True if a session has messages that do not come from this transcript."""
    with suppress(SessionMissing), destination.open(transcript.session, create=False) as session:
        has_messages = session.history.messages.reader.count() > 0
        return has_messages and not ImportLog(session.history, transcript.origin).begun
    return False


def _import(transcript: Transcript, destination: Destination, on_progress: Callable[[int], None]) -> ImportReport:
    manner = Manner(destination.session is not None, destination.trust_system, destination.verify, destination.growing)
    return import_transcript(transcript, destination.open, on_progress, manner)


def _import_sub_agents(
    parent: Transcript, report: ImportReport, destination: Destination, on_progress: Callable[[int], None]
) -> Iterator[ImportReport]:
    """Import sub-agents as children of a session; a file that cannot be read is a problem of the session's report."""
    for path in _changed_sub_agents(parent, destination):
        status = status_of(path)  # before it is read: it may grow meanwhile
        try:
            transcript = read_sub_agent(parent, path)
            if destination.leaves_out(transcript):
                continue
            yield _import(transcript, destination, on_progress)
        except BadInput as error:
            report.problems.append(Problem(0, f"{os.path.basename(path)}: {error.problem}"))
            continue
        with destination.open(parent.session, create=False) as session, importing(session):
            if transcript.parent:
                _record_child(session, transcript, destination)
                report.children = sorted({*report.children, transcript.parent[1]})
            if status:
                ImportedFiles(session.history).keep_sub_agent(path, status, transcript.session)


def _changed_sub_agents(parent: Transcript, destination: Destination) -> Sequence[str]:
    if not (parent.sub_agents and destination.changed_only):
        return parent.sub_agents
    with destination.open(parent.session, create=False) as session:
        known = ImportedFiles(session.history)
        return [path for path in parent.sub_agents if not known.has_sub_agent(path)]


def _record_with_parent(transcript: Transcript, destination: Destination) -> None:
    """Record a child with its parent if the parent has been imported."""
    parent = transcript.parent[0] if transcript.parent else ""
    with suppress(SessionMissing), destination.open(parent, create=False) as session, importing(session):
        _record_child(session, transcript, destination)


def _record_child(session: Session, transcript: Transcript, destination: Destination) -> None:
    name = transcript.parent[1] if transcript.parent else transcript.session
    with destination.open(transcript.session, create=False) as child:
        record_child(session, name, child)


def _add_extra_rows(report: ImportReport, extra: ImportReport) -> None:
    """Add the counts of a conversation's extra rows to the report of the conversation."""
    report.rows += extra.rows
    report.new_rows += extra.new_rows
    report.problems += extra.problems
