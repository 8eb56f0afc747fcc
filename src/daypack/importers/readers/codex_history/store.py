"""The threads of Codex's history database that have no rollout file.

    ~/.codex/thread_history_1.sqlite    thread_items: what the screen shows of each thread, as JSON
    ~/.codex/state_5.sqlite             threads: folder, model and rollout of each; thread_spawn_edges: sub-agents

The first repeats what is in the rollouts, with less detail. It is read only for threads whose rollout is neither at the
known places nor where the second says; the second may be missing. Nothing here writes; SQLite itself notes its readers
in the `-shm` files.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import msgspec

from daypack.errors import BadInput, StorageFailed
from daypack.importers.folders import Folders
from daypack.importers.lines import unreadable
from daypack.importers.places import CODEX_HISTORY, CODEX_ROLLOUTS, PLACES, find_file
from daypack.importers.readers.codex_history.items import Item, rows_of
from daypack.importers.readers.codex_threads import thread_in
from daypack.importers.readers.program_database import ProgramDatabase, Schema
from daypack.importers.transcript import first_text, object_of

NOTE = (
    "read from the history database of Codex, because the rollout is gone: without instructions, encrypted reasoning, "
    "token counts and summaries of compactions"
)
_NO_STATE = "; the database of threads could not be read, so that sub-agents are sessions of their own"
_STATE = re.compile(r"state_(\d+)\.sqlite$")
_PROGRAM = "Codex"
_HINT = "give the thread_history_1.sqlite of Codex 0.166, or its rollouts"
_COLUMNS = ("thread_id", "rollout_ordinal", "started_at_ms", "completed_at_ms", "created_at_ms", "item_json")
_ITEMS = Schema(_PROGRAM, {"thread_items": _COLUMNS}, _HINT)
_THREADS = Schema(
    _PROGRAM,
    {
        "threads": ("id", "rollout_path", "cwd", "model"),
        "thread_spawn_edges": ("parent_thread_id", "child_thread_id"),
    },
    _HINT,
)
_SETTLED_SECONDS = 3600.0  # after which an item that never ended is as it will be


class Thread(NamedTuple):
    """A thread, the session that it is a sub-agent of ("" for none), and what is known of it."""

    id: str
    parent: str = ""
    cwd: str = ""
    model: str = ""
    rollout: str = ""


class History:
    """A history database; `note` says what its threads lack."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.note = NOTE

    def threads(self) -> list[Thread]:
        """Return the threads without a rollout, parents before sub-agents."""
        with closing(ProgramDatabase(self.path, _ITEMS)) as database:
            names = [str(name) for (name,) in database.fetch("SELECT DISTINCT thread_id FROM thread_items")]
        known = self._known() if names else {}
        found = [known.get(name) or Thread(name) for name in names]
        for _ in range(2):  # again: Codex may have moved a file during the first look
            rollouts = self._rollouts() if found else set[str]()
            found = [thread for thread in found if thread.id not in rollouts and not _has_rollout(thread)]
        return sorted(found, key=lambda thread: (bool(thread.parent), thread.id))

    def rows(self, thread: str) -> list[bytes]:
        """Return the items of a thread as rows of a rollout, up to the first that may still change."""
        settled = (time.time() - _SETTLED_SECONDS) * 1000
        rows: list[bytes] = []
        for item in self._items(thread):
            if item.is_running and isinstance(item.started, int) and item.started > settled:
                break
            rows += rows_of(item)
        return rows

    def first_cwd(self, thread: str) -> str | None:
        """Return the folder of the first command of a thread."""
        return first_text(item.fields.get("cwd") for item in self._items(thread))

    def _items(self, thread: str) -> Iterator[Item]:
        query = (
            "SELECT coalesce(started_at_ms, created_at_ms), coalesce(completed_at_ms, created_at_ms), item_json "
            "FROM thread_items WHERE thread_id = ? ORDER BY rollout_ordinal"
        )
        with closing(ProgramDatabase(self.path, _ITEMS)) as database:
            rows = database.fetch(query, (thread,))
        return (Item(_decode(data), _number(started), _number(completed)) for started, completed, data in rows)

    def _known(self) -> dict[str, Thread]:
        """Return what the database of threads has; nothing if there is none that can be read."""
        path = _newest_state(os.path.dirname(self.path))
        try:
            if not path:
                raise unreadable(self.path, "has no database of threads beside it", "")
            with closing(ProgramDatabase(path, _THREADS)) as database:
                rows = database.fetch("SELECT id, cwd, model, rollout_path FROM threads")
                edges = database.fetch("SELECT child_thread_id, parent_thread_id FROM thread_spawn_edges")
        except BadInput:
            self.note = NOTE + _NO_STATE
            return {}
        parents = {str(child): str(parent) for child, parent in edges}
        return {
            str(name): Thread(str(name), _root(str(name), parents), *(str(value or "") for value in values))
            for name, *values in rows
        }

    def _rollouts(self) -> set[str]:
        """Return the threads with a rollout beside the database, or at the known place."""
        folders = dict.fromkeys((os.path.dirname(self.path), PLACES["codex"].folder.find(os.environ)))
        found: set[str] = set()
        for folder in folders:
            _refuse_dangling(self.path, os.path.join(folder, "sessions"))
            paths = (path for pattern in CODEX_ROLLOUTS for path in Folders().match(folder, pattern))
            found |= {thread_in(path) for path in paths if find_file(path)}
        return found


def is_history(path: str) -> bool:
    """Return True for a history database: by its name, whatever is in it."""
    return fnmatchcase(os.path.basename(path), CODEX_HISTORY) and os.path.isfile(path)


def _has_rollout(thread: Thread) -> bool:
    return any(find_file(path) for path in (thread.rollout, f"{thread.rollout}.zst") if thread.rollout)


def _refuse_dangling(database: str, folder: str) -> None:
    """Refuse to take all rollouts for gone while the disk with them is away."""
    if os.path.islink(folder) and not os.path.exists(folder):
        problem = f"the rollouts of its threads cannot be looked for: {folder} is a link to a folder that is not there"
        raise StorageFailed(problem, operation="import", place=database, hint="mount that folder and import again")


def _root(name: str, parents: dict[str, str]) -> str:
    """Return the session above all threads above one; "" if it is a session itself."""
    seen = {name}
    above = name
    while (parent := parents.get(above, "")) and parent not in seen:
        seen.add(parent)
        above = parent
    return above if above != name else ""


def _newest_state(folder: str) -> str:
    try:
        names = [(int(match[1]), name) for name in os.listdir(folder) if (match := _STATE.match(name))]
    except OSError:
        return ""
    return os.path.join(folder, max(names)[1]) if names else ""


def _decode(data: object) -> dict[str, Any]:
    """Return the fields of an item; its text if it cannot be parsed."""
    try:
        value: object = msgspec.json.decode(data) if isinstance(data, str | bytes) else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        value = None
    if fields := object_of(value):
        return fields
    return {"unreadable": data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
