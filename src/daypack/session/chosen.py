"""The turn that a command or a view is about: one that daypack prepared, or a call of another program."""

from typing import TYPE_CHECKING, NamedTuple

from daypack.errors import Erased, ReplayMismatch, SourceMissing
from daypack.turn.evidence.observed.calls import Call, find_call
from daypack.turn.evidence.observed.request import ObservedTurn, open_observed
from daypack.turn.ledger import TURN
from daypack.types.history import Event

if TYPE_CHECKING:
    from daypack.session.session import Session
    from daypack.turn.turn import Turn

LATEST = "latest"


class Chosen(NamedTuple):
    """A turn by its event."""

    event: str
    call: Call | None  # None: daypack prepared it


def choose(session: "Session", name: str | None) -> Chosen:
    """Return the turn with a name, or the newest of all; raise SourceMissing if there is none."""
    if name not in (None, LATEST):
        call = find_call(session.history, name) if _may_be_observed(session, name) else None
        return Chosen(name, call)
    prepared = _newest_prepared(session)
    call = find_call(session.history)
    if call and (prepared is None or call.at > prepared.ts):
        return Chosen(call.event, call)
    return Chosen(session.turns.newest(), None)


class OpenedTurn(NamedTuple):
    """A recorded turn, and why it could not be verified; None if every byte is the same."""

    turn: "Turn"
    problem: ReplayMismatch | Erased | None = None


def open_turn(session: "Session", event: str) -> OpenedTurn:
    """Return a turn that daypack prepared, also if its bytes differ by now or a part was erased."""
    try:
        return OpenedTurn(session.turns.replay(event))
    except (ReplayMismatch, Erased) as error:
        return OpenedTurn(session.turns.replay(event, verify_digests=False), error)


def open_call(session: "Session", call: Call) -> ObservedTurn | None:
    """Return the recorded request of a call; None if only its reply is known."""
    return open_observed(session.history, call.event) if call.content == "recorded" else None


def _newest_prepared(session: "Session") -> Event | None:
    try:
        seq = int(session.turns.newest().removeprefix("ev-"))
    except SourceMissing:
        return None
    return next(iter(session.history.events.records(seq, seq)), None)


def _may_be_observed(session: "Session", name: str) -> bool:
    """Return True unless a name is that of a turn of daypack."""
    number = name.removeprefix("ev-")
    if name.startswith("msg-") or not number.isdecimal() or len(number) > 17:
        return name.startswith("msg-")
    found = next(iter(session.history.events.records(int(number), int(number))), None)
    return found is not None and found.type != TURN
