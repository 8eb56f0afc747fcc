"""Derived files that have words of many sessions: they are deleted when a session is erased or deleted.

home/<uid>/find/index.sqlite, home/<uid>/agent/<agent>/sessions.idx    in files
home/<uid>/store/<database>/find/index.sqlite, …                       of sessions in a database
home/<uid>/project/<digest of the key>/last.json, decisions.json       of both
"""

import os
from contextlib import suppress

from daypack.files import atomic
from daypack.files.database import COMPANIONS
from daypack.history.layout import DECISIONS, FIND_INDEX, LAST_SESSIONS, SESSION_ROWS, Home


def forget_words(home: Home) -> None:
    """Delete what lists, searches and projects have of the sessions of a home; the next use makes it again."""
    forget_listed(home.sessions_folder)
    for name in _names(home.projects):
        for file in (LAST_SESSIONS, DECISIONS):
            atomic.discard(os.path.join(home.projects, name, file))


def forget_listed(folder: str) -> None:
    """Delete the index and the lists of the sessions in a folder: a user's own, or the caches of one database."""
    forget_index(os.path.join(folder, FIND_INDEX))
    for agent in _names(os.path.join(folder, "agent")):
        atomic.discard(os.path.join(folder, "agent", agent, SESSION_ROWS))


def forget_index(path: str) -> None:
    """Delete the index of `find`, which has words of all sessions; SQLite's files beside it have some too."""
    for ending in ("", *COMPANIONS):
        atomic.discard(path + ending)


def _names(folder: str) -> list[str]:
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.listdir(folder)
    return []
