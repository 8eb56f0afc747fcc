"""The recorded turns of a session, each with the usage that the provider reported for its reply."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, convert

from daypack.history.session import History
from daypack.turn.budget import Limits
from daypack.turn.items import Cost
from daypack.turn.ledger import TURN, USAGE
from daypack.types.history import Event
from daypack.types.kinds import Target

_BATCH = 256  # events that are read in one go


class ListedTurn(Struct, frozen=True, kw_only=True):
    """A recorded turn in a few facts."""

    kind: Literal["prepared"] = "prepared"  # others are observed: observed/calls.py
    event: str
    at: str
    target: Target
    model: str | None
    tokens: int
    budget_tokens: int | None
    reserved_tokens: int
    messages: int  # in the tail
    last_message: int
    omitted: int
    missing: int
    epoch: str  # the event of the first turn of its epoch
    new_epoch: str | None  # why an epoch began with it
    expected_cached_tokens: int
    reply: str | None = None  # the message that answered it
    input_tokens: int | None = None  # as the provider reported them
    cached_tokens: int | None = None
    output_tokens: int | None = None
    erased: str | None = None  # the event that erased something it showed: it no longer verifies


def newest_turns(history: History, target: str | None = None) -> Iterator[ListedTurn]:
    """Yield the recorded turns, the newest first; events of other programs that only share the type are ignored."""
    reader, usages = history.events.reader, dict[str, Mapping[str, Any]]()
    for stop in range(reader.count(), 0, -_BATCH):
        for event in reversed(reader.read(max(0, stop - _BATCH), stop)):
            if event.type == USAGE:
                usages.setdefault(str(event.data.get("turn")), event.data)  # of several replies, the last
            elif event.type == TURN:
                turn = read_listed(event, usages.pop(event.id, {}))
                if turn and target in (None, turn.target):
                    yield turn


class _Opening(Struct):
    reason: str


class _Stable(Struct):
    expected_cached_tokens: int = 0


class _Turn(Struct):
    target: Target
    limits: Limits
    used: Cost
    stable: _Stable
    at: str = ""
    model: str | None = None
    tail: tuple[int, int] = (0, 0)
    last: int = 0
    omitted: tuple[object, ...] = ()
    missing: tuple[object, ...] = ()
    epoch: str | None = None
    opening: _Opening | None = None
    erased: str = ""


class _Usage(Struct):
    message: str | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None


def read_listed(event: Event, usage: Mapping[str, Any]) -> ListedTurn | None:
    """Return the turn of an event, with the usage of its reply; None for an event of another program."""
    try:
        turn, spent = convert(event.data, _Turn), convert(usage, _Usage)
    except msgspec.ValidationError:
        return None
    return ListedTurn(
        event=event.id,
        at=turn.at or event.ts,
        target=turn.target,
        model=turn.model,
        tokens=turn.used.tokens,
        budget_tokens=turn.limits.tokens,
        reserved_tokens=turn.limits.reserved_tokens,
        messages=turn.tail[0],
        last_message=turn.last,
        omitted=len(turn.omitted),
        missing=len(turn.missing),
        epoch=turn.epoch or event.id,
        new_epoch=turn.opening.reason if turn.opening else None,
        expected_cached_tokens=turn.stable.expected_cached_tokens,
        reply=spent.message,
        input_tokens=spent.input_tokens,
        cached_tokens=spent.cached_tokens,
        output_tokens=spent.output_tokens,
        erased=turn.erased or None,
    )


# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_WARM = tuple(map(msgspec.json.Decoder, (_Turn, _Usage)))
