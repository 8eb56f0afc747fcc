"""Which files of known places were imported: `past.json`.

    <home>/past.json
    {"/home/ada/.claude/projects/-src-app/5ac2….jsonl":[1763424000000000000,48211,"",["claude-code/5ac2…"],true]}

Each row has the modification time and size that a file had when it was imported, the sessions that it brought, and
whether their words were captured into the memories of their projects. An interrupted import continues, a second one has
nothing to do, and a session that the user deleted does not come back, even if its file is renamed, compressed or
continued. Of a database, from which a hook takes in one session after the other, the row may have sessions only, with
0 as time and size. Of a file that could not be read, the row also has the version of daypack: another may be able to.
"""

import os
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct, structs

import daypack
from daypack.errors import BadInput
from daypack.files import atomic
from daypack.files.lock import held_after_waiting
from daypack.history.layout import Home
from daypack.importers.places import PlacedFile

_NAME = "past.json"
_LOCK = "past.lock"
_WAIT_SECONDS = 60.0  # for another process that saves: it takes milliseconds


class Imported(Struct, frozen=True, array_like=True):
    """The state of a file when it was imported; rows of version 1 have only the first three values."""

    modified: int
    size: int
    unreadable_by: str = ""  # the version of daypack that could not read it
    sessions: tuple[str, ...] = ()  # AGENT/SESSION, or #memory/ID for the store of another system
    captured: bool = True


class Ledger:
    """The rows of `past.json`; several processes may add rows at the same time."""

    def __init__(self, home: Home, *, stored: bool = True) -> None:
        """With `stored` False, it is kept in memory only: for files that the user named."""
        self._home = home
        self._stored = stored
        self._path = os.path.join(home.folder, _NAME if home.database is None else _name_of(home.database.cache_name))
        self._rows = self._read()
        self._unsaved: dict[str, Imported] = {}

    def is_done(self, file: PlacedFile, *, capturing: bool) -> bool:
        """Return True if there is nothing to do for a file as it is now."""
        known = self._rows.get(file.path)
        if known is None or (known.modified, known.size) != (file.modified, file.size):
            return False
        if known.unreadable_by:
            return known.unreadable_by == daypack.__version__
        return known.captured or not capturing

    def has(self, path: str) -> bool:
        """Return True if a file was seen before, in any state."""
        return path in self._rows

    def sessions(self, path: str) -> tuple[str, ...]:
        """Return the sessions that a file has brought, as AGENT/SESSION."""
        known = self._rows.get(path)
        return known.sessions if known else ()

    def memories_of(self, store: str) -> tuple[str, ...]:
        """Return the memories that a store has brought: a file, or a folder of files."""
        below = os.path.join(store, "")
        rows = (row for path, row in self._rows.items() if path == store or path.startswith(below))
        return tuple(dict.fromkeys(name for row in rows for name in row.sessions if name.startswith("#")))

    def note(self, file: PlacedFile, sessions: Iterable[str], *, captured: bool) -> None:
        """Note that all of a file, as it was with this state, is imported."""
        names = tuple(dict.fromkeys((*self.sessions(file.path), *sessions)))
        self._put(file.path, Imported(file.modified, file.size, "", names, captured))

    def note_sessions(self, path: str, sessions: Iterable[str]) -> None:
        """Note that sessions of a file are imported; others in it may not be."""
        names = tuple(dict.fromkeys((*self.sessions(path), *sessions)))
        known = self._rows.get(path, Imported(0, 0))
        self._put(path, structs.replace(known, sessions=names))

    def note_unreadable(self, file: PlacedFile) -> None:
        """Note that this version of daypack cannot read a file."""
        self._put(file.path, Imported(file.modified, file.size, daypack.__version__, self.sessions(file.path)))

    def deleted(self) -> frozenset[str]:
        """Return the sessions that were imported and no longer exist, as AGENT/SESSION: the user deleted them.

        The rows are read again: without their file, the home itself was deleted, and everything is new.
        """
        if self._stored:
            self._rows = self._merged()
        names = {name for row in self._rows.values() for name in row.sessions}
        return frozenset(_missing(self._home, {name for name in names if not name.startswith("#")}))

    def save(self) -> None:
        """Write the new rows beside those that other processes have written meanwhile, and take these in."""
        if not self._stored or not self._unsaved:
            return
        atomic.make_folders(self._home.folder)
        with held_after_waiting(os.path.join(self._home.folder, _LOCK), _WAIT_SECONDS, "another import"):
            self._rows = self._merged()
            atomic.replace(self._path, msgspec.json.encode(self._rows))
        self._unsaved = {}

    def _put(self, path: str, row: Imported) -> None:
        self._rows[path] = self._unsaved[path] = row

    def _merged(self) -> dict[str, Imported]:
        """Return the stored rows with the new ones; a row has the sessions of both, if two took in a database."""
        stored = self._read()
        for path, row in self._unsaved.items():
            before = stored[path].sessions if path in stored else ()
            stored[path] = structs.replace(row, sessions=tuple(dict.fromkeys((*before, *row.sessions))))
        return stored

    def _read(self) -> dict[str, Imported]:
        if not self._stored:
            return {}
        try:
            return msgspec.json.decode(atomic.read(self._path) or b"{}", type=dict[str, Imported])
        except (msgspec.MsgspecError, UnicodeError):  # without it, files are read again and add nothing
            return {}


def _name_of(database: str) -> str:
    """Return the file for the sessions of a database: those that are files here are not missing there."""
    stem, ending = os.path.splitext(_NAME)
    return f"{stem}-{database}{ending}"


def _missing(home: Home, names: Iterable[str]) -> Iterator[str]:
    existing: dict[str, set[str]] = {}
    for name in names:
        agent, _, session = name.partition("/")
        if agent not in existing:
            try:
                existing[agent] = set(home.list(agent))
            except BadInput:  # no name of an agent
                continue
        if session not in existing[agent]:
            yield name
