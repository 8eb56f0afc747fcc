"""Finding a session by its name: exact, or as the start of one name; and the error that names the nearest sessions."""

from contextlib import suppress

from daypack.errors import DaypackError, SessionMissing
from daypack.files import atomic
from daypack.history.layout import Home
from daypack.types.names import complete, did_you_mean


def find_session(home: Home, agent: str, name: str) -> str:
    """Return the name of an existing session: the name itself, else the only one that begins with it."""
    if atomic.exists(home.session(agent, name).folder):
        return name
    if found := complete(name, home.list(agent), what=f"sessions of agent {agent}", min_chars=1):
        return found
    raise session_missing(home, agent, name, "find session")


def session_missing(home: Home, agent: str, name: str, operation: str) -> SessionMissing:
    """Return the error for a session that does not exist, with the names it may have been meant for."""
    problem, hint = f"no such session: {name!r} of agent {agent}", ""
    with suppress(DaypackError):  # a folder of another agent may be unreadable
        hint = did_you_mean(name, home.list(agent))
        if others := [other for other in home.agents() if other != agent and name in home.list(other)]:
            hint = f"{hint} agent {others[0]} has a session {name!r}: add --agent {others[0]}".strip()
    hint = hint or "list them with `daypack session list`"
    return SessionMissing(problem, operation=operation, place=home.sessions(agent), hint=hint)
