"""Plan a restore: what would be new, what exists, and what was erased since. Nothing is written."""

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from daypack.errors import BadInput, StorageFailed
from daypack.files import atomic
from daypack.history.layout import Home
from daypack.history.lines import UNREADABLE
from daypack.upkeep.backup.manifest import Backup, File, Item, ItemKind, Scope
from daypack.upkeep.backup.records import ERASURES, Erasure, erasures
from daypack.upkeep.doctor import Finding

STAGING = ".restore"  # in the root
_ID_DIGITS = 12
_ERASED = b'"history.erased"'
_AUDIT = "audit"
# Records of erasures are merged. An audit log only grows: the one that is there is kept.
State = Literal["new", "same", "exists", "merged", "kept"]


class Request(Struct, frozen=True, kw_only=True):
    """What to restore from a backup, and what it may replace."""

    user: str | None = None  # restore as this user; None: as in the backup
    agent: str = "default"
    session: str | None = None  # only this session
    replace: tuple[str, ...] = ()  # names as in the plan, or "all"
    with_erased: bool = False  # also what was erased since the backup


class RestoredItem(Struct, frozen=True):
    """A part of the backup, and what is in its place."""

    user: str
    name: str
    kind: ItemKind
    state: State
    path: str  # relative to the root
    source: str  # its path in the backup
    files: int
    bytes: int


class BroughtBack(Struct, frozen=True):
    """Something that was erased from a part after the backup was made."""

    name: str
    at: str  # when; "" if only the session's own record is known
    kind: str
    marker: str


class Plan(Struct, frozen=True):
    """What a restore would do. The id changes if anything of it does."""

    id: str
    digest: str
    created_at: str
    scope: Scope
    root: str
    items: tuple[RestoredItem, ...]
    erased: tuple[BroughtBack, ...]
    unfinished: bool  # an interrupted restore is completed first

    @property
    def existing(self) -> tuple[RestoredItem, ...]:
        """What the restore would have to replace."""
        return tuple(item for item in self.items if item.state == "exists")


def plan(root: str, path: str, request: Request) -> Plan:
    """Return what restoring a backup to a root would do; every byte of the backup is checked when it is applied."""
    with Backup(path) as backup:
        return plan_restore(root, backup, request)


def plan_restore(root: str, backup: Backup, request: Request) -> Plan:
    """Return the plan for an open backup."""
    chosen = _choose(backup, request)
    items = tuple(_restored(root, backup, item, request) for item in chosen)
    _check_replaced(items, request, backup.path)
    erased = tuple(_erased_since(root, backup, chosen, request))
    encoded = msgspec.json.encode((backup.digest, items, erased))
    digest = sha256(encoded).hexdigest()[:_ID_DIGITS]
    manifest = backup.manifest
    unfinished = os.path.lexists(os.path.join(root, STAGING, "journal"))
    return Plan(digest, backup.digest, manifest.created_at, manifest.scope, root, items, erased, unfinished)


def leftover(root: str) -> list[Finding]:
    """Return what `doctor` says of a restore to this root that was interrupted or is running."""
    staging = os.path.join(root, STAGING)
    if not os.path.lexists(staging):
        return []
    problem = "a restore was interrupted, or is running, and has changed nothing yet"
    advice = "run the restore again, or remove the folder if none is running"
    if os.path.lexists(os.path.join(staging, "journal")):
        problem = "a restore was interrupted, or is running: some parts are restored, others not yet"
        advice = "run the same restore again: it is completed then"
    return [Finding("warning", staging, problem, advice)]


def _choose(backup: Backup, request: Request) -> list[Item]:
    manifest = backup.manifest
    if request.user is not None and len(manifest.users) > 1:
        hint = "restore without --uid: each user is restored under the own name"
        raise BadInput("the backup has several users", operation="restore", place=backup.path, hint=hint)
    if request.session is None:
        return list(manifest.items)
    name = f"{request.agent}/{request.session}"
    found = [item for item in manifest.items if item.kind == "session" and item.name == name]
    if not found:
        names = sorted(item.name for item in manifest.items if item.kind == "session")
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        hint = f"it has {shown}" if names else "it has no sessions"
        raise BadInput(f"no session {name} in it", operation="restore", place=backup.path, hint=hint)
    return found


def place_of(path: str, request: Request) -> str:
    """Return where a path of the backup is restored to, relative to the root."""
    parts = path.split("/")
    return path if request.user is None else "/".join((parts[0], request.user, *parts[2:]))


def _restored(root: str, backup: Backup, item: Item, request: Request) -> RestoredItem:
    files = backup.files_of(item)
    path = place_of(item.path, request)
    state: State = "new"
    if atomic.exists(os.path.join(root, path)):
        state = "same" if all(_is_same(root, file, request) for file in files) else "exists"
    if state == "exists" and item.kind == "file":
        state = "merged" if item.name == ERASURES else "kept" if item.name == _AUDIT else state
    size = sum(file.size for file in files)
    user = path.split("/")[1]
    return RestoredItem(user, item.name, item.kind, state, path, item.path, len(files), size)


def _is_same(root: str, file: File, request: Request) -> bool:
    path = os.path.join(root, place_of(file.path, request))
    try:
        if os.lstat(path).st_size != file.size:
            return False
        data = atomic.read(path)
    except OSError:
        return False
    return data is not None and sha256(data).hexdigest() == file.sha256


def _check_replaced(items: Iterable[RestoredItem], request: Request, path: str) -> None:
    names = {item.name for item in items}
    if unknown := [name for name in request.replace if name != "all" and name not in names]:
        hint = "name it as the plan does: `daypack restore FILE` shows it"
        raise BadInput(f"the backup has no {unknown[0]!r}", operation="restore", place=path, hint=hint)


def is_replaced(item: RestoredItem, request: Request) -> bool:
    """Return True if the request allows to replace what is in the place of an item."""
    return "all" in request.replace or item.name in request.replace


# What was erased


def _erased_since(root: str, backup: Backup, items: Iterable[Item], request: Request) -> Iterator[BroughtBack]:
    """Yield what the restore would bring back: known to the home it restores to, or to the home of the backup."""
    reported: set[tuple[str, str]] = set()
    for item in items:
        user = place_of(item.path, request).split("/")[1]
        folders = dict.fromkeys((Home(root, user).folder, Home(backup.manifest.root, item.user).folder))
        for number, folder in enumerate(folders):
            try:
                known = (*_recorded(folder, backup, item), *_tombstones(folder, backup, item))
            except StorageFailed:
                if number == 0:
                    raise
                continue  # the home of the backup belongs to another user of this machine
            for found in known:
                if (found.name, found.marker) not in reported:
                    reported.add((found.name, found.marker))
                    yield found


def _recorded(folder: str, backup: Backup, item: Item) -> Iterator[BroughtBack]:
    """Yield the erasures from a part after it was backed up."""
    for erasure in erasures(folder):
        if erasure.at >= backup.manifest.created_at and _is_about(erasure, item, backup.digest):
            yield BroughtBack(item.name, erasure.at, erasure.kind, erasure.marker)


def _is_about(erasure: Erasure, item: Item, digest: str) -> bool:
    """Return True if an erasure changed this part, or found the text in this backup of a session that was gone."""
    if item.session:
        return item.session in erasure.sessions or f"{digest} {item.session}" in erasure.backups
    return item.kind == "memory" and (bool(erasure.memories) or f"{digest} memory" in erasure.backups)


def _tombstones(folder: str, backup: Backup, item: Item) -> Iterator[BroughtBack]:
    """Yield the erasures that a session records about itself and its copy in the backup does not."""
    if not item.session:
        return
    copy: bytes | None = None
    for line in (atomic.read(os.path.join(folder, *item.path.split("/")[2:], "events.jsonl")) or b"").split(b"\n"):
        if _ERASED not in line:
            continue
        copy = backup.read(f"{item.path}/events.jsonl") if copy is None else copy
        try:
            event = msgspec.json.decode(line)
            data = event["data"]
            if event["type"] == "history.erased" and str(data["digest"]).encode() not in copy:
                yield BroughtBack(item.name, str(event["ts"]), str(data["kind"]), str(data["marker"]))
        except (*UNREADABLE, KeyError, TypeError):
            continue
