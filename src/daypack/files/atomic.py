"""Atomic file replacement: a reader sees the old bytes or the new ones, even after a power failure.

unique temporary name in the same folder → write → sync → rename → sync of the folder
"""

import errno
import os
import stat
from contextlib import suppress

from daypack.errors import DaypackError, StorageFailed, UnsafePath, WriteFailed
from daypack.files.durable import sync, sync_path
from daypack.files.jsonl import write_all

READ_ONLY_HINT = "make the home writable, or copy it and choose the copy with --home or DAYPACK_HOME"
TEMPORARY = ".tmp-"
_count = iter(range(1 << 62))


def replace(path: str, data: bytes, *, durable: bool = True) -> None:
    """Write `data` to `path`; if not durable, a power failure may restore the old bytes or leave none."""
    _place(path, data, durable=durable, exclusive=False)


def publish(path: str, data: bytes) -> None:
    """Replace a file that others may read: its mode is kept; a new file gets the default mode."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    replace(path, data)
    with suppress(OSError):
        os.chmod(path, mode)


def create(path: str, data: bytes, *, named: bool = True, durable: bool = True) -> bool:
    """Write `data` to `path` unless it exists; return True if written. `named` syncs the folder entry too."""
    return _place(path, data, durable=durable, exclusive=True, named=named)


def _place(path: str, data: bytes, *, durable: bool, exclusive: bool, named: bool = True) -> bool:
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f"{TEMPORARY}{name}.{os.getpid()}.{next(_count)}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data)
            if durable:
                sync(fd)
        finally:
            os.close(fd)
        if exclusive:
            try:
                os.link(temporary, path)
            except FileExistsError:
                os.unlink(temporary)
                return False
            os.unlink(temporary)
        else:
            os.replace(temporary, path)
    except OSError as error:
        discard(temporary)
        raise WriteFailed(
            error.strerror or str(error),
            operation="replace",
            place=path,
            hint=_hint(error, "the old file is unchanged; free space or fix permissions, then try again"),
        ) from error
    if durable and named:
        sync_folder(folder)
    return True


def discard(path: str) -> None:
    """Delete a file, ignoring errors."""
    with suppress(OSError):
        os.unlink(path)


def remove(path: str) -> None:
    """Delete a file durably."""
    try:
        os.unlink(path)
    except OSError as error:
        raise refusal(path, error, "remove") from error
    sync_folder(os.path.dirname(path))


def sync_folder(folder: str) -> None:
    """Flush a folder's entries to disk."""
    try:
        sync_path(folder, os.O_DIRECTORY)
    except OSError as error:
        raise StorageFailed(
            error.strerror or str(error),
            operation="sync folder",
            place=folder,
            hint="check the disk, then try again",
        ) from error


def make_folders(folder: str, *, durable: bool = True, inside: str = "") -> None:
    """Create `folder` and its missing parents, private to the user and, if durable, synced.

    The folder `inside` is never created: StorageFailed if it is missing, because what it belongs to was deleted.
    """
    missing: list[str] = []
    here = folder
    while not os.path.isdir(here) and here != os.path.dirname(here):
        if here == inside:
            hint = "it was deleted meanwhile; nothing was written"
            raise StorageFailed("no such folder", operation="create folder", place=here, hint=hint)
        missing.append(here)
        here = os.path.dirname(here)
    for path in reversed(missing):
        try:
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
        except OSError as error:
            raise StorageFailed(
                error.strerror or str(error),
                operation="create folder",
                place=path,
                hint=_hint(error, "choose another home with --home or DAYPACK_HOME, or fix permissions"),
            ) from error
        if durable:
            sync_folder(os.path.dirname(path))


def read(path: str) -> bytes | None:
    """Return the bytes of a plain file, None if it does not exist; a symbolic link is not followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refusal(path, error, "read") from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafePath("not a plain file", operation="read", place=path, hint="replace it by a plain file")
        parts: list[bytes] = []
        while data := os.read(fd, 1 << 20):
            parts.append(data)
        return b"".join(parts)
    except OSError as error:
        raise refusal(path, error, "read") from error
    finally:
        release(fd)


def release(fd: int) -> None:
    """Close a descriptor, ignoring errors: it was only read, or its data is already synced."""
    with suppress(OSError):
        os.close(fd)


def exists(path: str) -> bool:
    """Return True if there is something at `path`; unlike `os.path.lexists`, raise if a folder above is unreadable."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise refusal(path, error, "read") from error
    return True


def refusal(path: str, error: OSError, operation: str) -> StorageFailed:
    """Return our error for a failed open or read."""
    if os.path.islink(path):
        return UnsafePath(
            "is a symbolic link", operation=operation, place=path, hint="replace the link with the file itself"
        )
    if isinstance(error, PermissionError):
        return StorageFailed("permission denied", operation=operation, place=path, hint=_permission_hint(path))
    hint = _hint(error, "check permissions and the disk")
    if isinstance(error, FileNotFoundError):
        hint = "restore it from a backup, or run `daypack doctor`"
    return StorageFailed(error.strerror or str(error), operation=operation, place=path, hint=hint)


def is_missing(error: DaypackError) -> bool:
    """Return True for the error of a file or folder that is not there: of a cache, it was deleted."""
    return isinstance(error.__cause__, FileNotFoundError)


def _hint(error: OSError, usual: str) -> str:
    return READ_ONLY_HINT if error.errno == errno.EROFS else usual


def _permission_hint(path: str) -> str:
    """Return who owns the part of a path that denies access, and what to do."""
    owner, here = -1, os.path.abspath(path)
    while owner < 0:
        try:
            owner = os.lstat(here).st_uid
        except OSError:  # a folder above it denies access
            here = os.path.dirname(here)
    if owner == os.geteuid():
        return f"allow yourself access: chmod u+rwX {here}"
    user = _user_name(owner)
    return f"{here} belongs to {user}: run as {user}, or choose a home of your own with --home or DAYPACK_HOME"


def _user_name(uid: int) -> str:
    import pwd  # noqa: PLC0415 — only for this error

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
