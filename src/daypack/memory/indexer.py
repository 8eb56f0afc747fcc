"""Indexes in the background what was written to a store in a database, so that searches and barriers find it done.

Any number of indexers, in any number of processes, share the jobs of the store (see `store/postgres/jobs`). Whatever
an indexer has not done when it ends, another one does.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TypeVar

from daypack.errors import BadInput, DaypackError, MemoryMissing
from daypack.memory.backend import Backend
from daypack.memory.consistency import missing_from
from daypack.memory.search.index import IndexProgress
from daypack.memory.store.port import StoreFeed
from daypack.memory.store.postgres.jobs import Job

_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.2, 2.0
_SLICE_SECONDS = 1.0  # of indexing, after which it looks whether to stop
_TURN_SECONDS = 10.0  # of one memory, if more is to be done there; then that of others
_PARTITIONS_SECONDS = 30.0  # between two looks at the partitions
_JOBS, _PARTITIONS = "index", "index vectors"

Answer = TypeVar("Answer")
Report = Callable[[str, BaseException], object]


class Indexer:
    """A thread for jobs, and one for partitions. `stop` waits until the memory at hand is done, or gives it back.

    `report` is given what a thread could not do, and the error; the thread tries it again later.
    """

    def __init__(self, backend: Backend, report: Report | None = None) -> None:
        if backend.server is None:
            hint = "the index of files is updated by searches and barriers; set the address of a database"
            raise BadInput("memories in files have no index jobs", operation="index", hint=hint)
        self.jobs = backend.server.jobs
        self._database = backend.server.database
        self._backend = backend
        self._report = report
        self._store = backend.primary
        self._indexes = backend.indexes
        self._stopping = Event()
        self._threads: list[Thread] = []
        self._problems = {_JOBS: "", _PARTITIONS: ""}  # of the last look at the jobs, and at the partitions
        self.done = self.failed = 0  # jobs, and attempts at jobs

    # A thread

    def start(self) -> None:
        """Begin to work on jobs as they become due."""
        if not self._threads:
            self._stopping.clear()
            targets = {"daypack-indexer": self._loop, "daypack-partitions": self._keep_partitions}
            self._threads = [Thread(target=target, name=name, daemon=True) for name, target in targets.items()]
            for thread in self._threads:
                thread.start()

    def stop(self) -> None:
        """End the thread: what it works on is finished, or given back for another indexer."""
        self._stopping.set()
        if self._threads:
            indexing, _ = self._threads
            indexing.join()  # a partition may take minutes; a process that ends meanwhile leaves nothing half done
            self._threads = []

    @contextmanager
    def running(self) -> Generator["Indexer"]:
        """Work on jobs meanwhile."""
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def _loop(self) -> None:
        pause = _MIN_POLL_SECONDS
        while not self._stopping.is_set():
            worked = self._try(_JOBS, self.work_once) or False
            pause = _MIN_POLL_SECONDS if worked else min(2 * pause, _MAX_POLL_SECONDS)
            if not worked:
                self._stopping.wait(pause)

    def _keep_partitions(self) -> None:
        while not self._stopping.wait(_PARTITIONS_SECONDS):  # a memory is searched at its old place meanwhile
            self._try(_PARTITIONS, self.keep_partitions)

    def _try(self, operation: str, work: Callable[[], Answer]) -> Answer | None:
        """Return what `work` returns; if it fails, report that and remember it until it succeeds."""
        problem = ""
        try:
            return work()
        except Exception as error:
            problem = _describe(error)
            if self._report is not None:
                self._report(operation, error)
            return None
        finally:
            self._problems[operation] = problem
            self._backend.index_problem = "; ".join(filter(None, self._problems.values()))

    # One call

    def run(self) -> int:
        """Work on all jobs that are due; return how many were looked at."""
        count = 0
        while not self._stopping.is_set() and self.work_once():
            count += 1
        self.keep_partitions()
        return count

    def keep_partitions(self) -> None:
        """Give large memories partitions of their own, and drop those of memories that were erased."""
        from daypack.memory.search.postgres.partitions import drop_unused, promote_due  # noqa: PLC0415 — rarely

        try:
            promote_due(self._database)
        finally:
            drop_unused(self._database)

    def work_once(self) -> bool:
        """Claim a job and work on it; return False if none is due."""
        job = self.jobs.claim()
        if job is None:
            return False
        with self._renewing(job):
            try:
                self._index(job)
            except MemoryMissing:  # erased, or hidden until it is restored: then searches index it
                self._finish(job, 0, 0)
            except Exception as error:
                self._fail(job, _describe(error))
        return True

    def _finish(self, job: Job, entries: int, documents: int) -> None:
        self.jobs.finish(job, entries, documents)
        self.done += 1

    def _fail(self, job: Job, problem: str) -> None:
        self.jobs.fail(job, problem)
        self.failed += 1

    def _index(self, job: Job) -> None:
        feed = StoreFeed(self._store, job.user, job.memory_id or "")
        wanted = self._store.newest(job.user, feed.memory_id)  # after the claim: no job claimed here wants more
        until, reached = time.monotonic() + _TURN_SECONDS, IndexProgress(-1, -1)
        with self._indexes.use(feed) as index:
            while True:
                last, reached = reached, index.catch_up(deadline=time.monotonic() + _SLICE_SECONDS)
                missing = list(missing_from(reached, wanted, vectors=self._indexes.has_vectors))
                if not missing:
                    entries = min(reached.entries, reached.vectors) if self._indexes.has_vectors else reached.entries
                    self._finish(job, entries, reached.documents)
                elif reached.problem or reached == last:
                    self._fail(job, reached.problem or f"indexing does not advance: {', '.join(missing)}")
                elif self._stopping.is_set() or time.monotonic() > until:
                    self.jobs.release(job, progressed=True)
                else:
                    continue
                return

    @contextmanager
    def _renewing(self, job: Job) -> Generator[None]:
        """Extend the lease meanwhile: embedding may take long."""
        done = Event()

        def renew() -> None:
            while not done.wait(self.jobs.lease_seconds / 3):
                with suppress(DaypackError):  # another indexer may take the job: it is done twice, and stored once
                    self.jobs.renew(job)

        thread = Thread(target=renew, name="daypack-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def _describe(error: Exception) -> str:
    """Return what an error says; the text of a foreign error may contain what it was about."""
    name = type(error).__name__
    return f"{name}: {error.problem}" if isinstance(error, DaypackError) else name
