"""The memory systems whose stores can be read, and which of them a path is of."""

import os
from collections.abc import Callable
from typing import NamedTuple

from daypack.errors import BadInput, DaypackError, NotFound
from daypack.importers.stores import basic_memory, claude_mem, daypack_memory, letta, mcp_memory, mem0
from daypack.importers.stores.records import Records
from daypack.importers.stores.store_files import OPERATION
from daypack.types.names import did_you_mean


class System(NamedTuple):
    """A memory system: how its stores are recognised and read. Neither changes the store."""

    name: str
    title: str
    detect: Callable[[str], bool]
    read: Callable[[str], Records]


class Store(NamedTuple):
    """A store of a system at a path."""

    system: System
    path: str

    def read(self) -> Records:
        """Yield what is in the store."""
        return self.system.read(self.path)


# The order matters where a path could be of several: the most specific form comes first.
_MODULES = (claude_mem, mcp_memory, mem0, letta, basic_memory, daypack_memory)
SYSTEMS = {module.NAME: System(module.NAME, module.TITLE, module.detect, module.read) for module in _MODULES}


def open_store(path: str, system: str = "") -> Store:
    """Return the store at a path, of the named system or of the one that recognises it."""
    path = os.path.abspath(os.path.expanduser(path))
    if not os.path.lexists(path):
        raise NotFound("no such file or folder", operation=OPERATION, place=path)
    if system:
        if system not in SYSTEMS:
            hint = f"{did_you_mean(system, SYSTEMS)} the systems are {', '.join(SYSTEMS)}".strip()
            raise BadInput(f"unknown system {system!r}", operation=OPERATION, place="--as", hint=hint)
        return Store(SYSTEMS[system], path)
    found = detect_store(path)
    if found is None:
        hint = f"name the system: --as {'|'.join(SYSTEMS)}"
        raise BadInput("not a memory store that is known", operation=OPERATION, place=path, hint=hint)
    return found


def detect_store(path: str) -> Store | None:
    """Return the store at a path, or None if no system recognises it; raise if it is damaged or locked."""
    failure: DaypackError | None = None
    for system in SYSTEMS.values():
        try:
            if system.detect(path):
                return Store(system, path)
        except DaypackError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return None
