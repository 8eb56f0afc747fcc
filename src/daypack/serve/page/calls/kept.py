"""What the page keeps of an opened session: the turns and links that were read last.

Nothing here outlives a change of what it was read from. The checksum of a line covers all lines before it, so two
checksums prove that the messages and the events of a turn are still those that were verified.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from daypack.history.session import History
from daypack.serve.page.calls.omissions import CompactedRanges
from daypack.serve.page.calls.shapes import ShownOmission
from daypack.session import Session
from daypack.session.chosen import OpenedTurn, open_turn
from daypack.turn.evidence.calls.rows import FoldRow
from daypack.turn.evidence.observed.links import Links

_TURNS = 8  # of a session; each holds the texts of a window


class _Position(NamedTuple):
    """A place in both logs, with what proves that nothing before it has changed."""

    message: int
    event: int
    proof: tuple[object, ...]


class Kept:
    """What was read of one session. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: OrderedDict[str, tuple[_Position, OpenedTurn]] = OrderedDict()
        self._links: tuple[_Position, Links] | None = None
        self._ranges = CompactedRanges()

    def turn(self, session: Session, event: str) -> OpenedTurn:
        """Return a turn of daypack, verified if it can be."""
        with self._lock:
            position, opened = self._turns.get(event, (None, None))
        if position and opened and _is_unchanged(session.history, position):
            with self._lock:
                if event in self._turns:
                    self._turns.move_to_end(event)
            return opened
        opened = open_turn(session, event)
        if opened.problem is None:  # what is damaged may be repaired
            position = _position(session.history, opened.turn.record.last, int(event.removeprefix("ev-")))
            with self._lock:
                self._turns[event] = position, opened
                self._turns.move_to_end(event)
                while len(self._turns) > _TURNS:
                    self._turns.popitem(last=False)
        return opened

    def links(self, session: Session) -> Links:
        """Return where the texts of a session's requests come from; only new messages and events are read."""
        history = session.history
        with self._lock:
            position, links = self._links or (None, None)
            if position is None or links is None or not _is_unchanged(history, position):
                links = Links(history)
            else:
                links.update(history)
            self._links = _position(history, *links.read_through), links
            return links

    def compacted(self, session: Session, folds: Sequence[FoldRow], sent: Collection[int]) -> list[ShownOmission]:
        """Return the messages that left the window of another program before a call."""
        with self._lock:
            return list(self._ranges.before(session.history, folds, sent))


def kept_of(session: Session) -> Kept:
    """Return what is kept of a session; it goes with the session."""
    with _LOCK:
        kept = _KEPT.get(session)
        if kept is None:
            kept = _KEPT[session] = Kept()
        return kept


_KEPT: WeakKeyDictionary[Session, Kept] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _position(history: History, message: int, event: int) -> _Position:
    return _Position(message, event, _proof(history, message, event))


def _is_unchanged(history: History, position: _Position) -> bool:
    return position.proof == _proof(history, position.message, position.event)


def _proof(history: History, message: int, event: int) -> tuple[object, ...]:
    proof: list[object] = []
    for reader, seq in ((history.messages.reader, message), (history.events.reader, event)):
        at = reader.position(seq + 1)
        slots = reader.slots(at - 1, at) if at else []
        proof += [reader.generation, slots[0].seq if slots else 0, slots[0].crc if slots else 0]
    return tuple(proof)
