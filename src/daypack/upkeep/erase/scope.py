"""Where an erasure looks: sessions with the sessions of their children, memories, and the rest of the home."""

import os
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Any, NamedTuple

from msgspec import Struct

from daypack.errors import BadInput, DaypackError
from daypack.files import atomic
from daypack.history.creation import absent
from daypack.history.facets import Facets
from daypack.history.layout import Home, Layout
from daypack.history.sessions import find_session
from daypack.plain_files import open_plain
from daypack.turn.memory_binding import read_binding
from daypack.upkeep.backup.records import BACKUPS, MERGED
from daypack.upkeep.erase.copies import Copies
from daypack.upkeep.erase.log_lines import read_lines
from daypack.upkeep.erase.spellings import Spellings
from daypack.upkeep.fetching import fetch_session

_CHILD = "child.updated"
_CHUNK = 16 << 20
_MOST_SPELLED = 1 << 12  # bytes of a spelling that may cross the border of two chunks
_OUTSIDE = "outside the scope"
_CACHE = "a cache of a database: `daypack gc --caches --apply` removes it"
_OTHER_CACHES = (
    "caches on other machines keep it until the session is next used there;"
    " `daypack gc --caches --older 0d --apply` there empties them now"
)
_STAYS = "only in times, numbers, ids or settings, which stay as they are"
_SKIPPED = ("model",)  # downloaded files


class Place(NamedTuple):
    """A session, live or archived."""

    agent: str
    layout: Layout


class Elsewhere(Struct, frozen=True):
    """A file that holds what is erased, or may hold it, and that the erasure does not reach."""

    path: str
    reason: str
    is_remote: bool = False  # a memory on a server, or caches of other machines: whether they hold it is unknown
    is_backup: bool = False
    is_certain: bool = False  # of a backup: it was searched
    is_memory: bool = False  # of this home


def sessions_of(home: Home, agent: str, name: str) -> list[Place]:
    """Return a session and the sessions of its children, and theirs."""
    layout = home.session(agent, find_session(home, agent, name))
    fetch_session(layout)
    if not atomic.exists(layout.messages):
        raise absent(layout, "erase")
    found = [Place(agent, layout)]
    for place in found:
        for child in _children(place.layout):
            other = Place(child[0] or place.agent, home.session(child[0] or place.agent, child[1]))
            if other.layout.folder in [known.layout.folder for known in found]:
                continue
            fetch_session(other.layout)
            if atomic.exists(other.layout.messages):
                found.append(other)
    return found


def all_sessions(home: Home) -> list[Place]:
    """Return all sessions of a home, and the archived ones."""
    live = [Place(agent, home.session(agent, name)) for agent in home.agents() for name in home.list(agent)]
    for place in live:
        fetch_session(place.layout)
    top = os.path.join(home.folder, "archive")
    archived = [
        Place(agent, Layout(home.root, os.path.join(top, agent, name)))
        for agent in _folders(top)
        for name in _folders(os.path.join(top, agent))
    ]
    return [place for place in (*live, *archived) if atomic.exists(place.layout.messages)]


def bound_memories(places: Iterable[Place]) -> tuple[frozenset[str], tuple[Elsewhere, ...]]:
    """Return the memories of this home that sessions are bound to, and those on servers, which are not reached."""
    here: set[str] = set()
    remote: set[Elsewhere] = set()
    for place in places:
        try:
            binding = read_binding(Facets(place.layout).meta())
        except BadInput:
            continue
        if binding and binding.url:
            reason = "a memory on a server: erase there"
            remote.add(Elsewhere(f"{binding.url} {binding.memory_id}", reason, is_remote=True))
        elif binding:
            here.add(binding.memory_id)
    return frozenset(here), tuple(sorted(remote, key=lambda found: found.path))


def other_caches(home: Home) -> tuple[Elsewhere, ...]:
    """Return the caches that other machines have of the sessions of a database, which an erasure does not reach."""
    return () if home.database is None else (Elsewhere(home.database.place, _OTHER_CACHES, is_remote=True),)


def check_names(places: Iterable[Place], spellings: Spellings | Copies) -> None:
    """Refuse a literal that is part of a name: names are in paths, and other files refer to them."""
    for place in places:
        names = [("agent", place.agent), ("session", place.layout.name)]
        for kind, folder in (("pin", place.layout.pinned), ("child", place.layout.derived("child"))):
            names += [(kind, name) for name in (os.listdir(folder) if os.path.isdir(folder) else ())]
        for kind, name in names:
            if spellings.found_in(name.encode("utf-8", "surrogateescape")):
                problem = f"the literal is part of the name of a {kind}, and names cannot be erased"
                delete = f"daypack gc {quote(place.layout.name)} --delete"
                hint = f"remove or delete what has the name (`{delete}`), or erase a longer text"
                raise BadInput(problem, operation="erase", place=f"{place.layout.folder}: {name}", hint=hint)


def files_holding(
    home: Home, spellings: Spellings | Copies, reached: frozenset[str], erased: Iterable[str] = ()
) -> Iterator[Elsewhere]:
    """Yield the files of a home that hold a spelling, but for those in folders that are `reached`.

    What is still in a folder that was `erased` is part of the format.
    """
    inside = tuple(os.path.join(folder, "") for folder in (home.audit, *erased))  # audit: times, ids and names
    for folder, folders, names in os.walk(home.folder):
        if folder == home.folder:
            folders[:] = [name for name in folders if name not in _SKIPPED]
            names = [name for name in names if name not in (BACKUPS, *MERGED)]  # noqa: PLW2901 — times and digests
        folders[:] = sorted(name for name in folders if os.path.join(folder, name) not in reached)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if path in reached or os.path.islink(path):
                continue
            if spelled := spelled_in(_chunks(path), spellings):
                if spelled == _OUTSIDE and path.startswith(inside):
                    spelled = _STAYS
                elif path.startswith(os.path.join(home.caches, "")):
                    spelled = _CACHE
                yield Elsewhere(path, spelled)


def _chunks(path: str) -> Iterator[bytes]:
    try:
        with open_plain(path) as file:
            while data := file.read(_CHUNK):
                yield data
    except OSError:
        return


def spelled_in(chunks: Iterable[bytes], spellings: Spellings | Copies) -> str:
    """Return how the bytes of a file hold a spelling; "" if they do not."""
    encoded, before = "", b""
    for data in chunks:
        if spellings.found_in(before + data):
            return _OUTSIDE
        if spellings.encoded_in(before + data):
            encoded = "encoded (base64, hexadecimal or percent)"
        before = data[-_MOST_SPELLED:]
    return encoded


def _children(layout: Layout) -> Iterator[tuple[str, str]]:
    for line in read_lines(atomic.read(layout.events) or b""):
        if _CHILD.encode() in line.data and (fields := line.fields) and fields.get("type") == _CHILD:
            data: dict[str, Any] = fields.get("data") or {}
            agent, name = data.get("agent"), data.get("session")
            if isinstance(name, str) and name:
                try:
                    layout.home.session(agent or layout.agent, name)
                except DaypackError:
                    continue  # no name of a session
                yield str(agent or ""), name


def _folders(path: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name)) and name[0] != ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
