"""Group commit: one thread carries out the writes of all threads that are queued, with one lock and one sync.

The first thread to arrive commits for all that are queued, itself included; those that arrive meanwhile wait, and the
first of them commits next. Threads that all wrote for themselves would contend for the interpreter (measured: half the
messages per second). Logs and SQLite files use it.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from daypack.errors import StorageFailed
from daypack.files.atomic import release
from daypack.files.durable import sync_data
from daypack.forks import forks

Answer = TypeVar("Answer")
Target = TypeVar("Target")  # what the writes go to: the handle of a log, or a connection


def reentered(place: str = "", operation: str = "append") -> StorageFailed:
    """Return the error for a write from a signal handler, or from within another write of the same thread."""
    return StorageFailed(
        "this thread is already writing",
        operation=operation,
        place=place,
        hint="do not write from a signal handler; set a flag there and write afterwards",
    )


class LeaderInterrupted(StorageFailed):
    """The thread that committed for others was interrupted; what it committed may be stored, or not."""


class Handle:
    """A log opened for appending, and how much of it is known to be on disk.

    A failed sync is final: the kernel may have dropped the bytes, and the next sync would still succeed.
    """

    def __init__(self, fd: int, inode: int) -> None:
        self.fd = fd
        self.inode = inode
        self.durable = 0  # a sync of this handle has covered every byte before this offset
        self.written = 0  # the end of the log, as of the last append or catch-up
        self.failure: OSError | None = None
        self._sync_lock = threading.RLock()  # or the same bytes could be reported as failed and as synced

    def commit(self, end: int) -> None:
        """Return when the bytes before `end` are on disk; raise the OSError of a sync that failed."""
        with self._sync_lock:
            if self.failure:
                raise self.failure
            if self.durable >= end:
                return
            covered = self.written
            try:
                sync_data(self.fd)
            except OSError as error:
                self.failure = error
                raise
            self.durable = max(self.durable, covered)

    def __del__(self) -> None:
        # Closed when the last thread that may still sync it has released it.
        release(self.fd)


class Task(Generic[Target]):
    """A write that a thread has queued, and its outcome."""

    def __init__(self, run: Callable[[Target], Any], operation: str) -> None:
        self.run = run
        self.operation = operation
        self.answers: list[Any] = []  # one item after success
        self.error: Exception | None = None
        self.done = False
        self.chosen = False  # to commit for all that are queued
        self.gate: threading.Lock | None = None

    def attempt(self, target: Target) -> None:
        """Run it and store the answer or the error."""
        try:
            self.answers.append(self.run(target))
        except Exception as error:
            self.error = error


class Group(Generic[Target]):
    """Lets one thread at a time commit for all that are queued; `work` runs their tasks."""

    def __init__(self, work: Callable[[Sequence[Task[Target]]], None], place: str = "") -> None:
        self._work = work
        self._place = place
        self.forget()
        forks.watch(self)

    def forget(self) -> None:
        """Start anew; in a forked child, because the threads that were here are not in that process."""
        self._busy = False
        self._queue: list[Task[Target]] = []
        self._members: set[int] = set()  # threads inside `do`
        self._mutex = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many tasks are queued and not started."""
        return len(self._queue)

    def do(self, run: Callable[[Target], Answer], operation: str = "append") -> Answer:
        """Have `run` carried out, by this thread or another, and return its answer when it is committed."""
        thread = threading.get_ident()
        if thread in self._members:
            raise reentered(self._place, operation)
        self._members.add(thread)
        try:
            return self._do(Task(run, operation))
        finally:
            self._members.discard(thread)

    def _do(self, task: Task[Target]) -> Any:  # noqa: ANN401 — the answer of the task
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
            problem = "the thread that committed for this one was interrupted"
            for task in tasks:
                task.error = task.error or LeaderInterrupted(
                    problem, operation=task.operation, place=self._place, hint="try again"
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
                self._queue[0].chosen = True
                gate.release()
            else:
                self._busy = False

    def _wait(self, task: Task[Target], gate: threading.Lock) -> None:
        try:
            gate.acquire()
        except BaseException:
            # Interrupted (Ctrl-C). If this thread was chosen to commit, choose the next.
            with self._mutex:
                queued = task in self._queue
                if queued:
                    self._queue.remove(task)
            # Not by the gate: the interrupt may have come just after it was taken.
            if queued and task.chosen:
                self._choose_next()
            raise
