"""Brings the folders of all sessions of a database up to date; only those that changed are fetched.

Lists and searches read many folders and open none of the sessions. One query says how far the logs of all of them
reach, and a folder whose log has other bytes, or that is of another session, is brought up to date by opening it.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, cast

from daypack.config import from_environment, from_file, settle
from daypack.errors import DaypackError, SessionMissing
from daypack.files.lock import Lock
from daypack.forks import ThreadLock
from daypack.history.across_sessions import forget_words
from daypack.history.creation import find_stored
from daypack.history.facets import parse_meta
from daypack.history.layout import Home, Layout
from daypack.history.postgres.folder import read_marker
from daypack.history.postgres.store import Head, SessionStore
from daypack.history.session import History
from daypack.system import boot_id

Name = tuple[str, str]  # agent and session
_LEAST_SECONDS = 1.0  # between two looks of a server
_MOST_SECONDS = 30.0
_SHARE = 10  # a look takes at most about a tenth of the time


class Failure(NamedTuple):
    """A session whose folder could not be brought up to date."""

    agent: str
    session: str
    error: DaypackError


class Caches:
    """The folders of a user's sessions in a database. Threads share it; a home with files needs nothing."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[Name, Head] = {}  # folders that were found up to date
        self._next = 0.0
        self._lock = ThreadLock(self._forget)

    def _forget(self) -> None:
        self._known = {}

    def refresh(self) -> list[Failure]:
        """Bring all folders up to date and remove those of sessions that are gone; raise if the database is down."""
        if self._home.database is None:
            return []
        with self._lock:
            return self._refresh()

    def refresh_if_due(self) -> None:
        """Do that at most once a second, and in a tenth of the time."""
        if self._home.database is None or time.monotonic() < self._next:
            return
        with self._lock:
            if (began := time.monotonic()) < self._next:
                return  # another thread did it meanwhile
            try:
                self._refresh()
            finally:
                took = time.monotonic() - began
                self._next = began + took + min(_MOST_SECONDS, max(_LEAST_SECONDS, took * _SHARE))

    def _refresh(self) -> list[Failure]:
        store = cast(SessionStore, self._home.database)
        folders = set(_folders(self._home))  # first: the folder of a new session is made after its row
        known: dict[Name, Head] = {}
        failures: list[Failure] = []
        for head in store.heads():
            name = head.agent, head.name
            try:
                if name not in folders or (self._known.get(name) != head and not _is_current(self._home, head)):
                    _fetch(self._home.session(*name))
            except SessionMissing:
                continue  # deleted since: the next look removes its folder
            except DaypackError as error:
                if error.place == store.place:
                    raise  # the database does not answer: the others would wait for it too
                failures.append(Failure(*name, error))
            known[name] = head
        gone = folders - known.keys()
        for name in gone:
            with suppress(DaypackError, OSError):
                _drop(self._home, name)
        if gone:
            forget_words(self._home)
        for failure in failures:
            del known[failure.agent, failure.session]
        self._known = known
        return failures


def refresh_all(home: Home) -> list[Failure]:
    """Bring the folders of all sessions of a home up to date; nothing is done if the sessions are files."""
    return Caches(home).refresh()


def _folders(home: Home) -> Iterator[Name]:
    here = home.here
    return ((agent, name) for agent in here.agents() for name in here.list(agent))


def _is_current(home: Home, head: Head) -> bool:
    layout = home.session(head.agent, head.name)
    marker = read_marker(layout)
    if marker is None or marker.boot != boot_id().hex():
        return False
    known = marker.identity, marker.generation, marker.version, _size(layout.messages), _size(layout.events)
    return known == (head.identity, head.generation, head.version, head.messages, head.events)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _fetch(layout: Layout) -> None:
    """Open a session, which brings its folder up to date, with its own settings: some are about the folder."""
    opened = find_stored(layout)
    if opened is None:
        raise SessionMissing("the session is gone", operation="cache session", place=layout.folder)
    meta, config = parse_meta(opened.files.meta) or {}, layout.home.config
    settings = settle([("environment", from_environment(os.environ)), (layout.meta, meta), (config, from_file(config))])
    History(layout, settings, opened=opened).close()


def _drop(home: Home, name: Name) -> None:
    """Remove the folder of a session that is gone, unless it has been created again meanwhile."""
    layout = home.session(*name)
    lock = Lock(layout.messages)
    with suppress(DaypackError), lock:
        if not home.has(*name):
            shutil.rmtree(layout.folder, ignore_errors=True)
    lock.close()
