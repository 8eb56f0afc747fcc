"""Group commit: the appends of many threads, done by one of them with one lock and one sync.

Whoever finds nobody at work works for all who wait, itself included; those who come meanwhile wait, each at a gate
of its own, and the first of them works next. Threads that all wrote for themselves would spend their time fighting
for the interpreter (measured: half the messages per second).
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from daypack.errors import StorageFailed
from daypack.files.atomic import release
from daypack.files.lock import forks

Answer = TypeVar("Answer")


def reentered(place: str = "") -> StorageFailed:
    """Return the error for an append that a signal handler makes in the middle of another one."""
    return StorageFailed(
        "an append is under way in this very thread",
        operation="append",
        place=place,
        hint="do not append from a signal handler; set a flag there and append afterwards",
    )


class Handle:
    """A log opened for appending, with what is known to be on disk.

    A failed sync is final: the kernel may have dropped the bytes and would call the next sync a success.
    """

    def __init__(self, fd: int, inode: int) -> None:
        self.fd = fd
        self.inode = inode
        self.durable = 0  # a sync of this handle has proved every byte before this offset
        self.written = 0  # the end of the log, as of the last append or catch-up
        self.failure: OSError | None = None
        self._one_at_a_time = threading.RLock()  # or a failure could be reported to one and success to another

    def commit(self, end: int) -> None:
        """Return when the bytes before `end` are on disk; raise the OSError of a sync that failed."""
        with self._one_at_a_time:
            if self.failure:
                raise self.failure
            if self.durable >= end:
                return
            covered = self.written
            try:
                os.fdatasync(self.fd)
            except OSError as error:
                self.failure = error
                raise
            self.durable = max(self.durable, covered)

    def __del__(self) -> None:
        # Closed when the last thread that may still sync it has let go, never under its feet.
        release(self.fd)


class Task(Generic[Answer]):
    """What one thread wants done, and what came of it."""

    def __init__(self, run: Callable[[Handle], Answer]) -> None:
        self.run = run
        self.answers: list[Answer] = []  # one, when it went well
        self.error: Exception | None = None
        self.done = False
        self.gate: threading.Lock | None = None

    def attempt(self, handle: Handle) -> None:
        """Do it and keep the answer or the error."""
        try:
            self.answers.append(self.run(handle))
        except Exception as error:
            self.error = error


class Group(Generic[Answer]):
    """Lets one thread at a time work for all that wait."""

    def __init__(self, work: Callable[[Sequence[Task[Answer]]], None]) -> None:
        self._work = work
        self._reset()

    def _reset(self) -> None:
        self._busy = False
        self._queue: list[Task[Answer]] = []
        self._within: set[int] = set()  # threads that are in here
        self._mutex = threading.Lock()
        self._forks = forks.count

    def do(self, run: Callable[[Handle], Answer]) -> Answer:
        """Have it done, by this thread or another, and return its answer when the work is complete."""
        if self._forks != forks.count:
            self._reset()  # whoever was at work is not in this process
        thread = threading.get_ident()
        if thread in self._within:
            raise reentered()
        self._within.add(thread)
        try:
            return self._do(run)
        finally:
            self._within.discard(thread)

    def _do(self, run: Callable[[Handle], Answer]) -> Answer:
        task = Task(run)
        with self._mutex:
            self._queue.append(task)
            if self._busy:
                task.gate = threading.Lock()
                task.gate.acquire()
            self._busy = True
        if task.gate:
            self._wait(task, task.gate)
        if not task.done:
            self._lead()
        if task.error:
            raise task.error
        return task.answers[0]

    def _lead(self) -> None:
        with self._mutex:
            tasks, self._queue = self._queue, []
        try:
            self._work(tasks)
        except Exception as error:
            for task in tasks:
                task.error = task.error or error
        except BaseException:
            for task in tasks:
                task.error = task.error or StorageFailed(
                    "the thread that appended for all was interrupted", operation="append", hint="append again"
                )
            raise
        finally:
            for task in tasks:
                task.done = True
                if task.gate:
                    task.gate.release()
            self._choose_next()

    def _choose_next(self) -> None:
        with self._mutex:
            if self._queue and (gate := self._queue[0].gate):
                gate.release()
            else:
                self._busy = False

    def _wait(self, task: Task[Answer], gate: threading.Lock) -> None:
        try:
            gate.acquire()
        except BaseException:
            # Interrupted (Ctrl-C). If it was our turn to work, it is now somebody else's.
            with self._mutex:
                waiting = task in self._queue
                chosen = waiting and not gate.locked()
                if waiting:
                    self._queue.remove(task)
            if chosen:
                self._choose_next()
            raise
