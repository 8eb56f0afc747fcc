"""A group of steps that is stored together."""

from typing import Any, NamedTuple

from daypack.errors import BadMessage
from daypack.history.draft import draft_from, same_payload
from daypack.importers.transcript import Draft, Kept, Rollback, Row, Step
from daypack.types.history import Message

_MOST_MESSAGES = 1000
_MOST_STEPS = 5000
_MOST_BYTES = 8 << 20


class Entry(NamedTuple):
    """A draft and the message it is."""

    draft: Draft
    message: Message


class Batch:
    """Steps in the order of their rows."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.kept: list[Kept] = []
        self.rollbacks: list[tuple[int, Rollback]] = []  # with the number of entries before each
        self._keys: dict[tuple[str, str], Message] = {}
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether it is time to store it."""
        steps = len(self.entries) + len(self.kept)
        return len(self.entries) >= _MOST_MESSAGES or steps >= _MOST_STEPS or self._bytes >= _MOST_BYTES

    def count(self, row: Row) -> None:
        """Take note of a row's size."""
        self._bytes += len(row.raw)

    def add(self, step: Step) -> None:
        """Add a step; a message that cannot be stored becomes kept rows."""
        if isinstance(step, Kept):
            self.kept.append(step)
        elif isinstance(step, Rollback):
            self.rollbacks.append((len(self.entries), step))
        else:
            try:
                self._enter(Entry(step, draft_from(step.message)))
            except BadMessage as error:
                problem = f"{error.place}: {error.problem}"
                self.kept += [Kept(row, problem=problem) for row in step.rows]

    def _enter(self, entry: Entry) -> None:
        """Add a message; of two with the same key and words one is enough, with other words the second needs a key."""
        place = entry.draft.child, entry.message.client_key or ""
        earlier = self._keys.get(place)
        if earlier and same_payload(earlier, entry.message):
            return
        if earlier:
            changed: dict[str, Any] = {
                **entry.draft.message,
                "client_key": f"{place[1][:240]}~{entry.draft.rows[0].number}",
            }
            entry = Entry(entry.draft, draft_from(changed))
        self._keys[place] = entry.message
        self.entries.append(entry)
