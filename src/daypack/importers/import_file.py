"""Import a file: each of its transcripts into a session, and sub-agents as children of their parents."""

from collections.abc import Callable
from typing import NamedTuple

from daypack.config import Settings
from daypack.errors import SessionMissing
from daypack.importers.formats import read_transcripts
from daypack.importers.import_transcript import ImportReport, Manner, import_transcript, record_child
from daypack.importers.transcript import Transcript
from daypack.session import Session, open_session


class Destination(NamedTuple):
    """Where imported sessions are stored, and how; `session` overrides the name that a file gives its session.

    System messages of a transcript are stored as quoted history, which instructs no later turn; `trust_system` stores
    them as instructions.
    """

    home: str | None = None
    agent: str = "default"
    uid: str | None = None
    session: str | None = None
    trust_system: bool = False

    def open(self, name: str, model: str | None = None, *, create: bool = True) -> Session:
        """Open a session at this destination."""
        settings: Settings = {"model": model} if model else {}
        return open_session(name, agent=self.agent, home=self.home, uid=self.uid, create=create, **settings)


def import_file(
    format: str | None,  # noqa: A002 — the word of the command; None detects it
    path: str,
    destination: Destination,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[ImportReport]:
    """Store the new part of a file and return one report per transcript in it."""
    reports: list[ImportReport] = []
    for transcript in read_transcripts(format, path, destination.session):
        manner = Manner(named=destination.session is not None, trust_system=destination.trust_system)
        report = import_transcript(transcript, destination.open, on_progress, manner)
        if transcript.parent:
            _record_with_parent(transcript, destination, reports)
        if reports and (reports[-1].path, reports[-1].session) == (report.path, report.session):
            _add_extra_rows(reports[-1], report)
        else:
            reports.append(report)
    return reports


def _record_with_parent(transcript: Transcript, destination: Destination, reports: list[ImportReport]) -> None:
    """Record a child with its parent if the parent has been imported."""
    parent, name = transcript.parent or ("", "")
    try:
        with destination.open(parent, create=False) as session, destination.open(transcript.session) as child:
            record_child(session, name, child)
    except SessionMissing:
        return
    for report in reports:
        if report.session == parent and name not in report.children:
            report.children = sorted([*report.children, name])


def _add_extra_rows(report: ImportReport, extra: ImportReport) -> None:
    """Add the counts of a conversation's extra rows to the report of the conversation."""
    report.rows += extra.rows
    report.new_rows += extra.new_rows
    report.problems += extra.problems
