"""What lies in a session's folder: names, plain files, sizes, what unfinished writes left. Links are not followed."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from daypack.errors import UnsafePath
from daypack.files import atomic

_FILE = re.compile(rf"{re.escape(atomic.TEMPORARY)}.+\.[0-9]+\.[0-9]+")
_FOLDER = re.compile(rf"[a-z]+{re.escape(atomic.TEMPORARY)}[0-9]+\.[0-9]+")
_count = iter(range(1 << 62))


def names_in(folder: str, *below: str) -> list[str]:
    """Return the names in a folder, or in one below it; none where there is none. A link on the way is refused."""
    for step in ("", *below):
        folder = os.path.join(folder, step) if step else folder
        if os.path.islink(folder):
            raise UnsafePath("is a symbolic link", operation="collect", place=folder, hint="replace the link")
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise atomic.refusal(folder, error, "read") from error


def plain(path: str) -> os.stat_result | None:
    """Return the facts of a plain file; None for a link, a folder, or nothing."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise atomic.refusal(path, error, "read") from error
    return found if stat.S_ISREG(found.st_mode) else None


def size_of(path: str) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    with suppress(OSError):
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            return found.st_size
    return sum(size_of(os.path.join(place, name)) for place, _, names in os.walk(path) for name in names)


def files_in(folder: str) -> dict[str, os.stat_result]:
    """Return everything in a folder that is no folder, by its path in it, with its facts; all of it, or an error."""
    found: dict[str, os.stat_result] = {}
    try:
        for place, folders, names in os.walk(folder, onerror=_raise):
            for name in (*names, *(one for one in folders if os.path.islink(os.path.join(place, one)))):
                path = os.path.join(place, name)
                found[os.path.relpath(path, folder)] = os.lstat(path)
    except OSError as error:
        raise atomic.refusal(folder, error, "read") from error
    return found


def _raise(error: OSError) -> None:
    raise error


def leftovers(folder: str, context: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what unfinished writes left: files anywhere, folders in context/."""
    for place, folders, names in os.walk(folder):
        found = [name for name in names if _FILE.fullmatch(name)]
        if place == context:
            found += [name for name in folders if _FOLDER.fullmatch(name)]
        folders[:] = sorted(name for name in folders if name not in found)
        for name in sorted(found):
            path = os.path.join(place, name)
            with suppress(OSError):
                facts = os.lstat(path)
                if not stat.S_ISLNK(facts.st_mode):
                    yield path, facts


def remove_folder(path: str, context: str) -> None:
    """Remove a folder in one step, so that nobody sees a part of it; what a crash leaves of it is a leftover."""
    import shutil  # noqa: PLC0415 — few collections remove a folder

    if not _FOLDER.fullmatch(os.path.basename(path)):
        os.lstat(path)  # one that is gone already is told to the caller
        aside = path
        while os.path.lexists(aside):
            aside = os.path.join(context, f"child{atomic.TEMPORARY}{os.getpid()}.{next(_count)}")
        os.rename(path, aside)
        path = aside
    shutil.rmtree(path)
