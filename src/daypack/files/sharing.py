"""Writers of one process that share a commit: a sync is what costs the time, so one is made for all who wait.

Whoever comes in first writes for all who have queued up meanwhile; they find their job done.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from daypack.errors import StorageFailed
from daypack.files.commit import reentered
from daypack.files.database import Answer, Database
from daypack.files.lock import ThreadLock, forks

if TYPE_CHECKING:
    from sqlite3 import Connection


class _Job:
    """What one thread wants written, and what came of it."""

    def __init__(self, work: Callable[["Connection"], Any]) -> None:
        self.work = work
        self.answer: Any = None
        self.error: Exception | None = None
        self.done = False


class Sharing:
    """Writes to one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._threads = ThreadLock()
        self._begin()

    def _begin(self) -> None:
        self._jobs: deque[_Job] = deque()
        self._writing = False
        self._forks = forks.count

    @property
    def waiting(self) -> int:
        """How many jobs nobody has begun."""
        return len(self._jobs)

    def write(self, operation: str, work: Callable[["Connection"], Answer]) -> Answer:
        """Do `work` in a transaction, and return when it is committed; where it fails, the work of others stands."""
        if self._forks != forks.count:
            self._begin()  # those who queued up are not in this process
        job = _Job(work)
        self._jobs.append(job)
        with self._threads:
            if self._writing:
                self._jobs.remove(job)
                raise reentered(self.database.path)
            if not job.done:
                self._writing = True
                try:
                    waiting = [self._jobs.popleft() for _ in range(len(self._jobs))]
                    # After a fork another thread may have emptied the queue.
                    self._write_all(operation, waiting if job in waiting else [*waiting, job])
                finally:
                    self._writing = False
        if job.error is not None:
            raise job.error
        return job.answer

    def _write_all(self, operation: str, jobs: list[_Job]) -> None:
        def work(connection: "Connection") -> None:
            if len(jobs) == 1:
                jobs[0].answer = jobs[0].work(connection)
            else:
                for job in jobs:
                    self._attempt(operation, job, connection)

        try:
            self.database.run(operation, work, writing=True)
        except Exception as error:
            for job in jobs:
                job.error = job.error or error
        except BaseException:
            problem, place = "the thread that wrote for all was interrupted", self.database.path
            for job in jobs:
                job.error = StorageFailed(problem, operation=operation, place=place, hint="try again")
            raise
        finally:
            for job in jobs:
                job.done = True

    def _attempt(self, operation: str, job: _Job, connection: "Connection") -> None:
        """Do one of several jobs; what it did before it failed is taken back, and nothing else."""
        connection.execute("SAVEPOINT job")
        try:
            with self.database.refusing(operation):
                job.answer = job.work(connection)
        except Exception as error:
            job.error = error
            if not connection.in_transaction:
                raise  # SQLite has taken everything back
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
