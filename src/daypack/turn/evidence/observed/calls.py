"""The calls that other programs made, newest first: recorded requests, replies with their usage, and compactions.

A line of a list comes from an event or a message alone: no request is rebuilt.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from daypack.history.session import History
from daypack.turn.evidence.observed.known import (
    Call,
    Compacted,
    Counted,
    Known,
    compare_calls,
    is_imported,
    read_reply,
    read_request,
    read_row,
)
from daypack.turn.ledger import OBSERVED, USAGE
from daypack.types.history import Event

__all__ = ["Call", "Compacted", "find_call", "newest_calls"]
_BATCH = 256  # events or messages that are read in one go
_Entry = Known | Compacted


def find_call(history: History, name: str | None = None) -> Call | None:
    """Return a call by its event or its reply; without a name, the newest."""
    calls = (entry for entry in newest_calls(history) if isinstance(entry, Call))
    return next((call for call in calls if name in (None, call.event, call.reply)), None)


def newest_calls(history: History) -> Iterator[Call | Compacted]:
    """Yield the calls of other programs and their compactions, the newest first."""
    if not is_imported(history):
        return
    waiting: list[Known | Compacted] = []  # since the newest call whose predecessor is not known yet
    for entry in _merged(_Events(history), _replies(history)):
        if isinstance(entry, Known):
            yield from _settled(history, waiting, entry)
            waiting = [entry]
        elif waiting:
            waiting.append(entry)
        else:
            yield entry
    yield from _settled(history, waiting, None)


def _settled(history: History, waiting: list[_Entry], before: Known | None) -> Iterator[Call | Compacted]:
    """Yield a call whose predecessor is known, and the compactions between the two."""
    if not waiting:
        return
    known, *compactions = waiting
    assert isinstance(known, Known)
    between = [entry for entry in compactions if isinstance(entry, Compacted)]
    yield compare_calls(history, before, known, between[-1] if between else None)
    yield from between


# The two logs


def _merged(events: "_Events", replies: Iterator[Known]) -> Iterator[_Entry]:
    """Yield what the events and the messages have, the newest first; a reply whose call is recorded is left out."""
    entries = events.read()
    waiting = deque(islice(entries, 1))
    reply = next(replies, None)
    while waiting or reply:
        if waiting and (reply is None or _at(waiting[0]) > reply.call.at):
            yield waiting.popleft()
            waiting.extend(islice(entries, 0 if waiting else 1))
            continue
        assert reply is not None
        # Its usage comes after its call in the log, and before all older ones unless a clock was set back.
        while reply.names_request and reply.call.event not in events.answered and (entry := next(entries, None)):
            waiting.append(entry)
        if reply.call.event not in events.answered:
            yield reply
        reply = next(replies, None)


def _at(entry: _Entry) -> str:
    return entry.call.at if isinstance(entry, Known) else entry.at


class _Events:
    """The calls and compactions in the events of a session."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.answered: set[str] = set()  # replies whose usage was read: their calls are recorded
        self._usages: dict[str, Mapping[str, Any]] = {}  # by turn
        self._counted: Counted | None = None  # of Codex: the oldest row of a call that was read

    def read(self) -> Iterator[_Entry]:
        """Yield them, the newest first; events of other programs that only share the type are ignored."""
        reader = self._history.events.reader
        for stop in range(reader.count(), 0, -_BATCH):
            for event in reversed(reader.read(max(0, stop - _BATCH), stop)):
                yield from self._entries(event)
        yield from self._settle_count()

    def _entries(self, event: Event) -> Iterator[_Entry]:
        if event.type == USAGE:
            turn = str(event.data.get("turn"))
            self._usages.setdefault(turn, event.data)  # of several replies, the last
            self.answered.add(str(event.data.get("message")))
        elif event.type == OBSERVED:
            if known := read_request(event, self._usages.pop(event.id, {})):
                yield known
        elif found := read_row(self._history, event):
            yield from self._row(found)

    def _row(self, found: Counted | Compacted) -> Iterator[_Entry]:
        if isinstance(found, Compacted):
            yield from self._settle_count()
            yield found
            return
        if self._counted and self._counted.total != found.total:
            yield from self._settle_count()
        self._counted = found

    def _settle_count(self) -> Iterator[Known]:
        if self._counted:
            yield self._counted.known
        self._counted = None


def _replies(history: History) -> Iterator[Known]:
    """Yield the imported replies that have a usage, the newest first."""
    reader = history.messages.reader
    for stop in range(reader.count(), 0, -_BATCH):
        for message in reversed(reader.read(max(0, stop - _BATCH), stop)):
            if known := read_reply(message):
                yield known
