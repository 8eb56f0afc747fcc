"""Take in a session of a coding agent: its transcript, what hooks injected, its memory, its index, its recap.

A hook only requests it and starts a detached process. One process at a time works on a session; one more may wait for
it, and does all that was requested meanwhile. If a step fails, that is logged and the next step follows.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from daypack.errors import SessionMissing
from daypack.files.lock import held_after_waiting, held_without_waiting
from daypack.history.layout import Home, safe_name
from daypack.history.sessions import agent_of
from daypack.hooks import failures
from daypack.hooks.call import AGENTS, HookCall, HostName
from daypack.hooks.state import Request, SessionState
from daypack.system import start_detached
from daypack.text.injected import INJECTED

if TYPE_CHECKING:
    from daypack.importers.places import PlacedFile
    from daypack.memory.project import Project
    from daypack.session import Session

OPTION = "--take-in"
_WAIT_SECONDS = 600.0
_MOST_SECONDS = 1_800.0  # for one process: a hanging one would hold up all later ones
_POLL_SECONDS = 0.02
_NICENESS = 10
_KNOWN_EVENTS = 200  # of the newest, in which an interrupted take-in may have recorded injections


def request(call: HookCall, home: Home) -> None:
    """Request a take-in after an event, and start the process that does it."""
    SessionState(home, call.agent, call.session).request(_request_of(call))
    start_detached(["hook", call.host, OPTION, call.session], os.environ)


def run(host: HostName, session: str, home: Home) -> None:
    """Do what was requested for a session, in a process of its own."""
    with suppress(OSError):
        os.nice(_NICENESS)
    place = failures.Place(host, "take-in", session)
    timer = threading.Timer(_MOST_SECONDS, _give_up, (place,))
    timer.daemon = True
    timer.start()
    _work(host, session, home, _WAIT_SECONDS)


def take_in(call: HookCall, home: Home, seconds: float) -> None:
    """Take in a session now; others may hold this up for some seconds at most."""
    SessionState(home, call.agent, call.session).request(_request_of(call))
    _work(call.host, call.session, home, seconds)


def wait_for(home: Home, call: HookCall, seconds: float) -> bool:
    """Wait until no take-in of a session is requested or running; return False if that takes longer."""
    state = SessionState(home, call.agent, call.session)
    end = time.monotonic() + seconds
    while True:
        if not state.has_requests():
            with held_without_waiting(state.lock) as held:
                if held:
                    return True
        if time.monotonic() >= end:
            return False
        time.sleep(_POLL_SECONDS)


def _request_of(call: HookCall) -> Request:
    return Request(call.event, call.cwd, call.transcript)


def _give_up(place: failures.Place) -> None:
    failures.record(place, TimeoutError(f"not done within {_MOST_SECONDS:,.0f} s"))
    os._exit(1)


def _work(host: HostName, session: str, home: Home, seconds: float) -> None:
    state = SessionState(home, AGENTS[host], session)
    with ExitStack() as stack:
        with held_without_waiting(state.next_lock) as is_next:
            if not is_next:
                return  # the process that waits reads the requests when it no longer waits, so also ours
            stack.enter_context(held_after_waiting(state.lock, seconds, "another take-in of the session"))
        while requests := state.take_requests():
            _TakeIn(host, session, home, requests).run()


class _TakeIn:
    """The steps of one take-in."""

    def __init__(self, host: HostName, session: str, home: Home, requests: Sequence[Request]) -> None:
        self._host: HostName = host
        self._id = session
        self._home = home
        self._state = SessionState(home, AGENTS[host], session)
        self._newest = requests[-1]
        self._transcript = next((request.transcript for request in reversed(requests) if request.transcript), "")
        events = {request.event for request in requests}
        self._is_ending = "SessionEnd" in events
        self._is_compacting = not events.isdisjoint({"PreCompact", "SessionStart"})  # a start after a compaction
        self._name = safe_name(session)
        self._agent = agent_of(home, AGENTS[host], self._name)
        self._project: Project | None = None

    def run(self) -> None:
        self._attempt("import", self._import)
        try:
            session = self._open()
        except SessionMissing:
            return  # no transcript: print mode without persistence
        with session:
            self._attempt("injections", lambda: self._record_injections(session))
            self._attempt("project", self._find_project)
            self._attempt("memory", lambda: self._capture(session))
            self._attempt("index", lambda: self._index(session))
            self._attempt("recap", lambda: self._write_recap(session))
            self._attempt("decisions", lambda: self._find_decisions(session))
            self._attempt("close", session.close)
        if self._is_ending:
            self._attempt("clean up", self._state.remove_old)

    def _attempt(self, step: str, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:
            failures.record(failures.Place(self._host, f"{self._newest.event}:{step}", self._id), error)

    def _open(self) -> "Session":
        from daypack.session import open_session  # noqa: PLC0415 — a hook that requests does not need it

        session = open_session(self._name, agent=self._agent, home=self._home.root, uid=self._home.uid, create=False)
        session.history.dated_by_messages = True  # as the import does
        return session

    def _import(self) -> None:
        from daypack.importers.import_file import Destination, take_in  # noqa: PLC0415
        from daypack.importers.opencode_store import store_file  # noqa: PLC0415
        from daypack.importers.places import find_file  # noqa: PLC0415

        path = self._transcript or _find_transcript(self._host, self._name)
        if not path or not os.path.lexists(store_file(path)):
            return  # it is not written yet, or never
        before = find_file(store_file(path))
        reports = take_in(path, Destination(home=self._home.root, agent=self._agent, uid=self._home.uid))
        if reports:
            self._name, self._agent = reports[0].session, reports[0].agent or self._agent
            sessions = [f"{report.agent}/{report.session}" for report in reports]
            self._note(before, sessions, is_whole=store_file(path) == path)

    def _note(self, file: "PlacedFile | None", sessions: Sequence[str], *, is_whole: bool) -> None:
        """Note once that a session was imported: if the user deletes it, an import of all places leaves it out."""
        from daypack.importers.all_places.ledger import Ledger  # noqa: PLC0415

        ledger = Ledger(self._home)
        if file and not set(sessions) <= set(ledger.sessions(file.path)):
            if is_whole:
                ledger.note(file, sessions, captured=True)
            else:  # the other sessions of a database may not be imported yet
                ledger.note_sessions(file.path, sessions)
            ledger.save()

    def _record_injections(self, session: "Session") -> None:
        """Append what hooks injected as events; those that an interrupted take-in appended are known by their ids."""
        records = self._state.unrecorded()
        if not records:
            return
        events = session.history.events
        last = events.reader.count()
        known = {
            event.data.get("id") for event in events.records(max(1, last - _KNOWN_EVENTS)) if event.type == INJECTED
        }
        for record in records:
            if record.id not in known:
                session.append_event(INJECTED, record.event_data())
        self._state.mark_recorded(records)

    def _find_project(self) -> None:
        from daypack.memory.project import find_project  # noqa: PLC0415

        self._project = find_project(self._newest.cwd)

    def _capture(self, session: "Session") -> None:
        from daypack.hooks.intake.capture import capture_session  # noqa: PLC0415
        from daypack.memory.project import project_memory  # noqa: PLC0415

        if self._project and "memory" not in session.meta and (memory := project_memory(self._home, self._project)):
            session.bind_memory(memory)
        if session.meta.get("memory"):
            capture_session(session, end=self._is_ending or self._is_compacting)

    def _index(self, session: "Session") -> None:
        """Bring the search indexes up to date: hooks search them and do not wait for them."""
        from daypack.hooks.intake.capture import index_entries  # noqa: PLC0415
        from daypack.turn.memory_binding import read_binding  # noqa: PLC0415

        session.turns.inputs.history_search.index.build()
        binding = read_binding(session.meta)
        if binding and binding.url is None:  # also entries that came by a tool or a command
            index_entries(self._home, binding.memory_id)

    def _write_recap(self, session: "Session") -> None:
        from daypack.hooks.recap.writing import write_recap  # noqa: PLC0415

        write_recap(session, self._project, compacting=self._is_compacting)

    def _find_decisions(self, session: "Session") -> None:
        """Find what the session decided about files, if the user wants that before edits."""
        from daypack.hooks.settings import read_settings  # noqa: PLC0415

        if self._project is None or self._project.off or not read_settings(self._home).recall_before_edit:
            return
        from daypack.hooks.file_decisions.updating import update_decisions, update_entry_decisions  # noqa: PLC0415
        from daypack.turn.memory_binding import read_binding  # noqa: PLC0415

        update_decisions(session, self._project, self._home)
        binding = read_binding(session.meta)
        if binding and binding.url is None:
            update_entry_decisions(self._home, binding.memory_id)


def _find_transcript(host: HostName, session: str) -> str:
    """Return where a host that does not say it writes its transcript: only Copilot."""
    if host != "copilot":
        return ""
    folder = os.environ.get("COPILOT_HOME") or os.path.join(os.path.expanduser("~"), ".copilot")
    return os.path.join(folder, "session-state", session, "events.jsonl")
