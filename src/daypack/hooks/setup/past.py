"""The sessions that already happened: their words, captured into the memories of their projects as those of today."""

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple, cast

from daypack.files import atomic
from daypack.files.lock import held_after_waiting
from daypack.history.layout import Home
from daypack.hooks.call import AGENTS, HostName
from daypack.hooks.settings import read_settings
from daypack.hooks.setup.record import read_record
from daypack.hooks.state import SessionState

if TYPE_CHECKING:
    from daypack.importers.import_transcript import ImportReport
    from daypack.memory.project import Project
    from daypack.session import Session

_WAIT_SECONDS = 60.0  # for the take-in of a session that is running now


class _Newest(NamedTuple):
    """The newest session of a project."""

    session: str
    agent: str
    project: "Project"


class ProjectCapture:
    """Captures sessions of some hosts after they were imported."""

    def __init__(self, home: Home, hosts: Collection[str]) -> None:
        self._home = home
        self._hosts = hosts
        self._recalls = read_settings(home).recall_before_edit
        self._newest: dict[str, _Newest] = {}

    def wants(self, place: str) -> bool:
        """Return True if the sessions of a host are captured."""
        return place in self._hosts

    def capture(self, place: str, report: "ImportReport") -> int | None:
        """Capture a session; return the number of new entries, None if its folder is gone."""
        agent = AGENTS[cast(HostName, place)]
        state = SessionState(self._home, agent, report.session)
        with (
            held_after_waiting(state.lock, _WAIT_SECONDS, "another take-in of the session"),
            self._open(report.session, report.agent or agent) as session,
        ):
            return self._capture(session)

    def finish(self) -> None:
        """Leave the state of the newest session of each project for the next one."""
        from daypack.hooks.recap.writing import write_recap  # noqa: PLC0415 — only after a capture

        for newest in self._newest.values():
            with self._open(newest.session, newest.agent) as session:
                write_recap(session, newest.project)
        self._newest = {}

    def _open(self, name: str, agent: str) -> "Session":
        from daypack.importers.import_file import Destination  # noqa: PLC0415

        return Destination(self._home.root, agent, self._home.uid).open(name, create=False)

    def _capture(self, session: "Session") -> int | None:
        from daypack.hooks.intake.capture import capture_session  # noqa: PLC0415
        from daypack.memory.project import find_project, project_memory  # noqa: PLC0415

        folder = (atomic.read(session.history.layout.cwd) or b"").decode(errors="replace").rstrip("\n")
        if not os.path.isdir(folder):
            return None
        project = find_project(folder)
        if "memory" not in session.meta and (memory := project_memory(self._home, project)):
            session.bind_memory(memory)
        self._newest[project.key] = _Newest(session.name, session.agent, project)
        if self._recalls and not project.off:
            from daypack.hooks.file_decisions.updating import update_decisions  # noqa: PLC0415

            update_decisions(session, project, self._home)
        return capture_session(session, end=True) if session.meta.get("memory") else 0


def captured_hosts(home: Home) -> frozenset[str]:
    """Return the hosts whose hooks capture sessions now: those that are set up, unless hooks are switched off."""
    if not read_settings(home).enabled:
        return frozenset()
    return frozenset(file.host for file in read_record(home).files if file.host)
