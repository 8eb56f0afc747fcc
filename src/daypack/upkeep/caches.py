"""The caches of sessions in databases: which there are, which may go, and their removal.

A cache may be deleted at any time: the next use fetches it again. Sessions in files are in other folders, which are
not looked at.
"""

import os
import shutil
from contextlib import closing, suppress
from typing import Literal

from msgspec import Struct

from daypack.errors import BadInput, DaypackError, UnsafePath
from daypack.files import atomic
from daypack.files.lock import Lock
from daypack.history.across_sessions import forget_listed
from daypack.history.layout import FIND_INDEX, Home
from daypack.upkeep.archive import guard_links
from daypack.upkeep.gc.session_files import size_of

# other: of a database that no setting names; gone: its session was deleted; unused: nothing was fetched for a while.
Reason = Literal["other", "gone", "unused", "kept"]
WORDS: dict[Reason, str] = {"other": "of a database that is not configured", "gone": "the session is gone"}
_GOING = f"{atomic.TEMPORARY}cache"


class CacheFolder(Struct, frozen=True):
    """The cache of one session. `database` is the name of the folder with all caches of a database."""

    database: str
    agent: str
    session: str
    path: str
    bytes: int
    used_at: float  # seconds since 1970
    reason: Reason

    @property
    def is_removable(self) -> bool:
        """True if it may go."""
        return self.reason != "kept"


class CachePlan(Struct, frozen=True):
    """All caches of a user, with what may go."""

    caches: tuple[CacheFolder, ...]

    @property
    def removable(self) -> tuple[CacheFolder, ...]:
        """Those that may go."""
        return tuple(cache for cache in self.caches if cache.is_removable)

    @property
    def bytes(self) -> int:
        """The size of what may go."""
        return sum(cache.bytes for cache in self.removable)


def plan_caches(home: Home, before: float) -> CachePlan:
    """Return the caches of a user; those that were not used since `before` may go, and those that serve nothing."""
    found: list[CacheFolder] = []
    for database in _folders(home.caches):
        current = home.database is not None and database == home.database.cache_name
        for agent in _folders(os.path.join(home.caches, database, "agent")):
            live = frozenset(home.list(agent)) if current else frozenset[str]()
            sessions = os.path.join(home.caches, database, "agent", agent, "session")
            for name in _folders(sessions):
                path = os.path.join(sessions, name)
                used_at = _used_at(path)
                reason: Reason = "unused" if used_at <= before else "kept"
                reason = "other" if not current else reason if name in live else "gone"
                found.append(CacheFolder(database, agent, name, path, size_of(path), used_at, reason))
    return CachePlan(tuple(found))


def remove_caches(home: Home, plan: CachePlan) -> tuple[CacheFolder, ...]:
    """Remove the caches that may go, and return them; one that was used since the plan was made is kept."""
    removed = tuple(cache for cache in plan.removable if _remove(home, cache))
    kept = {cache.database for cache in plan.caches if cache not in removed}
    for database in _folders(home.caches):
        if database not in kept or any(cache.database == database for cache in removed):
            _forget_words(os.path.join(home.caches, database))
    for folder, _, _ in os.walk(home.caches, topdown=False):
        if folder != home.caches and _GOING in folder:
            shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
        else:
            with suppress(OSError):
                os.rmdir(folder)  # only if it is empty
    return removed


def _remove(home: Home, cache: CacheFolder) -> bool:
    inside = os.path.join(home.caches, "")
    if not os.path.normpath(cache.path).startswith(inside):
        raise BadInput("is not a cache", operation="gc", place=cache.path, hint="nothing was removed")
    guard_links(home, cache.path)
    going = os.path.join(home.caches, f"{_GOING}-{os.getpid()}-{cache.database}")
    log = os.path.join(cache.path, "messages.jsonl")
    try:
        if _used_at(cache.path) > cache.used_at:
            return False
        if os.path.lexists(log):
            with closing(Lock(log)) as lock, lock:  # not while something is written to it
                os.rename(cache.path, going)
        else:
            os.rename(cache.path, going)
    except FileNotFoundError:
        return False  # another process was faster
    except OSError as error:
        raise atomic.refusal(cache.path, error, "remove cache") from error
    except UnsafePath:
        raise
    except DaypackError:
        return False
    shutil.rmtree(going, ignore_errors=True)
    return True


def _forget_words(folder: str) -> None:
    """Remove what is known of all sessions of a database; of a cache that is gone, nothing else would remove it."""
    forget_listed(folder)
    shutil.rmtree(os.path.dirname(os.path.join(folder, FIND_INDEX)), ignore_errors=True)


def _used_at(path: str) -> float:
    """Return when something was last written to a cache."""
    newest = 0.0
    for name in ("", "stored.json", "messages.jsonl", "events.jsonl", "context", os.path.join("context", "offsets")):
        with suppress(OSError):
            newest = max(newest, os.lstat(os.path.join(path, name)).st_mtime)
    return newest


def _folders(path: str) -> list[str]:
    """Return the folders in a folder, without links and hidden ones."""
    try:
        with os.scandir(path) as found:
            return sorted(
                item.name for item in found if item.is_dir(follow_symlinks=False) and not item.name.startswith(".")
            )
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise atomic.refusal(path, error, "list caches") from error
