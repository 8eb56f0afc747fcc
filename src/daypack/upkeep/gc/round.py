"""A round over many sessions that an interrupted run goes on with.

    <root>/home/<uid>/gc.progress   {"options":"children=0"}
                                    {"agent":"default","session":"work"}

The file is there while a round is under way, or was interrupted; it is locked by whoever is at it, and goes at the end.
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


class _Head(Struct, frozen=True):
    options: str


class Round:
    """Held with `with`; `writing` false: nothing is noted, and nothing is known of earlier rounds."""

    def __init__(self, folder: str, options: str, *, writing: bool = True) -> None:
        self.path = os.path.join(folder, "gc.progress")
        self.before = 0  # sessions that an interrupted run had done
        self._options = options
        self._writing = writing
        self._fd = -1
        self._done: set[_Done] = set()

    def has(self, agent: str, session: str) -> bool:
        """Whether a session was done, in this run or in the interrupted one."""
        return _Done(agent, session) in self._done

    def note(self, agent: str, session: str) -> None:
        """Note that a session is done."""
        self._done.add(_Done(agent, session))
        if self._fd >= 0:
            self._write(_Done(agent, session))

    def __enter__(self) -> "Round":
        if self._writing:
            atomic.make_folders(os.path.dirname(self.path))
            try:
                self._open()
                self._read()
            except OSError as error:
                atomic.release(self._fd)
                raise atomic.refusal(self.path, error, "note progress") from error
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
                hint = "wait for it: it does the same"
                problem = "another run is at work"
                raise LockUnavailable(problem, operation="collect all", place=self.path, hint=hint) from error
            except OSError:
                return  # no locks here: two runs do some work twice, which harms nothing
            if os.path.lexists(self.path) and os.stat(self.path).st_ino == os.fstat(self._fd).st_ino:
                return
            atomic.release(self._fd)  # the run before has just ended, and removed it

    def _read(self) -> None:
        data = atomic.read(self.path) or b""
        whole = data[: data.rfind(b"\n") + 1]  # behind it, a line that a crash tore
        try:
            head, *lines = whole.splitlines()
            if msgspec.json.decode(head, type=_Head).options == self._options:
                self._done = {msgspec.json.decode(line, type=_Done) for line in lines}
        except (ValueError, msgspec.DecodeError):
            self._done = set()
        self.before = len(self._done)
        if not self._done:
            os.ftruncate(self._fd, 0)
            self._write(_Head(self._options))
        elif len(whole) < len(data):
            os.ftruncate(self._fd, len(whole))

    def _write(self, value: Struct) -> None:
        try:
            write_all(self._fd, msgspec.json.encode(value) + b"\n")
        except OSError as error:
            raise atomic.refusal(self.path, error, "note progress") from error
