"""The folder of the child channel: what each child's files hold, replaced together, and made again as a whole."""

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress

from daypack.errors import BadName, DaypackError, UnsafePath
from daypack.files import atomic
from daypack.history.layout import check_name
from daypack.history.session import History

FILES = {"handoff": "handoff.md", "result": "result.md", "refs": "refs.jsonl"}
WORDS = {"agent": "agent", "session": "session", "status": "status"}  # files of one word
ARTIFACTS = "artifact"
_MAX_DEPTH = 8
_LOGS = ("messages.jsonl", "events.jsonl")

Files = Mapping[str, Callable[[], bytes | None]]  # path in the child's folder -> its bytes; None: they are lost


def root_of(history: History) -> str:
    """Return the folder of all children."""
    return history.layout.derived("child")


def is_folder(path: str) -> bool:
    """Return True if there is a folder; refuse to follow a link."""
    if os.path.islink(path):
        raise UnsafePath("is a symbolic link", operation="read children", place=path, hint="replace the link")
    return os.path.isdir(path)


def list_names(root: str) -> list[str]:
    """Return the names of the children that have a folder."""
    with os.scandir(root) as found:
        return sorted(entry.name for entry in found if entry.is_dir(follow_symlinks=False) and _is_name(entry.name))


def check_artifact(name: str) -> str:
    """Return the path of an artifact in its folder if every part of it can be a name; a log is no artifact."""
    parts = name.split("/") if isinstance(name, str) else [name]  # pyright: ignore[reportUnnecessaryIsInstance]
    for part in parts:
        check_name(part, "artifact")
    if len(parts) > _MAX_DEPTH or parts[-1] in _LOGS:
        problem = "is nested too deep" if len(parts) > _MAX_DEPTH else "is the name of a log"
        hint = "give the file itself another name; what a child said stays in its own session"
        raise BadName(f"{name!r} {problem}", operation="check name", place="artifact", hint=hint)
    return name


def read_texts(folder: str) -> dict[str, bytes]:
    """Return the files of a child that are there; a link, a folder or a pipe in the place of one is not read."""
    found: dict[str, bytes] = {}
    for part, file in (WORDS | FILES).items():
        with suppress(UnsafePath):
            data = atomic.read(os.path.join(folder, file))
            if data is not None:
                found[part] = data
    return found


def list_artifacts(folder: str) -> list[str]:
    """Return the paths of a child's artifacts in its folder; hidden files and links are not listed."""
    top = os.path.join(folder, ARTIFACTS)
    return sorted(os.path.relpath(path, folder) for path in _walk(top))


def _walk(folder: str) -> Iterator[str]:
    if os.path.islink(folder):
        return
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = os.path.join(place, name)
            if not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):
                yield path


@contextmanager
def replaced(folder: str, files: Mapping[str, bytes]) -> Generator[None]:
    """Put files into a child's folder; they are as before when that, or what is done with them then, fails."""
    made = [path for path in _folders(folder, files) if not is_folder(path)]
    former: dict[str, bytes | None] = {}
    try:
        atomic.make_folders(folder)
        for file in files:
            former[file] = atomic.read(os.path.join(folder, file))
        for file, data in files.items():
            path = os.path.join(folder, file)
            atomic.make_folders(os.path.dirname(path))
            atomic.replace(path, data)
        yield
    except DaypackError:
        for file, data in former.items():
            _put_back(os.path.join(folder, file), data)
        for path in reversed(made):
            with suppress(OSError):
                os.rmdir(path)
        raise


def place_all(root: str, children: Mapping[str, Files]) -> None:
    """Make the folder with all children in it or none: one with a part of them would be believed."""
    making = f"{root}{atomic.TEMPORARY}{os.getpid()}.{threading.get_ident()}"
    atomic.make_folders(making)
    for name, files in children.items():
        atomic.make_folders(os.path.join(making, name))
        for file, read in files.items():
            data = read()  # one after the other: artifacts are large
            if data is not None:
                path = os.path.join(making, name, file)
                atomic.make_folders(os.path.dirname(path))
                atomic.replace(path, data)
    try:
        os.rename(making, root)
    except OSError:  # another process was faster
        from shutil import rmtree  # noqa: PLC0415 — hardly ever needed

        rmtree(making, ignore_errors=True)


def _folders(folder: str, files: Mapping[str, bytes]) -> list[str]:
    """Return the folders of files, parents first."""
    found = {folder: None}
    for file in files:
        above = folder
        for part in file.split("/")[:-1]:
            above = os.path.join(above, part)
            found[above] = None
    return list(found)


def _is_name(name: str) -> bool:
    try:
        return bool(check_name(name, "child"))
    except DaypackError:
        return False


def _put_back(path: str, former: bytes | None) -> None:
    with suppress(DaypackError):  # the first failure is the one to report
        if former is None:
            atomic.discard(path)
        else:
            atomic.replace(path, former)
