"""The project of a folder: its repository, found without git, and what its .daypack.toml says.

.daypack.toml   memory = "launch"     the memory with this title or id, not the one of the repository
                memory = false        no memory
"""

import os
from typing import Literal, NamedTuple

from daypack.errors import BadConfig
from daypack.plain_files import open_plain
from daypack.system import true_path
from daypack.types.names import did_you_mean, is_visible, one_line

SETTINGS = ".daypack.toml"
_KEY = "memory"  # the only setting
_POINTER = b"gitdir:"  # begins a .git file
_WORKTREES = "/worktrees/"
_POINTER_BYTES = 1 << 16
_SETTINGS_BYTES = 1 << 12  # a parser of TOML may take the square of it
_MAX_NAME_CHARS = 50  # of the title of a memory; `types.memory` costs 30 ms
_HINT = f'write memory = "NAME", or memory = false for no memory; or delete {SETTINGS}'


class Project(NamedTuple):
    """The project that a folder belongs to.

    `key` is the real path of the git common directory, which all worktrees of a repository share; without a repository
    it is the folder. `memory` is the name in .daypack.toml; `off`: .daypack.toml switches the memory off.
    """

    key: str
    name: str
    top: str  # the folder with .git: of this worktree, this submodule
    memory: str | None = None
    off: bool = False
    settings: str = ""  # the path of the .daypack.toml that decided


def find_project(folder: str, *, with_settings: bool = True) -> Project:
    """Return the project of a folder. Only files are read: neither git nor the environment of a git hook decides.

    Without its settings it is found even if .daypack.toml is wrong: a message about the file names it.
    """
    folder = os.path.realpath(folder)
    key, top = _find_repository(folder) or (folder, folder)
    key = true_path(key)
    memory, off, settings = _read_settings(folder, top) if with_settings else (None, False, "")
    return Project(key, _name(key), top, memory, off, settings)


def _find_repository(folder: str) -> tuple[str, str] | None:
    """Return the git common directory of a folder and the top of its working tree; None without a repository."""
    here = ""
    above = folder
    while here != above:
        here, above = above, os.path.dirname(above)
        if common := _common_directory(here):
            return common, here
    return None


def _common_directory(folder: str) -> str:
    """Return the git common directory if a working tree or a bare repository begins at a folder, else ""."""
    inner = os.path.join(folder, ".git")
    if os.path.isdir(inner):
        if _is_git_directory(inner):
            return _common_of(os.path.realpath(inner))
    elif (target := _read_pointer(inner)) is not None:
        target = os.path.realpath(os.path.join(folder, target))
        # The repository of a worktree may be gone or not mounted. The folder above must not get its memories.
        return _common_of(target) if _is_git_directory(target) else folder
    return _common_of(folder) if _is_git_directory(folder) else ""


def _is_git_directory(folder: str) -> bool:
    """Return True for what git accepts: HEAD and objects, or HEAD and the place of the common directory."""
    if not os.path.lexists(os.path.join(folder, "HEAD")):
        return False
    own = all(os.path.isdir(os.path.join(folder, name)) for name in ("objects", "refs"))
    return own or os.path.isfile(os.path.join(folder, "commondir"))


def _common_of(git_directory: str) -> str:
    """Return the directory that all worktrees share with this one."""
    shared = _read_start(os.path.join(git_directory, "commondir"))
    if shared is not None and (name := _path(shared)):
        git_directory = os.path.realpath(os.path.join(git_directory, os.fsdecode(name)))
    return _common_module(git_directory)


def _common_module(git_directory: str) -> str:
    """Return the directory of a submodule in the repository above it; anything else as it is.

    In each worktree a submodule has a directory of its own: <common>/worktrees/<worktree>/modules/<submodule>.
    """
    at = git_directory.find(_WORKTREES)
    while at >= 0:
        worktree, modules, path = git_directory[at + len(_WORKTREES) :].partition("/modules/")
        if modules and os.path.isfile(os.path.join(git_directory[:at] + _WORKTREES, worktree, "commondir")):
            return _common_module(os.path.join(git_directory[:at], "modules", path))
        at = git_directory.find(_WORKTREES, at + 1)
    return git_directory


def _read_pointer(path: str) -> str | None:
    """Return the git directory that a .git file names; None if there is no such file."""
    text = _read_start(path)
    if text is None or not text.startswith(_POINTER):
        return None
    return os.fsdecode(_path(text[len(_POINTER) :]))


def _path(text: bytes) -> bytes:
    """Return the path in a file of git; no path has a NUL."""
    return text.partition(b"\0")[0].strip()


def _read_start(path: str) -> bytes | None:
    try:
        with open_plain(path) as file:
            return file.read(_POINTER_BYTES)
    except OSError:
        return None


def _name(key: str) -> str:
    """Return a name to show for a key: that of the repository's folder, fit for the title of a memory."""
    above, name = os.path.split(key)
    if name.startswith(".") and len(name) > 1:  # .git, or .bare beside its worktrees
        name = os.path.basename(above) or name
    elif len(name) > len(".git"):
        name = name.removesuffix(".git")
    name = one_line(name or key).strip()[:_MAX_NAME_CHARS].strip()
    return name if name and is_visible(name) else "project"


def _read_settings(folder: str, top: str) -> tuple[str | None, bool, str]:
    """Return name, off and path of the nearest .daypack.toml, from a folder up to the top of its repository."""
    here = folder
    while True:
        path = os.path.join(here, SETTINGS)
        if os.path.lexists(path):
            memory = _read_memory(path)
            return memory or None, memory is False, path
        if here == top or os.path.dirname(here) == here:
            return None, False, ""
        here = os.path.dirname(here)


def _read_memory(path: str) -> str | Literal[False] | None:
    """Return `memory` of a .daypack.toml: a name, False, or None if it is not set."""
    import tomllib  # noqa: PLC0415 — 13 ms, only with such a file

    try:
        with open_plain(path) as file:
            data = file.read(_SETTINGS_BYTES + 1)
        if len(data) > _SETTINGS_BYTES:
            raise ValueError(f"it has more than {_SETTINGS_BYTES:,} bytes")
        settings = tomllib.loads(data.decode())
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        hint = "make it a plain file that you may read, or delete it"
        raise BadConfig(problem, operation="read project settings", place=path, hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise BadConfig(str(error), operation="read project settings", place=path, hint=_HINT) from error
    if unknown := [key for key in settings if key != _KEY]:
        hint = "; ".join(filter(None, (did_you_mean(unknown[0], (_KEY,)), _HINT)))
        raise BadConfig(
            f"{one_line(unknown[0])} is no setting", operation="read project settings", place=path, hint=hint
        )
    memory = settings.get(_KEY)
    if memory is None or memory is False:
        return memory
    problem = ""
    if not isinstance(memory, str):
        problem = f"memory is {memory!r}"
    elif not memory.strip():
        problem = "memory is empty"
    elif one_line(memory) != memory or not is_visible(memory):
        problem = "memory has invisible characters"
    elif len(memory.strip()) > _MAX_NAME_CHARS:
        problem = f"memory has {len(memory.strip())} characters, at most {_MAX_NAME_CHARS} are allowed"
    if problem:
        raise BadConfig(problem, operation="read project settings", place=path, hint=_HINT)
    return memory.strip()
