"""The memory of a project: its id, which is known before it exists, and the folder with small files of the project.

home/<uid>/project/<digest of the key>/project.json
    {"key":"/src/app/.git","name":"app","memory_id":"…","named":"","chosen":false}
home/<uid>/project/<digest of the key>/named-<digest of the name>.json
    the same for a memory that .daypack.toml names, which one worktree may have and another not
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from daypack.errors import BadInput, MemoryMissing, StorageFailed
from daypack.files import atomic
from daypack.history.layout import DECISIONS, LAST_SESSIONS, Home
from daypack.memory.project.repository import Project, find_project
from daypack.types.digest import digest_bytes
from daypack.types.names import one_line

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.types.memory import Memory

USER = "local"  # whose memory a project has
_RECORD = "project.json"
_ID_CHARS = 32
_STEM_BYTES = 12
_OPERATION = "find project memory"


class ProjectFile(NamedTuple):
    """What project.json says. `named`: the name in .daypack.toml it belongs to; `chosen`: a person chose it."""

    memory_id: str
    named: str = ""
    chosen: bool = False


def project_folder(home: Home, project: Project) -> str:
    """Return the folder with the files of a project; it may not exist yet."""
    return home.project(_digest(project.key))


def last_sessions_file(home: Home, project: Project) -> str:
    """Return the file with the state of a project's last sessions, which hooks write."""
    return os.path.join(project_folder(home, project), LAST_SESSIONS)


def decisions_file(home: Home, project: Project) -> str:
    """Return the file with what was decided about a project's files, which hooks write."""
    return os.path.join(project_folder(home, project), DECISIONS)


def expected_memory(home: Home, project: Project) -> str:
    """Return the id, or else the name, of a project's memory without opening the store; "" if it is switched off.

    The memory may not exist yet: then it gets this id when it is created.
    """
    if project.off:
        return ""
    stored = read_project_file(home, project)
    if project.memory is not None:
        return stored.memory_id if stored else project.memory
    return stored.memory_id if stored and not stored.named else _own_id("key", project.key)


def project_memory(home: Home, project: Project, *, create: bool = True) -> str | None:
    """Return the id of a project's memory; None if it has none, or if it is switched off or hidden.

    Without `create` only small files are read: the memory may have been erased since.
    """
    if not create:
        return expected_memory(home, project) or None if read_project_file(home, project) else None
    from daypack.memory.tools import open_memory  # noqa: PLC0415 — the store costs 100 ms

    with open_memory(home=home.root, uid=home.uid, user=USER) as memories:
        try:
            return ensure_memory(memories, home, project)
        except MemoryMissing:
            return None


def default_memory(home: Home, folder: str, *, given: str = "", configured: str = "") -> tuple[str, Project | None]:
    """Return the memory that a call in a folder means if it names none, and the project if it is the project's.

    An argument or DAYPACK_MEMORY (`given`) has priority, then .daypack.toml, then config.toml (`configured`).
    """
    project = None if given else find_project(folder)
    if project is None or (configured and project.memory is None):
        return given or configured, None
    expected = expected_memory(home, project)
    return (expected, project) if expected else (configured, None)


def ensure_memory(memories: "Memories", home: Home, project: Project, *, create: bool = True) -> str:
    """Return the id of a project's memory; create the memory if it does not exist.

    Processes that do this at the same time create one memory: its id follows from the project. Raises MemoryMissing if
    the memory is switched off or hidden, if a person chose one that was erased, or if it may not be created.
    """
    expected = expected_memory(home, project)
    if not expected:
        hint = "remove memory = false from the file, or name a memory there"
        problem = "the project's memory is switched off"
        raise MemoryMissing(problem, operation=_OPERATION, place=project.settings, hint=hint)
    known = memories.memories()
    ids = {memory.memory_id for memory in known}
    if expected not in ids and project.memory is not None:
        expected = _find_named(known, project.memory, project.settings)
    if expected not in ids:
        _check_creatable(memories, home, project, expected)
        if not create:
            hint = "`daypack memory add TEXT` creates it"
            problem = f"the project {project.name} has no memory yet"
            if project.memory is not None:
                problem = f"there is no memory {project.memory!r} yet, which this file names"
            raise MemoryMissing(problem, operation=_OPERATION, place=project.settings or project.key, hint=hint)
        expected = _create(memories, project, expected)
    named, stored = project.memory or "", read_project_file(home, project)
    if create and (stored is None or (stored.memory_id, stored.named) != (expected, named)):
        with suppress(StorageFailed):  # a home that cannot be written can be read; the id follows from the project
            _write(home, project, ProjectFile(expected, named))
    return expected


def choose_memory(home: Home, project: Project, memory_id: str | None) -> None:
    """Make a memory the project's, for instance after its repository was moved; None: its own again."""
    path = _record(home, project)
    if memory_id is not None:
        _write(home, project, ProjectFile(memory_id, chosen=True))
    elif atomic.exists(path):
        atomic.remove(path)


def read_project_file(home: Home, project: Project) -> ProjectFile | None:
    """Return what project.json says, or the file of the name in .daypack.toml; None if it is missing or damaged."""
    data = atomic.read(_record(home, project))
    if data is None:
        return None
    import json  # noqa: PLC0415 — not msgspec, which costs 25 ms: a status line does without it

    try:
        fields = cast("dict[str, Any]", json.loads(data))
        memory_id, named, chosen = (fields.get(name) for name in ProjectFile._fields)
    except (ValueError, AttributeError, RecursionError):
        return None
    return ProjectFile(str(memory_id), str(named or ""), bool(chosen)) if _is_id(memory_id) else None


def _write(home: Home, project: Project, stored: ProjectFile) -> None:
    import json  # noqa: PLC0415 — as in `read_project_file`

    atomic.make_folders(project_folder(home, project))
    fields = {"key": _text(project.key), "name": project.name, **stored._asdict()}
    atomic.replace(_record(home, project), json.dumps(fields, ensure_ascii=False).encode() + b"\n")


def _record(home: Home, project: Project) -> str:
    name = _RECORD if project.memory is None else f"named-{_digest(project.memory)}.json"
    return os.path.join(project_folder(home, project), name)


def _find_named(known: "Iterable[Memory]", name: str, settings: str) -> str:
    """Return the id of the memory with this title or id, or the id that a new one gets."""
    titled = [memory.memory_id for memory in known if memory.title == name]
    if len(titled) > 1:
        hint = "name it by its id: " + ", ".join(titled[:5])
        raise BadInput(
            f"{len(titled)} memories have the title {name!r}", operation=_OPERATION, place=settings, hint=hint
        )
    return titled[0] if titled else name if _is_id(name) else _own_id("name", name)


def _check_creatable(memories: "Memories", home: Home, project: Project, memory_id: str) -> None:
    """Raise MemoryMissing for a memory that must not be created: it is hidden, or it was chosen by its id."""
    if memory_id in {memory.memory_id for memory in memories.memories(deleted=True)}:
        hint = f"show it again with `daypack memory erase {memory_id} --restore`"
        raise MemoryMissing("the project's memory is hidden", operation=_OPERATION, place=memory_id, hint=hint)
    if project.memory == memory_id:
        hint = f"name another in {project.settings}; `daypack memory list` lists them"
        raise MemoryMissing("there is no such memory", operation=_OPERATION, place=project.settings, hint=hint)
    stored = read_project_file(home, project)
    if stored and stored.chosen and stored.memory_id == memory_id:
        hint = "choose another with `daypack memory project --set NAME`, or its own with --reset"
        problem = "the memory that was chosen for this project does not exist any more"
        raise MemoryMissing(problem, operation=_OPERATION, place=memory_id, hint=hint)


def _create(memories: "Memories", project: Project, memory_id: str) -> str:
    """Create a memory with this id, unless another process has just done it."""
    from daypack.memory.store.port import NewDocument, NewMemory, join_id  # noqa: PLC0415 — the store is open
    from daypack.types.memory import DESCRIPTION_MAX_CHARS, PLACEHOLDER  # noqa: PLC0415

    place = os.path.dirname(project.key) if os.path.basename(project.key) == ".git" else project.key
    description = "" if project.memory else one_line(f"Sessions in {_text(place)}")[:DESCRIPTION_MAX_CHARS]
    new = NewMemory(
        title=project.memory or project.name, memory_type="project", description=description, memory_id=memory_id
    )
    # The same document of both processes, so that the second adds none.
    document = NewDocument(PLACEHOLDER, document_id=join_id(bytes.fromhex(memory_id)[:_STEM_BYTES], 1))
    return memories.backend.store.load(USER, new, (document,), ()).memory_id


def _own_id(kind: str, name: str) -> str:
    return _digest(f"daypack memory\0{kind}\0{name}")


def _digest(text: str) -> str:
    return digest_bytes(text.encode("utf-8", "surrogateescape")).partition(":")[2][:_ID_CHARS]


def _is_id(text: object) -> bool:
    return isinstance(text, str) and len(text) == _ID_CHARS and not text.strip("0123456789abcdef")


def _text(path: str) -> str:
    """Return a path as text: bytes that are not UTF-8 are shown escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")
