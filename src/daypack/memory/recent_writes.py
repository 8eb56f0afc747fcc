"""What users have written since their last barrier, through this process: where, and what failed."""

from collections import deque

from daypack.errors import DaypackError
from daypack.files.lock import ThreadLock
from daypack.types.memory import FailedWrite

_MAX_PROBLEM_CHARS = 500
_MAX_GIVEN_CHARS = 256


class Writes:
    """Of the failures of a user the newest `most` are kept; of memories, all until a barrier has found them indexed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._failed: dict[str, deque[FailedWrite]] = {}
        self._dropped: dict[str, int] = {}
        self._done: dict[str, dict[str, int]] = {}  # user, memory: number of the last write
        self._threads = ThreadLock()

    def note_failed(self, user: str, failed: FailedWrite) -> None:
        """Remember a write that failed."""
        with self._threads:
            noted = self._failed.setdefault(user, deque(maxlen=self._most))
            if len(noted) == self._most:
                self._dropped[user] = self._dropped.get(user, 0) + 1
            noted.append(failed)

    def note_done(self, user: str, memory_id: str, client_key: str | None = None) -> None:
        """Remember which memory was written to; a failure that was made good by repeating it is forgotten."""
        with self._threads:
            self._count += 1
            self._done.setdefault(user, {})[memory_id] = self._count
            noted = self._failed.get(user)
            if noted and client_key is not None:
                kept = [one for one in noted if (one.memory_id, one.client_key) != (memory_id, client_key)]
                self._failed[user] = deque(kept, maxlen=self._most)

    def done(self, user: str) -> dict[str, int]:
        """Return the memories that were written to, each with the number of its last write."""
        with self._threads:
            return dict(self._done.get(user, {}))

    def settle(self, user: str, seen: dict[str, int]) -> None:
        """Forget memories that were found indexed, unless they were written to since."""
        with self._threads:
            done = self._done.get(user, {})
            for memory_id in [one for one, count in seen.items() if done.get(one) == count]:
                del done[memory_id]

    def take_failed(self, user: str) -> tuple[FailedWrite, ...]:
        """Return the failures and forget them; of those that are too many to be kept it tells the number."""
        with self._threads:
            dropped = self._dropped.pop(user, 0)
            more = [FailedWrite(operation="several", problem=f"{dropped:,} more before these")] if dropped else []
            return (*more, *self._failed.pop(user, ()))


def failed_write(operation: str, error: Exception, memory_id: object, client_key: object) -> FailedWrite:
    """Return what to remember of a write that failed: why, and what the caller itself has given."""
    problem = error.problem if isinstance(error, DaypackError) else str(error)
    return FailedWrite(
        operation=operation,
        problem=_short(f"{type(error).__name__}: {problem}", _MAX_PROBLEM_CHARS) or "",
        memory_id=_short(memory_id, _MAX_GIVEN_CHARS),
        client_key=_short(client_key, _MAX_GIVEN_CHARS),
    )


def _short(given: object, most: int) -> str | None:
    return given[:most].encode("utf-8", "replace").decode() if isinstance(given, str) else None
