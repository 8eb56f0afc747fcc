"""Progress of `gc --all --apply`, so that an interrupted run can be resumed.

    <root>/home/<uid>/gc.progress   {"options":"children=0"}
                                    {"agent":"default","session":"work"}

The file exists and is locked while a run is active; it stays after an interruption and is removed when a run completes.
"""

import fcntl
import os

import msgspec
from msgspec import Struct

from daypack.errors import LockUnavailable
from daypack.files import atomic
from daypack.files.jsonl import write_all


class _Done(Struct, frozen=True):
    agent: str
    session: str


class _Header(Struct, frozen=True):
    options: str


class CollectionProgress:
    """Context manager; with `writing=False` nothing is written and earlier runs are ignored."""

    def __init__(self, folder: str, options: str, *, writing: bool = True) -> None:
        self.path = os.path.join(folder, "gc.progress")
        self.resumed = 0  # sessions that an interrupted run had completed
        self._options = options
        self._writing = writing
        self._fd = -1
        self._done: set[_Done] = set()

    def is_done(self, agent: str, session: str) -> bool:
        """Return True if this run or the interrupted one completed the session."""
        return _Done(agent, session) in self._done

    def mark_done(self, agent: str, session: str) -> None:
        """Record that a session is completed."""
        self._done.add(_Done(agent, session))
        if self._fd >= 0:
            self._write(_Done(agent, session))

    def __enter__(self) -> "CollectionProgress":
        if self._writing:
            atomic.make_folders(os.path.dirname(self.path))
            try:
                self._open()
                self._read()
            except OSError as error:
                atomic.release(self._fd)
                raise atomic.refusal(self.path, error, "write progress") from error
            except LockUnavailable:
                atomic.release(self._fd)
                raise
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._fd >= 0:
            if error is None:
                atomic.discard(self.path)
            atomic.release(self._fd)
            self._fd = -1

    def _open(self) -> None:
        while True:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                hint = "wait for it to finish: it collects the same sessions"
                problem = "another `daypack gc --all --apply` is running"
                raise LockUnavailable(problem, operation="collect all", place=self.path, hint=hint) from error
            except OSError:
                return  # no locks on this file system: two runs repeat some work, which is harmless
            if os.path.lexists(self.path) and os.stat(self.path).st_ino == os.fstat(self._fd).st_ino:
                return
            atomic.release(self._fd)  # the previous run just finished and removed the file: open a new one

    def _read(self) -> None:
        data = atomic.read(self.path) or b""
        complete = data[: data.rfind(b"\n") + 1]  # without a last line torn by a crash
        try:
            header, *lines = complete.splitlines()
            if msgspec.json.decode(header, type=_Header).options == self._options:
                self._done = {msgspec.json.decode(line, type=_Done) for line in lines}
        except (ValueError, msgspec.DecodeError):
            self._done = set()
        self.resumed = len(self._done)
        if not self._done:
            os.ftruncate(self._fd, 0)
            self._write(_Header(self._options))
        elif len(complete) < len(data):
            os.ftruncate(self._fd, len(complete))

    def _write(self, value: Struct) -> None:
        try:
            write_all(self._fd, msgspec.json.encode(value) + b"\n")
        except OSError as error:
            raise atomic.refusal(self.path, error, "write progress") from error
