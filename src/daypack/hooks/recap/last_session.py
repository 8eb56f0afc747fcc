"""The state of a project's last sessions, for the next session that starts there: one small file, newest first.

home/<uid>/project/<digest>/last.json
    {"sessions":[{"agent":"claude-code","session":"5ac28188-…","through":812,"at":"…","title":"…","pending":[…],…}]}

It is derived: each session writes its state again when its transcript is taken in.
"""

import os

import msgspec
from msgspec import Struct

from daypack.errors import StorageFailed
from daypack.files import atomic
from daypack.history.layout import Home
from daypack.hooks.recap.recap import FileNote
from daypack.memory.project import Project
from daypack.memory.project.memory import last_sessions_file

_MOST = 3  # sessions of one project at the same time, or one after the other
_FEW_TURNS = 2


class LastSession(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session of a project as it was left."""

    agent: str
    session: str
    through: int  # its newest message
    at: str = ""
    top: str = ""  # the working tree it worked in
    title: str = ""
    task: str = ""  # unless it is done
    pending: tuple[str, ...] = ()
    files: tuple[FileNote, ...] = ()  # that it changed
    tests: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    said: str = ""
    turns: int = 0

    @property
    def is_trivial(self) -> bool:
        """True if nothing was left that another session could need."""
        return not (self.files or self.pending or self.failed) and self.turns < _FEW_TURNS


class _File(Struct):
    sessions: tuple[LastSession, ...] = ()


_decoder = msgspec.json.Decoder(_File)


def read_last(home: Home, project: Project) -> tuple[LastSession, ...]:
    """Return the last sessions of a project, newest first; none if the file cannot be read."""
    try:
        data = atomic.read(last_sessions_file(home, project))
        return () if data is None else _decoder.decode(data).sessions
    except (StorageFailed, msgspec.MsgspecError, UnicodeError):
        return ()


def write_last(home: Home, project: Project, state: LastSession) -> None:
    """Make a session the newest of a project, unless it is in the file as it is."""
    known = read_last(home, project)
    if state.is_trivial or state in known:
        return
    others = (other for other in known if (other.agent, other.session) != (state.agent, state.session))
    newest = sorted((state, *others), key=lambda session: session.at, reverse=True)[:_MOST]
    path = last_sessions_file(home, project)
    atomic.make_folders(os.path.dirname(path))
    atomic.replace(path, msgspec.json.encode(_File(tuple(newest))), durable=False)
