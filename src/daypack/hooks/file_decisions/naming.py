"""How texts name files, and which file of a project a name means.

retry.py   shop/retry.py   /src/shop/retry.py:12   generated/   *.lock
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

_LINES = re.compile(r"[:#](?:L?\d.*|:.*)$")  # retry.py:12-20, retry.py#L10, test_retry.py::test_it
_ENDING = re.compile(r"[\w*]\.[A-Za-z]\w{0,9}$")
MAX_MEANT = 2  # files: a name that may mean more means none of them


def names_in(text: str) -> list[str]:
    """Return the files, folders and patterns that a text names, as it writes them."""
    from daypack.text.literals import literals  # noqa: PLC0415 — not before an edit

    names: dict[str, None] = {}
    for literal in literals(text):
        name = _LINES.sub("", literal.text).removeprefix("@").removeprefix("./")
        if literal.kind in ("path", "id") and " " not in name and (_ENDING.search(name) or name.endswith("/")):
            names[name] = None
    return [name for name in names if name.strip("/*.~")]


def relative_path(path: str, folder: str, top: str) -> str | None:
    """Return a path from the top of a working tree; None if it is not in it. `folder` is where it was written."""
    absolute = os.path.normpath(os.path.join(folder, os.path.expanduser(path)))
    if top == "/" or not absolute.startswith(f"{top}/"):
        return None
    return absolute[len(top) + 1 :]


def meant_by(name: str, paths: Collection[str]) -> list[str]:
    """Return the known files that a name may mean: the path itself, or paths that end with it."""
    return [name] if name in paths else [path for path in paths if path.endswith(f"/{name}")]


def covers(name: str, path: str) -> bool:
    """Return True if a recorded name may mean a file: equal, an end of it, a folder above it, a pattern."""
    if name == path or path.endswith(f"/{name}"):
        return True
    if name.endswith("/"):
        return path.startswith(name) or f"/{name}" in path
    if "*" in name:
        return fnmatchcase(path, name) or fnmatchcase(os.path.basename(path), name)
    return False


def former_names(path: str, renamed: Sequence[tuple[str, str]]) -> list[str]:
    """Return a path and the names it had before, newest first."""
    names = [path]
    for before, after in reversed(renamed):
        if after == names[-1] and before not in names:
            names.append(before)
    return names


def is_file(name: str) -> bool:
    """Return True for the name of one file: no folder and no pattern."""
    return not name.endswith("/") and "*" not in name


def is_ambiguous(name: str, path: str, paths: Iterable[str]) -> bool:
    """Return True if a name that is the end of a path is also the end of another known path."""
    return name != path and any(other != path for other in _ending_with(name, paths))


def _ending_with(name: str, paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if path == name or path.endswith(f"/{name}"))
