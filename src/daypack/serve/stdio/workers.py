"""Who does the work while the loop goes on reading: one lane for writes, three for everything else.

Calls take effect in the order in which they came: writes wait for each other, and what reads waits for the writes that
came before it. So a client that sends a write and a search without waiting in between finds what it wrote.
"""

import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

READERS = 3

Work = Callable[[], None]  # must not raise


class Lanes:
    """Threads that work off calls. The first call starts them: most servers wait long for it."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._writes: deque[Work] = deque()
        self._reads: deque[tuple[int, Work]] = deque()  # each with the number of writes that came before it
        self._writes_put = 0
        self._writes_done = 0
        self._open = 0  # calls that are not done
        self._started = False

    def put(self, work: Work, *, writing: bool) -> None:
        """Have a call done, in its turn."""
        with self._changed:
            self._open += 1
            if writing:
                self._writes_put += 1
                self._writes.append(work)
            else:
                self._reads.append((self._writes_put, work))
            self._changed.notify_all()
        if not self._started:
            self._started = True
            # Daemons: a call that hangs must not keep a server alive whose client has gone.
            for lane in (self._write, *[self._read] * READERS):
                Thread(target=lane, daemon=True).start()

    def drain(self, seconds: float | None = None, go_on: Callable[[], bool] = lambda: True) -> bool:
        """Wait until every call is done; say whether they are. `go_on` is asked now and then whether to wait on."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._changed:
            while self._open:
                left = 0.5 if deadline is None else min(0.5, deadline - time.monotonic())
                if left <= 0 or not go_on():
                    return False
                self._changed.wait(left)
        return True

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._writes)
                work = self._writes.popleft()
            work()
            with self._changed:
                self._writes_done += 1
                self._open -= 1
                self._changed.notify_all()

    def _read(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._reads and self._reads[0][0] <= self._writes_done)
                _, work = self._reads.popleft()
            work()
            with self._changed:
                self._open -= 1
                self._changed.notify_all()
