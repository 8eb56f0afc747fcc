"""Erases from a session in a database: the new logs are made from an up-to-date folder, and replace the old rows.

The replacement is one transaction of daypack_eraser. It takes the lock that appends take, and is refused if anything
was stored since the folder was read: then that is read, and everything made again, while the appends wait. So an
erasure ends under any load. The generation grows with it, so the folder of every worker is dropped when it is used
next.
"""

import os
import time
from collections.abc import Callable
from contextlib import closing, suppress
from zlib import crc32

from daypack.errors import DaypackError, Overtaken
from daypack.files import atomic
from daypack.files.lock import Lock
from daypack.history.logs.upstream import Mark
from daypack.history.postgres.cache import store_of
from daypack.history.postgres.rewriting import Known, NewRows, SessionRows
from daypack.history.postgres.store import Opened
from daypack.history.postgres.stored import SmallFiles
from daypack.history.session import History
from daypack.memory.store.postgres.erasure import clean
from daypack.upkeep.erase.marker import Key
from daypack.upkeep.erase.scope import Place
from daypack.upkeep.erase.session_rewrite import SessionPlan, SessionRewrite
from daypack.upkeep.erase.target import Target
from daypack.upkeep.fetching import fetch_blobs, fetch_session
from daypack.upkeep.session_settings import settings_of

Decide = Callable[[SessionPlan], "dict[str, object] | None"]  # returns the tombstone; None: nothing is erased


class StoredErasure:
    """One erasure from one session in a database."""

    def __init__(self, place: Place, target: Target, key: Key) -> None:
        self._place = place
        self._layout = place.layout
        self._target = target
        self._key = key
        self._store = store_of(place.layout)

    def apply(self, decide: Decide) -> tuple[SessionPlan, str] | None:
        """Replace the rows; return what changed and the event that records it. None: nothing is erased, or it is gone.

        `decide` may be called several times: another worker may have appended.
        """
        opened = self._store.find(self._place.agent, self._layout.name)
        if opened is None:
            return None
        rows = SessionRows(self._store.database, self._store.tenant, opened.stored.number)
        try:
            return self._attempt(rows, decide)
        except Overtaken:
            return self._apply_alone(rows, opened, decide)

    def _apply_alone(self, rows: SessionRows, opened: Opened, decide: Decide) -> tuple[SessionPlan, str] | None:
        """Erase while appends wait: what was stored meanwhile is read after their lock was taken.

        The lock of the folder is taken before: a process of this machine has it while it appends.
        """
        done: list[tuple[SessionRewrite, SessionPlan]] = []
        history = History(self._layout, settings_of(self._layout.home, self._layout), opened=opened)

        def make(known: Known) -> NewRows | None:
            history.refresh()
            fetch_blobs(self._layout, opened.stored)
            rewrite = SessionRewrite(self._layout, self._target, self._key)
            _require_same(rewrite, known, self._layout.folder)
            found = rewrite.plan(self._place.agent)
            tombstone = decide(found)
            if tombstone is None:
                return None
            done.append((rewrite, found))
            return _new_rows(rewrite, known, tombstone)

        with closing(history), history.lock:
            fetch_blobs(self._layout, opened.stored)  # before appends have to wait
            tables = rows.rewrite(make)
        if tables is None:
            return None
        rewrite, found = done[-1]
        self._clean_folder(rewrite)
        clean(self._store.database, tables)
        return found, rewrite.tombstone

    def _attempt(self, rows: SessionRows, decide: Decide) -> tuple[SessionPlan, str] | None:
        fetch_session(self._layout)
        flock = settings_of(self._layout.home, self._layout).locking == "flock"
        with closing(Lock(self._layout.messages, flock=flock)) as lock, lock:
            rewrite = SessionRewrite(self._layout, self._target, self._key)
        known = rows.known()
        _require_same(rewrite, known, self._layout.folder)
        found = rewrite.plan(self._place.agent)
        tombstone = decide(found)
        if tombstone is None:
            return None
        tables = rows.replace(known, _new_rows(rewrite, known, tombstone))
        self._clean_folder(rewrite)
        clean(self._store.database, tables)
        return found, rewrite.tombstone

    def _clean_folder(self, rewrite: SessionRewrite) -> None:
        """Replace the files of this worker that no generation drops; the logs are fetched by the next use."""
        for name, data in rewrite.files.items():
            path = os.path.join(self._layout.folder, name)
            with suppress(DaypackError):  # what remains is listed
                if data is None or name == "latest.md":
                    atomic.discard(path)
                else:
                    atomic.replace(path, data)
        fetch_session(self._layout)


def _require_same(rewrite: SessionRewrite, known: Known, place: str) -> None:
    marks = tuple(Mark(len(data), crc32(data)) for data in rewrite.old_logs())
    if marks != known.ends:
        raise Overtaken("another worker appended", operation="erase", place=place, hint="try again")


def _new_rows(rewrite: SessionRewrite, known: Known, tombstone: dict[str, object]) -> NewRows:
    new = rewrite.contents(tombstone, time.time())
    meta, cwd = rewrite.new_settings(known.files.meta, known.files.cwd)
    files = SmallFiles(meta, cwd, known.files.created_at)
    return NewRows((new.messages, new.events), new.blobs, new.removed, files)
