"""Several files of a folder, replaced together: staged, committed by one rename, completed after a kill.

    <folder>/.rewrite/0, 1, 2 …   the new files
    <folder>/.rewrite/journal     [{"path":"events.jsonl","staged":"0","length":948,"inode":77,"size":951},…]

Before the journal exists nothing has changed, and the staging folder is a leftover. Once it exists every step can be
repeated, and the last one, the replacement of the file that is locked, shows that all others are done.
"""

import os
from contextlib import suppress

import msgspec
from msgspec import Struct

from daypack.errors import Damaged, StorageFailed, WriteFailed
from daypack.files import atomic, jsonl
from daypack.files.durable import sync
from daypack.plain_files import open_fd

STAGING = ".rewrite"
JOURNAL = f"{STAGING}/journal"  # its existence means: committed, and perhaps incomplete


class Step(Struct, frozen=True, omit_defaults=True):
    """Replace a file by a staged one, or remove it (`staged` is empty); paths are relative to the folder.

    Of a log, `inode` and `size` are those of the file that was read: lines that were appended to it later are carried
    over to the new file, which has `length` bytes of its own.
    """

    path: str
    staged: str = ""
    length: int = 0
    inode: int = 0
    size: int = 0


class Rewrite:
    """The new files of a folder, until `commit`.

    The caller holds the folder's lock from before it reads the old files, and releases it after `commit` without
    appending anything: the lock is on a file that was replaced.
    """

    def __init__(self, folder: str) -> None:
        complete(folder)  # of a process that was killed
        self._folder = folder
        self._staging = os.path.join(folder, STAGING)
        self._steps: list[Step] = []
        atomic.make_folders(self._staging)

    def replace(self, path: str, data: bytes, *, inode: int = 0, size: int = 0) -> None:
        """Stage the new bytes of a file; of a log, with the inode and size of the file that was read."""
        name = str(len(self._steps))
        _write(os.path.join(self._staging, name), data)
        self._steps.append(Step(path, name, len(data), inode, size))

    def remove(self, path: str) -> None:
        """Stage the removal of a file or folder."""
        self._steps.append(Step(path))

    def commit(self) -> None:
        """Apply everything; the step that was added last must replace the file that is locked."""
        atomic.sync_folder(self._staging)
        atomic.replace(os.path.join(self._folder, JOURNAL), msgspec.json.encode(self._steps))
        complete(self._folder)


def complete(folder: str) -> bool:
    """Complete a committed rewrite, or remove the files of another; return True if there was a committed one.

    The caller holds the folder's lock.
    """
    staging = os.path.join(folder, STAGING)
    journal = os.path.join(folder, JOURNAL)
    try:
        data = atomic.read(journal)
        if data is not None:
            _run(folder, _read_steps(data, journal))
            os.unlink(journal)
        _remove(staging)
    except FileNotFoundError:
        return True  # another process completed it
    except OSError as error:
        raise StorageFailed(
            error.strerror or str(error),
            operation="complete rewrite",
            place=folder,
            hint="free space or fix permissions, then open the session again: it is completed then",
        ) from error
    return data is not None


def _read_steps(data: bytes, journal: str) -> list[Step]:
    try:
        return msgspec.json.decode(data, type=list[Step])
    except msgspec.DecodeError as error:
        hint = "restore the session from a backup"
        raise Damaged(f"not a journal: {error}", operation="complete rewrite", place=journal, hint=hint) from error


def _run(folder: str, steps: list[Step]) -> None:
    if not steps or not os.path.lexists(os.path.join(folder, STAGING, steps[-1].staged)):
        return  # all are done: only the journal is left
    changed: set[str] = set()
    for step in steps:
        target = os.path.join(folder, step.path)
        if step is steps[-1]:  # what comes before must be on disk: from here on it is not repeated
            _sync(changed)
        if not step.staged:
            _remove(target)
        else:
            staged = os.path.join(folder, STAGING, step.staged)
            if not os.path.lexists(staged):
                continue  # replaced before the process was killed
            if step.inode:
                _carry_over(step, target, staged)
            atomic.make_folders(os.path.dirname(target))
            os.replace(staged, target)
        changed.add(os.path.dirname(target))
    _sync({os.path.dirname(os.path.join(folder, steps[-1].path))})


def _sync(folders: set[str]) -> None:
    for folder in sorted(folders):
        if os.path.isdir(folder):  # not one that was removed itself
            atomic.sync_folder(folder)


def _carry_over(step: Step, target: str, staged: str) -> None:
    """Append to a staged log what other processes have appended to the old one since it was read."""
    fd = open_fd(target, os.O_NOFOLLOW)
    try:
        status = os.fstat(fd)
        if status.st_ino != step.inode or status.st_size <= step.size:
            return
        tail = jsonl.read_at(fd, step.size, status.st_size - step.size)
    finally:
        atomic.release(fd)
    fd = os.open(staged, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, step.length)  # an attempt before this one may have been killed
        os.lseek(fd, 0, os.SEEK_END)
        jsonl.write_all(fd, tail)
        sync(fd)
    finally:
        atomic.release(fd)


def _write(path: str, data: bytes) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            jsonl.write_all(fd, data)
            sync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        hint = "nothing was changed; free space or fix permissions, then try again"
        raise WriteFailed(error.strerror or str(error), operation="stage", place=path, hint=hint) from error


def _remove(path: str) -> None:
    """Remove a file or a folder; links are removed, not followed."""
    if os.path.isdir(path) and not os.path.islink(path):
        with suppress(FileNotFoundError):
            for name in os.listdir(path):
                _remove(os.path.join(path, name))
            os.rmdir(path)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)
