"""What belongs to a backup: everything that cannot be made again, and nothing that can.

Memories and sessions in a database are copied from there. Left out: caches of sessions, search indexes, vectors and the
other derived files, downloaded models, temporary files, and the records of other backups. Links, devices and names that
are not UTF-8 are left out too, and listed.
"""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from daypack.errors import BadInput, BadName
from daypack.files import atomic
from daypack.files.rewrite import STAGING
from daypack.history.creation import absent
from daypack.history.layout import Home, check_name
from daypack.postgres.address import name_of_database
from daypack.upkeep.backup.manifest import MOST_PARTS, Item, ItemKind, Scope, is_item
from daypack.upkeep.backup.records import BACKUPS
from daypack.upkeep.database import find_database

_KEPT_CONTEXT = ("pinned", "child", "budget", "gc.policy")  # people edit them; the rest of context/ is derived
DATABASE = "database"  # where a backup has the records of one; a home has no such folder
_NOT_COPIED = ("model", "find", "store", DATABASE, BACKUPS)  # of a user's folder
_NOT_KEPT = ("-wal", "-shm", "-journal", ".new")  # of a database: its copy is a single file


class Request(Struct, frozen=True, kw_only=True):
    """What to back up: the whole home with all its users, one user, or one session of an agent."""

    scope: Scope = "user"
    agent: str = "default"
    session: str | None = None


class LeftOut(Struct, frozen=True):
    """Something in the home that is neither derived nor copied."""

    path: str
    reason: str


class Found(NamedTuple):
    """A file of an item, relative to the root."""

    path: str
    size: int


def users_of(root: str) -> list[str]:
    """Return the users of a home."""
    return [name for name in _names(os.path.join(root, "home")) if _is_name(name)]


def items_of(home: Home, request: Request) -> list[Item]:
    """Return the parts that a request means, in the order of a backup."""
    if request.scope == "session":
        if home.database is not None:
            raise _refused(f"{request.agent}/{request.session}")
        layout = home.session(request.agent, request.session or "")
        if not atomic.exists(layout.messages):
            raise absent(layout, "back up")
        return [Item(os.path.relpath(layout.folder, home.root), "session")]
    users = users_of(home.root) if request.scope == "home" else [home.uid]
    items = [item for user in users for item in _items_of_user(Home(home.root, user))]
    return [*items, *_databases_of(home, users)]


def _refused(name: str) -> BadInput:
    """Return the error for one session of a database, whose records are copied together."""
    hint = f"back up everything without --session; or copy it to a folder: `daypack copy URL DIR --session {name}`"
    return BadInput("the session is in a database", operation="back up", place=name, hint=hint)


def _databases_of(home: Home, users: list[str]) -> list[Item]:
    """Return the databases that have memories, each once: users may share one."""
    found: dict[str, Item] = {}
    for user in dict.fromkeys((home.uid, *users)):
        own = Home(home.root, user)
        if database := find_database(own):
            found.setdefault(name_of_database(database.url), _item(own, "database", DATABASE))
    return list(found.values())


def _items_of_user(home: Home) -> Iterator[Item]:
    for name in _names(home.folder):
        if name == "agent":
            for agent in home.agents():
                yield from (_item(home, "session", "agent", agent, "session", other) for other in home.list(agent))
        elif name == "archive":
            for agent in _names(os.path.join(home.folder, name)):
                for other in _names(os.path.join(home.folder, name, agent)):
                    item = _item(home, "archived", name, agent, other)
                    if is_item(item.path, "archived"):
                        yield item
        elif name not in _NOT_COPIED and _is_name(name):
            yield _item(home, "memory" if name == "memory" else "file", name)


def _item(home: Home, kind: ItemKind, *parts: str) -> Item:
    return Item("/".join(("home", home.uid, *parts)), kind)


def files_of(root: str, item: Item, left_out: list[LeftOut] | None = None) -> list[Found]:
    """Return the files of an item, sorted; what cannot be copied is added to `left_out`."""
    found: list[Found] = []
    skipped: list[LeftOut] = [] if left_out is None else left_out
    pending = [item.path]
    while pending:
        relative = pending.pop()
        path = os.path.join(root, relative)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError as error:
            raise atomic.refusal(path, error, "back up") from error
        if not _is_utf8(relative):
            skipped.append(LeftOut(path.encode("utf-8", "replace").decode(), "the name is not UTF-8"))
        elif relative.count("/") >= MOST_PARTS:
            skipped.append(LeftOut(path, "in too many folders"))
        elif stat.S_ISDIR(status.st_mode):
            inner = relative[len(item.path) + 1 :]
            pending += [f"{relative}/{name}" for name in _listed(path) if not _is_derived(item.kind, inner, name)]
        elif stat.S_ISREG(status.st_mode):
            found.append(Found(relative, status.st_size))
        else:
            skipped.append(LeftOut(path, "a link or a special file"))
    return sorted(found)


def _is_derived(kind: ItemKind, inner: str, name: str) -> bool:
    """Return True if an entry of the folder `inner` of an item can be made again, or is an unfinished write."""
    if name.startswith(atomic.TEMPORARY) or name == STAGING:
        return True
    if kind in ("session", "archived"):
        return (inner == "context" and name not in _KEPT_CONTEXT) or name.endswith(".sqlite")
    return kind == "memory" and ((not inner and name == "index") or name.endswith(_NOT_KEPT))


def _names(folder: str) -> list[str]:
    return sorted(_listed(folder))


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise atomic.refusal(folder, error, "back up") from error


def _is_name(name: str) -> bool:
    try:
        return bool(check_name(name, "name"))
    except BadName:
        return False


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
