"""Index work of a PostgreSQL store: a table of jobs that several indexers in several processes share.

Every write inserts a job in its own transaction (`INSERT`). The oldest living job of a memory stands for all jobs of
that memory: a claim takes it with FOR UPDATE SKIP LOCKED, and commits an attempt and a lease before the work begins, so
that a job that kills its worker is counted too. A job is deleted when its memory is indexed as far as it was stored
after the claim. A failed one is due again later; after MAX_ATTEMPTS it is dead: kept, shown, and left alone until it is
retried or a later job of the memory succeeds.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from msgspec import Struct

from daypack.errors import StorageFailed
from daypack.memory.times import format_time
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction

MAX_ATTEMPTS = 5
LEASE_SECONDS = 60.0
FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 1.0, 300.0
MAX_LISTED = 1_000
_MAX_PROBLEM_CHARS = 500
_ENDED = b"its indexer ended, or lost the database, each time"
_OPERATION = "index"
_OPERATOR = Scope(role="daypack_operator")
_READING = Scope(role="daypack_operator", reading=True)

# A job for a memory: (tenant, number of the memory, newest entry, newest version of the document).
INSERT = "INSERT INTO jobs(tenant, memory, goal, documents) VALUES (%s, %s, %s, %s)"

# A dead job stands for all jobs its memory had until then; a later write makes a new one.
_BURY = """
WITH spent AS (
    SELECT id FROM jobs WHERE dead IS NULL AND not_before <= now() AND attempts >= %s LIMIT 100 FOR UPDATE SKIP LOCKED
), buried AS (
    UPDATE jobs SET dead = now(), lease = NULL, problem = coalesce(problem, %s) WHERE id IN (SELECT id FROM spent)
    RETURNING id, tenant, memory
)
DELETE FROM jobs j USING buried b
WHERE j.tenant = b.tenant AND j.memory = b.memory AND j.id <> b.id AND j.lease IS NULL
"""
_CLAIM = """
WITH due AS (
    SELECT j.id FROM jobs j
    WHERE j.dead IS NULL AND j.not_before <= now() AND j.attempts < %s AND NOT EXISTS (
        SELECT FROM jobs o WHERE o.tenant = j.tenant AND o.memory = j.memory AND o.id < j.id AND o.dead IS NULL)
    ORDER BY j.not_before LIMIT 1 FOR UPDATE OF j SKIP LOCKED
)
UPDATE jobs SET lease = %s, attempts = attempts + 1, not_before = now() + make_interval(secs => %s)
FROM due WHERE jobs.id = due.id
RETURNING jobs.id, jobs.tenant, jobs.memory, jobs.attempts,
    (SELECT m.id FROM memories m WHERE m.tenant = jobs.tenant AND m.number = jobs.memory)
"""
_RENEW = """
UPDATE jobs SET not_before = now() + make_interval(secs => %s) WHERE id = %s AND lease = %s RETURNING id
"""
_FINISH = """
WITH own AS (DELETE FROM jobs WHERE id = %s AND lease = %s RETURNING tenant, memory)
DELETE FROM jobs j USING own o
WHERE j.tenant = o.tenant AND j.memory = o.memory AND j.lease IS NULL AND j.goal <= %s AND j.documents <= %s
"""
_RELEASE = """
UPDATE jobs SET lease = NULL, attempts = %s, not_before = now() WHERE id = %s AND lease = %s
"""
_FAIL = """
UPDATE jobs SET lease = NULL, problem = %s, not_before = now() + make_interval(secs => %s) WHERE id = %s AND lease = %s
"""
_COUNT = """
SELECT count(*) FILTER (WHERE dead IS NULL AND not_before <= now()),
    count(*) FILTER (WHERE dead IS NULL AND not_before > now() AND lease IS NOT NULL),
    count(*) FILTER (WHERE dead IS NULL AND not_before > now() AND lease IS NULL),
    count(*) FILTER (WHERE dead IS NOT NULL)
FROM jobs
"""
_DEAD = """
SELECT j.id, j.tenant, coalesce(m.id, ''), j.goal, j.attempts, (extract(epoch FROM j.dead) * 1000)::bigint, j.problem
FROM jobs j LEFT JOIN memories m ON m.tenant = j.tenant AND m.number = j.memory
WHERE j.dead IS NOT NULL ORDER BY j.dead, j.id LIMIT %s
"""
# With a new id, as if it were made now: the oldest living job of a memory may have a lease.
_RETRY = """
UPDATE jobs SET dead = NULL, lease = NULL, attempts = 0, not_before = now(), id = nextval('jobs_id')
WHERE dead IS NOT NULL AND (%s::bigint[] IS NULL OR id = ANY(%s::bigint[])) RETURNING id
"""


class Job(NamedTuple):
    """A claimed job; `memory_id` is None if the memory was erased."""

    job_id: int
    user: str
    memory_id: str | None
    attempts: int
    lease: str


class JobCounts(Struct, frozen=True):
    """How many jobs are due, are worked on, wait after a failure, and were given up."""

    due: int
    leased: int
    retrying: int
    dead: int


class DeadJob(Struct, frozen=True):
    """A job that was given up: whose memory is not indexed up to `goal`, and why."""

    job_id: int
    user: str
    memory_id: str
    goal: int
    attempts: int
    died_at: str
    problem: str


class Jobs:
    """The jobs of a database."""

    def __init__(self, database: Database, *, lease: float = LEASE_SECONDS, attempts: int = MAX_ATTEMPTS) -> None:
        self._database = database
        self.lease_seconds = lease
        self.max_attempts = attempts

    def claim(self) -> Job | None:
        """Claim the job that is due longest; None if there is none."""
        lease = str(uuid4())

        def work(transaction: Transaction) -> tuple[Any, ...] | None:
            transaction.execute(_BURY, (self.max_attempts, _ENDED))
            return transaction.row(_CLAIM, (self.max_attempts, lease, self.lease_seconds))

        try:
            row = self._database.run(_OPERATION, work, _OPERATOR)
        except StorageFailed as error:
            if getattr(error.__cause__, "sqlstate", None) == "23505":  # another indexer has a lease for the memory
                return None
            raise
        return None if row is None else Job(row[0], row[1], row[4], row[3], lease)

    def renew(self, job: Job) -> bool:
        """Extend the lease; return False if another indexer has claimed the job."""
        values = (self.lease_seconds, job.job_id, job.lease)
        return (
            self._database.run(_OPERATION, lambda transaction: transaction.row(_RENEW, values), _OPERATOR) is not None
        )

    def finish(self, job: Job, entries: int, documents: int) -> None:
        """Delete a job, and the unclaimed jobs of its memory that need no more than what is indexed now."""
        self._change(_FINISH, (job.job_id, job.lease, entries, documents))

    def release(self, job: Job, *, progressed: bool = False) -> None:
        """Give a job back: another indexer, or this one later, continues. It is no failure."""
        self._change(_RELEASE, (0 if progressed else job.attempts - 1, job.job_id, job.lease))

    def fail(self, job: Job, problem: str) -> None:
        """Record why a job failed; it is due again after a while, or dead. `problem` must not contain contents."""
        backoff = min(FIRST_BACKOFF_SECONDS * 4 ** (job.attempts - 1), MAX_BACKOFF_SECONDS)
        spent = job.attempts >= self.max_attempts
        stored = problem[:_MAX_PROBLEM_CHARS].encode("utf-8", "replace")
        self._change(_FAIL, (stored, 0.0 if spent else backoff, job.job_id, job.lease), bury=spent)

    def _change(self, statement: str, values: tuple[object, ...], *, bury: bool = False) -> None:
        def work(transaction: Transaction) -> None:
            transaction.execute(statement.encode(), values)
            if bury:
                transaction.execute(_BURY, (self.max_attempts, _ENDED))

        # With the lease in its condition, a statement that was committed before changes nothing.
        self._database.resolve(_OPERATION, work, _OPERATOR)

    # For people

    def counts(self) -> JobCounts:
        """Return how many jobs there are."""
        row = self._database.run("count jobs", lambda transaction: transaction.row(_COUNT), _READING)
        return JobCounts(*row) if row else JobCounts(0, 0, 0, 0)

    def list_dead(self, limit: int = MAX_LISTED) -> list[DeadJob]:
        """Return the jobs that were given up, the oldest first."""
        rows = self._database.run("list jobs", lambda transaction: transaction.rows(_DEAD, (limit,)), _READING)
        return [DeadJob(*_shown(row)) for row in rows]

    def retry_dead(self, job_ids: Sequence[int] | None = None) -> int:
        """Have dead jobs tried again, by default all; return how many."""
        chosen = None if job_ids is None else list(job_ids)
        values = (chosen, chosen)
        return len(
            self._database.resolve("retry jobs", lambda transaction: transaction.rows(_RETRY, values), _OPERATOR)
        )


def _shown(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row[:5], format_time(row[5]), bytes(row[6] or b"").decode("utf-8", "replace"))
