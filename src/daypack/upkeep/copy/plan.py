"""Plan a copy: which sessions and memories the target lacks, and which it has with other bytes. Nothing is written."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import sha256

import msgspec
from msgspec import Struct

from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.memory.store.port import Store
from daypack.memory.store.sqlite import SqliteStore
from daypack.postgres.address import name_of_database
from daypack.upkeep.copy.database import DatabaseSide
from daypack.upkeep.copy.folder import FolderSide
from daypack.upkeep.copy.memories import MemorySide, PlannedMemory, plan_memory
from daypack.upkeep.copy.port import Side
from daypack.upkeep.copy.sessions import PlannedSession, plan_session

_ID_DIGITS = 12
_ADDRESS = ("postgresql://", "postgres://")
Progress = Callable[[int], None]


class Request(Struct, frozen=True, kw_only=True):
    """What to copy: the sessions of a user folder, one of them, and the memories of a user."""

    source: str  # the root folder of a home, or the address of a database
    target: str
    uid: str
    user: str = "local"  # who owns the memories
    session: tuple[str, str] | None = None  # agent and name
    sessions: bool = True
    memories: bool = True


class Plan(Struct, frozen=True):
    """What a copy would do. The id changes if anything of it does."""

    id: str
    source: str
    target: str
    sessions: tuple[PlannedSession, ...]
    memories: tuple[PlannedMemory, ...]
    deleted_memories: int = 0  # which are not copied

    @property
    def conflicts(self) -> tuple[str, ...]:
        """What the target has with other bytes."""
        sessions = [f"{found.name}: {found.problem}" for found in self.sessions if found.state == "conflict"]
        memories = [
            f"memory {found.memory_id}: {found.problem}" for found in self.memories if found.state == "conflict"
        ]
        return (*sessions, *memories)

    @property
    def is_empty(self) -> bool:
        """True if the target has everything."""
        return not any(found.is_copied for found in (*self.sessions, *self.memories))


def is_address(text: str) -> bool:
    """Return True if a place is a database, not a folder."""
    return text.startswith(_ADDRESS)


def open_side(place: str, uid: str, *, exists: bool) -> Side:
    """Return the sessions at a place; `exists`: a folder that is not there is refused."""
    if is_address(place):
        from daypack.history.postgres.store import open_store  # noqa: PLC0415 — only with a database

        return DatabaseSide(open_store(place, uid))
    home = Home(os.path.abspath(place), uid)
    if exists and not os.path.isdir(home.folder):
        hint = "name the root folder of a home, as in --home, and the user with --uid; or postgresql://…"
        raise BadInput("there is no such home", operation="copy", place=home.folder, hint=hint)
    return FolderSide(home)


@contextmanager
def open_memories(place: str, uid: str, user: str) -> Generator[MemorySide]:
    """Open the memories at a place: in the file of a home, or in a database."""
    if is_address(place):
        from daypack.memory.store.postgres.store import PostgresStore  # noqa: PLC0415 — only with a database
        from daypack.postgres.database import Database  # noqa: PLC0415

        database = Database(place)
        store: Store = PostgresStore(database)
        side = MemorySide(store, user, database.place, database=database)
    else:
        path = Home(os.path.abspath(place), uid).store
        store = SqliteStore(path)
        side = MemorySide(store, user, path, path)
    try:
        yield side
    finally:
        store.close()


def plan(request: Request, progress: Progress | None = None) -> Plan:
    """Return what a copy would do."""
    source, target = sides_of(request)
    sessions = tuple(_plan_sessions(request, source, target, progress)) if request.sessions else ()
    memories, deleted = _plan_memories(request) if request.memories and request.session is None else ((), 0)
    named = (sessions, memories)
    digest = sha256(msgspec.json.encode((source.place, target.place, named))).hexdigest()[:_ID_DIGITS]
    return Plan(digest, source.place, target.place, sessions, memories, deleted)


def sides_of(request: Request) -> tuple[Side, Side]:
    """Return source and target; refuse a copy to itself."""
    source = open_side(request.source, request.uid, exists=True)
    target = open_side(request.target, request.uid, exists=False)
    places = [
        name_of_database(place) if is_address(place) else os.path.realpath(side.place)
        for place, side in ((request.source, source), (request.target, target))
    ]
    if places[0] == places[1]:
        hint = "name another folder or database as the target"
        raise BadInput("source and target are the same", operation="copy", place=target.place, hint=hint)
    return source, target


def _plan_sessions(request: Request, source: Side, target: Side, progress: Progress | None) -> list[PlannedSession]:
    names = source.names()
    if request.session is not None:
        names = [name for name in names if name == request.session]
        if not names:
            hint = "name it as AGENT/NAME; `daypack session list` lists sessions"
            problem = f"there is no session {'/'.join(request.session)}"
            raise BadInput(problem, operation="copy", place=source.place, hint=hint)
    found: list[PlannedSession] = []
    for at, (agent, name) in enumerate(names, 1):
        if planned := plan_session(source, target, agent, name):
            found.append(planned)
        if progress is not None:
            progress(at)
    return found


def _plan_memories(request: Request) -> tuple[tuple[PlannedMemory, ...], int]:
    with (
        open_memories(request.source, request.uid, request.user) as source,
        open_memories(request.target, request.uid, request.user) as target,
    ):
        planned = tuple(plan_memory(source, target, memory) for memory in source.memories())
        return planned, source.deleted()
