"""Plan a restore: what would be new, what exists, and what was erased since. Nothing is written."""

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct, structs

from daypack.errors import BadInput, StorageFailed
from daypack.files import atomic
from daypack.history.layout import Home, Layout
from daypack.history.logs.lines import UNREADABLE
from daypack.upkeep.archive import Guard, refuse_if_in_use
from daypack.upkeep.backup.database.member import state_of, target_of
from daypack.upkeep.backup.database.restoring import filled
from daypack.upkeep.backup.extraction import check_digests, extract
from daypack.upkeep.backup.manifest import Backup, File, Item, ItemKind, Scope
from daypack.upkeep.backup.records import MERGED, Erasure, erasures
from daypack.upkeep.backup.scratch import scratch_folder
from daypack.upkeep.backup.snapshot import STORE
from daypack.upkeep.backup.stores import is_same_store, revoked_tokens, tokens_of
from daypack.upkeep.doctor import Finding

STAGING = ".restore"  # in the root
_ID_DIGITS = 12
_ERASED = b'"history.erased"'
_AUDIT = "audit"
# What exists is left as it is, unless it is named: then it is replaced. Records (`MERGED`) are merged. An audit log
# only grows: the one that is there is kept, whatever is named.
State = Literal["new", "same", "exists", "replaced", "merged", "kept"]
_RESTORED: tuple[State, ...] = ("new", "replaced", "merged")


class Request(Struct, frozen=True, kw_only=True):
    """What to restore from a backup, and what it may replace."""

    user: str | None = None  # restore as this user; None: as in the backup
    agent: str = "default"
    session: str | None = None  # only this session
    replace: tuple[str, ...] = ()  # names as in the plan, or "all"; what exists and is not named is left as it is
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
    tokens: int = 0  # of a store: those that work after it is restored
    revoked: int = 0  # and those that do not, because they were revoked since

    @property
    def is_restored(self) -> bool:
        """True if the restore writes it."""
        return self.state in _RESTORED


class BroughtBack(Struct, frozen=True):
    """Something that was erased from a part after the backup was made."""

    user: str
    name: str
    at: str  # when; "" if only the session's own record is known
    kind: str
    marker: str


class Plan(Struct, frozen=True):
    """What a restore would do. The id changes if anything of it does, also what it replaces.

    `erased` and `in_use` are about all parts, also those that are left as they are.
    """

    id: str
    digest: str
    created_at: str
    scope: Scope
    root: str
    items: tuple[RestoredItem, ...]
    erased: tuple[BroughtBack, ...]
    unfinished: bool  # an interrupted restore is completed first
    in_use: tuple[str, ...] = ()  # sessions that are replaced only by force

    @property
    def restored(self) -> tuple[RestoredItem, ...]:
        """The parts that it writes."""
        return tuple(item for item in self.items if item.is_restored)

    @property
    def replaced(self) -> tuple[RestoredItem, ...]:
        """The parts that it writes in the place of others."""
        return tuple(item for item in self.items if item.state == "replaced")

    @property
    def existing(self) -> tuple[RestoredItem, ...]:
        """The parts that exist and are left as they are."""
        return tuple(item for item in self.items if item.state == "exists")

    @property
    def replaceable(self) -> tuple[RestoredItem, ...]:
        """Those of them that a restore can replace; a database is never overwritten."""
        return tuple(item for item in self.existing if item.kind != "database")

    @property
    def leaves_database(self) -> bool:
        """True if the records of a database are left out, because the one they would go to is not empty."""
        return len(self.existing) > len(self.replaceable)

    @property
    def brought_back(self) -> tuple[BroughtBack, ...]:
        """What was erased and would be there again."""
        written = {(item.user, item.name) for item in self.restored}
        return tuple(found for found in self.erased if (found.user, found.name) in written)

    @property
    def needs_force(self) -> bool:
        """True if it replaces a session that is in use."""
        return any(item.name in self.in_use for item in self.replaced)

    def replacing(self) -> "Plan":
        """Return the plan that replaces everything that exists."""
        items = tuple(
            structs.replace(item, state="replaced") if item in self.replaceable else item for item in self.items
        )
        return structs.replace(self, id=_plan_id(self.digest, items, self.erased), items=items)


def plan(root: str, path: str, request: Request, guard: Guard | None = None) -> Plan:
    """Return what restoring a backup to a root would do; every byte of the parts is compared with the manifest."""
    with Backup(path) as backup:
        for item in _choose(backup, request):
            check_digests(backup, backup.files_of(item))
        return plan_restore(root, backup, request, guard)


def plan_restore(root: str, backup: Backup, request: Request, guard: Guard | None = None) -> Plan:
    """Return the plan for an open backup."""
    chosen = _choose(backup, request)
    items = tuple(_restored(root, backup, item, request) for item in chosen)
    if request.session is not None:  # of a whole home, a recovery matters more
        Layout(root, os.path.join(root, items[0].path)).refuse_lookalike()
    _check_replaced(items, request, backup.path)
    erased = tuple(_erased_since(root, backup, chosen, request))
    manifest = backup.manifest
    return Plan(
        id=_plan_id(backup.digest, items, erased),
        digest=backup.digest,
        created_at=manifest.created_at,
        scope=manifest.scope,
        root=root,
        items=items,
        erased=erased,
        unfinished=os.path.lexists(os.path.join(root, STAGING, "journal")),
        in_use=tuple(item.name for item in items if guard is not None and _is_in_use(root, item, guard)),
    )


def _plan_id(digest: str, items: tuple[RestoredItem, ...], erased: tuple[BroughtBack, ...]) -> str:
    return sha256(msgspec.json.encode((digest, items, erased))).hexdigest()[:_ID_DIGITS]


def _is_in_use(root: str, item: RestoredItem, guard: Guard) -> bool:
    layout = Layout(root, os.path.join(root, item.path))
    if item.kind != "session" or item.state not in ("exists", "replaced") or not atomic.exists(layout.messages):
        return False
    try:
        refuse_if_in_use(layout, guard._replace(force=False), "replace")
    except BadInput:
        return True
    return False


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
        if any(item.sessions for item in manifest.items):
            whole = "its sessions of a database are restored together: `daypack restore FILE --store URL`"
            hint = f"{hint}; {whole}" if names else whole
        raise BadInput(f"no session {name} in it", operation="restore", place=backup.path, hint=hint)
    return found


def place_of(path: str, request: Request) -> str:
    """Return where a path of the backup is restored to, relative to the root."""
    parts = path.split("/")
    return path if request.user is None else "/".join((parts[0], request.user, *parts[2:]))


def _restored(root: str, backup: Backup, item: Item, request: Request) -> RestoredItem:
    if item.kind == "database":
        return _restored_database(root, backup, item, request)
    files = backup.files_of(item)
    path = place_of(item.path, request)
    store = f"{item.path}/{STORE}"
    tokens, revoked, is_same = _compare_store(root, backup, store, request) if item.kind == "memory" else (0, 0, True)
    state: State = "new"
    if atomic.exists(os.path.join(root, path)):
        others = (file for file in files if file.path != store)
        state = "same" if is_same and all(_is_same(root, file, request) for file in others) else "exists"
    if state == "exists":
        if item.kind == "file" and item.name in (*MERGED, _AUDIT):
            state = "merged" if item.name in MERGED else "kept"
        elif "all" in request.replace or item.name in request.replace:
            state = "replaced"
    return RestoredItem(
        user=path.split("/")[1],
        name=item.name,
        kind=item.kind,
        state=state,
        path=path,
        source=item.path,
        files=len(files),
        bytes=sum(file.size for file in files),
        tokens=tokens,
        revoked=revoked,
    )


def _restored_database(root: str, backup: Backup, item: Item, request: Request) -> RestoredItem:
    """Return what happens to the records of a database: they are restored into an empty one, and replace nothing."""
    path = place_of(item.path, request)
    home = Home(root, path.split("/")[1])
    with target_of(home, backup) as database:
        state = state_of(database, backup, item, home)
        if state.name == "exists" and item.name in request.replace:
            raise filled(database.place)
    files = backup.files_of(item)
    size = sum(file.size for file in files)
    tokens = len(state.tokens - state.revoked)
    return RestoredItem(
        home.uid, item.name, item.kind, state.name, path, item.path, len(files), size, tokens, len(state.revoked)
    )


def _compare_store(root: str, backup: Backup, store: str, request: Request) -> tuple[int, int, bool]:
    """Return how many tokens of a store would work, how many stay revoked, and if it has the records of the other."""
    current = os.path.join(root, place_of(store, request))
    found = [file for file in backup.manifest.files if file.path == store]
    if not found:
        return 0, 0, True
    with scratch_folder("daypack-plan-") as folder:
        extract(backup, found, folder)
        copy = os.path.join(folder, store)
        copied = tokens_of(copy)
        user = place_of(store, request).split("/")[1]
        revoked = revoked_tokens(copy, current, Home(root, user))
        is_same = os.path.lexists(current) and is_same_store(copy, current, revoked)
    return (len(copied.ids) if copied else 0) - len(revoked), len(revoked), is_same


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


# What was erased


def _erased_since(root: str, backup: Backup, items: Iterable[Item], request: Request) -> Iterator[BroughtBack]:
    """Yield what the restore would bring back: known to the home it restores to, or to the home of the backup."""
    reported: set[tuple[str, str, str]] = set()
    for item in items:
        user = place_of(item.path, request).split("/")[1]
        folders = dict.fromkeys((Home(root, user).folder, Home(backup.manifest.root, item.user).folder))
        for number, folder in enumerate(folders):
            try:
                known = (*_recorded(folder, backup, item, user), *_tombstones(folder, backup, item, user))
            except StorageFailed:
                if number == 0:
                    raise
                continue  # the home of the backup belongs to another user of this machine
            for found in known:
                if (key := (user, found.name, found.marker)) not in reported:
                    reported.add(key)
                    yield found


def _recorded(folder: str, backup: Backup, item: Item, user: str) -> Iterator[BroughtBack]:
    """Yield the erasures from a part after it was backed up."""
    for erasure in erasures(folder):
        if erasure.at >= backup.manifest.created_at and _is_about(erasure, item, backup.digest):
            yield BroughtBack(user, item.name, erasure.at, erasure.kind, erasure.marker)


def _is_about(erasure: Erasure, item: Item, digest: str) -> bool:
    """Return True if an erasure changed this part, or found the text in this backup of a session that was gone."""
    if item.session:
        return item.session in erasure.sessions or f"{digest} {item.session}" in erasure.backups
    is_memory = item.kind in ("memory", "database")
    erased = bool(erasure.memories) or (item.sessions > 0 and bool(erasure.sessions))
    return is_memory and (erased or f"{digest} {item.kind}" in erasure.backups)


def _tombstones(folder: str, backup: Backup, item: Item, user: str) -> Iterator[BroughtBack]:
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
                yield BroughtBack(user, item.name, str(event["ts"]), str(data["kind"]), str(data["marker"]))
        except (*UNREADABLE, KeyError, TypeError):
            continue
