"""Finding a session by its name: exact, or as the start of one name, of one agent or of any.

A session `<name>--<child>` is that of a child of `<name>`: the start of both names means the parent.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from daypack.errors import BadInput, DaypackError, SessionMissing
from daypack.history.layout import Home
from daypack.types.names import complete, did_you_mean

CHILD = "--"  # between the names of a session and of its child
DEFAULT_AGENT = "default"
_MOST_LISTED = 5


class Found(NamedTuple):
    """The agent and the whole name of a session."""

    agent: str
    name: str

    def __str__(self) -> str:
        return f"{self.agent}/{self.name}"


def find_session(home: Home, agent: str, name: str) -> str:
    """Return the name of an existing session: the name itself, else the only one that begins with it."""
    if home.has(agent, name):
        return name
    what = f"sessions of agent {agent}"
    if found := complete(name, _without_children(name, home.list(agent)), what=what, min_chars=1):
        return found
    raise session_missing(home, agent, name, "find session")


def find_anywhere(home: Home, usual: str, name: str) -> Found:
    """Return an existing session of any agent: of the usual one, else the only one of that name, or of that start.

    `name` may be `<agent>/<session>`.
    """
    agent, slash, rest = name.rpartition("/")
    if slash and agent in home.agents():
        return Found(agent, find_session(home, agent, rest))
    if home.has(usual, name):
        return Found(usual, name)
    others = [other for other in home.agents() if other != usual]
    exact = [Found(other, name) for other in others if home.has(other, name)]
    if not exact and any(known.startswith(name) for known in home.list(usual)):
        return Found(usual, find_session(home, usual, name))
    found = exact or [Found(other, known) for other in others for known in _starting(home, other, name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise _missing_anywhere(home, name)
    listed = ", ".join(map(str, found[:_MOST_LISTED])) + (" …" if len(found) > _MOST_LISTED else "")
    problem = f"{len(found)} sessions have the name {name!r}" if exact else f"{len(found)} sessions begin with {name!r}"
    raise BadInput(problem, operation="find session", place="name", hint=f"name one of them: {listed}")


def agent_of(home: Home, agent: str, name: str) -> str:
    """Return the agent that has an imported session: an earlier import may have stored it with the default one."""
    for holder in (agent, DEFAULT_AGENT):
        if home.has(holder, name):
            return holder
    return agent


def session_missing(home: Home, agent: str, name: str, operation: str) -> SessionMissing:
    """Return the error for a session that does not exist, with the names it may have been meant for."""
    problem, hint = f"no such session: {name!r} of agent {agent}", ""
    with suppress(DaypackError):  # a folder of another agent may be unreadable
        hint = did_you_mean(name, home.list(agent))
        if others := [other for other in home.agents() if other != agent and name in home.list(other)]:
            hint = f"{hint} agent {others[0]} has a session {name!r}: add --agent {others[0]}".strip()
    hint = hint or _in_files(home, name) or "list them with `daypack session list`"
    place = home.sessions(agent) if home.database is None else home.sessions_place
    return SessionMissing(problem, operation=operation, place=place, hint=hint)


def _missing_anywhere(home: Home, name: str) -> SessionMissing:
    """Return the error for a session that no agent has, with the nearest names of all of them."""
    known: list[str] = []
    for agent in home.agents():
        with suppress(DaypackError):  # a folder of an agent may be unreadable
            known += home.list(agent)
    hint = did_you_mean(name, known) or _in_files(home, name) or "list them with `daypack session list`"
    problem = f"no such session: {name!r} of any agent"
    return SessionMissing(problem, operation="find session", place=home.sessions_place, hint=hint)


def _in_files(home: Home, name: str) -> str:
    """Return what helps if a session is in files of the home, while sessions are in a database; "" if it is not."""
    if home.database is None:
        return ""
    files = home._replace(database=None)
    if not any(files.has(agent, name) for agent in files.agents()):
        return ""
    return "it is in files of the home: copy it into the database with `daypack copy`"


def _starting(home: Home, agent: str, start: str) -> Sequence[str]:
    with suppress(DaypackError):  # a folder of another agent may be unreadable
        return _without_children(start, home.list(agent))
    return ()


def _without_children(start: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin with `start`, without children of sessions that do."""
    found = dict.fromkeys(name for name in names if name.startswith(start))
    return [name for name in found if not any(parent in found for parent in parents_of(name))]


def parents_of(name: str) -> Iterator[str]:
    """Yield the names of which a session may be a child, the shortest first."""
    at = name.find(CHILD, 1)
    while at > 0:
        yield name[:at]
        at = name.find(CHILD, at + 1)


def nearest_parent(name: str, names: Container[str]) -> str | None:
    """Return the nearest of the existing sessions of which another is a child; None if it is no child of them."""
    return next((parent for parent in reversed([*parents_of(name)]) if parent in names), None)
