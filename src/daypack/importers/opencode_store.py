"""Where opencode keeps its sessions: a SQLite database, and in versions before it a folder of JSON files.

    ~/.local/share/opencode/opencode.db                     tables session, message, part; `data` is JSON
    ~/.local/share/opencode/storage/session/<project>/ses_….json, message/ses_…/msg_….json, part/msg_…/prt_….json

A session of a database is named `<database>:<session id>`. Nothing here writes; SQLite itself notes its readers in the
`-shm` file beside a database. A reply that is still being written is left out, with all that follows it: opencode
changes it until it is complete.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import msgspec

from daypack.errors import BadInput, StorageFailed
from daypack.history.layout import safe_name
from daypack.importers.lines import unreadable
from daypack.importers.readers.program_database import ProgramDatabase, Schema
from daypack.importers.transcript import child_session_name, object_of, scrub, text_of
from daypack.plain_files import open_plain

DATABASE = "opencode.db"
_HEADER = b"SQLite format 3\x00"
_SETTLED_SECONDS = 3600.0  # after which a reply that was never completed is as it will be
_SCHEMA = Schema(
    "opencode",
    {
        "session": ("id", "parent_id", "directory"),
        "message": ("id", "session_id", "time_created", "time_updated", "data"),
        "part": ("id", "message_id", "session_id", "data"),
    },
    "give the opencode.db of opencode 1.x",
)
_LOST = ("summary",)  # of a user message: what opencode computes later about the files that were changed
_MAX_IDS = 500  # in one query


class StoredSession(NamedTuple):
    """A session of opencode: its id, that of its parent ("" if it has none), and the folder it works in.

    `name` is the name of its session of daypack, `above` that of its parent.
    """

    id: str
    parent: str = ""
    cwd: str = ""
    name: str = ""
    above: str = ""


class Store:
    """A database, or the folder of JSON files; `session` is the one that its path names, "" for all."""

    def __init__(self, path: str) -> None:
        self.path, self.session = _split(path)
        self._folder = _storage_of(self.path)
        if self._folder:
            self.session = os.path.basename(self.path).removesuffix(".json")

    def sessions(self, named: str | None = None) -> list[StoredSession]:
        """Return all sessions, or the one that is meant with its parents and sub-agents: parents before children.

        `named` is the name of a session without a parent, if the user chose one.
        """
        found = {each.id: each for each in (self._files() if self._folder else self._query())}
        if self.session and self.session not in found:
            raise unreadable(self.path, f"has no session {self.session}", "`opencode session list` shows them")
        pending = (
            [_root(self.session, found)]
            if self.session
            else [each for each in found if found[each].parent not in found]
        )
        children: dict[str, list[str]] = {}
        for each in found.values():
            children.setdefault(each.parent, []).append(each.id)
        ordered: dict[str, StoredSession] = {}
        while pending:
            name = pending.pop(0)
            if name in ordered:
                continue
            above = ordered[found[name].parent].name if found[name].parent in ordered else ""
            own = child_session_name(above, name) if above else safe_name(named or name)
            ordered[name] = found[name]._replace(name=own, above=above)
            pending[:0] = children.get(name, [])
        return list(ordered.values())

    def rows(self, session: str) -> list[bytes]:
        """Return the messages of a session with their parts, in order, up to the first that is not complete."""
        messages = self._message_files(session) if self._folder else self._messages(session)
        stop = _first_unsettled(messages)
        return [_row(message) for message in messages[:stop]]

    def pick(self, session: str, ids: Sequence[str]) -> list[bytes]:
        """Return some messages of a session, in the order of their ids; those that are not there are left out."""
        wanted = set(ids)
        found = self._message_files(session) if self._folder else self._messages(session, ids)
        rows = {message.id: message for message in found if message.id in wanted}
        return [_row(rows[each]) for each in ids if each in rows]

    # The database

    def _query(self) -> list[StoredSession]:
        with closing(ProgramDatabase(self.path, _SCHEMA)) as database:
            rows = database.fetch("SELECT id, parent_id, directory FROM session ORDER BY time_created, id")
        return [StoredSession(str(name), str(parent or ""), str(folder or "")) for name, parent, folder in rows]

    def _messages(self, session: str, ids: Sequence[str] = ()) -> "list[_Message]":
        with closing(ProgramDatabase(self.path, _SCHEMA)) as database:
            messages: list[tuple[Any, ...]] = []
            parts: dict[str, list[Any]] = {}
            for start in range(0, len(ids) or 1, _MAX_IDS):
                some = ids[start : start + _MAX_IDS]
                marks = ",".join("?" * len(some))
                only = f" AND id IN ({marks})" if ids else ""
                query = f"SELECT id, time_created, time_updated, data FROM message WHERE session_id = ?{only}"  # noqa: S608 — marks only
                messages += database.fetch(f"{query} ORDER BY time_created, id", (session, *some))
                only = f" AND message_id IN ({marks})" if ids else ""
                query = f"SELECT message_id, id, data FROM part WHERE session_id = ?{only} ORDER BY id"  # noqa: S608
                for message, name, data in database.fetch(query, (session, *some)):
                    fields = _decode(data)
                    parts.setdefault(message, []).append(
                        {**fields, "id": name} if fields else {"unreadable": _text(data)}
                    )
        return [
            _Message(
                str(name),
                created or 0,
                (updated or 0) / 1000,
                _decode(data) or {"unreadable": _text(data)},
                parts.get(name, []),
            )
            for name, created, updated, data in messages
        ]

    # The files of earlier versions

    def _files(self) -> Iterator[StoredSession]:
        for path in _listed(os.path.join(self._folder, "session"), depth=2):
            fields = _read_file(path)
            if name := text_of(fields.get("id")):
                yield StoredSession(name, text_of(fields.get("parentID")) or "", text_of(fields.get("directory")) or "")

    def _message_files(self, session: str) -> "list[_Message]":
        found: list[_Message] = []
        for path in _listed(os.path.join(self._folder, "message", session)):
            info = _read_file(path)
            name = text_of(info.get("id")) or os.path.basename(path).removesuffix(".json")
            parts = [_read_file(part) for part in _listed(os.path.join(self._folder, "part", name))]
            created = object_of(info.get("time")).get("created")
            at = created if isinstance(created, int | float) else 0
            found.append(_Message(name, at, _modified(path), info, parts))
        return sorted(found, key=lambda message: (message.created, message.id))


class _Message(NamedTuple):
    id: str
    created: float
    updated: float  # seconds
    info: dict[str, Any]
    parts: list[Any]

    @property
    def is_complete(self) -> bool:
        if self.info.get("role") != "assistant":
            return True
        return bool(object_of(self.info.get("time")).get("completed") or self.info.get("error"))


def is_store(path: str) -> bool:
    """Return True for a database of opencode, a session in one, or the file of a session of an earlier version."""
    path, _ = _split(path)
    if _storage_of(path):
        return True
    try:
        with open_plain(path) as file:
            if file.read(len(_HEADER)) != _HEADER:
                return False
        if os.path.basename(path) == DATABASE:
            return True  # what is wrong with it is reported when it is read
        with closing(ProgramDatabase(path, _SCHEMA)):
            return True
    except (OSError, BadInput, StorageFailed):
        return False


def is_database(path: str) -> bool:
    """Return True for any SQLite file."""
    try:
        with open_plain(_split(path)[0]) as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False


def session_path(database: str, session: str) -> str:
    """Return the name of a session of a database."""
    return f"{database}:{session}"


def store_file(path: str) -> str:
    """Return the file that a path of a session is in."""
    return _split(path)[0]


def _root(session: str, found: dict[str, StoredSession]) -> str:
    """Return the session above all others of a session."""
    seen: set[str] = set()
    while found[session].parent in found and session not in seen:
        seen.add(session)
        session = found[session].parent
    return session


def _split(path: str) -> tuple[str, str]:
    database, colon, session = path.rpartition(":")
    return (database, session) if colon and session.startswith("ses_") and "/" not in session else (path, "")


def _storage_of(path: str) -> str:
    """Return the folder of JSON files that the file of a session is in; "" if it is no such file."""
    session, folder = os.path.basename(path), os.path.dirname(os.path.dirname(os.path.abspath(path)))
    is_session = session.startswith("ses_") and session.endswith(".json") and os.path.basename(folder) == "session"
    return os.path.dirname(folder) if is_session else ""


def _first_unsettled(messages: "Sequence[_Message]") -> int:
    """Return the position of the first reply that may still change.

    opencode answers one message after the other: a reply is settled if a later one exists.
    """
    settled_before = time.time() - _SETTLED_SECONDS
    last = max((at for at, message in enumerate(messages) if message.info.get("role") == "assistant"), default=-1)
    for at, message in enumerate(messages):
        if at >= last and not message.is_complete and message.updated > settled_before:
            return at
    return len(messages)


def _row(message: "_Message") -> bytes:
    """Return a message as a row, without what opencode changes after it is complete."""
    info = {name: value for name, value in message.info.items() if name not in _LOST or value is True}
    parts = [_settled(object_of(part)) for part in message.parts]
    return msgspec.json.encode(scrub({"info": {**info, "id": message.id}, "parts": parts}))


def _settled(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part without the time at which opencode cleared its output: the output is still there."""
    state = object_of(part.get("state"))
    if "compacted" not in object_of(state.get("time")):
        return part
    times = {name: at for name, at in state["time"].items() if name != "compacted"}
    return {**part, "state": {**state, "time": times}}


def _decode(data: object) -> dict[str, Any]:
    try:
        value: object = msgspec.json.decode(data) if isinstance(data, str | bytes) else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return object_of(value)


def _text(data: object) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)


def _read_file(path: str) -> dict[str, Any]:
    """Return the object in a file; its text if it cannot be parsed."""
    try:
        with open_plain(path) as file:
            data = file.read()
    except OSError as error:
        return {"unreadable": error.strerror or str(error)}
    return _decode(data) or {"unreadable": _text(data)}


def _listed(folder: str, depth: int = 1) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names]
    if depth > 1:
        return [path for each in paths for path in _listed(each, depth - 1)]
    return [path for path in paths if path.endswith(".json")]


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
