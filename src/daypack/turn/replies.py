"""Replies: the message to append, the tokens the provider counted, and the snapshot it carries."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from daypack.errors import DaypackError, EmptyReply, StorageFailed
from daypack.files.lock import ThreadLock
from daypack.history.draft import draft_event, draft_from
from daypack.turn.dialects import read_reply, read_usage
from daypack.turn.dialects.parts import is_blank
from daypack.turn.evidence.record import TurnRecord
from daypack.turn.evidence.replay import read_turn
from daypack.turn.items import stamp_of
from daypack.turn.ledger import USAGE
from daypack.turn.snapshots import Snapshots, parse_reply
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.survey import PROTOCOL
from daypack.turn.turn import Turn
from daypack.types.history import Message, Part, Text, Thinking

# What providers call the two common reasons for a reply without words.
_CUT_OFF = ("length", "max_tokens", "max_output_tokens")
_WITHHELD = ("content_filter", "refusal")


class Replies:
    """Appends the replies to the turns of one session."""

    def __init__(self, inputs: TurnInputs, threads: ThreadLock) -> None:
        self._inputs = inputs
        self._history = inputs.history
        self._threads = threads
        self._snapshots = Snapshots(inputs)
        self.unrecorded: list[dict[str, Any]] = []  # the data of usage events that are not written yet
        self.prepared: Turn | None = None  # the newest turn for a model that this process prepared

    def accept(self, reply: object, usage: object = None) -> Message:
        """Append a reply and return the message as stored, without the protocol's section in its text."""
        whole = getattr(reply, "whole", None)  # a reply that a stream has parsed already
        read = read_reply(whole if isinstance(whole, str) else reply)
        require_content(read.message)
        spent = read_usage(usage) if usage is not None else read.usage
        event, record = self._answered()
        message = self._append(read.message, event, record)
        if spent:
            with self._threads:
                usage_data = {"message": message.id, **_expected(event, record), **msgspec.to_builtins(spent)}
                self.unrecorded.append({name: value for name, value in usage_data.items() if value is not None})
                # The reply is stored, so a failure from here on must not raise. The next turn records the usage.
                with suppress(StorageFailed):
                    self._record_usage()
        return message

    def _append(self, fields: dict[str, Any], event: str | None, record: TurnRecord | None) -> Message:
        folded = self._inputs.ledger.read()
        switched = folded.switches.get(PROTOCOL, False)
        stamp = stamp_of(record.items) if record else None
        asked = stamp is not None or (record is None and switched)
        # A model may send another snapshot unasked: it is cut from the text, but only counts if a turn asked for it.
        reply = parse_reply(fields, stamp) if asked or switched or folded.protocol_used else None
        if reply and (asked or reply.cut):
            return self._snapshots.append(fields, reply, (event or "") if asked else None, stamp)
        return self._history.append((draft_from(fields),))[0]

    def settle(self) -> None:
        """Write the events that could not be written when the replies arrived."""
        self._record_usage()
        self._snapshots.settle()

    def _record_usage(self) -> None:
        while self.unrecorded:
            self._history.append_event(draft_event(USAGE, self.unrecorded[0]))
            del self.unrecorded[0]

    def _answered(self) -> tuple[str | None, TurnRecord | None]:
        """Return event and record of the turn a reply answers: the newest, which another process may have prepared."""
        newest = self._inputs.ledger.read().turns.get("model")
        if newest and (self.prepared is None or newest.event != self.prepared.event_id):
            with suppress(DaypackError):
                return newest.event, read_turn(self._history, newest.event)
        return (self.prepared.event_id, self.prepared.record) if self.prepared else (None, None)


def require_content(fields: Mapping[str, Any]) -> None:
    """Refuse a reply with nothing in it: stored, it would hide that the call failed."""
    message = draft_from(fields)
    parts = (Text(message.content),) if isinstance(message.content, str) else message.content
    if message.tool_calls or not all(map(_is_empty, parts)):
        return
    stop = (message.meta or {}).get("stop")
    hint = "call the model again"
    if stop in _CUT_OFF:
        hint = "raise the limit of output tokens and call again"
    elif stop in _WITHHELD:
        hint = "change the request and call again, or append your own words for it"
    reason = f" (the provider stopped with {stop!r})" if isinstance(stop, str) else ""
    problem = f"is empty: no text and no tool calls{reason}; nothing was stored"
    raise EmptyReply(problem, operation="accept", place="reply", hint=hint)


def _is_empty(part: Part) -> bool:
    if isinstance(part, Text):
        return is_blank(part.text)
    # Thinking without text can have a seal that its provider takes back.
    sealed = isinstance(part, Thinking) and (part.signature or (part.meta or {}).get("encrypted_content"))
    return isinstance(part, Thinking) and is_blank(part.text) and not sealed


def _expected(event: str | None, record: TurnRecord | None) -> dict[str, Any]:
    """Return the turn, its tokens and the cache hit that was expected."""
    if record is None:
        return {}
    cached = record.stable.expected_cached_tokens
    return {"turn": event, "expected_tokens": record.used.tokens, "expected_cached_tokens": cached}
