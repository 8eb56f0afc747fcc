"""The list of all sessions, newest first."""

from typing import Any
from weakref import WeakKeyDictionary

from daypack.forks import ThreadLock
from daypack.serve.page.session_list import SessionList
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome

_lists: WeakKeyDictionary[OpenedHome, SessionList] = WeakKeyDictionary()
_lock = ThreadLock()


def list_sessions(home: OpenedHome, asked: Asked) -> dict[str, Any]:  # noqa: ARG001 — as every view
    """Return the sessions of all agents and projects."""
    return list_of(home).read()._asdict()


def list_of(home: OpenedHome) -> SessionList:
    """Return the list of a home, which stays in memory as long as the home is open."""
    with _lock:
        return _lists.setdefault(home, SessionList(home.home))
