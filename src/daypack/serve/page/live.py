"""Server-sent events: the page learns that sessions grew, also by other processes.

event: sessions                                event: session
data: {"changed":[["default","work"]]}         data: {"messages":12,"events":7}

One task looks at the files for all streams; of sessions in a database, it first fetches what has changed. A stream that
waits holds no thread and no turn, and what happens while its client does not read is reported once it reads again.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread
import msgspec
from starlette.responses import Response

from daypack.errors import DaypackError
from daypack.serve.observe.observer import report_error

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from daypack.serve.page.views.opened import OpenedHome

WATCH_SECONDS = 0.3  # how often the logs of watched sessions are looked at
SCAN_SECONDS = 2.0  # how often those of all sessions are
HEARTBEAT_SECONDS = 10.0
TOKEN_SECONDS = 60.0  # after which the stream of an access token ends
MOST_PER_USER = 20
_SCAN_SHARE = 20  # a scan takes at most about a twentieth of the time
_JUST_NOW_SECONDS = 10.0  # older changes are in the data that a new page has loaded
_RETRY = "retry: 2000\n\n"
_UNBUFFERED = {"x-accel-buffering": "no"}
_REPLACED = "event: replaced\ndata: {}\n\n"

Name = tuple[str, str]
_Marks = tuple[tuple[int, int, int], ...]


class Counts(NamedTuple):
    """How many messages and events a session has."""

    messages: int
    events: int


class Stream:
    """One open connection of a page, which may watch one session besides the list of all."""

    def __init__(self, user: str, watched: Name | None, counts: Counts | None, seconds: float | None = None) -> None:
        """`seconds`: how long it lasts; None: until it is ended."""
        self.user = user
        self.watched = watched
        self.counts = counts
        self.opened = time.time()
        self.scanned = False
        self.ended = False
        self.abort: Callable[[], None] | None = None  # closes the connection; None while nothing is being sent
        self._changed: set[Name] = set()
        self._told: Counts | None = None
        self._last = ""
        self._woken = asyncio.Event()
        self._end_at = inf if seconds is None else time.monotonic() + seconds

    def report(self, changed: "set[Name]") -> None:
        """Note sessions that changed."""
        if changed:
            self._changed |= changed
            self._woken.set()

    def count(self, counts: Counts) -> None:
        """Note the counts of the watched session."""
        if counts != self.counts:
            self.counts = counts
            self._woken.set()

    def end(self, last: str = "") -> None:
        """End the stream, after `last`; a client that does not read is disconnected."""
        self.ended, self._last = True, last
        self._woken.set()
        if self.abort is not None:
            self.abort()

    async def next(self) -> str:
        """Wait for events and return them as text; a comment after a while without any; "" at the end."""
        if self.ended or self._told != self.counts or self._changed:
            self._woken.set()
        with anyio.move_on_after(min(HEARTBEAT_SECONDS, max(0.0, self._end_at - time.monotonic()))):
            await self._woken.wait()
        self._woken.clear()
        if time.monotonic() >= self._end_at:
            self.ended = True
        if self.ended:
            last, self._last = self._last, ""
            return last
        text = ""
        if self.counts is not None and self.counts != self._told:
            self._told = self.counts
            text += _event("session", self.counts._asdict())
        if self._changed:
            text += _event("sessions", {"changed": sorted(self._changed)})
            self._changed = set()
        return text or ": still here\n\n"


class Live:
    """All streams of a server, and the task that looks at the files while there are any."""

    def __init__(self, home: "OpenedHome", most_streams: int) -> None:
        self._home = home
        self._most_streams = most_streams
        self._streams: list[Stream] = []  # oldest first
        self._ended = False  # the server stops: a request that was on its way still gets a stream, which ends at once
        self._any = asyncio.Event()
        self._marks: dict[Name, _Marks] = {}
        self._logs: dict[Name, _Marks] | None = None  # of all sessions, since the first stream
        self._limiter = anyio.CapacityLimiter(1)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Look at the files while the server runs."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._run)
            try:
                yield
            finally:
                self.end_streams()
                group.cancel_scope.cancel()

    def end_streams(self) -> None:
        """End all streams at once, and those that are opened from now on."""
        self._ended = True
        for stream in list(self._streams):
            stream.end()

    def open(self, user: str, watched: Name | None, counts: Counts | None, seconds: float | None = None) -> Stream:
        """Return a new stream; of too many the oldest ends."""
        running = [stream for stream in self._streams if not stream.ended]
        own = [stream for stream in running if stream.user == user]
        if len(own) >= MOST_PER_USER:
            own[0].end(_REPLACED)
        elif len(running) >= self._most_streams:
            running[0].end(_REPLACED)
        stream = Stream(user, watched, counts, seconds)
        self._streams.append(stream)
        self._any.set()
        if self._ended:
            stream.end()
        return stream

    def close(self, stream: Stream) -> None:
        """Forget a stream."""
        with suppress(ValueError):
            self._streams.remove(stream)
        if not self._streams:
            self._any.clear()
            self._logs = None
            self._marks.clear()

    def count(self, name: Name) -> Counts:
        """Return the counts of a session; SessionMissing if there is none. Called in a worker thread."""
        with self._home.session(*name) as session:
            return Counts(len(session.messages()), len(session.events()))

    async def _run(self) -> None:
        scan_at = 0.0
        while True:
            await self._any.wait()
            try:
                await self._look_at_watched()
                if time.monotonic() >= scan_at:
                    began = time.monotonic()
                    await self._scan()
                    took = time.monotonic() - began
                    scan_at = began + max(SCAN_SECONDS, took * _SCAN_SHARE)
            except Exception as error:  # the next look may succeed
                report_error("live", error)
            await anyio.sleep(WATCH_SECONDS)

    async def _look_at_watched(self) -> None:
        watched = {stream.watched for stream in self._streams if stream.watched is not None}
        if not watched:
            return
        found = await anyio.to_thread.run_sync(self._count_changed, watched, limiter=self._limiter)
        for stream in self._streams:
            if stream.watched in found:
                stream.count(found[stream.watched])

    def _count_changed(self, watched: set[Name]) -> dict[Name, Counts]:
        self._home.refresh()
        found: dict[Name, Counts] = {}
        for name in watched:
            marks = self._marks_of(*name)
            if self._marks.get(name) != marks:
                with suppress(DaypackError):  # it is gone, or being rewritten
                    found[name] = self.count(name)
                    self._marks[name] = marks
        return found

    async def _scan(self) -> None:
        logs = await anyio.to_thread.run_sync(self._marks_of_all, limiter=self._limiter)
        before, self._logs = self._logs, logs
        changed = set[Name]()
        if before is not None:
            changed = {name for name in before.keys() | logs.keys() if before.get(name) != logs.get(name)}
        for stream in self._streams:
            if not stream.scanned:
                stream.scanned = True
                since = (stream.opened - _JUST_NOW_SECONDS) * 1e9
                stream.report({name for name, marks in logs.items() if max(mark[0] for mark in marks) > since})
            stream.report(changed)

    def _marks_of_all(self) -> dict[Name, _Marks]:
        self._home.refresh()
        home = self._home.home.here
        found: dict[Name, _Marks] = {}
        for agent in home.agents():
            with suppress(DaypackError):  # the folder of one agent may be unreadable
                found |= {(agent, name): self._marks_of(agent, name) for name in home.list(agent)}
        return found

    def _marks_of(self, agent: str, name: str) -> _Marks:
        layout = self._home.home.session(agent, name)
        return _mark(layout.messages), _mark(layout.events)


class EventStream(Response):
    """The response that sends the events of one stream until it ends or its client leaves."""

    media_type = "text/event-stream"

    def __init__(self, live: Live, stream: Stream) -> None:
        super().__init__(headers=_UNBUFFERED)
        del self.headers["content-length"]
        self._live = live
        self._stream = stream

    async def __call__(self, scope: "Scope", _: "Receive", send: "Send") -> None:
        """Send the events."""
        stream = self._stream

        async def send_part(message: dict[str, Any]) -> None:
            stream.abort = abort
            await send(message)
            stream.abort = None

        def abort() -> None:
            if "daypack.connection" in scope:
                scope["daypack.connection"].close("unread")

        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            text = _RETRY
            while text:
                await send_part({"type": "http.response.body", "body": text.encode(), "more_body": True})
                text = await stream.next()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._live.close(stream)


def describe_stream() -> Response:
    """Return the headers of a stream without opening one, for HEAD."""
    answer = Response(headers=_UNBUFFERED, media_type=EventStream.media_type)
    del answer.headers["content-length"]
    return answer


def _event(kind: str, data: object) -> str:
    return f"event: {kind}\ndata: {msgspec.json.encode(data).decode()}\n\n"


def _mark(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino
