"""What a list shows of each session of an agent: most rows come from small files, the others from an opened session."""

import os
from contextlib import suppress
from typing import Any

from daypack.config import from_environment, from_file, settle
from daypack.derived.title import first_words, title_of
from daypack.errors import DaypackError
from daypack.history.facets import Facets
from daypack.history.layout import Home
from daypack.history.listing.index import SessionIndex
from daypack.history.listing.row import read_row
from daypack.session.opening import open_session
from daypack.session.session import Session

_UNCOUNTED_BYTES = 1 << 16  # of lines by other programs, which a list of many sessions counts


class AgentSessions:
    """The sessions of one agent; rows that were made are kept for the next list when it is saved."""

    def __init__(self, home: Home, agent: str) -> None:
        self.agent = agent
        self._home = home
        self._rows: dict[str, dict[str, Any]] = {}
        try:
            settings = settle([("environment", from_environment(os.environ)), (home.config, from_file(home.config))])
            self._index = SessionIndex(home, agent, str(settings))
        except DaypackError:
            self._index = SessionIndex(home, agent, None)  # settings that are refused: nothing is known

    @property
    def names(self) -> list[str]:
        """The names of all sessions."""
        return self._index.names

    @property
    def folder(self) -> str:
        """The folder that has the sessions."""
        return self._index.folder

    def fill(self, names: "list[str] | None" = None) -> None:
        """Make rows from the few bytes that they need, of all sessions or of some."""
        self._index.fill(self.names if names is None else names, first_words)

    def save(self) -> None:
        """Keep what was made for the next list."""
        self._index.save()

    def updated(self, name: str) -> tuple[str, int]:
        """Return the time of the last append, to the second, and that of the file: it may have been copied since.

        Those without a readable time come last.
        """
        if row := self._index.get(name):
            return row.updated_at, self._index.changed_at(name)
        layout = self._home.session(self.agent, name)
        moment, changed = "", 0
        with suppress(DaypackError):
            moment = Facets(layout).read(layout.updated_at)
        with suppress(OSError):
            changed = os.stat(layout.messages).st_mtime_ns
        return moment, changed

    def row(self, name: str) -> dict[str, Any]:
        """Return the facts of a session, or the reason why it cannot be opened."""
        if name not in self._rows:
            self._rows[name] = self._read(name)
        return self._rows[name]

    def _read(self, name: str) -> dict[str, Any]:
        if row := self._index.get(name):
            path = os.path.join(self.folder, name)
            known = {"session": name, "agent": self.agent, "title": row.title, "path": path}
            return known | {field: getattr(row, field) for field in row.__struct_fields__}
        try:
            root, uid = self._home.root, self._home.uid
            with open_session(name, agent=self.agent, home=root, uid=uid, create=False) as session:
                return self._index.make(name, lambda: describe(session))
        except DaypackError as error:
            return {"session": name, "agent": self.agent, "error": f"{error.problem} [{error.place}]"}


def describe(session: Session, *, max_bytes: int | None = _UNCOUNTED_BYTES) -> dict[str, Any]:
    """Return the facts of a session; `tokens` is None if more than `max_bytes` are not counted yet."""
    layout, facets = session.history.layout, session.history.facets
    return {
        "session": session.name,
        "agent": session.agent,
        "title": title_of(session.history) or None,
        "path": layout.folder,
        "state": facets.state(),
        "created_at": facets.read(layout.created_at),
        "updated_at": facets.read(layout.updated_at),
        "cwd": facets.read(layout.cwd),
        "model": session.meta.get("model"),
        "tokenizer": session.history.tokenizer,
        "messages": len(session.messages()),
        "events": len(session.events()),
        "tokens": _tokens(session, max_bytes),
    }


def _tokens(session: Session, max_bytes: int | None) -> int | None:
    reader = session.history.messages.reader
    total, uncounted = reader.counted_tokens()
    if max_bytes is not None:
        for at in uncounted:
            if (max_bytes := max_bytes - reader.slots(at, at + 1)[0].length) < 0:
                return None
    return total + sum(session.history.count_tokens(message) for at in uncounted for message in reader.read(at, at + 1))


def read_one(home: Home, agent: str, name: str) -> dict[str, Any]:
    """Return the row of one session, without looking at the others of its agent."""
    folder = os.path.join(home.sessions(agent), name)
    if made := read_row(folder, first_words):
        row = made[1]
        known = {"session": name, "agent": agent, "path": folder}
        return known | {field: getattr(row, field) for field in row.__struct_fields__}
    try:
        with open_session(name, agent=agent, home=home.root, uid=home.uid, create=False) as session:
            return describe(session)
    except DaypackError as error:
        return {"session": name, "agent": agent, "error": f"{error.problem} [{error.place}]"}
