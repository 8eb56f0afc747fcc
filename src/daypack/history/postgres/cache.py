"""The folder of a session in a database: made from nothing, brought up to date, dropped when it is wrong.

    stored.json   {"identity":"9f86d081884c7d65/12","generation":0,"version":3,"boot":"…"}

Lines are stored in the database before they are in the folder, so the folder is never ahead. Nothing in it is synced:
after a restart of the machine its logs are read whole, and compared with the database by their checksum.
What other workers recorded about pins, children, the budget and the state becomes files here as well.
"""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, cast
from zlib import crc32

import msgspec
from msgspec import Struct

from daypack.errors import DaypackError, Overtaken, StorageFailed
from daypack.files import atomic, jsonl
from daypack.files.atomic import refusal
from daypack.files.lock import Lock
from daypack.history.across_sessions import forget_words
from daypack.history.facets import Condition, Facets
from daypack.history.layout import Layout
from daypack.history.logs.log import Log
from daypack.history.logs.reader import decoder_of
from daypack.history.logs.upstream import Mark
from daypack.history.postgres.ahead import Ahead
from daypack.history.postgres.appends import Added, new_writer
from daypack.history.postgres.store import Opened, SessionStore
from daypack.history.postgres.stored import LOGS, Fetched, SmallFiles
from daypack.system import boot_id
from daypack.types.history import Event, Message
from daypack.types.kinds import SESSION_STATES

MARKER = "stored.json"
_PINS = ("pin.set", "pin.removed")
_STATE = "session.state"
_CHILD = "child.updated"
_TURN = "context.turn"
_TEXTS = {"context.budget": "budget", "gc.policy": "gc_policy"}  # files that have the text of their newest event
_FOLLOWED = tuple(f'"{kind}"'.encode() for kind in (*_PINS, _STATE, _CHILD, _TURN, *_TEXTS))
_MOST_DELETIONS = 100  # of a folder, while it is filled
_STUCK_SECONDS = 10.0  # without a line more than before
_UNKNOWN = -1  # a version: the small files are fetched
Captured = Callable[[Mapping[str, Any]], bytes]


class Marker(Struct, frozen=True):
    """What a folder is a cache of."""

    identity: str
    generation: int
    version: int  # of the small files
    boot: str  # the start of the machine since which the folder was written


_markers = msgspec.json.Decoder(Marker)


class Cache:
    """The folder of one session, and the rows it is made from. Threads and processes of a machine share the folder."""

    def __init__(self, layout: Layout, opened: Opened, lock: Lock, facets: Facets) -> None:
        self._layout = layout
        self._opened = opened
        self._is_filling = False
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
        with lock:
            self._prepare(opened)

    def attach(self, messages: Log[Message], events: Log[Event], captured: Captured) -> None:
        """Use the logs of a history, which are those of the folder; `captured` returns the text of a reference."""
        self._logs = messages, events
        self._events = events
        self._captured = captured
        for log in self._logs:
            log.writer.upstream = self
            log.reader.restore = self.restore
            log.reader.remake = self.remake
        self._facets.remake = self.remake
        self.refresh()
        if self._facets.read(self._layout.state) not in SESSION_STATES:
            self._restore_state()

    def _restore_state(self) -> None:
        self._facets.write_state("active")
        for event in self._events.holding((f'"{_STATE}"'.encode(),)):
            if event.type == _STATE:
                with suppress(DaypackError, KeyError, TypeError):  # written by hand
                    self._follow_event(event)

    # Writing

    def append(self, path: str, place: Mark, data: bytes, crc: int) -> None:
        """Store lines, and the blobs that were put since, if the log still ends at `place`."""
        log = 0 if path == self._layout.messages else 1
        older = {name: blob for name, blob in self._older_blobs.items() if name[-64:].encode() in data}
        blobs = {**older, **self._new_blobs}
        outcome = self._stored.append(self._marker.generation, Added(log, place, data, crc, new_writer()), blobs)
        if outcome == "stored":
            for name in blobs:
                self._new_blobs.pop(name, None)
                self._older_blobs.pop(name, None)
            return
        if outcome == "gone":
            raise self._stored.gone("append")
        hint = "another worker appends to the session at the same time; call again"
        raise Overtaken("another worker appended first", operation="append", place=self._layout.folder, hint=hint)

    def add_blob(self, name: str, data: bytes) -> None:
        """Have a blob stored with the next append."""
        self._new_blobs[name] = data

    def fetch_blob(self, name: str) -> bytes | None:
        """Return a stored blob; None if there is none of that name."""
        return self._stored.blob(name)

    def change_meta(self, changes: Mapping[str, Any], only_if: Condition | None = None) -> bytes:
        """Change keys of meta.json in the database, if a condition is true of it there, and return the result."""
        data, version = self._stored.change_meta(changes, only_if)
        atomic.replace(self._layout.meta, data, durable=False)  # before the marker, which says which version it is
        self._write_marker(msgspec.structs.replace(self._marker, version=version))
        return data

    # Bringing the folder up to date

    def refresh(self) -> None:
        """Fetch what other workers have stored since, if there is anything."""
        if self._stored.reaches(self._marker.generation, self._marker.version, self._marks()):
            return
        with self._lock:
            self._marker = read_marker(self._layout) or self._marker  # another process may have been faster
            try:
                self._catch_up()
            except StorageFailed as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                self.fill()

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
                self._drop()
        if wrong:
            self.refresh()
        return bool(wrong)

    # A folder that was deleted while it is in use

    def make(self) -> None:
        """Create the files that are missing, empty; without its marker, the folder is filled by who locks it next."""
        layout = self._layout
        if not all(map(os.path.lexists, (layout.messages, layout.events))):
            atomic.discard(os.path.join(layout.folder, MARKER))
        self._despite_deletions(lambda: make_folder(layout, self._opened))

    def fill(self) -> None:
        """Fetch what files lack that are not the ones from before; the caller holds the lock."""
        if self._is_filling or not self._logs:
            return
        self._is_filling = True
        try:
            self._despite_deletions(self._fill)
        finally:
            self._is_filling = False

    def _fill(self) -> None:
        self.make()
        marker = read_marker(self._layout)
        self._marker = marker or msgspec.structs.replace(self._marker, version=_UNKNOWN)
        if marker is None or marker.identity != self._opened.identity:
            self._drop()
        self._catch_up()
        if not os.path.lexists(self._layout.state):
            self._restore_state()

    def _despite_deletions(self, work: Callable[[], None]) -> None:
        """Call `work`, again if the folder is deleted meanwhile."""
        for _ in range(_MOST_DELETIONS):
            try:
                return work()
            except StorageFailed as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        return work()

    def remake(self) -> None:
        """Make files again that were deleted; nothing is done for what only looks like one."""
        with self._lock:  # makes all of it if messages.jsonl is missing
            if self._is_filling:
                self.make()
                return
            missing = [path for path in self._files() if not os.path.lexists(path)]
            if not missing:
                return
            self.make()
            if self._layout.meta in missing:
                atomic.discard(os.path.join(self._layout.folder, MARKER))
            self.fill()

    def _files(self) -> tuple[str, ...]:
        layout = self._layout
        return layout.messages, layout.events, layout.meta, layout.state

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
        self._clear()
        for log in self._logs:
            log.close()
            log.reader.damage.clear()
            log.reader.generation += 1

    def _write(self, log: Log[Any], data: bytes) -> None:
        """Add fetched lines to a log of the folder, and to its sidecar."""
        log.writer.follow_path()  # readers do: lines in a deleted file would be fetched again and again
        fd = log.begin().fd
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
        atomic.discard(os.path.join(layout.folder, MARKER))
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
        path = os.path.join(self._layout.folder, MARKER)
        data = msgspec.json.encode(marker) + b"\n"
        if atomic.read(path) != data:
            atomic.replace(path, data, durable=False)


def read_marker(layout: Layout) -> Marker | None:
    """Return what a folder is a cache of; None if it has no marker that can be read."""
    try:
        return _markers.decode(atomic.read(os.path.join(layout.folder, MARKER)) or b"")
    except (StorageFailed, msgspec.MsgspecError):
        return None


def make_folder(layout: Layout, opened: Opened) -> None:
    """Create the files of a cache that are missing; none of them has anything of the session yet, but small files."""
    atomic.make_folders(layout.folder, durable=False)
    layout.guard()
    small = {
        layout.created_at: opened.files.created_at,
        layout.updated_at: opened.files.created_at,
        layout.cwd: opened.files.cwd,
        layout.meta: opened.files.meta,
        **{os.path.join(layout.folder, f"{log}.jsonl"): b"" for log in LOGS},
    }
    for path, data in small.items():
        atomic.create(path, data, durable=False, named=False)


def _is_faithful(log: Log[Message] | Log[Event]) -> bool:
    """Return True if a log has the bytes that its sidecar was made from."""
    newest = log.reader.newest()
    return crc32((atomic.read(log.path) or b"")[: newest.end]) == newest.crc


def _no_text(reference: Mapping[str, Any]) -> bytes:
    raise KeyError(str(reference))


def store_of(layout: Layout) -> SessionStore:
    """Return the sessions of a home with a database."""
    return cast(SessionStore, layout.home.database)
