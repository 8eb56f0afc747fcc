"""Importing a file: its transcripts into their sessions, and children to their parents."""

from collections.abc import Callable
from typing import NamedTuple

from daypack.config import Settings
from daypack.errors import SessionMissing
from daypack.importers.children import conclude
from daypack.importers.formats import read_transcripts
from daypack.importers.intake import Report, take_in
from daypack.importers.transcript import Transcript
from daypack.session import Session, open_session


class Place(NamedTuple):
    """Where the sessions go; `session` is a name somebody chose for a file."""

    home: str | None = None
    agent: str = "default"
    uid: str | None = None
    session: str | None = None

    def open(self, name: str, model: str | None = None, *, create: bool = True) -> Session:
        """Open a session there."""
        settings: Settings = {"model": model} if model else {}
        return open_session(name, agent=self.agent, home=self.home, uid=self.uid, create=create, **settings)


def import_file(format: str, path: str, place: Place, tell: Callable[[int], None] = lambda _: None) -> list[Report]:  # noqa: A002
    """Store what is new in a file of a format, and report what came of each of its transcripts."""
    reports: list[Report] = []
    for transcript in read_transcripts(format, path, place.session):
        report = take_in(transcript, place.open, tell, named=place.session is not None)
        if transcript.parent:
            _introduce(transcript, place, reports)
        if reports and (reports[-1].path, reports[-1].session) == (report.path, report.session):
            _add(reports[-1], report)
        else:
            reports.append(report)
    return reports


def _introduce(transcript: Transcript, place: Place, reports: list[Report]) -> None:
    """Tell the parent of a child, when it has been imported."""
    parent, name = transcript.parent or ("", "")
    try:
        with place.open(parent, create=False) as session, place.open(transcript.session) as child:
            conclude(session, name, child)
    except SessionMissing:
        return
    for report in reports:
        if report.session == parent and name not in report.children:
            report.children = sorted([*report.children, name])


def _add(report: Report, other: Report) -> None:
    """Add the report of what stands beside a conversation to that of the conversation."""
    report.rows += other.rows
    report.new_rows += other.new_rows
    report.problems += other.problems
