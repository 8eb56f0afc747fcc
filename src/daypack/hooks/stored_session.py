"""The session of an event as daypack stores it: its files, and how a command names it."""

from daypack.history.layout import Home, Layout
from daypack.hooks.call import HookCall

_SHORT = 8  # characters of an id; commands accept the start of a name


def session_name(call: HookCall) -> str:
    """Return the name under which the session of an event is stored."""
    name = call.session
    if name.isascii() and name.replace("-", "").replace("_", "").isalnum() and len(name) <= 64 and name[0].isalnum():
        return name.strip("-")  # the ids of all known agents
    from daypack.importers.transcript import safe_name  # noqa: PLC0415 — for ids of unknown shape

    return safe_name(name)


def layout_of(call: HookCall, home: Home) -> Layout:
    """Return the files of the session of an event; they may not exist yet."""
    return home.session(call.agent, session_name(call))


def session_command(call: HookCall, command: str) -> str:
    """Return a command for the session, without the rest of its arguments."""
    return f"daypack {command} {short_name(session_name(call))} --agent {call.agent}"


def short_name(session: str) -> str:
    """Return the name of a session as commands accept it: of a long id the start."""
    plain = session.replace("-", "")
    is_id = len(plain) >= 4 * _SHORT and not plain.strip("0123456789abcdefABCDEF")
    return session[:_SHORT] if is_id else session
