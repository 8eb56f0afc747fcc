"""Make a backup: copied to a working folder beside it, verified by restoring it there, then given its name.

    <folder>/.tmp-<name>.backup/    backup.tar, scratch/ — removed at the end, and by the next run if this one is killed

The file has its name only after it was verified and is on disk, and a file that exists is never replaced.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from msgspec import Struct

from daypack.errors import BadInput, DaypackError, WriteFailed
from daypack.files import atomic
from daypack.history.layout import Home
from daypack.upkeep.backup.contents import LeftOut, Request, files_of, items_of
from daypack.upkeep.backup.extraction import remove_tree
from daypack.upkeep.backup.manifest import FORMAT, NAME, Item, Manifest, Scope, seal
from daypack.upkeep.backup.plan import plan_id
from daypack.upkeep.backup.records import KnownBackup, add_record, moment
from daypack.upkeep.backup.scratch import remove_stale
from daypack.upkeep.backup.snapshot import Snapshot
from daypack.upkeep.backup.tarball import TarWriter
from daypack.upkeep.backup.verify import Verified, verify_in

_WORKING, _ARCHIVE = ".backup", "backup.tar"
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class Written(Struct, frozen=True):
    """A backup that was made and verified; `unrecorded` says why the home does not know it."""

    path: str
    bytes: int
    scope: Scope
    verified: Verified
    left_out: tuple[LeftOut, ...]
    unrecorded: str = ""


def apply(
    home: Home, request: Request, path: str, plan_id: str | None = None, progress: Callable[[int], None] | None = None
) -> Written:
    """Make a backup at `path` (in a folder: under a name with the time); with the id of a plan, only of its parts."""
    path = target_of(home, request, path)
    items = _items(home, request, plan_id)
    left_out: list[LeftOut] = []
    for item in items:
        files_of(home.root, item, left_out)
    with _storing(path), _working_folder(path) as folder:
        archive = os.path.join(folder, _ARCHIVE)
        manifest, digest = _write(home, request, items, archive, progress)
        verified = verify_in(archive, os.path.join(folder, "scratch"))
        unrecorded = _record(home, manifest, KnownBackup(path, digest, manifest.created_at, manifest.scope))
        size = os.path.getsize(archive)
        _publish(archive, path)
    return Written(path, size, request.scope, verified, tuple(left_out), unrecorded)


def target_of(home: Home, request: Request, path: str) -> str:
    """Return the path of the new backup; refuse one that exists, or is in the home."""
    path = os.path.abspath(path)
    if os.path.isdir(path):
        what = {"home": "home", "user": home.uid, "session": f"{request.agent}-{request.session}"}[request.scope]
        stamp = moment().translate(str.maketrans("", "", "-:")).partition(".")[0]
        path = os.path.join(path, f"daypack-{what}-{stamp}Z.tar")
    if os.path.lexists(path):
        hint = "choose another name; `daypack backup --verify FILE` checks the one that is there"
        raise BadInput("exists, and a backup is never overwritten", operation="back up", place=path, hint=hint)
    folder, root = os.path.realpath(os.path.dirname(path)), os.path.realpath(home.root)
    if not os.path.isdir(folder):
        raise BadInput("no such folder", operation="back up", place=os.path.dirname(path), hint="create it first")
    if os.path.join(folder, "").startswith(os.path.join(root, "")):
        hint = "choose a folder outside of the home, on another disk if you can"
        raise BadInput("a backup in the home would be lost with it", operation="back up", place=path, hint=hint)
    return path


def _items(home: Home, request: Request, expected: str | None) -> list[Item]:
    items = items_of(home, request)
    if not items:
        hint = "check --home and --uid; `daypack session list` lists sessions"
        raise BadInput("there is nothing to back up", operation="back up", place=home.folder, hint=hint)
    if expected is not None and (found := plan_id(request.scope, items)) != expected:
        hint = "look at the new plan (without --apply), then apply that"
        raise BadInput(
            f"the plan has changed: {found}, not {expected}", operation="back up", place=home.root, hint=hint
        )
    return items


def _write(
    home: Home, request: Request, items: list[Item], archive: str, progress: Callable[[int], None] | None
) -> tuple[Manifest, str]:
    created_at = moment()
    fd = os.open(archive, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        tar = TarWriter(fd)
        snapshot = Snapshot(home.root, tar, os.path.dirname(archive))
        copied: list[Item] = []
        for at, item in enumerate(items, 1):
            if (done := snapshot.copy(item)) is not None:
                copied.append(done)
            if progress is not None:
                progress(at)
        users = tuple(sorted({item.user for item in copied}))
        manifest = Manifest(FORMAT, created_at, home.root, request.scope, users, tuple(copied), tuple(snapshot.files))
        data, digest = seal(manifest)
        tar.add(NAME, len(data), (data,))
        tar.finish()
    finally:
        os.close(fd)
    return manifest, digest


def _record(home: Home, manifest: Manifest, known: KnownBackup) -> str:
    """Record the backup before it has its name: the home must not know fewer backups than there are."""
    try:
        for user in manifest.users:
            add_record(Home(home.root, user).folder, known)
    except DaypackError as error:
        return f"{error.problem}: {error.place}"
    return ""


def _publish(archive: str, path: str) -> None:
    try:
        os.link(archive, path)
    except FileExistsError:
        hint = "choose another name"
        raise BadInput(
            "exists, and a backup is never overwritten", operation="back up", place=path, hint=hint
        ) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.replace(archive, path)
    atomic.sync_folder(os.path.dirname(path))


@contextmanager
def _working_folder(path: str) -> Generator[str]:
    """Hold the working folder of a backup, empty; what killed runs left in it and beside it is removed."""
    remove_stale(os.path.dirname(path), atomic.TEMPORARY, _WORKING, _ARCHIVE)
    folder = os.path.join(os.path.dirname(path), f"{atomic.TEMPORARY}{os.path.basename(path)}{_WORKING}")
    atomic.make_folders(folder)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(fd, path)
        try:
            for name in os.listdir(folder):
                remove_tree(os.path.join(folder, name))
            yield folder
        finally:
            with suppress(OSError):  # the next run removes it
                remove_tree(folder)
    finally:
        atomic.release(fd)


def _lock(fd: int, path: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        hint = "wait for it, or choose another name"
        raise BadInput("another process is making this backup", operation="back up", place=path, hint=hint) from None
    except OSError:
        return  # a file system without locks


@contextmanager
def _storing(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        hint = "no backup was made; free space or fix permissions, then try again"
        raise WriteFailed(error.strerror or str(error), operation="back up", place=path, hint=hint) from error
