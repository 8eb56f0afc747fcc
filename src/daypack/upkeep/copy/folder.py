"""The sessions in the files of a home, as a side of a copy.

<session>/.tmp-copy    a copy to this session was interrupted: the same command continues it
"""

import os
import shutil
import stat
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from datetime import datetime

from daypack.errors import (
    DamageWarning,
    DaypackError,
    LockUnavailable,
    Overtaken,
    SourceMissing,
    StorageFailed,
    WriteFailed,
)
from daypack.files import atomic, jsonl
from daypack.files.atomic import refusal
from daypack.files.durable import sync
from daypack.files.lock import Lock
from daypack.history.layout import Home, Layout, check_name
from daypack.history.logs.upstream import Mark
from daypack.history.session import History
from daypack.plain_files import open_fd
from daypack.turn.prepare import Turns
from daypack.types.kinds import SESSION_STATES
from daypack.upkeep.copy.port import Extent, Small
from daypack.upkeep.gc.session_files import temporary_files
from daypack.upkeep.rebuild import rebuild
from daypack.upkeep.session_settings import settings_of

_CHUNK = 1 << 20
_MARKER = f"{atomic.TEMPORARY}copy"
_STATE = b'"session.state"'


class FolderSession:
    """One session in a folder. Its logs stay open from a measure on, so that an erasure cannot change what is read."""

    def __init__(self, home: Home, layout: Layout) -> None:
        self._home = home
        self._layout = layout
        self._opened = ExitStack()
        self._fds: list[int] = []
        self._began = time.time()
        self.place = layout.folder

    @property
    def _logs(self) -> tuple[str, str]:
        return self._layout.messages, self._layout.events

    def measure(self) -> Extent:
        """Return how far the logs reach now, both at one moment."""
        self.close()
        layout = self._layout
        layout.guard()
        small = Small(*(atomic.read(path) or b"" for path in (layout.meta, layout.cwd, layout.created_at)))
        with self._locked():
            self._fds = [self._open(path) for path in self._logs]
            sizes = tuple(os.fstat(fd).st_size if fd >= 0 else 0 for fd in self._fds)
        ends = tuple(
            size - len(jsonl.unterminated(fd, 0, size)) if fd >= 0 else 0
            for fd, size in zip(self._fds, sizes, strict=True)
        )
        return Extent(small, ends, sizes)

    def _open(self, path: str) -> int:
        try:
            fd = open_fd(path, os.O_NOFOLLOW)
        except FileNotFoundError:
            return -1
        except OSError as error:
            raise refusal(path, error, "copy") from error
        self._opened.callback(atomic.release, fd)
        return fd

    def _locked(self) -> ExitStack:
        held = ExitStack()
        if not atomic.exists(self._layout.messages):
            return held
        lock = Lock(self._layout.messages, flock=settings_of(self._home, self._layout).locking == "flock")
        held.enter_context(closing(lock))
        with suppress(StorageFailed, LockUnavailable):  # a read-only disk has no writer to wait for
            held.enter_context(lock)
        return held

    def read(self, log: int, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes between two places of the log that was measured."""
        if not self._fds:
            self.measure()
        fd = self._fds[log]
        try:
            while fd >= 0 and start < stop and (data := os.pread(fd, min(_CHUNK, stop - start), start)):
                yield data
                start += len(data)
        except OSError as error:
            raise refusal(self._logs[log], error, "copy") from error

    def blob_names(self) -> list[str]:
        """Return the names of all blobs; unfinished writes are none."""
        try:
            names = os.listdir(self._layout.blob)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise refusal(self._layout.blob, error, "copy") from error
        return sorted(name for name in names if not name.startswith(atomic.TEMPORARY))

    def blob(self, name: str) -> bytes:
        """Return the bytes of a blob."""
        path = os.path.join(self._layout.blob, check_name(name, "blob"))
        data = atomic.read(path)
        if data is None:
            raise SourceMissing("no such blob", operation="copy", place=path, hint="run it again")
        return data

    def put_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Store blobs as files."""
        self._mark()
        atomic.make_folders(self._layout.blob)
        for name, data in blobs.items():
            atomic.create(os.path.join(self._layout.blob, check_name(name, "blob")), data)

    def append(self, log: int, place: Mark, data: bytes, crc: int) -> None:  # noqa: ARG002 — of a database
        """Write lines to the end of a log; after a kill, a part of them may be there."""
        self._mark()
        path = self._logs[log]
        with self._locked():
            try:
                fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                try:
                    if os.fstat(fd).st_size != place.end:
                        hint = "stop what writes to the copy, then run the same command again"
                        problem = "another process wrote to the copy"
                        raise Overtaken(problem, operation="copy", place=path, hint=hint)
                    jsonl.write_all(fd, data)
                    sync(fd)
                finally:
                    os.close(fd)
            except OSError as error:
                hint = "free space or fix permissions, then run the same command again: it continues"
                raise WriteFailed(error.strerror or str(error), operation="copy", place=path, hint=hint) from error

    def put_settings(self, files: Small) -> None:
        """Replace meta.json."""
        self._mark()
        if files.meta:
            atomic.replace(self._layout.meta, files.meta)

    def create(self, files: Small) -> None:
        """Create the files of a session without lines, with meta.json as the last one."""
        layout = self._layout
        layout.refuse_lookalike()
        atomic.make_folders(layout.folder)
        layout.guard()
        self._mark()
        small = {
            layout.created_at: files.created_at,
            layout.updated_at: files.created_at,
            layout.cwd: files.cwd,
            layout.state: b"active\n",
        }
        logs = dict.fromkeys(self._logs, b"")
        for path, data in {**logs, **small, layout.meta: files.meta}.items():
            if data or path in logs:
                atomic.create(path, data, named=False)
        atomic.sync_folder(layout.folder)

    def _mark(self) -> None:
        path = os.path.join(self._layout.folder, _MARKER)
        if not os.path.lexists(path):
            atomic.create(path, b"", named=False)

    def is_finished(self) -> bool:
        """Return False if a copy to this folder was interrupted."""
        return not os.path.lexists(os.path.join(self._layout.folder, _MARKER))

    def finish(self) -> None:
        """Write what follows from the logs: the state, when it was changed, the newest text and context/."""
        self.close()
        self._remove_unfinished_writes()
        config = settings_of(self._home, self._layout)
        with suppress(DaypackError), warnings.catch_warnings():  # derived: the next use makes it
            warnings.simplefilter("ignore", DamageWarning)  # damage is copied too: `doctor` reports it
            history = History(self._layout, config)
            turns = Turns(history, config, name=self._layout.name, agent=self._layout.agent)
            try:
                self._restore_facets(history)
                rebuild(history, turns)
            finally:
                turns.close()
                history.close()
        atomic.discard(os.path.join(self._layout.folder, _MARKER))
        atomic.sync_folder(self._layout.folder)

    def _remove_unfinished_writes(self) -> None:
        """Remove what a killed copy left; a write of another process that uses the session already is newer."""
        for path, facts in temporary_files(self._layout.folder, self._layout.context):
            if facts.st_mtime >= self._began:
                continue
            if stat.S_ISDIR(facts.st_mode):
                shutil.rmtree(path, ignore_errors=True)
            else:
                atomic.discard(path)

    def _restore_facets(self, history: History) -> None:
        state = "active"
        for line in history.events.holding((_STATE,)):
            if line.type == "session.state" and line.data.get("to") in SESSION_STATES:
                state = line.data["to"]
        if history.facets.state() != state:
            history.facets.write_state(state)
        history.facets.stale = True
        for message in history.messages.tail(1):
            with suppress(ValueError):  # a hand-written line without a time
                history.facets.touch(datetime.fromisoformat(message.ts).timestamp())

    def close(self) -> None:
        """Close the logs."""
        self._fds = []
        self._opened.close()


class FolderSide:
    """The sessions of a user in the files of a home."""

    def __init__(self, home: Home) -> None:
        self.home = home

    @property
    def place(self) -> str:
        """The user's folder."""
        return self.home.folder

    def names(self) -> list[tuple[str, str]]:
        """Return the agent and the name of every session."""
        return [(agent, name) for agent in self.home.agents() for name in self.home.list(agent)]

    def find(self, agent: str, name: str) -> FolderSession | None:
        """Return a session; None if there is no folder of that name."""
        layout = self.home.session(agent, name)
        return FolderSession(self.home, layout) if os.path.lexists(layout.folder) else None

    def create(self, agent: str, name: str, files: Small) -> FolderSession:
        """Create a session without lines."""
        session = FolderSession(self.home, self.home.session(agent, name))
        session.create(files)
        return session
