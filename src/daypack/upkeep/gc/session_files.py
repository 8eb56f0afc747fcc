"""List, measure and remove files in a session's folder, without following symbolic links."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from daypack.errors import UnsafePath
from daypack.files import atomic

_TEMPORARY_FILE = re.compile(rf"{re.escape(atomic.TEMPORARY)}.+\.[0-9]+\.[0-9]+")
_TEMPORARY_FOLDER = re.compile(rf"[a-z]+{re.escape(atomic.TEMPORARY)}[0-9]+\.[0-9]+")
_counter = iter(range(1 << 62))


def names_in(folder: str, *subfolders: str) -> list[str]:
    """Return the names in a folder or subfolder, empty if it does not exist; refuses symbolic links on the path."""
    for step in ("", *subfolders):
        folder = os.path.join(folder, step) if step else folder
        if os.path.islink(folder):
            raise UnsafePath("is a symbolic link", operation="collect", place=folder, hint="replace the link")
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise atomic.refusal(folder, error, "read") from error


def regular_file(path: str) -> os.stat_result | None:
    """Return the stat of a regular file; None for a link, a folder or a missing path."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise atomic.refusal(path, error, "read") from error
    return facts if stat.S_ISREG(facts.st_mode) else None


def size_of(path: str) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    with suppress(OSError):
        facts = os.lstat(path)
        if not stat.S_ISDIR(facts.st_mode):
            return facts.st_size
    return sum(size_of(os.path.join(place, name)) for place, _, names in os.walk(path) for name in names)


def files_in(folder: str) -> dict[str, os.stat_result]:
    """Return everything below a folder except folders: relative path -> stat. Fails if any part is unreadable.

    What vanishes meanwhile is left out.
    """
    files: dict[str, os.stat_result] = {}
    try:
        for place, folders, names in os.walk(folder, onerror=_raise):
            links = (name for name in folders if os.path.islink(os.path.join(place, name)))
            for name in (*names, *links):
                path = os.path.join(place, name)
                with suppress(FileNotFoundError):
                    files[os.path.relpath(path, folder)] = os.lstat(path)
    except OSError as error:
        raise atomic.refusal(folder, error, "read") from error
    return files


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def temporary_files(folder: str, context: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what interrupted writes left: files anywhere, folders only directly in context/."""
    for place, folders, names in os.walk(folder):
        temporary = [name for name in names if _TEMPORARY_FILE.fullmatch(name)]
        if place == context:
            temporary += [name for name in folders if _TEMPORARY_FOLDER.fullmatch(name)]
        folders[:] = sorted(name for name in folders if name not in temporary)
        for name in sorted(temporary):
            path = os.path.join(place, name)
            with suppress(OSError):
                facts = os.lstat(path)
                if not stat.S_ISLNK(facts.st_mode):
                    yield path, facts


def remove_folder(path: str, context: str) -> None:
    """Remove a folder; it is renamed first, so no reader sees a part of it and a crash leaves a temporary folder."""
    import shutil  # noqa: PLC0415 — few collections remove a folder

    if not _TEMPORARY_FOLDER.fullmatch(os.path.basename(path)):
        os.lstat(path)  # raises FileNotFoundError if another process removed it
        renamed = path
        while os.path.lexists(renamed):
            renamed = os.path.join(context, f"child{atomic.TEMPORARY}{os.getpid()}.{next(_counter)}")
        os.rename(path, renamed)
        path = renamed
    shutil.rmtree(path)
