"""The writes through this process since the last barrier: the memories each user wrote to, and failed writes.

A failed write is reported to the writer whose call it was: a barrier of another token neither shows nor forgets it.
"""

from collections import deque
from typing import NamedTuple

from daypack.errors import DaypackError
from daypack.forks import ThreadLock
from daypack.types.memory import FailedWrite

_MAX_PROBLEM_CHARS = 500
_MAX_ID_CHARS = 256


class Writer(NamedTuple):
    """Who writes: a user and, on a server, the id of the token."""

    user: str
    token_id: str = ""


class RecentWrites:
    """Remembers a writer's newest `max_failures` failures, and a user's memories until a barrier found them indexed."""

    def __init__(self, max_failures: int) -> None:
        self._max_failures = max_failures
        self._count = 0
        self._failed: dict[Writer, deque[FailedWrite]] = {}
        self._dropped: dict[Writer, int] = {}
        self._written: dict[str, dict[str, int]] = {}  # by user and memory: the number of the last write
        self._threads = ThreadLock()

    def record_failure(self, writer: Writer, failed: FailedWrite) -> None:
        """Remember a failed write until the writer's next barrier."""
        with self._threads:
            failures = self._failed.setdefault(writer, deque(maxlen=self._max_failures))
            if len(failures) == self._max_failures:
                self._dropped[writer] = self._dropped.get(writer, 0) + 1
            failures.append(failed)

    def record_success(self, writer: Writer, memory_id: str, client_key: str | None = None) -> None:
        """Remember the memory written to, and forget the writer's earlier failures with the same client key."""
        with self._threads:
            self._count += 1
            self._written.setdefault(writer.user, {})[memory_id] = self._count
            failures = self._failed.get(writer)
            if failures and client_key is not None:
                others = [write for write in failures if (write.memory_id, write.client_key) != (memory_id, client_key)]
                self._failed[writer] = deque(others, maxlen=self._max_failures)

    def written(self, user: str) -> dict[str, int]:
        """Return the memories written to, each with the number of its last write."""
        with self._threads:
            return dict(self._written.get(user, {}))

    def forget_indexed(self, user: str, indexed: dict[str, int]) -> None:
        """Forget memories that are indexed, unless they were written to since."""
        with self._threads:
            written = self._written.get(user, {})
            for memory_id, count in indexed.items():
                if written.get(memory_id) == count:
                    del written[memory_id]

    def take_failed(self, writer: Writer) -> tuple[FailedWrite, ...]:
        """Return the failures and forget them; the first item counts those that were dropped as too many."""
        with self._threads:
            dropped = self._dropped.pop(writer, 0)
            more = [FailedWrite(operation="several", problem=f"{dropped:,} earlier failed writes")] if dropped else []
            return (*more, *self._failed.pop(writer, ()))


def failed_write(operation: str, error: Exception, memory_id: object, client_key: object) -> FailedWrite:
    """Return the record of a failed write: the problem, and the caller's own ids, shortened."""
    problem = error.problem if isinstance(error, DaypackError) else str(error)
    return FailedWrite(
        operation=operation,
        problem=_short(f"{type(error).__name__}: {problem}", _MAX_PROBLEM_CHARS) or "",
        memory_id=_short(memory_id, _MAX_ID_CHARS),
        client_key=_short(client_key, _MAX_ID_CHARS),
    )


def _short(text: object, max_chars: int) -> str | None:
    return text[:max_chars].encode("utf-8", "replace").decode() if isinstance(text, str) else None
