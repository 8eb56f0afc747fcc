"""Follow files as they are written: new ones, appended lines, renames, truncation and deletion.

Nothing but `stat` is asked of the system. A scan that finds nothing new costs a few µs for each file, and the next one
waits 500 times as long as the scan has computed: an idle watch takes about 0.2 % of a core, for any number of files.
"""

import os
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from daypack.importers.all_places.new_files import Done, NewFiles
from daypack.importers.all_places.scan import Found, Scanner
from daypack.importers.places import PlacedFile

POLL_SECONDS = 1.0
_COST_RATIO = 500
_MOST_SECONDS = 30.0  # between two scans
_MOST_DELAY_SECONDS = 10.0  # a file that is written without a pause is imported this often
_RETRY_SECONDS = 300.0  # after an error that may pass, if the file does not change


class Gone(NamedTuple):
    """A file that was there and is deleted or empty; what was imported from it stays."""

    path: str
    state: Literal["deleted", "emptied"]


class Timing(Protocol):
    """The clock of a watch, and when it ends."""

    def now(self) -> float:
        """Return seconds that only grow."""
        ...

    def cpu(self) -> float:
        """Return the seconds that this process has computed."""
        ...

    def wait(self, seconds: float) -> None:
        """Return after some seconds, or when the watch is stopped."""
        ...

    def is_stopped(self) -> bool:
        """Return True if the watch ends after the present file."""
        ...


class _Pending(NamedTuple):
    """A file that has changed, and when that was seen first."""

    file: PlacedFile
    first_seen: float


class _Held(NamedTuple):
    """A state of a file that is not imported again before some time."""

    file: PlacedFile
    until: float


class Watch:
    """Imports what the scanner finds, until it is stopped. `find_new` chooses the files with something to import."""

    def __init__(
        self,
        scanner: Scanner,
        find_new: Callable[[Sequence[Found]], NewFiles],
        on_event: Callable[[Done | Gone], None],
        timing: Timing,
    ) -> None:
        self._scanner = scanner
        self._find_new = find_new
        self._on_event = on_event
        self._timing = timing
        self._found: list[Found] = []
        self._known: dict[str, PlacedFile] | None = None  # before the first scan, files need not settle
        self._pending: dict[str, _Pending] = {}
        self._held: dict[str, _Held] = {}

    def run(self) -> None:
        """Scan, import and wait, again and again."""
        while not self._timing.is_stopped():
            began = self._timing.cpu()
            busy = self._step()
            cost = self._timing.cpu() - began
            if not self._timing.is_stopped():
                self._timing.wait(POLL_SECONDS if busy else min(max(POLL_SECONDS, _COST_RATIO * cost), _MOST_SECONDS))

    def _step(self) -> bool:
        """Import what has settled; return True if something changed or is pending."""
        found = self._scanner.scan()
        now = self._timing.now()
        due = any(held.until <= now for held in self._held.values())
        if found == self._found and not self._pending and not due and self._known is not None:
            return False
        files = {each.file.path: each.file for each in found}
        self._report_gone(files)
        new = self._find_new(found)
        ready = {each.file.path for each in new.files if self._is_ready(each.file, now)}
        self._pending = {
            each.file.path: _Pending(each.file, self._since(each.file.path, now))
            for each in new.files
            if each.file.path not in ready and not self._is_held(each.file, now)
        }
        self._found, self._known = found, files
        new.keep(lambda each: each.file.path in ready)
        new.take_in(self._finish, self._timing.is_stopped)
        return True

    def _is_ready(self, file: PlacedFile, now: float) -> bool:
        """Return True if a file has not changed since the last scan, or has been changing for long."""
        if self._is_held(file, now):
            return False
        known = self._known
        settled = known is None or known.get(file.path) == file
        return settled or now - self._since(file.path, now) >= _MOST_DELAY_SECONDS

    def _since(self, path: str, now: float) -> float:
        pending = self._pending.get(path)
        return pending.first_seen if pending else now

    def _is_held(self, file: PlacedFile, now: float) -> bool:
        held = self._held.get(file.path)
        return held is not None and held.file == file and now < held.until

    def _finish(self, done: Done) -> None:
        """Report a file; one that failed, or ends in the middle of a line, waits until it changes."""
        file = done.found.file
        earlier = self._held.pop(file.path, None)
        if done.failure or done.is_incomplete:
            self._held[file.path] = _Held(file, self._timing.now() + _RETRY_SECONDS)
        if done.failure and earlier and earlier.file == file:
            return  # the same file, tried again: it was reported
        self._on_event(done)

    def _report_gone(self, files: dict[str, PlacedFile]) -> None:
        """Report files that were there in the last scan, unless they were compressed in place."""
        for path in self._known or ():
            if path not in files:
                self._held.pop(path, None)
                if f"{path}.zst" not in files:
                    self._on_event(Gone(path, "emptied" if os.path.exists(path) else "deleted"))
