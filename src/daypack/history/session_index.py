"""What a list shows of each session, in one file for each agent, so that listing many does not open them.

    <root>/home/<uid>/agent/<agent>/sessions.idx
    daypack-sessions-1 1a2b3c4d⏎
    ["<settings>",[["work",[[1763413200000000000,1763413200000000000,948,77],…],{"title":"…","state":"active",…}],…]]

The file is a cache: the checksum is the CRC-32 of what follows its line, and a row counts only while the folder and the
files it was made from have the same times, sizes and inodes, and under the same settings. A missing, damaged or
unwritable file costs time, nothing else.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.history.layout import Home
from daypack.history.lines import UNREADABLE

_NAME = "sessions.idx"
_MAGIC = b"daypack-sessions-1 "
LEAST = 100  # sessions; fewer are listed in 50 ms without it
_SETTLED_NS = 2_000_000_000  # a file that was changed within this time may change again with the same time
_FILES = ("", "messages.jsonl", "events.jsonl", "meta.json", "state", "created_at", "updated_at", "cwd")

Status = tuple[int, int, int, int]  # time of modification, time of change, size, inode
_ABSENT: Status = (0, 0, 0, 0)


class Row(Struct, frozen=True):
    """What a list shows of a session."""

    title: str | None
    state: str
    created_at: str
    updated_at: str
    cwd: str
    model: str | None
    tokenizer: str
    messages: int
    events: int
    tokens: int


class _Entry(Struct, frozen=True, array_like=True):
    name: str
    statuses: tuple[Status, ...]
    row: Row


class _Content(Struct, frozen=True, array_like=True):
    settings: str
    entries: list[_Entry]


class SessionIndex:
    """The rows of an agent's sessions that are still true; `settings` are those of all of them, None: no rows."""

    def __init__(self, home: Home, agent: str, settings: str | None) -> None:
        self.names = home.list(agent)
        self.folder = home.sessions(agent)
        self._path = os.path.join(os.path.dirname(self.folder), _NAME)
        self._settings = settings or ""
        self._rows: dict[str, _Entry] = {}
        self._changed = False
        real = os.path.realpath(home.root) + self.folder[len(home.root) :]
        is_real = os.path.realpath(self.folder) == real  # opening refuses a link, and so does a list
        self._used = settings is not None and len(self.names) >= LEAST and is_real
        if self._used:
            self._read()

    def get(self, name: str) -> Row | None:
        """Return the row of a session; None if it has to be made."""
        entry = self._rows.get(name)
        return entry.row if entry is not None else None

    def changed_at(self, name: str) -> int:
        """Return when the log of a session with a row was changed, in nanoseconds."""
        return self._rows[name].statuses[_FILES.index("messages.jsonl")][0]

    def make(self, name: str, describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what `describe` returns, and keep it if it was made from settled files and is complete."""
        if not self._used:
            return describe()
        before = self._status(name)
        found = describe()
        newest = max(max(status[:2]) for status in before)
        if time.time_ns() - newest > _SETTLED_NS and self._status(name) == before:
            with suppress(msgspec.ValidationError):  # an error, a count that is not known yet
                row = msgspec.convert({key: found.get(key) for key in Row.__struct_fields__}, Row)
                self._rows[name] = _Entry(name, before, row)
                self._changed = True
        return found

    def save(self) -> None:
        """Write the file if rows were added or dropped; where that is not possible, the next list makes them again."""
        if self._changed:
            data = msgspec.json.encode(_Content(self._settings, [self._rows[name] for name in sorted(self._rows)]))
            with suppress(DaypackError):
                atomic.replace(self._path, _MAGIC + b"%08x\n" % crc32(data) + data, durable=False)

    def _read(self) -> None:
        try:
            head, _, data = (atomic.read(self._path) or b"").partition(b"\n")
            if head != _MAGIC + b"%08x" % crc32(data):
                return
            content = msgspec.json.decode(data, type=_Content)
        except (DaypackError, *UNREADABLE):
            return
        if content.settings != self._settings:
            return
        names = set(self.names)
        for entry in content.entries:
            if entry.name in names and self._status(entry.name) == entry.statuses:
                self._rows[entry.name] = entry
        self._changed = len(self._rows) < len(content.entries)

    def _status(self, name: str) -> tuple[Status, ...]:
        folder = f"{self.folder}/{name}/"
        return tuple([_status(folder + file) for file in _FILES])


def index_paths(home: Home) -> list[str]:
    """Return where the rows of a user's sessions are, if there are any."""
    return [os.path.join(os.path.dirname(home.sessions(agent)), _NAME) for agent in home.agents()]


def forget_rows(home: Home) -> None:
    """Delete the rows of a user's sessions: they have the first words of each."""
    for path in index_paths(home):
        atomic.discard(path)


def _status(path: str) -> Status:
    try:
        found = os.lstat(path)
    except OSError:
        return _ABSENT
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
