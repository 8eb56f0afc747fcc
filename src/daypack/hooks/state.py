"""What hooks know of a session from one event to the next: what they injected, and which take-ins were requested.

home/<uid>/hook/<agent>/<session>/
    injected.jsonl  {"id":"9f3c…","event":"UserPromptSubmit","at":"…","items":["messages:12"],"digests":["sha256:…"],…}
    requests.jsonl  {"event":"Stop","cwd":"/work","transcript":"/…/5ac28188.jsonl"}
    lock            held while the transcript is taken in; next: by the process that waits for it

Several processes of one session write at once: every file is written under its own lock. Nothing is synced, because a
crash costs a repetition at most.
"""

import fcntl
import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.files import atomic
from daypack.files.jsonl import write_all
from daypack.history.layout import Home, check_name, safe_name
from daypack.hooks.call import HookCall, Injection
from daypack.text.injected import digests_in

_NEW_WINDOWS = ("startup", "clear", "compact")  # sources of a SessionStart
_KEPT_SECONDS = 90 * 86_400  # of a session that may be resumed


class Injected(Struct, frozen=True, omit_defaults=True):
    """A text that a hook added to a window: its digests and the ids of its items."""

    id: str
    event: str
    at: str
    source: str = ""  # of a SessionStart
    items: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    chars: int = 0
    begins: bool = False  # a window begins here: the items before it are not in it
    recorded: bool = False  # as an event of the session

    def event_data(self) -> dict[str, Any]:
        """Return the data of its event."""
        return {
            "id": self.id,
            "event": self.event,
            "at": self.at,
            "items": list(self.items),
            "digests": list(self.digests),
            "chars": self.chars,
        }


class Request(Struct, frozen=True, omit_defaults=True):
    """An event after which the transcript is taken in."""

    event: str
    cwd: str
    transcript: str = ""


class SessionState:
    """The small files of one session; their folder is made by the first write."""

    def __init__(self, home: Home, agent: str, session: str) -> None:
        self.folder = os.path.join(home.folder, "hook", check_name(agent, "agent"), safe_name(session))
        self._injected = _Lines(os.path.join(self.folder, "injected.jsonl"), Injected)
        self._requests = _Lines(os.path.join(self.folder, "requests.jsonl"), Request)

    @property
    def lock(self) -> str:
        """The file that is locked while the transcript is taken in."""
        return os.path.join(self.folder, "lock")

    @property
    def next_lock(self) -> str:
        """The file that is locked by the process that waits for the other lock."""
        return os.path.join(self.folder, "next")

    def injected(self) -> frozenset[str]:
        """Return the ids of everything that hooks injected into the present window."""
        return frozenset(item for record in _of_window(self._injected.read()) for item in record.items)

    def begin(self, call: HookCall) -> None:
        """Record that this event begins a window, if it does: what was injected before is not in it.

        The window after a compaction begins with PreCompact: Codex may ask for something before it starts again.
        """
        if call.event == "PreCompact":
            self._injected.append(_now(call, begins=True))
        elif call.event == "SessionStart" and call.source in _NEW_WINDOWS and (records := self._injected.read()):
            window = _of_window(records)
            begun = window[0].event == "PreCompact" and all(record.source != "compact" for record in window)
            self._injected.append(_now(call, begins=not (begun and call.source == "compact")))

    def begin_late(self, call: HookCall, item: str = "") -> None:
        """Record a start whose text the next prompt carries, or a compaction that was found with a prompt: `item`."""
        begins = bool(item) or call.source in _NEW_WINDOWS
        self._injected.append(_now(call, begins=begins, items=(item,) if item else ()))

    def take_start(self, call: HookCall) -> str:
        """Return the source of the start whose text this prompt carries; "" if a prompt before carried it."""
        window = _of_window(self._injected.read())
        newest = next((record for record in reversed(window) if record.event in ("SessionStart", call.event)), None)
        if newest is None or newest.event == call.event:
            return ""
        self._injected.append(_now(call))
        return newest.source

    def record(self, call: HookCall, injection: Injection) -> None:
        """Record what is injected now."""
        items, digests = injection.items, digests_in(injection.text)
        self._injected.append(_now(call, items=items, digests=digests, chars=len(injection.text)))

    def unrecorded(self) -> list[Injected]:
        """Return the injections that are no events of the session yet, oldest first."""
        return [record for record in self._injected.read() if record.chars and not record.recorded]

    def mark_recorded(self, records: Iterable[Injected]) -> None:
        """Note that injections are events now, and forget those of earlier windows."""
        ids = {record.id for record in records}

        def mark(lines: list[Injected]) -> list[Injected]:
            marked = [replace(record, recorded=True) if record.id in ids else record for record in lines]
            window = {record.id for record in _of_window(marked)}
            return [record for record in marked if record.id in window or (record.chars and not record.recorded)]

        self._injected.rewrite(mark)

    def request(self, request: Request) -> None:
        """Ask for a take-in; the next one that runs does it."""
        self._requests.append(request)

    def take_requests(self) -> list[Request]:
        """Return all requests and remove them."""
        taken: list[Request] = []

        def take(lines: list[Request]) -> list[Request]:
            taken.extend(lines)
            return []

        self._requests.rewrite(take)
        return taken

    def has_requests(self) -> bool:
        """Return True if a take-in has not begun yet."""
        return bool(self._requests.read())

    def remove_old(self) -> None:
        """Remove the files of sessions of the same agent that no hook has used for long."""
        import shutil  # noqa: PLC0415 — once in a session

        before = time.time() - _KEPT_SECONDS
        with os.scandir(os.path.dirname(self.folder)) as sessions:
            for session in sessions:
                if session.is_dir(follow_symlinks=False) and _last_use(session.path) < before:
                    shutil.rmtree(session.path, ignore_errors=True)


def _now(call: HookCall, **fields: Any) -> Injected:  # noqa: ANN401 — those of the struct
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Injected(id=os.urandom(8).hex(), event=call.event, at=at, source=call.source, **fields)


def _last_use(folder: str) -> float:
    """Return when a file of a session was last written; now, if it is being removed."""
    try:
        return max((file.stat().st_mtime for file in os.scandir(folder)), default=os.stat(folder).st_mtime)
    except OSError:
        return time.time()


def _of_window(records: list[Injected]) -> list[Injected]:
    """Return the records since the window began."""
    start = next((number for number in range(len(records) - 1, -1, -1) if records[number].begins), 0)
    return records[start:]


_Record = TypeVar("_Record", bound=Struct)


class _Lines(Generic[_Record]):
    """A file of JSON lines that several processes append to and rewrite in place, under a lock on it."""

    def __init__(self, path: str, kind: type[_Record]) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(kind)

    def read(self) -> list[_Record]:
        try:
            with self._locked(fcntl.LOCK_SH) as fd:
                return self._decode(fd)
        except FileNotFoundError:
            return []

    def append(self, record: _Record) -> None:
        atomic.make_folders(os.path.dirname(self._path), durable=False)
        with self._locked(fcntl.LOCK_EX, os.O_CREAT) as fd:
            data = msgspec.json.encode(record) + b"\n"
            size = os.fstat(fd).st_size
            torn = size and os.pread(fd, 1, size - 1) != b"\n"  # by a process that was killed
            write_all(fd, b"\n" + data if torn else data)

    def rewrite(self, change: Callable[[list[_Record]], list[_Record]]) -> None:
        try:
            with self._locked(fcntl.LOCK_EX) as fd:
                before = self._decode(fd)
                after = change(before)
                if after != before:
                    os.ftruncate(fd, 0)
                    write_all(fd, b"".join(msgspec.json.encode(record) + b"\n" for record in after))
        except FileNotFoundError:
            return

    def _decode(self, fd: int) -> list[_Record]:
        """Return the records; a line that cannot be read is left out."""
        records: list[_Record] = []
        for line in os.pread(fd, os.fstat(fd).st_size, 0).split(b"\n"):
            with suppress(msgspec.MsgspecError, UnicodeError):
                records.append(self._decoder.decode(line))
        return records

    @contextmanager
    def _locked(self, how: int, flags: int = 0) -> Generator[int]:
        fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, 0o600)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(fd, how)
            yield fd
        finally:
            os.close(fd)  # releases the lock
