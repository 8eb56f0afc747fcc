"""Which call a view is about, and where it is in its session: its neighbours, its reply, what the provider reported."""

from collections.abc import Sequence
from typing import NamedTuple

from daypack.serve.page.calls.shapes import Cache
from daypack.session import Session
from daypack.session.chosen import Chosen, choose
from daypack.turn.evidence.calls.rows import CallRow, Calls, FoldRow
from daypack.turn.evidence.calls.single import read_call


class Place(NamedTuple):
    """A call and what is around it; the neighbours are of the same kind and for the same target."""

    chosen: Chosen
    row: CallRow | None = None  # None: the event is not among the calls
    previous: str | None = None
    next: str | None = None
    folds: Sequence[FoldRow] = ()  # compactions of the program before the call, oldest first

    @property
    def cache(self) -> Cache:
        """What was expected from a prompt cache, and what was reported."""
        row = self.row
        if row is None:
            return Cache()
        return Cache(
            expected=row.expected,
            input=row.input,
            cached=row.cached,
            output=row.output,
            broken=row.cache_break,
            lost=row.lost,
        )

    @property
    def reply(self) -> int | None:
        """The number of the message that answered."""
        return self.row.reply if self.row else None


def find_place(session: Session, name: str) -> Place:
    """Return the call with the name of its event, or of its reply where only that is known."""
    calls = session.turns.calls.read()
    chosen = None
    at = _find(calls, name)
    if at is None:  # the newest, the reply to a recorded request, or no call
        chosen = choose(session, name)
        at = _find(calls, chosen.event)
        if at is None:
            return Place(chosen)
    row = calls.rows[at]
    if chosen is None:
        call = read_call(session.history, calls, at)
        chosen = Chosen(row.event, call) if call or row.kind == "prepared" else choose(session, name)
    folds = [fold for fold in calls.folds if not fold.own and fold.before <= at] if row.kind == "observed" else ()
    return Place(chosen, row, _neighbour(calls, at, -1), _neighbour(calls, at, 1), folds)


def _find(calls: Calls, name: str) -> int | None:
    return next((at for at in range(len(calls.rows) - 1, -1, -1) if calls.rows[at].event == name), None)


def _neighbour(calls: Calls, at: int, step: int) -> str | None:
    rows, kind, target = calls.rows, calls.rows[at].kind, calls.rows[at].target
    at += step
    while 0 <= at < len(rows):
        if (rows[at].kind, rows[at].target) == (kind, target):
            return rows[at].event
        at += step
    return None
