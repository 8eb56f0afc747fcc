"""Worker threads for calls, while the loop keeps reading: one thread for writes, three for everything else.

Calls take effect in the order they arrive: writes run one after the other, and a read waits for the writes that arrived
before it. So a client that sends a write and a search without waiting in between finds what it wrote.
"""

import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

READERS = 3

Work = Callable[[], None]  # must not raise


class Workers:
    """A queue of calls and the threads that run them. The first call starts the threads."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._writes: deque[Work] = deque()
        self._reads: deque[tuple[int, Work]] = deque()  # each with the number of writes queued before it
        self._writes_queued = 0
        self._writes_done = 0
        self._open = 0  # calls queued or running
        self._started = False

    def put(self, work: Work, *, writing: bool) -> None:
        """Queue a call."""
        with self._changed:
            self._open += 1
            if writing:
                self._writes_queued += 1
                self._writes.append(work)
            else:
                self._reads.append((self._writes_queued, work))
            self._changed.notify_all()
        if not self._started:
            self._started = True
            # Daemon threads: a call that hangs must not keep the process alive after its client is gone.
            for loop in (self._run_writes, *[self._run_reads] * READERS):
                Thread(target=loop, daemon=True).start()

    def drain(self, seconds: float | None = None, keep_waiting: Callable[[], bool] = lambda: True) -> bool:
        """Wait until every call is done; return False if time runs out or `keep_waiting` returns False."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._changed:
            while self._open:
                pause = 0.5 if deadline is None else min(0.5, deadline - time.monotonic())
                if pause <= 0 or not keep_waiting():
                    return False
                self._changed.wait(pause)
        return True

    def _run_writes(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._writes)
                work = self._writes.popleft()
            work()
            with self._changed:
                self._writes_done += 1
                self._open -= 1
                self._changed.notify_all()

    def _run_reads(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._reads and self._reads[0][0] <= self._writes_done)
                _, work = self._reads.popleft()
            work()
            with self._changed:
                self._open -= 1
                self._changed.notify_all()
