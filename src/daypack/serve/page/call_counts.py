"""How many calls and compactions each session has, counted by one thread in the background, newest sessions first."""

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from daypack.errors import DaypackError
from daypack.history.layout import Home
from daypack.history.listing.row import Status
from daypack.serve.observe.observer import report_error
from daypack.session import open_session
from daypack.turn.evidence.calls.fold import read_summary

_PAUSES = 2.0  # times as long as counting took: requests that are answered meanwhile need the processor more
_MOST_PAUSE = 1.0  # seconds

Name = tuple[str, str]  # agent and session
Counted = tuple[int, int]  # calls and compactions


class Wanted(NamedTuple):
    """A session to count, and the statuses of its logs, which change when it grows."""

    agent: str
    session: str
    logs: tuple[Status, ...]


class _Known(NamedTuple):
    logs: tuple[Status, ...]
    counted: Counted | None  # None: the session cannot be read


class CallCounts:
    """The counts of one home. While a session that grew is counted again, its last counts are returned."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[Name, _Known] = {}
        self._waiting: list[Wanted] = []  # the next one last
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def read(self, sessions: Sequence[Wanted]) -> tuple[dict[Name, Counted], bool]:
        """Return what is known of sessions, newest first, and whether others are being counted."""
        counts: dict[Name, Counted] = {}
        waiting: list[Wanted] = []
        with self._lock:
            for wanted in sessions:
                known = self._known.get(wanted[:2])
                if known and known.counted:
                    counts[wanted[:2]] = known.counted
                if known is None or known.logs != wanted.logs:
                    waiting.append(wanted)
            self._waiting = waiting[::-1]
            if waiting and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._work, name="daypack-call-counts", daemon=True)
                self._thread.start()
        return counts, bool(waiting)

    def wait(self) -> None:
        """Wait until all sessions that were asked for are counted."""
        thread = self._thread
        if thread:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                wanted = self._waiting.pop()
            counted, seconds = self._count(wanted)
            with self._lock:
                self._known[wanted[:2]] = _Known(wanted.logs, counted)
            if seconds:
                time.sleep(min(_MOST_PAUSE, _PAUSES * seconds))

    def _count(self, wanted: Wanted) -> tuple[Counted | None, float]:
        """Return the counts of a session, and the time that it took to read its logs."""
        agent, name, _ = wanted
        try:
            if summary := read_summary(self._home.session(agent, name)):
                return (summary.calls, summary.compactions), 0.0
            start = time.thread_time()
            place = self._home
            with open_session(name, agent=agent, home=place.root, uid=place.uid, create=False) as session:
                calls = session.turns.calls.read()
                return (len(calls.rows), len(calls.folds)), time.thread_time() - start
        except DaypackError:
            return None, 0.0
        except Exception as error:  # whatever is wrong with one session, the others are counted
            report_error("count calls", error)
            return None, 0.0
