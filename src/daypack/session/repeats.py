"""Repeated contents of an open session: `context/dedup/` is up to date after every append."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from daypack.errors import DaypackError
from daypack.history.session import History
from daypack.types.history import Message

if TYPE_CHECKING:
    from daypack.derived.occurrences import OccurrenceIndex


class Repeats:
    """Notes the large contents of a session as they are appended; files are written only when one occurs again."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._index: OccurrenceIndex | None = None

    def __call__(self, appended: Sequence[Message]) -> None:
        """Read what is new since the last call, `appended` too. The append is done, so no failure is raised."""
        from daypack.derived import dedup  # noqa: PLC0415 — only for sessions with large contents

        with suppress(DaypackError), self._history.lock.exclude_threads():
            index, self._index = self._index, None  # after a failure it is read again
            self._index = dedup.catch_up(self._history, index, appended)
