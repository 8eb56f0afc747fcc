"""What changed from one turn to another, for commands and views alike: turns of daypack, or calls of other programs."""

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from daypack.errors import BadInput
from daypack.session.chosen import Chosen, open_call
from daypack.session.shown import shown
from daypack.turn.evidence.diff import Difference, compare
from daypack.turn.evidence.observed.calls import Call
from daypack.turn.evidence.observed.diff import ObservedDifference, compare_observed
from daypack.turn.evidence.observed.links import Links
from daypack.turn.evidence.observed.request import ObservedTurn
from daypack.types.history import Message

if TYPE_CHECKING:
    from daypack.session.session import Session
    from daypack.turn.turn import Turn


class ComparedTurns(NamedTuple):
    """Two turns of daypack and what differs."""

    before: "Turn"
    after: "Turn"
    difference: Difference

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        names = {"before": self.before.event_id, "after": self.after.event_id}
        return {**names, **msgspec.to_builtins(self.difference)}


class ComparedCalls(NamedTuple):
    """Two calls of another program, their requests and what differs; None where only the replies are known."""

    before: Call
    after: Call
    requests: tuple[ObservedTurn, ObservedTurn] | None
    difference: ObservedDifference | None
    between: tuple[Message, ...] = ()  # where only the replies are known, the messages of history since the earlier one

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        found = self.difference
        added = [{"message": f"messages:{message.seq}", "role": message.role} for message in self.between]
        return {
            "before": msgspec.to_builtins(self.before),
            "after": msgspec.to_builtins(self.after),
            "difference": msgspec.to_builtins(found) if found else None,
            "messages_between": added if found is None else None,
        }


def compare_turns(before: "Turn", after: "Turn") -> ComparedTurns:
    """Compare two turns of daypack."""
    return ComparedTurns(before, after, compare(before, after))


def compare_calls(session: "Session", before: Call, after: Call, links: Links | None = None) -> ComparedCalls:
    """Compare two calls of another program; secrets are redacted from what differs."""
    old, new = open_call(session, before), open_call(session, after)
    if old is None or new is None:
        return ComparedCalls(before, after, None, None, _between(session, before, after))
    found = compare_observed(old, new, links or Links(session.history))
    return ComparedCalls(before, after, (old, new), shown(session.history, found))


def require_one_kind(before: Chosen, after: Chosen) -> None:
    """Raise BadInput unless both turns are of daypack, or both are calls of another program."""
    if bool(before.call) == bool(after.call):
        return
    own, other = (before, after) if after.call else (after, before)
    problem = f"{own.event} was prepared by daypack, {other.event} is a call of another program"
    raise BadInput(problem, operation="diff", place="events", hint="compare two turns of one kind; see `daypack turns`")


def _between(session: "Session", before: Call, after: Call) -> tuple[Message, ...]:
    """Return the messages of history from the reply to one call up to the reply to another, which is left out."""
    first, last = (_number(call.reply) for call in (before, after))
    if not first or not last:
        return tuple(message for message in session.messages() if before.at < message.ts <= after.at)
    return tuple(session.messages(first, last - 1)) if first < last else ()


def _number(reply: str | None) -> int:
    number = (reply or "").removeprefix("msg-")
    return int(number) if number.isdecimal() else 0
