"""Replies: the message to append, and what it cost."""

from contextlib import suppress
from typing import Any

import msgspec

from daypack.errors import DaypackError, StorageFailed
from daypack.files.lock import ThreadLock
from daypack.history.draft import draft_event, draft_from
from daypack.turn.dialects import read_reply, read_usage
from daypack.turn.evidence import record as evidence
from daypack.turn.evidence.record import TurnRecord
from daypack.turn.ledger import USAGE
from daypack.turn.snapshots import Snapshots, parse_reply
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.tiers import PROTOCOL, stamp_of
from daypack.turn.turn import Turn
from daypack.types.history import Message


class Replies:
    """Takes in the replies to the turns of one session."""

    def __init__(self, inputs: TurnInputs, threads: ThreadLock) -> None:
        self._inputs = inputs
        self._history = inputs.history
        self._threads = threads
        self._snapshots = Snapshots(inputs)
        self._owed: list[dict[str, Any]] = []  # what replies cost and could not be recorded yet
        self.prepared: Turn | None = None  # the newest turn for a model that was prepared here

    def accept(self, reply: object, usage: object = None) -> Message:
        """Append a reply; the answer is the message as stored, its text without the section of the protocol."""
        whole = getattr(reply, "whole", None)  # of a reply that was taken apart already, in a stream
        read = read_reply(whole if isinstance(whole, str) else reply)
        spent = read_usage(usage) if usage is not None else read.usage
        event, record = self._answered()
        message = self._append(read.message, event, record)
        if spent:
            with self._threads:
                told = {"message": message.id, **_expected(event, record), **msgspec.to_builtins(spent)}
                self._owed.append({name: value for name, value in told.items() if value is not None})
                # The reply is stored and must not look as if it were not: what fails now is told with the next turn.
                with suppress(StorageFailed):
                    self._tell_usage()
        return message

    def _append(self, fields: dict[str, Any], event: str | None, record: TurnRecord | None) -> Message:
        folded = self._inputs.ledger.read()
        switched = folded.switches.get(PROTOCOL, False)
        stamp = stamp_of(record.items) if record else None
        asked = stamp is not None or (record is None and switched)
        # A model that was asked once may go on: its JSON is nobody's to read, but it counts only when asked for.
        reply = parse_reply(fields, stamp) if asked or switched or folded.stamped else None
        if reply and (asked or reply.cut):
            return self._snapshots.append(fields, reply, (event or "") if asked else None, stamp)
        return self._history.append((draft_from(fields),))[0]

    def settle(self) -> None:
        """Record what could not be recorded when the replies came."""
        self._tell_usage()
        self._snapshots.settle()

    def _tell_usage(self) -> None:
        while self._owed:
            self._history.append_event(draft_event(USAGE, self._owed[0]))
            del self._owed[0]

    def _answered(self) -> tuple[str | None, TurnRecord | None]:
        """Return the turn that a reply answers, and its event: the newest, which another process may have prepared."""
        newest = self._inputs.ledger.read().turns.get("model")
        if newest and (self.prepared is None or newest.event != self.prepared.event_id):
            with suppress(DaypackError):
                return newest.event, evidence.read_turn(self._history, newest.event)
        return (self.prepared.event_id, self.prepared.record) if self.prepared else (None, None)


def _expected(event: str | None, record: TurnRecord | None) -> dict[str, Any]:
    """What a reply answers, and what of it a cache could have had."""
    if record is None:
        return {}
    cached = record.stable.expected_cached_tokens
    return {"turn": event, "expected_tokens": record.used.tokens, "expected_cached_tokens": cached}
