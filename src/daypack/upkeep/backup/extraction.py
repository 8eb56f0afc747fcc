"""Writes the files of a backup into a new private folder, and checks every byte against the manifest.

Each file is created, never opened, so nothing that exists is changed and no link is followed.
"""

import os
from collections.abc import Iterable
from hashlib import sha256

from daypack.errors import WriteFailed
from daypack.files import atomic, jsonl
from daypack.files.durable import sync
from daypack.upkeep.backup.manifest import Backup, File
from daypack.upkeep.backup.tarball import not_a_backup, read_member


def extract(backup: Backup, files: Iterable[File], folder: str, *, durable: bool = False) -> None:
    """Write files below a folder; raise Damaged if one is not what the manifest says."""
    folders: dict[str, None] = {}
    for file in files:
        target = os.path.join(folder, file.path)
        parent = os.path.dirname(target)
        if parent not in folders:
            _make(parent, folder, folders)
        digest = _write(backup, file, target, durable=durable)
        if digest != file.sha256:
            raise not_a_backup(backup.path, f"{file.path} does not match its digest")
    if durable:
        for parent in folders:
            atomic.sync_folder(parent)


def check_digests(backup: Backup, files: Iterable[File]) -> None:
    """Raise Damaged if a file in a backup is not what the manifest says; nothing is written."""
    for file in files:
        digest = sha256()
        for data in read_member(backup.fd, backup.members[file.path]):
            digest.update(data)
        if digest.hexdigest() != file.sha256:
            raise not_a_backup(backup.path, f"{file.path} does not match its digest")


def _make(parent: str, top: str, folders: dict[str, None]) -> None:
    atomic.make_folders(parent, durable=False)
    while parent not in folders:
        folders[parent] = None
        parent = parent if parent == top else os.path.dirname(parent)


def _write(backup: Backup, file: File, target: str, *, durable: bool) -> str:
    digest = sha256()
    try:
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            for data in read_member(backup.fd, backup.members[file.path]):
                digest.update(data)
                jsonl.write_all(fd, data)
            if durable:
                sync(fd)
        finally:
            os.close(fd)
    except (FileExistsError, NotADirectoryError) as error:
        raise not_a_backup(backup.path, f"{file.path!r} is both a file and a folder") from error
    except OSError as error:
        hint = "nothing was changed; free space or fix permissions, then try again"
        raise WriteFailed(error.strerror or str(error), operation="restore", place=target, hint=hint) from error
    return digest.hexdigest()


def remove_tree(path: str) -> None:
    """Remove a file or a folder with all it contains; links are removed, not followed."""
    pending, folders = [path], list[str]()
    while pending:  # not recursive: a path may have more parts than Python allows calls
        here = pending.pop()
        if os.path.isdir(here) and not os.path.islink(here):
            folders.append(here)
            pending += [os.path.join(here, name) for name in os.listdir(here)]
        elif os.path.lexists(here):
            os.unlink(here)
    for folder in reversed(folders):
        os.rmdir(folder)
