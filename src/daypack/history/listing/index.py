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
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.history.layout import SESSION_ROWS, Home
from daypack.history.listing.row import FILES, Row, Status, Title, read_row, statuses_of
from daypack.history.logs.lines import UNREADABLE

_MAGIC = b"daypack-sessions-1 "
LEAST = 100  # sessions; fewer are listed in 50 ms without it
_SETTLED_NS = 2_000_000_000  # a file that was changed within this time may change again with the same time
_LOG = FILES.index("messages.jsonl")


class _Entry(Struct, frozen=True, array_like=True, gc=False):
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
        self._path = os.path.join(os.path.dirname(self.folder), SESSION_ROWS)
        self._settings = settings or ""
        self._rows: dict[str, _Entry] = {}
        self._changed = False
        self._began = time.time_ns()
        real = os.path.realpath(home.root) + self.folder[len(home.root) :]
        is_real = os.path.realpath(self.folder) == real  # opening refuses a link, and so does a list
        self._readable = settings is not None and is_real
        self._used = self._readable and len(self.names) >= LEAST
        if self._used:
            self._read()

    def get(self, name: str) -> Row | None:
        """Return the row of a session; None if it has to be made."""
        entry = self._rows.get(name)
        return entry.row if entry is not None else None

    def changed_at(self, name: str) -> int:
        """Return when the log of a session with a row was changed, in nanoseconds."""
        return self._rows[name].statuses[_LOG][0]

    def fill(self, names: Iterable[str], title: Title) -> None:
        """Make the rows that are missing, from the bytes they need; none for a session that has to be opened."""
        if self._readable:
            for name in names:
                if name not in self._rows and (made := read_row(f"{self.folder}/{name}", title)):
                    self._add(_Entry(name, *made))

    def make(self, name: str, describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what `describe` returns, and keep it if no file was changed meanwhile and it is complete."""
        if not self._used:
            return describe()
        before = statuses_of(f"{self.folder}/{name}")
        found = describe()
        if statuses_of(f"{self.folder}/{name}") == before:
            with suppress(msgspec.ValidationError):  # an error, a count that is not known yet
                row = msgspec.convert({key: found.get(key) for key in Row.__struct_fields__}, Row)
                self._add(_Entry(name, before, row))
        return found

    def save(self) -> None:
        """Write the file if rows were added or dropped; where that is not possible, the next list makes them again."""
        if self._changed:
            kept = [entry for _, entry in sorted(self._rows.items()) if self._is_settled(entry)]
            data = msgspec.json.encode(_Content(self._settings, kept))
            with suppress(DaypackError):
                atomic.replace(self._path, _MAGIC + b"%08x\n" % crc32(data) + data, durable=False)

    def _add(self, entry: _Entry) -> None:
        self._rows[entry.name] = entry
        self._changed = self._changed or (self._used and self._is_settled(entry))

    def _is_settled(self, entry: _Entry) -> bool:
        """Return True if a change after the list began gives the files other statuses."""
        return self._began - max(max(status[:2]) for status in entry.statuses) > _SETTLED_NS

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
            if entry.name in names and statuses_of(f"{self.folder}/{entry.name}") == entry.statuses:
                self._rows[entry.name] = entry
        self._changed = len(self._rows) < len(content.entries)


def index_paths(home: Home) -> list[str]:
    """Return where the rows of a user's sessions are, if there are any."""
    return [os.path.join(os.path.dirname(home.sessions(agent)), SESSION_ROWS) for agent in home.agents()]
