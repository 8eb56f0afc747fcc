"""The writes of each user through this process since the last barrier: the memories written to, and failed writes."""

from collections import deque

from daypack.errors import DaypackError
from daypack.files.lock import ThreadLock
from daypack.types.memory import FailedWrite

_MAX_PROBLEM_CHARS = 500
_MAX_ID_CHARS = 256


class RecentWrites:
    """Remembers a user's newest `max_failures` failed writes, and memories until a barrier has found them indexed."""

    def __init__(self, max_failures: int) -> None:
        self._max_failures = max_failures
        self._count = 0
        self._failed: dict[str, deque[FailedWrite]] = {}
        self._dropped: dict[str, int] = {}
        self._written: dict[str, dict[str, int]] = {}  # by user and memory: the number of the last write
        self._threads = ThreadLock()

    def record_failure(self, user: str, failed: FailedWrite) -> None:
        """Remember a failed write until the next barrier."""
        with self._threads:
            failures = self._failed.setdefault(user, deque(maxlen=self._max_failures))
            if len(failures) == self._max_failures:
                self._dropped[user] = self._dropped.get(user, 0) + 1
            failures.append(failed)

    def record_success(self, user: str, memory_id: str, client_key: str | None = None) -> None:
        """Remember the memory written to, and forget earlier failures of the same client key."""
        with self._threads:
            self._count += 1
            self._written.setdefault(user, {})[memory_id] = self._count
            failures = self._failed.get(user)
            if failures and client_key is not None:
                others = [write for write in failures if (write.memory_id, write.client_key) != (memory_id, client_key)]
                self._failed[user] = deque(others, maxlen=self._max_failures)

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

    def take_failed(self, user: str) -> tuple[FailedWrite, ...]:
        """Return the failures and forget them; the first item counts those that were dropped as too many."""
        with self._threads:
            dropped = self._dropped.pop(user, 0)
            more = [FailedWrite(operation="several", problem=f"{dropped:,} earlier failed writes")] if dropped else []
            return (*more, *self._failed.pop(user, ()))


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
