"""All sessions of a home for the page: rows are kept in memory, and made again when a file of their session changes."""

import os
import time
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import DaypackError
from daypack.forks import ThreadLock
from daypack.history.layout import Home
from daypack.history.listing.row import Status, statuses_of
from daypack.history.sessions import nearest_parent
from daypack.importers.places import PLACES
from daypack.serve.page.call_counts import CallCounts, Wanted
from daypack.session.listing import AgentSessions, read_one
from daypack.text.redact.excerpts import redact_excerpt
from daypack.upkeep.find.filters import name_of
from daypack.upkeep.session_settings import settings_of

OWN_PROGRAM = "daypack"
_SETTLED_NS = 2_000_000_000  # a file that was changed within this time may change again with the same time
_FEW = 20  # sessions of an agent that are read one by one; more are read with the index of the agent
_MESSAGES, _EVENTS = 1, 2  # positions among the statuses


class ListedSession(Struct, frozen=True, kw_only=True):
    """A session in a list; what is not known is None."""

    agent: str
    program: str
    session: str
    title: str | None = None
    project: str | None = None
    cwd: str | None = None
    model: str | None = None
    state: str | None = None
    messages: int | None = None
    tokens: int | None = None
    calls: int | None = None
    compactions: int | None = None
    created_at: str | None = None
    updated_at: str | None = None
    parent: str | None = None
    error: str | None = None


class Listed(NamedTuple):
    """The sessions, newest first; `counting`: the calls of some are being counted."""

    sessions: list[ListedSession]
    counting: bool


class _Known(NamedTuple):
    statuses: tuple[Status, ...]
    row: ListedSession
    settled: bool


class SessionList:
    """The sessions of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[tuple[str, str], _Known] = {}
        self._settings: Status | None = None
        self._threads = ThreadLock(self._drop)
        self.counts = CallCounts(home)

    def read(self) -> Listed:
        """Return all sessions of all agents, as far as they can be read."""
        with self._threads:
            self._follow_settings()
            known = {
                (agent, name): found for agent in self._home.agents() for name, found in self._agent(agent).items()
            }
            self._known = known
        entries = sorted(known.values(), key=_newest, reverse=True)
        wanted = [
            Wanted(entry.row.agent, entry.row.session, (entry.statuses[_EVENTS], entry.statuses[_MESSAGES]))
            for entry in entries
            if entry.row.error is None
        ]
        counts, counting = self.counts.read(wanted)
        rows = [_counted(entry.row, counts.get((entry.row.agent, entry.row.session))) for entry in entries]
        return Listed(rows, counting)

    def _drop(self) -> None:
        self._known = {}

    def _follow_settings(self) -> None:
        """Make all rows again after a change of the user's settings."""
        try:
            found = os.stat(self._home.config)
            settings: Status = found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
        except OSError:
            settings = (0, 0, 0, 0)
        if settings != self._settings:
            self._known, self._settings = {}, settings

    def _agent(self, agent: str) -> dict[str, _Known]:
        try:
            names, folder = self._home.list(agent), self._home.sessions(agent)
        except DaypackError:
            return {}  # a folder that cannot be read: `daypack session list` says why
        found: dict[str, _Known] = {}
        changed: dict[str, tuple[Status, ...]] = {}
        for name in names:
            statuses, entry = statuses_of(f"{folder}/{name}"), self._known.get((agent, name))
            if entry and entry.settled and entry.statuses == statuses:
                found[name] = entry
            else:
                changed[name] = statuses
        if changed:
            found |= self._make(agent, changed, frozenset(names))
        return found

    def _make(self, agent: str, changed: dict[str, tuple[Status, ...]], names: frozenset[str]) -> dict[str, _Known]:
        many = AgentSessions(self._home, agent) if len(changed) > _FEW else None
        if many:
            many.fill(list(changed))
        found: dict[str, _Known] = {}
        latest = time.time_ns() - _SETTLED_NS
        for name, statuses in changed.items():
            row = many.row(name) if many else read_one(self._home, agent, name)
            settled = max(max(status[:2]) for status in statuses) < latest
            found[name] = _Known(statuses, self._listed(agent, row, names), settled)
        if many:
            many.save()
        return found

    def _listed(self, agent: str, row: dict[str, Any], names: frozenset[str]) -> ListedSession:
        name = row["session"]
        parent = nearest_parent(name, names)
        listed = ListedSession(agent=agent, program=program_of(agent), session=name, parent=parent)
        if error := row.get("error"):
            return replace(listed, error=error)
        cwd = row["cwd"] or ""
        return replace(
            listed,
            **{field: row[field] or None for field in ("title", "state", "created_at", "updated_at")},
            model=self._shown(agent, name, row["model"] or ""),
            messages=row["messages"],
            tokens=row["tokens"],
            cwd=self._shown(agent, name, cwd),
            project=self._shown(agent, name, name_of(cwd)),
        )

    def _shown(self, agent: str, name: str, text: str) -> str | None:
        """Return a text without secrets; as it is if the session's redaction is off."""
        redacted = redact_excerpt(text, 0, len(text)).text
        if redacted != text:
            try:
                if settings_of(self._home, self._home.session(agent, name)).redaction == "off":
                    return text
            except DaypackError:
                return redacted
        return redacted or None


def program_of(agent: str) -> str:
    """Return the program whose sessions an agent has, as people write it."""
    place = PLACES.get(agent) or next((place for place in PLACES.values() if place.format == agent), None)
    return place.title if place else OWN_PROGRAM


def _newest(entry: _Known) -> tuple[str, int]:
    return entry.row.updated_at or "", entry.statuses[_MESSAGES][0]


def _counted(row: ListedSession, counts: tuple[int, int] | None) -> ListedSession:
    return replace(row, calls=counts[0], compactions=counts[1]) if counts else row
