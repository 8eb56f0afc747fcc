"""The home that a page shows: its sessions, opened once for many requests, and its memories."""

import os
import threading
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.session import Session, open_session

if TYPE_CHECKING:
    from daypack.history.caches import Caches
    from daypack.memory.tools import Memories

_KEPT_OPEN = 12  # sessions; opening one costs 0.5 ms, folding its events much more


class _Opened:
    """A session and how many requests use it now."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.users = 0
        self.replaced = False  # by another session of the same name, or deleted
        # While its folder is open, no new folder gets the same number.
        try:
            self._folder = os.open(session.layout.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            self._folder = -1

    def is_current(self) -> bool:
        """Return True if the folder of the session is the one that was opened."""
        try:
            return os.path.samestat(os.fstat(self._folder), os.stat(self.session.layout.folder))
        except OSError:
            return False

    def close(self) -> None:
        """Close the session and its folder."""
        self.session.close()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


class OpenedHome:
    """One home of one user folder. Any thread may ask it; a session is closed when no request uses it."""

    def __init__(self, root: str | None, uid: str | None, memories: "Memories | None") -> None:
        self.home: Home = find_home(root, uid)
        self.memories = memories
        self._caches: Caches | None = None  # made when sessions are in a database
        self._root, self._uid = root, uid
        self._opened: OrderedDict[tuple[str, str], _Opened] = OrderedDict()
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Bring the folders of sessions in a database up to date, for those who read many; at most once a second."""
        if self.home.database is None:
            return
        if self._caches is None:
            from daypack.history.caches import Caches  # noqa: PLC0415 — most homes have files

            with self._lock:
                self._caches = self._caches or Caches(self.home)
        self._caches.refresh_if_due()

    @contextmanager
    def session(self, agent: str, name: str) -> Generator[Session]:
        """Lend an existing session; SessionMissing if there is none."""
        opened = self._borrow(agent, name)
        try:
            opened.session.history.refresh()
            yield opened.session
        finally:
            with self._lock:
                opened.users -= 1
                if opened.replaced and not opened.users:
                    opened.close()
                self._close_unused()

    def _borrow(self, agent: str, name: str) -> _Opened:
        key = agent, name
        with self._lock:
            opened = self._opened.get(key)
            if opened is not None and not opened.is_current():
                self._drop(key)
                opened = None
            if opened is None:
                session = open_session(name, agent=agent, home=self._root, uid=self._uid, create=False)
                opened = self._opened[key] = _Opened(session)
            self._opened.move_to_end(key)
            opened.users += 1
            return opened

    def _drop(self, key: tuple[str, str]) -> None:
        """Forget a session whose folder was deleted or replaced; the last request that uses it closes it."""
        opened = self._opened.pop(key)
        opened.replaced = True
        if not opened.users:
            opened.close()

    def _close_unused(self) -> None:
        for key, opened in list(self._opened.items())[: max(0, len(self._opened) - _KEPT_OPEN)]:
            if not opened.users:
                del self._opened[key]
                opened.close()

    def close(self) -> None:
        """Close the sessions; the memories belong to the caller."""
        with self._lock:
            while self._opened:
                self._opened.popitem()[1].close()
