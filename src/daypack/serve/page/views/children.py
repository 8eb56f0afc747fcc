"""The children of a session as a tree: those that it recorded, and the sessions of its sub-agents."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from daypack.derived.children import Child, read_children
from daypack.errors import DaypackError
from daypack.history.sessions import CHILD, Found, nearest_parent
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session
from daypack.session.shown import shown
from daypack.turn.evidence.calls.parts import PARTS

_DEPTH = 5
_MOST = 500  # children that are looked at for one answer
_TEXT_CHARS = 4_000
_BARS = 200  # calls in a small strip


class _Tree:
    """Collects the children of one session; no session is looked at twice, so that a cycle ends."""

    def __init__(self, home: OpenedHome) -> None:
        self._home = home
        self._seen: set[Found] = set()
        self._names: dict[str, list[str]] = {}  # of the sessions of an agent

    def children_of(self, session: Session, depth: int) -> list[dict[str, Any]]:
        """Return the children of a session with theirs."""
        self._seen.add(Found(session.agent, session.name))
        recorded = read_children(session.history, recorded=session.turns.inputs.ledger.read().children)
        rows = [self._recorded(session, child, depth) for child in recorded]
        known = {row["session"] for row in rows}
        rows += [
            self._imported(found, name, depth)
            for found, name in self._sub_agents(session)
            if found.name not in known and found not in self._seen
        ]
        return rows

    def _recorded(self, session: Session, child: Child, depth: int) -> dict[str, Any]:
        found = self._session_of(session, child)
        facts = {
            "name": child.name,
            "agent": child.agent,
            "session": child.session,
            "status": child.status,
            "handoff": child.handoff,
            "result": child.result,
            "refs": len(child.refs),
            "artifacts": child.artifacts,
        }
        row = {**_UNKNOWN, **_cut(shown(session.history, facts))}
        if found is None:
            return row
        return {**row, "agent": found.agent, "session": found.name, **self._contents(found, depth)}

    def _session_of(self, session: Session, child: Child) -> Found | None:
        """Return the existing session of a recorded child; one of a sub-agent has the name of both."""
        agent = child.agent or session.agent
        for name in (child.session, f"{session.name}{CHILD}{child.name}"):
            if name and (agent, name) not in self._seen and name in self._sessions(agent):
                return Found(agent, name)
        return None

    def _imported(self, found: Found, name: str, depth: int) -> dict[str, Any]:
        row = {**_UNKNOWN, "name": name, "agent": found.agent, "session": found.name}
        with suppress(DaypackError), self._home.session(*found) as session:
            row |= {"status": session.state, **_words(session)}
        return {**row, **self._contents(found, depth)}

    def _contents(self, found: Found, depth: int) -> dict[str, Any]:
        """Return what the session of a child contains; unknown if it cannot be opened."""
        with suppress(DaypackError), self._home.session(*found) as session:
            below = self.children_of(session, depth + 1) if depth < _DEPTH and len(self._seen) < _MOST else []
            return {"messages": session.history.messages.reader.count(), **_strip(session), "children": below}
        return {}

    def _sub_agents(self, session: Session) -> Iterator[tuple[Found, str]]:
        """Yield the sessions whose name makes them children of this one, with the names of the children."""
        start = f"{session.name}{CHILD}"
        names = self._sessions(session.agent)
        known = frozenset(names)
        for name in names:
            if name.startswith(start) and nearest_parent(name, known) == session.name:
                yield Found(session.agent, name), name.removeprefix(start)

    def _sessions(self, agent: str) -> list[str]:
        if agent not in self._names:
            self._names[agent] = []
            with suppress(DaypackError):  # no name of an agent, or a folder that cannot be read
                self._names[agent] = self._home.home.list(agent)
        return self._names[agent]


_UNKNOWN: dict[str, Any] = {
    "name": "",
    "agent": None,
    "session": None,
    "status": None,
    "handoff": None,
    "result": None,
    "refs": 0,
    "artifacts": (),
    "messages": None,
    "calls": None,
    "strip": None,
    "children": [],
}


def list_children(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return the children of a session, each with its own children."""
    with home.session(asked.text("agent"), asked.text("session")) as session:
        return {"children": _Tree(home).children_of(session, 1)}


def _strip(session: Session) -> dict[str, Any]:
    """Return how many calls a session has, and the newest of them as a small strip."""
    rows = session.turns.calls.read().rows
    newest = rows[-_BARS:]
    budget = next((row.budget for row in reversed(newest) if row.budget), None)
    strip = {"parts": PARTS, "splits": [row.split for row in newest], "budget": budget} if newest else None
    return {"calls": len(rows), "strip": strip}


def _words(session: Session) -> dict[str, Any]:
    """Return what a sub-agent was asked and what it answered last: its first and its last words."""
    first = session.history.messages.reader.read(0, 1)
    asked = first[0].text if first and first[0].role == "user" else None
    answered = next((message.text for message in reversed(session.tail(1)) if message.role == "assistant"), None)
    return _cut(shown(session.history, {"handoff": asked or None, "result": answered or None}))


def _cut(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts with long texts cut, which is done after redaction: half a secret is not recognised."""
    return {
        name: value[:_TEXT_CHARS] if isinstance(value, str) and len(value) > _TEXT_CHARS else value
        for name, value in facts.items()
    }
