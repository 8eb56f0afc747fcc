"""The folder of a session in a database: made from nothing, brought up to date, dropped when it is wrong.

Lines are stored in the database before they are in the folder, so the folder is never ahead. Nothing in it is synced:
after a restart of the machine its logs are read whole, and compared with the database by their checksum.
What other workers recorded about pins, children, the budget and the state becomes files here as well.
"""

import os
import shutil
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from errno import ENOENT
from functools import partial
from typing import Any, cast
from zlib import crc32

import msgspec

from daypack.errors import DaypackError, Overtaken, StorageFailed
from daypack.files import atomic, jsonl
from daypack.files.atomic import is_missing, refusal
from daypack.files.lock import Lock
from daypack.forks import ThreadLock
from daypack.history.across_sessions import forget_words
from daypack.history.facets import Condition, Facets
from daypack.history.layout import Layout
from daypack.history.logs.log import Log
from daypack.history.logs.reader import decoder_of
from daypack.history.logs.upstream import Mark
from daypack.history.postgres.ahead import Ahead
from daypack.history.postgres.appends import Added, new_writer
from daypack.history.postgres.folder import (
    Marker,
    despite_deletions,
    discard_marker,
    make_folder,
    read_marker,
    write_marker,
)
from daypack.history.postgres.store import Opened, SessionStore
from daypack.history.postgres.stored import Fetched, SmallFiles
from daypack.system import boot_id
from daypack.types.history import Event, Message
from daypack.types.kinds import SESSION_STATES

_PINS = ("pin.set", "pin.removed")
_STATE = "session.state"
_CHILD = "child.updated"
_TURN = "context.turn"
_TEXTS = {"context.budget": "budget", "gc.policy": "gc_policy"}  # files that have the text of their newest event
_FOLLOWED = tuple(f'"{kind}"'.encode() for kind in (*_PINS, _STATE, _CHILD, _TURN, *_TEXTS))
_STUCK_SECONDS = 10.0  # without a line more than before
_UNKNOWN = -1  # a version: the small files are fetched
Captured = Callable[[Mapping[str, Any]], bytes]


class Cache:
    """The folder of one session, and the rows it is made from. Threads and processes of a machine share the folder."""

    def __init__(self, layout: Layout, opened: Opened, lock: Lock, facets: Facets) -> None:
        self._layout = layout
        self._opened = opened
        self.is_filling = False
        self._filling = ThreadLock()
        # The folder was filled again under the lock: what its holder has read before is out of date.
        self._is_stale = False
        self.appended = 0  # how often
        self._stored = opened.stored
        self._lock = lock
        self._facets = facets
        self._new_blobs: dict[str, bytes] = {}  # not known to be stored
        # Put before the logs were rewritten: they may have what was erased, so lines must name them.
        self._older_blobs: dict[str, bytes] = {}
        self._logs: tuple[Log[Message] | Log[Event], ...] = ()
        self._captured: Captured = _no_text
        self._ahead = Ahead(opened.stored.place)
        self._marker = Marker(opened.identity, opened.generation, 0, boot_id().hex())
        lock.remade = self
        self.make()
        with lock:
            self._in_locked_folder(partial(self._prepare, opened))
        facets.remake = self.remake

    def attach(self, messages: Log[Message], events: Log[Event], captured: Captured) -> None:
        """Use the logs of a history, which are those of the folder; `captured` returns the text of a reference."""
        self._logs = messages, events
        self._events = events
        self._captured = captured
        for log in self._logs:
            log.writer.upstream = log.reader.upstream = self
            log.reader.restore = self.restore
        with self._lock, self._hiding(filling=True):
            self._in_locked_folder(self._confirm)

    def _confirm(self) -> None:
        if not self._reaches():
            self._fill()
        elif self._facets.read(self._layout.state) not in SESSION_STATES:
            self._restore_state()

    def forget(self) -> None:
        """In a forked child: forget what another thread of the parent was doing under the lock."""
        if self.is_filling:
            for log in self._logs:
                log.reader.inode = 0  # so that it is filled; `distrust` could wait for a thread of the parent
        self.is_filling = self._is_stale = False

    def _restore_state(self) -> None:
        self._facets.write_state("active")
        for event in self._events.holding((f'"{_STATE}"'.encode(),)):
            if event.type == _STATE:
                with suppress(DaypackError, KeyError, TypeError):  # written by hand
                    self._follow_event(event)

    # Writing

    def append(self, path: str, place: Mark, data: bytes, crc: int) -> None:
        """Store lines, and the blobs that were put since, if the log still ends at `place`.

        The place protects what the writer knows. What was decided before came from the reader, so it must read the
        same file, and no other than before.
        """
        log = 0 if path == self._layout.messages else 1
        if self._is_stale or self._logs[log].reader.inode != self._logs[log].writer.inode:
            raise self._overtaken("the folder was made again meanwhile")
        older = {name: blob for name, blob in self._older_blobs.items() if name[-64:].encode() in data}
        blobs = {**older, **self._new_blobs}
        outcome = self._stored.append(self._marker.generation, Added(log, place, data, crc, new_writer()), blobs)
        if outcome == "stored":
            for name in blobs:
                self._new_blobs.pop(name, None)
                self._older_blobs.pop(name, None)
            self.appended += 1
            return
        if outcome == "gone":
            raise self._stored.gone("append")
        raise self._overtaken("another worker appended first")

    def _overtaken(self, problem: str) -> Overtaken:
        hint = "another worker uses the session at the same time; call again"
        return Overtaken(problem, operation="append", place=self._layout.folder, hint=hint)

    def add_blob(self, name: str, data: bytes) -> None:
        """Have a blob stored with the next append."""
        self._new_blobs[name] = data

    def fetch_blob(self, name: str) -> bytes | None:
        """Return a blob that is stored, or will be with the next append; None if there is none of that name."""
        return self._new_blobs.get(name) or self._older_blobs.get(name) or self._stored.blob(name)

    def change_meta(self, changes: Mapping[str, Any], only_if: Condition | None = None) -> bytes:
        """Change keys of meta.json in the database, if a condition is true of it there, and return the result."""
        data, version = self._stored.change_meta(changes, only_if)
        atomic.replace(self._layout.meta, data, durable=False)  # before the marker, which says which version it is
        self._write_marker(msgspec.structs.replace(self._marker, version=version))
        return data

    # Bringing the folder up to date

    def refresh(self) -> None:
        """Fetch what other workers have stored since, if there is anything."""
        if self._reaches() and not self._is_stale:
            return
        with self._lock, self._hiding(filling=False):
            self._marker = read_marker(self._layout) or self._marker  # another process may have been faster
            try:
                self._catch_up()
            except StorageFailed as error:
                if not is_missing(error):
                    raise
                self.fill()
            self._is_stale = False

    def _reaches(self) -> bool:
        return self._stored.reaches(self._marker.generation, self._marker.version, self._marks())

    def _catch_up(self) -> None:
        furthest, until = -1, 0.0
        while not self._is_current(fetched := self._fetch()):
            reached = sum(mark.end for mark in self._marks())
            if reached > furthest:
                furthest, until = reached, time.monotonic() + _STUCK_SECONDS
            elif time.monotonic() > until:
                hint = "it is deleted or filled by another process at the same time; call again"
                problem = "the folder changes while it is filled"
                raise StorageFailed(problem, operation="cache session", place=self._layout.folder, hint=hint)
            self._apply(fetched)
        self._ahead.compare()

    def restore(self) -> bool:
        """Fetch a log again whose lines are damaged here; return False if the database has them like that."""
        self.refresh()
        with self._lock:
            wrong = [log for log in self._logs if not _is_faithful(log)]
            if wrong:
                discard_marker(self._layout)
                self.fill()
        return bool(wrong)

    # A folder that was deleted while it is in use

    def make(self) -> None:
        """Create the files that are missing, empty; without its marker, the folder is filled by who locks it next."""
        layout = self._layout
        if not all(map(os.path.lexists, (layout.messages, layout.events))):
            discard_marker(self._layout)
        despite_deletions(partial(make_folder, layout, self._opened))

    def fill(self) -> None:
        """Fetch what files lack that are not the ones from before; the caller holds the lock."""
        if not self._logs:
            self.make()
        elif not self.is_filling:
            with self._hiding(filling=True):
                self._in_locked_folder(self._fill)

    def _fill(self) -> None:
        self.make()
        marker = read_marker(self._layout)
        self._marker = marker or msgspec.structs.replace(self._marker, version=_UNKNOWN)
        if marker is None or marker.identity != self._opened.identity:
            self._drop()
        self._catch_up()
        if not os.path.lexists(self._layout.state):
            self._restore_state()

    @contextmanager
    def _hiding(self, *, filling: bool) -> Generator[None]:
        """Keep the logs from other threads while they lack lines: from now on if `filling`, else once they are dropped.

        The caller holds the lock. If it fails, the logs are filled before they are read again.
        """
        with self._filling:
            former = self.is_filling
            self.is_filling = former or filling
            try:
                yield
            except BaseException:
                if self.is_filling:
                    for log in self._logs:
                        log.reader.distrust()
                raise
            finally:
                self.is_filling = former

    def wait_until_filled(self) -> None:
        """Return when no other thread is filling the logs; it may hold the session's lock for longer."""
        with self._filling:
            pass

    def _in_locked_folder(self, work: Callable[[], None]) -> None:
        """Call `work` with the lock of the folder that is there, again if it is deleted meanwhile."""

        def attempt() -> None:
            self._lock.follow()
            work()
            self._require_lock()

        despite_deletions(attempt)

    def _require_lock(self) -> None:
        """Raise what a deleted folder does unless the folder is the one that is locked: another process may fill it."""
        if not self._lock.is_current:
            gone = FileNotFoundError(ENOENT, os.strerror(ENOENT))
            raise refusal(self._layout.messages, gone, "cache session") from gone

    def remake(self) -> None:
        """Make files again that were deleted, and fill the files that another process has made.

        Who held the lock before has read files that are gone, so nothing can be appended until the next `refresh`.
        """
        was_held = self._lock.held
        if was_held and self.is_filling:
            self.make()
            return
        with self._lock:
            self._is_stale = self._is_stale or was_held
            if not os.path.lexists(self._layout.meta):
                discard_marker(self._layout)
            self.fill()

    def _fetch(self) -> Fetched:
        return self._stored.fetch(self._marks(), self._marker.generation, self._marker.version)

    def _marks(self) -> list[Mark]:
        newest = (log.reader.newest() for log in self._logs)
        return [Mark(slot.end, slot.crc) for slot in newest]

    def _is_current(self, fetched: Fetched) -> bool:
        """Return True if nothing was fetched; another process may have written a newer marker than ours."""
        same = fetched.generation == self._marker.generation and fetched.files is None
        return same and not any(lines.more for lines in fetched.logs)

    def _apply(self, fetched: Fetched) -> None:
        marker = msgspec.structs.replace(self._marker, generation=fetched.generation, version=fetched.version)
        if fetched.files is not None:
            self._write_small(fetched.files)
        if fetched.generation != self._marker.generation:
            self._older_blobs |= self._new_blobs
            self._new_blobs.clear()
        if fetched.generation != self._marker.generation or not all(lines.fits for lines in fetched.logs):
            for log, lines in zip(self._logs, fetched.logs, strict=True):
                same = fetched.generation == self._marker.generation and not lines.fits
                # The database was restored to before an erasure: nothing that was erased there is in the copy.
                if same or fetched.generation < self._marker.generation:
                    self._ahead.copy(log.path)
            self._drop()
            if fetched.generation != self._marker.generation:
                forget_words(self._layout.home)  # after the logs: they must not be indexed again
        else:
            messages, events = (lines.data for lines in fetched.logs)
            # Files before lines: a file that differs from the events counts as edited by hand. If this
            # process is killed in between, the same lines are fetched again.
            self._follow(events)
            for log, data in zip(self._logs, (messages, events), strict=True):
                if data:
                    self._write(log, data)
            self._note(messages, events)
        self._write_marker(marker)

    def _drop(self) -> None:
        """Drop what the folder has, because it is wrong: all of it is fetched again."""
        self.is_filling = True
        self._clear()
        for log in self._logs:
            log.close()
            log.reader.distrust()

    def _write(self, log: Log[Any], data: bytes) -> None:
        """Add fetched lines to a log of the folder, and to its sidecar."""
        log.writer.follow_path()  # readers do: lines in a deleted file would be fetched again and again
        fd = log.begin().fd
        self._require_lock()
        try:
            jsonl.write_all(fd, data)
        except OSError as error:
            raise refusal(log.path, error, "cache session") from error
        log.begin()

    def _follow(self, events: bytes) -> None:
        """Do to the small files and to context/ what the workers did to theirs that recorded these events."""
        for line in events.splitlines():
            if any(kind in line for kind in _FOLLOWED):
                try:
                    self._follow_event(decoder_of(Event).decode(line))
                except StorageFailed:
                    raise  # tried again with the same lines
                except (DaypackError, msgspec.MsgspecError, KeyError, TypeError, ValueError):
                    continue  # written by hand

    def _note(self, messages: bytes, events: bytes) -> None:
        """Date the session by its newest message, and drop what is restored from lines that are new."""
        if f'"{_CHILD}"'.encode() in events:
            shutil.rmtree(self._layout.derived("child"), ignore_errors=True)
        if messages:
            self._facets.stale = True
            with suppress(DaypackError, ValueError, OSError, msgspec.MsgspecError):  # a hand-written line has no time
                newest = decoder_of(Message).decode(messages[:-1].rpartition(b"\n")[2])
                written = datetime.fromisoformat(newest.ts).timestamp()
                self._facets.touch(written)
                os.utime(self._layout.messages, (written, written))  # not the time when it was fetched

    def _follow_event(self, event: Event) -> None:
        layout = self._layout
        if event.type in _PINS and os.path.isdir(layout.pinned):
            path = layout.pin(event.data["name"])
            if event.type == "pin.set":
                atomic.replace(path, self._captured(event.data), durable=False)
            else:
                atomic.discard(path)
        elif event.type in _TEXTS:
            atomic.make_folders(layout.context, durable=False)
            atomic.replace(layout.derived(_TEXTS[event.type]), str(event.data["text"]).encode(), durable=False)
        elif event.type == _TURN:
            for name in ("pack", "pack_text"):  # of an earlier turn
                atomic.discard(layout.derived(name))
        elif event.type == _STATE and event.data["to"] in SESSION_STATES:
            self._facets.write_state(event.data["to"])

    # The folder

    def _prepare(self, opened: Opened) -> None:
        """Make the folder one of this session: empty, unless it is one already."""
        marker = read_marker(self._layout)
        known = marker is not None and (marker.identity, marker.generation) == (opened.identity, opened.generation)
        version = opened.version
        if not known:
            if marker is not None and marker.identity == opened.identity and marker.generation > opened.generation:
                for path in (self._layout.messages, self._layout.events):
                    self._ahead.copy(path)  # as in `_apply`
                version = _UNKNOWN  # so that they are compared, also if there are no lines to fetch
            self._clear()
            if marker is not None or opened.generation:  # something was erased, or a session of this name deleted
                forget_words(self._layout.home)
        elif marker is not None and marker.boot != self._marker.boot:
            # Files that were not synced may be empty. The logs are read whole and compared, the others are made anew.
            shutil.rmtree(self._layout.context, ignore_errors=True)
            atomic.discard(self._layout.state)
            marker = None
        if not known or marker is None or marker.version != opened.version or self._facets.is_unreadable:
            self._write_small(opened.files)
        self._write_marker(msgspec.structs.replace(self._marker, version=version))

    def _write_small(self, files: SmallFiles) -> None:
        paths = (self._layout.meta, self._layout.cwd, self._layout.created_at)
        for path, data in zip(paths, files, strict=True):
            atomic.replace(path, data, durable=False)

    def _clear(self) -> None:
        """Remove everything but the small files; a killed process leaves no marker, so the next one does it again."""
        layout = self._layout
        discard_marker(self._layout)
        try:
            for path in (layout.messages, layout.events):
                # Not a new file, unless it was deleted: this one has the lock.
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise refusal(layout.folder, error, "cache session") from error
        for folder in (layout.context, layout.blob):
            shutil.rmtree(folder, ignore_errors=True)
        atomic.discard(layout.latest)  # the newest text may be what was erased
        self._facets.write_state("active")

    def _write_marker(self, marker: Marker) -> None:
        self._marker = marker
        write_marker(self._layout, marker)


def _is_faithful(log: Log[Message] | Log[Event]) -> bool:
    """Return True if a log has the bytes that its sidecar was made from."""
    newest = log.reader.newest()
    return crc32((atomic.read(log.path) or b"")[: newest.end]) == newest.crc


def _no_text(reference: Mapping[str, Any]) -> bytes:
    raise KeyError(str(reference))


def store_of(layout: Layout) -> SessionStore:
    """Return the sessions of a home with a database."""
    return cast(SessionStore, layout.home.database)
