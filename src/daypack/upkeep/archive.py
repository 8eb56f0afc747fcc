"""Archive, restore and delete whole sessions, each only when the user names the session.

    <root>/home/<uid>/archive/<agent>/<session>-<n>/

A session moves by one rename. An archived session is never overwritten: each archiving gets its own number. Deletion
renames the folder first, so that a crash never leaves half a session under its name.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from shlex import quote
from typing import NamedTuple

from msgspec import Struct

from daypack.errors import BadInput, SessionMissing, StorageFailed, UnsafePath
from daypack.files import atomic
from daypack.files.lock import Lock
from daypack.history.across_sessions import forget_words
from daypack.history.creation import absent
from daypack.history.facets import Facets
from daypack.history.layout import Home, Layout, check_name
from daypack.history.session import History
from daypack.upkeep.fetching import fetch_session
from daypack.upkeep.gc.policy import read_policy
from daypack.upkeep.gc.session_files import size_of
from daypack.upkeep.session_settings import settings_of

BUSY_SECONDS = 3600  # an active session that was written to since then is in use
_DELETING = ".deleting-"
_TARGET_EXISTS = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)


class Guard(NamedTuple):
    """The checks that protect a session in use from being archived or deleted by mistake."""

    now: float
    current: str | None = None  # the caller's own session (DAYPACK_SESSION)
    force: bool = False


class Moved(Struct, frozen=True):
    """A session that was archived, restored or deleted; `path` is where it is now, None if deleted."""

    agent: str
    session: str
    number: int | None
    path: str | None
    bytes: int


def archive(home: Home, agent: str, name: str, guard: Guard) -> Moved:
    """Move a session to the archive under the next free number; a session in use is refused."""
    _refuse_stored(home, agent, name, "archive")
    layout = _live_layout(home, agent, name)
    folder = _archive_folder(home, agent)
    with _locked(home, layout, layout.messages):
        refuse_if_in_use(layout, guard, "archive")
        atomic.make_folders(folder)
        guard_links(home, folder)
        number = max(archived(home, agent, name), default=0) + 1
        while not _rename(layout.folder, os.path.join(folder, f"{name}-{number}")):
            number += 1  # another process took this number
    _sync(os.path.dirname(layout.folder), folder)
    path = os.path.join(folder, f"{name}-{number}")
    return Moved(agent, name, number, path, size_of(path))


def archived(home: Home, agent: str, name: str) -> list[int]:
    """Return the numbers under which a session is archived, lowest first."""
    numbers: list[int] = []
    folder = _archive_folder(home, agent)
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.listdir(folder):
            stem, _, digits = entry.rpartition("-")
            if stem == name and digits.isascii() and digits.isdecimal() and digits == str(int(digits)):
                log = os.path.join(folder, entry, "messages.jsonl")
                if not os.path.islink(os.path.join(folder, entry)) and os.path.lexists(log):
                    numbers.append(int(digits))
    return sorted(numbers)


def restore(home: Home, agent: str, name: str, number: int | None = None) -> Moved:
    """Move an archived session back, the newest unless `number` is given; an existing session is not overwritten."""
    _refuse_stored(home, agent, name, "restore")
    layout = home.session(agent, name)
    chosen = _choose(home, agent, name, number)
    folder = _archive_folder(home, agent)
    path = os.path.join(folder, f"{name}-{chosen}")
    atomic.make_folders(os.path.dirname(layout.folder))
    guard_links(home, os.path.dirname(layout.folder))
    guard_links(home, path)
    layout.refuse_lookalike()
    if not _rename(path, layout.folder):
        raise BadInput(
            "a session of that name exists",
            operation="restore",
            place=layout.folder,
            hint=f"archive it first: `daypack gc {quote(name)} --archive`",
        )
    _sync(folder, os.path.dirname(layout.folder))
    return Moved(agent, name, chosen, layout.folder, size_of(layout.folder))


def delete(home: Home, agent: str, name: str, guard: Guard, number: int | None = None) -> Moved:
    """Delete an archived session, or a live session whose policy keeps neither messages nor events.

    If both exist, the live session is meant unless `number` is given.
    """
    layout = home.session(agent, name)
    numbers = archived(home, agent, name)
    if number is None and home.database is not None and name in home.list(agent):
        return _delete_stored(home, layout, guard)
    if number is None and (atomic.exists(layout.folder) or not numbers):
        layout = _live_layout(home, agent, name)
        _check_policy(home, layout)
        with _locked(home, layout, layout.messages):
            refuse_if_in_use(layout, guard, "delete")
            return _delete(home, Moved(agent, name, None, layout.folder, size_of(layout.folder)))
    if number is None and len(numbers) > 1:
        listed = ", ".join(map(str, numbers))
        raise BadInput(
            f"it is archived {len(numbers)} times ({listed})",
            operation="delete",
            place=_archive_folder(home, agent),
            hint="choose one with --number",
        )
    chosen = _choose(home, agent, name, number)
    path = os.path.join(_archive_folder(home, agent), f"{name}-{chosen}")
    guard_links(home, path)
    with _locked(home, layout, os.path.join(path, os.path.basename(layout.messages))):
        return _delete(home, Moved(agent, name, chosen, path, size_of(path)))


def _refuse_stored(home: Home, agent: str, name: str, operation: str) -> None:
    """Refuse to move the folder of a session in a database: it is a cache, and the session would stay where it is."""
    if home.database is None:
        return
    problem = "sessions of this home are in a database, and an archive has files"
    raise BadInput(problem, operation=operation, place=f"{agent}/{name}", hint=_copying(agent, name))


def _copying(agent: str, name: str) -> str:
    """Return how to keep a session that is in a database."""
    return f"copy it to a folder first: `daypack copy URL DIR --session {quote(agent)}/{quote(name)}`"


def _delete_stored(home: Home, layout: Layout, guard: Guard) -> Moved:
    """Delete a session from its database, and its cache here; other workers notice that it is gone."""
    import shutil  # noqa: PLC0415 — only where something is deleted

    from daypack.history.postgres.cache import store_of  # noqa: PLC0415 — few have a database
    from daypack.history.postgres.rewriting import SessionRows  # noqa: PLC0415
    from daypack.memory.store.postgres.erasure import clean  # noqa: PLC0415

    store = store_of(layout)
    opened = store.find(layout.agent, layout.name)
    if opened is None:
        raise absent(layout, "delete")
    fetch_session(layout)
    _check_policy(home, layout)
    refuse_if_in_use(layout, guard, "delete")
    rows = SessionRows(store.database, store.tenant, opened.stored.number)
    size = sum(mark.end for mark in rows.known().ends)
    tables = rows.delete()
    shutil.rmtree(layout.folder, ignore_errors=True)
    forget_words(home)
    clean(store.database, tables)
    return Moved(layout.agent, layout.name, None, None, size)


def sweep(home: Home) -> int:
    """Finish deletions that a crash interrupted; return their number."""
    import shutil  # noqa: PLC0415 — only where something is deleted

    count = 0
    top = os.path.join(home.folder, "archive")
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in sorted(os.listdir(top)):
            path = os.path.join(top, name)
            if name.startswith(_DELETING) and not os.path.islink(path):
                try:
                    shutil.rmtree(path)
                except FileNotFoundError:
                    continue  # another process is deleting it
                except OSError as error:
                    raise atomic.refusal(error.filename or path, error, "delete") from error
                count += 1
    return count


def _delete(home: Home, moved: Moved) -> Moved:
    path = moved.path or ""
    top = os.path.join(home.folder, "archive")
    atomic.make_folders(top)
    guard_links(home, top)
    count = 1
    while not _rename(path, os.path.join(top, f"{_DELETING}{os.getpid()}.{count}")):
        count += 1
    _sync(os.path.dirname(path), top)
    forget_words(home)
    sweep(home)
    return Moved(moved.agent, moved.session, moved.number, None, moved.bytes)


def _live_layout(home: Home, agent: str, name: str) -> Layout:
    layout = home.session(agent, name)
    if not atomic.exists(layout.messages):
        raise absent(layout, "find session")
    layout.guard()
    return layout


def _choose(home: Home, agent: str, name: str, number: int | None) -> int:
    check_name(name, "session")
    numbers = archived(home, agent, name)
    if not numbers or (number is not None and number not in numbers):
        listed = ", ".join(map(str, numbers)) or "none"
        raise SessionMissing(
            "no such archived session",
            operation="find session",
            place=os.path.join(_archive_folder(home, agent), f"{name}-{number or '<n>'}"),
            hint=f"archived numbers: {listed}",
        )
    return numbers[-1] if number is None else number


@contextmanager
def _locked(home: Home, layout: Layout, log: str) -> Generator[None]:
    """Hold the session's lock while it moves; an open writer follows it into the archive, or fails if it is deleted."""
    lock = Lock(log, flock=settings_of(home, layout).locking == "flock")
    try:
        with lock:
            yield
    finally:
        lock.close()


def refuse_if_in_use(layout: Layout, guard: Guard, operation: str) -> None:
    """Refuse to move the caller's own session, or one that was written to a short time ago."""
    if guard.force:
        return
    if guard.current == layout.name:
        problem = "it is your current session (DAYPACK_SESSION)"
        raise BadInput(problem, operation=operation, place=layout.folder, hint="leave it first, or add --force")
    last_write = max(_mtime(layout.messages), _mtime(layout.events))
    if Facets(layout).state() == "active" and guard.now - last_write < BUSY_SECONDS:
        problem = "it is active and was written to within the last hour"
        raise BadInput(problem, operation=operation, place=layout.folder, hint="wait until it is done, or add --force")


def _check_policy(home: Home, layout: Layout) -> None:
    history = History(layout, settings_of(home, layout))
    try:
        policy = read_policy(history)
    finally:
        history.close()
    if not policy.allows_deletion:
        keep = "archive it first with --archive" if home.database is None else _copying(layout.agent, layout.name)
        hint = f"{keep}, or write keep_messages=0 and keep_events=0 into {layout.derived('gc_policy')}"
        problem = "the session's policy keeps its messages and events"
        raise BadInput(problem, operation="delete", place=layout.folder, hint=hint)


def _mtime(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _archive_folder(home: Home, agent: str) -> str:
    return os.path.join(home.folder, "archive", check_name(agent, "agent"))


def guard_links(home: Home, path: str) -> None:
    """Raise UnsafePath if a path below the root is, or leads through, a symbolic link."""
    expected = os.path.realpath(home.root) + path[len(home.root) :]
    if os.path.realpath(path) != expected:
        problem = "a symbolic link leads out of the home"
        raise UnsafePath(problem, operation="move session", place=path, hint="replace the link by a real folder")


def _rename(source: str, target: str) -> bool:
    """Rename a folder; return False if the target exists. Renaming a folder can replace only an empty one."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno in _TARGET_EXISTS and os.path.lexists(target):
            return False
        raise StorageFailed(
            error.strerror or str(error),
            operation="move session",
            place=source,
            hint=f"nothing was changed; {target} must be writable and on the same file system",
        ) from error
    return True


def _sync(*folders: str) -> None:
    for folder in folders:
        atomic.sync_folder(folder)
