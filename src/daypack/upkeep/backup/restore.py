"""Restore a backup: extracted and checked beside its place, then moved into it, part by part.

    <root>/.restore/new/…      the restored parts; each changes places with what it replaces
    <root>/.restore/journal    [{"path":"home/1000/agent/default/session/work","inode":77},…]

Before the journal exists nothing has changed, and the folder is a leftover. Once it exists, every move can be repeated:
a part is done if its inode is in its place. What was replaced is removed only after all parts are done.

The records of a database are restored in one transaction before the journal: a restore that is interrupted after it
finds the same records there, and continues with the files.
"""

import fcntl
import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress

import msgspec
from msgspec import Struct

from daypack.errors import BadInput, Damaged, DaypackError, StorageFailed
from daypack.files import atomic
from daypack.files.lock import Lock
from daypack.history.layout import Home, Layout
from daypack.upkeep.archive import Guard, guard_links, refuse_if_in_use
from daypack.upkeep.backup.database.member import restore_database
from daypack.upkeep.backup.exchange import exchange
from daypack.upkeep.backup.extraction import extract, remove_tree
from daypack.upkeep.backup.manifest import Backup, is_item
from daypack.upkeep.backup.records import MERGED, add_lines
from daypack.upkeep.backup.restore_plan import STAGING, Plan, Request, RestoredItem, plan_restore
from daypack.upkeep.backup.snapshot import STORE
from daypack.upkeep.backup.stores import drop_tokens, revoked_tokens
from daypack.upkeep.session_settings import settings_of

_NEW, _OLD, _JOURNAL = "new", "old", "journal"


class Step(Struct, frozen=True):
    """Move a restored part into its place, which it has when its inode is there."""

    path: str
    inode: int


class Restored(Struct, frozen=True):
    """What was restored; `completed` parts are of an earlier restore that was interrupted."""

    plan: Plan
    restored: tuple[RestoredItem, ...]
    replaced: tuple[str, ...]
    completed: int


def apply(root: str, path: str, request: Request, plan_id: str | None = None, guard: Guard | None = None) -> Restored:
    """Restore a backup; with the id of a plan, only if exactly that would happen.

    What exists is replaced only if the request names it, else it is left as it is. What was erased since is restored
    only if the request says so. Tokens that were revoked stay revoked.
    """
    with Backup(path) as backup, _alone(root, path):
        completed = complete(root)
        planned = plan_restore(root, backup, request, guard)
        if plan_id is not None and planned.id != plan_id:
            hint = "look at the new plan (without --apply), then apply that"
            problem = f"the plan has changed: {planned.id}, not {plan_id}"
            raise BadInput(problem, operation="restore", place=root, hint=hint)
        _check(planned, request, path)
        items, replaced = planned.restored, planned.replaced
        for parent in sorted({os.path.dirname(item.path) for item in items}):
            guard_links(Home(root, ""), os.path.join(root, parent))
        for item in replaced:
            _refuse_in_use(root, item, guard)
        try:
            with _moving(root):
                files = tuple(item for item in items if item.kind != "database")
                _stage(root, backup, files)
                for item in items:
                    if item.kind == "database":
                        restore_database(Home(root, item.user), backup, item.source)
                if files:
                    _commit(root, files)
        except BaseException:
            if not os.path.lexists(os.path.join(root, STAGING, _JOURNAL)):
                with suppress(OSError, DaypackError):  # the next restore removes it
                    _discard(root)
            raise
        complete(root)
        return Restored(planned, items, tuple(item.name for item in replaced), completed)


def complete(root: str) -> int:
    """Complete a committed restore, or remove the files of an uncommitted one; return its number of parts."""
    journal = os.path.join(root, STAGING, _JOURNAL)
    data = atomic.read(journal)
    try:
        steps = [] if data is None else msgspec.json.decode(data, type=list[Step])
    except msgspec.DecodeError as error:
        hint = f"remove the folder {os.path.dirname(journal)} after you have looked into it"
        raise Damaged(f"not a journal: {error}", operation="restore", place=journal, hint=hint) from error
    with _moving(root):
        for number, step in enumerate(steps):
            _move(root, step, os.path.join(root, STAGING, _OLD, str(number)))
        if data is not None:
            atomic.remove(journal)
        _discard(root)
    return len(steps)


def _check(planned: Plan, request: Request, path: str) -> None:
    if planned.brought_back and not request.with_erased:
        names = ", ".join(sorted({found.name for found in planned.brought_back})[:5])
        raise BadInput(
            f"it would bring back what was erased since the backup was made ({names})",
            operation="restore",
            place=path,
            hint="use a newer backup; or add --with-erased, and erase it again afterwards",
        )
    kept = [item.name for item in planned.existing]
    if kept and not planned.restored and not request.replace:
        names = ", ".join(kept[:5]) + (f" and {len(kept) - 5:,} more" if len(kept) > 5 else "")
        raise BadInput(
            f"these exist, and nothing is overwritten: {names}",
            operation="restore",
            place=planned.root,
            hint="; ".join(_ways_out(planned)),
        )


def _ways_out(planned: Plan) -> Iterator[str]:
    if planned.replaceable:
        name = planned.replaceable[0].name
        yield f"restore to a new home with --home, or replace them with --replace {name} (or --replace all)"
    if planned.leaves_database:
        yield "create a new database and name it with --store: a database is never overwritten"


def _refuse_in_use(root: str, item: RestoredItem, guard: Guard | None) -> None:
    layout = Layout(root, os.path.join(root, item.path))
    if guard is not None and item.kind == "session" and atomic.exists(layout.messages):
        refuse_if_in_use(layout, guard, "replace")


def _stage(root: str, backup: Backup, items: tuple[RestoredItem, ...]) -> None:
    staging = os.path.join(root, STAGING)
    atomic.make_folders(staging)
    new = os.path.join(staging, _NEW)
    wanted = {item.source for item in items}
    files = [file for item in backup.manifest.items if item.path in wanted for file in backup.files_of(item)]
    atomic.make_folders(new)
    extract(backup, files, new, durable=True)
    for item in items:
        source, target = os.path.join(new, item.source), os.path.join(new, item.path)
        if source != target:  # as another user
            atomic.make_folders(os.path.dirname(target))
            os.rename(source, target)
            atomic.sync_folder(os.path.dirname(target))
    atomic.sync_folder(staging)


def _commit(root: str, items: tuple[RestoredItem, ...]) -> None:
    staging = os.path.join(root, STAGING)
    steps = [Step(item.path, os.lstat(os.path.join(staging, _NEW, item.path)).st_ino) for item in items]
    atomic.replace(os.path.join(staging, _JOURNAL), msgspec.json.encode(steps))


def _move(root: str, step: Step, aside: str) -> None:
    target, staged = os.path.join(root, step.path), os.path.join(root, STAGING, _NEW, step.path)
    parent = os.path.dirname(target)
    guard_links(Home(root, ""), parent)
    atomic.make_folders(parent)
    if is_item(step.path, "memory") and os.path.lexists(os.path.join(staged, STORE)):
        _drop_revoked(root, staged, target, step)
    if not os.path.lexists(target):
        os.rename(staged, target)
    elif os.path.basename(target) in MERGED and os.path.lexists(staged):
        add_lines(target, staged)  # no record is lost, not even of what runs at the moment
    elif os.lstat(target).st_ino != step.inode:
        with _locked(root, target):
            atomic.make_folders(os.path.dirname(aside))
            exchange(staged, target, aside)
            for old in (staged, aside):
                if os.path.isdir(old):
                    os.utime(old)  # open writers of the old session notice that it was replaced
    atomic.sync_folder(parent)


def _drop_revoked(root: str, staged: str, target: str, step: Step) -> None:
    """Remove revoked tokens from a store just before it takes its place: some may be revoked since it was staged."""
    if os.path.lexists(target) and os.lstat(target).st_ino == step.inode:
        return  # in its place; what is staged now is the store that it replaced
    copy = os.path.join(staged, STORE)
    home = Home(root, step.path.split("/")[1])
    drop_tokens(copy, revoked_tokens(copy, os.path.join(target, STORE), home))


@contextmanager
def _locked(root: str, folder: str) -> Generator[None]:
    """Hold the lock of a session that is replaced, so that no append is acknowledged into what is removed."""
    layout = Layout(root, folder)
    with ExitStack() as held:
        if os.path.exists(layout.messages):
            lock = Lock(layout.messages, flock=settings_of(layout.home, layout).locking == "flock")
            held.callback(lock.close)
            held.enter_context(lock)
        yield


def _discard(root: str) -> None:
    staging = os.path.join(root, STAGING)
    if os.path.lexists(staging):
        remove_tree(staging)
        atomic.sync_folder(root)


@contextmanager
def _moving(root: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        hint = "free space or fix permissions, then run the restore again: it is completed then"
        raise StorageFailed(error.strerror or str(error), operation="restore", place=root, hint=hint) from error


@contextmanager
def _alone(root: str, path: str) -> Generator[None]:
    """Keep other restores to the same root out."""
    atomic.make_folders(root)
    with _moving(root):
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = "another restore to this home is running"
            raise BadInput(problem, operation="restore", place=path, hint="wait for it, then try again") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        atomic.release(fd)
