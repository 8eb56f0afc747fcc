"""Turns at the worker threads: round robin among callers, so that a caller with many calls waits only for its own."""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NamedTuple

import anyio

_LOOK_SECONDS = 0.25  # how soon a waiting thread sees that its caller has disconnected


class CallerGone(BaseException):
    """The caller disconnected before its call was finished. Not an Exception: there is no error to answer or to log."""


class Turn:
    """Permission of one caller to use a thread; `end` gives it back, or leaves the queue."""

    def __init__(self, turns: "Turns", caller: str, wake: Callable[[], object]) -> None:
        self.caller = caller
        self.wake = wake
        self.state: Literal["queued", "running", "ended"] = "queued"
        self._turns = turns

    def end(self) -> None:
        """Give the turn back; a second time does nothing."""
        self._turns.end(self)

    def pause(self, seconds: float, gone: threading.Event) -> "Turn":
        """Give the turn back for a while and wait in this thread for the next; raise CallerGone on a disconnect."""
        self.end()
        if gone.wait(seconds):
            raise CallerGone
        return self._turns.take_in_thread(self.caller, gone)


class Turns:
    """At most `at_once` turns, of which a caller has at most `per_caller`. The caller served last waits longest."""

    def __init__(self, at_once: int, per_caller: int) -> None:
        self._free = at_once
        self._per_caller = per_caller
        self._running: Counter[str] = Counter()
        self._queues: dict[str, deque[Turn]] = {}  # the callers that wait, the next one first
        self._lock = threading.Lock()

    def queued(self, caller: str | None = None) -> int:
        """Return how many turns a caller waits for; None: all callers."""
        with self._lock:
            if caller is not None:
                return len(self._queues.get(caller, ()))
            return sum(map(len, self._queues.values()))

    @property
    def running(self) -> int:
        """How many turns are taken."""
        with self._lock:
            return self._running.total()

    async def take(self, caller: str) -> Turn:
        """Wait for a turn; a cancelled wait leaves the queue."""
        granted, loop = anyio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(granted.set)

        turn = Turn(self, caller, wake)
        self._ask(turn)
        if turn.state == "queued":
            try:
                await granted.wait()
            except BaseException:
                turn.end()
                raise
        return turn

    def take_in_thread(self, caller: str, gone: threading.Event) -> Turn:
        """Wait for a turn in a worker thread; raise CallerGone on a disconnect."""
        granted = threading.Event()
        turn = Turn(self, caller, granted.set)
        self._ask(turn)
        while not granted.wait(_LOOK_SECONDS):
            if gone.is_set():
                turn.end()
                raise CallerGone
        return turn

    def end(self, turn: Turn) -> None:
        """Give a turn back, or leave the queue."""
        with self._lock:
            state, turn.state = turn.state, "ended"
            if state == "ended":
                return
            if state == "queued":
                queue = self._queues[turn.caller]
                queue.remove(turn)
                if not queue:
                    del self._queues[turn.caller]
                return
            self._free += 1
            self._running[turn.caller] -= 1
            if not self._running[turn.caller]:
                del self._running[turn.caller]
            granted = self._grant()
        _wake(granted)

    def _ask(self, turn: Turn) -> None:
        with self._lock:
            self._queues.setdefault(turn.caller, deque()).append(turn)
            granted = self._grant()
        _wake(granted)

    def _grant(self) -> list[Turn]:
        granted: list[Turn] = []
        while self._free:
            caller = next((name for name in self._queues if self._running[name] < self._per_caller), None)
            if caller is None:
                break
            queue = self._queues.pop(caller)
            turn = queue.popleft()
            if queue:
                self._queues[caller] = queue  # its next turn comes after those of the others
            self._free -= 1
            self._running[caller] += 1
            turn.state = "running"
            granted.append(turn)
        return granted


class Caller(NamedTuple):
    """The user a request acts for, and whether it may write. `token_id` is empty without a token."""

    user: str
    writes: bool
    token_id: str = ""


class Call:
    """A request in progress: who calls, whether the caller is still connected, and the turn it has.

    `after`: a consistency token; the call reads what was stored then, or later.
    """

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.after = ""
        self.turn: Turn | None = None
        self._gone = threading.Event()
        self._refuse: Callable[[], Exception] | None = None
        self._cancels: list[Callable[[], object]] = []

    def leave(self) -> None:
        """Note that the caller has disconnected: what waits for it ends. Called in the event loop."""
        self._gone.set()
        for cancel in self._cancels:
            cancel()

    def end_wait(self, refuse: Callable[[], Exception]) -> None:
        """End what waits for this call, although its caller is there, with an error. Called in the event loop."""
        self._refuse = refuse
        self.leave()

    def ended(self) -> BaseException:
        """Return the error that ends a wait: that of `end_wait`, or CallerGone after a disconnect."""
        return CallerGone() if self._refuse is None else self._refuse()

    def on_leave(self, cancel: Callable[[], object]) -> None:
        """Call `cancel` when the caller disconnects, or now if it has."""
        self._cancels.append(cancel)
        if self._gone.is_set():
            cancel()

    def pause(self, seconds: float) -> None:
        """Wait in a worker thread while others work; raise CallerGone if the caller disconnects."""
        assert self.turn is not None
        try:
            self.turn = self.turn.pause(seconds, self._gone)
        except CallerGone:
            raise self.ended() from None


def _wake(granted: list[Turn]) -> None:
    for turn in granted:
        turn.wake()
