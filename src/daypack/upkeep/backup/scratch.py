"""A private temporary folder for copies of what a backup holds, which does not outlive its process for long.

A killed process leaves its folder. Each folder is locked while it is used, so the next process removes what is not.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

from daypack.errors import WriteFailed
from daypack.files.atomic import release
from daypack.upkeep.backup.extraction import remove_tree


@contextmanager
def scratch_folder(prefix: str) -> Generator[str]:
    """Hold a new folder in the temporary folder of the system, and remove it at the end."""
    import tempfile  # noqa: PLC0415 — 4 ms, only here

    remove_stale(tempfile.gettempdir(), prefix)
    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix=prefix)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        if folder:
            with suppress(OSError):
                os.rmdir(folder)
        hint = "set TMPDIR to a folder that you can write to"
        place = folder or tempfile.gettempdir()
        raise WriteFailed(error.strerror or str(error), operation="make folder", place=place, hint=hint) from error
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield folder
    finally:
        with suppress(OSError):  # the next one removes it
            remove_tree(folder)
        release(fd)


def remove_stale(parent: str, prefix: str, ending: str = "", holding: str = "") -> None:
    """Remove the folders of killed processes of this user, by their names and a file that they hold."""
    with suppress(OSError), os.scandir(parent) as found:
        for item in found:
            is_ours = item.name.startswith(prefix) and item.name.endswith(ending)
            if is_ours and item.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_unused(item.path, holding)


def _remove_unused(folder: str, holding: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        # A new folder is empty until it is locked.
        names = os.listdir(fd)
        if status.st_uid == os.geteuid() and names and (not holding or holding in names):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(folder)
    finally:
        release(fd)
