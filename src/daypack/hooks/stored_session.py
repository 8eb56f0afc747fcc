"""The session of an event as daypack stores it: its files, and how a command names it."""

from daypack.history.layout import Home, Layout, safe_name
from daypack.history.sessions import agent_of
from daypack.hooks.call import HookCall

_SHORT = 8  # characters of an id; commands accept the start of a name


def session_name(call: HookCall) -> str:
    """Return the name under which the session of an event is stored."""
    return safe_name(call.session)


def layout_of(call: HookCall, home: Home) -> Layout:
    """Return the files of the session of an event; they may not exist yet.

    The agent waits for a hook, so nothing is asked of a database: a session that is recorded here has a folder here.
    """
    name = session_name(call)
    return home.session(agent_of(home.here, call.agent, name), name)


def session_command(call: HookCall, command: str) -> str:
    """Return a command for the session, without the rest of its arguments."""
    return f"daypack {command} {short_name(session_name(call))} --agent {call.agent}"


def short_name(session: str) -> str:
    """Return the name of a session as commands accept it: of a long id the start."""
    plain = session.replace("-", "")
    is_id = len(plain) >= 4 * _SHORT and not plain.strip("0123456789abcdefABCDEF")
    return session[:_SHORT] if is_id else session
