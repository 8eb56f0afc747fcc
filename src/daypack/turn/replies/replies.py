"""Replies: the message to append, the tokens the provider counted, and the snapshot it carries."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from daypack.errors import DaypackError, EmptyReply, StorageFailed
from daypack.forks import ThreadLock
from daypack.history.draft import RESERVED, draft_event, draft_from
from daypack.history.message_events import PROVIDER_ERROR, is_provider_error
from daypack.turn.dialects import Usage, dialect, read_reply, read_usage
from daypack.turn.dialects.parts import is_blank
from daypack.turn.dialects.reply_fields import failure_of, is_stream
from daypack.turn.evidence.record import TurnRecord
from daypack.turn.evidence.replay import read_turn
from daypack.turn.items import stamp_of
from daypack.turn.ledger import USAGE
from daypack.turn.replies.snapshots import CUT_OFF, Snapshots, Stamp, parse_reply
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.survey import PROTOCOL
from daypack.turn.turn import Turn
from daypack.types.history import INCOMPLETE, Message, Part, Text, Thinking

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from daypack.protocol import Splitter
    from daypack.turn.dialects.streams import Gathered
    from daypack.turn.replies.reception import Reception
    from daypack.turn.replies.stream import ReplyStream

_WITHHELD = ("content_filter", "refusal")  # the other common reason for a reply without words
_Answered = tuple[str | None, TurnRecord | None]  # event and record of the turn that a reply answers


class Replies:
    """Appends the replies to the turns of one session."""

    def __init__(self, inputs: TurnInputs, threads: ThreadLock, receptions: "list[Reception]") -> None:
        self._inputs = inputs
        self._history = inputs.history
        self._threads = threads
        self._snapshots = Snapshots(inputs)
        self.unrecorded: list[dict[str, Any]] = []  # the data of usage events that are not written yet
        self._receptions = receptions  # streams that have not ended
        self.prepared: Turn | None = None  # the newest turn for a model that this process prepared

    def accept(self, reply: object, usage: object = None, owner: object = None) -> "Message | Awaitable[Message]":
        """Append a reply and return the message as stored, without the protocol's section in its text."""
        if is_stream(reply):
            stream = self.stream(reply, usage, owner)
            return stream.adrain() if stream.is_async else stream.drain()
        whole = getattr(reply, "whole", None)  # a reply that a stream has parsed already
        try:
            read = read_reply(whole if isinstance(whole, str) else reply)
            require_content(read.message)
        except DaypackError as error:
            self._note_failure(failure_of(reply, error), self._answered())
            raise
        return self._store(read.message, read_usage(usage) if usage is not None else read.usage, self._answered())

    def stream(self, source: object, usage: object = None, owner: object = None) -> "ReplyStream":
        """Return the stream of a reply to the newest turn; its end stores the reply. It keeps `owner` alive."""
        from daypack.turn.replies.reception import Reception  # noqa: PLC0415 — only for replies that arrive in pieces
        from daypack.turn.replies.source import Source  # noqa: PLC0415
        from daypack.turn.replies.stream import ReplyStream, check_source  # noqa: PLC0415

        if isinstance(source, ReplyStream):
            return source
        check_source(source)
        answered = self._answered()
        given = read_usage(usage)

        attempts: list[int] = []  # the newest message before each

        def store(gathered: "Gathered", incomplete: str | None, words: str) -> tuple[Message, Exception | None]:
            fields, spent, problem = _readable(gathered, incomplete, words)
            attempts.append(self._history.messages.reader.newest().seq)
            # An interrupted attempt may have stored it.
            stored = self._find(fields, attempts[0]) if len(attempts) > 1 else None
            return self._store(fields, given or spent, answered, stored), problem

        opened = Source(source)
        reception = Reception(opened, store, self._splitter(answered[1]))
        reception.note_failure = lambda reason: self._note_failure({"error": reason}, answered)
        self._forget_ended()
        self._receptions.append(reception)
        return ReplyStream(opened, reception, owner)

    def _find(self, fields: dict[str, Any], after: int) -> Message | None:
        """Return the message of a reply if it is among those after a number."""
        draft = draft_from(fields)
        for message in self._history.messages.records(after + 1):
            about = dict(message.meta or {})
            cut = about.pop(RESERVED, None) is not None  # a snapshot, which the text had
            same = message.role == draft.role and message.tool_calls == draft.tool_calls
            if same and about == (draft.meta or {}) and (cut or message.content == draft.content):
                return message
        return None

    def store_abandoned(self) -> None:
        """Store what came of the streams that are no longer read."""
        for reception in list(self._receptions):
            if reception.abandoned:
                reception.abandon()
        self._forget_ended()

    def _note_failure(self, failure: Mapping[str, Any], answered: "_Answered") -> None:
        """Record a call that failed and left no message; a message that broke off has its event from its append."""
        if is_provider_error(failure.get("error")):
            turn = {"turn": answered[0]} if answered[0] else {}
            with suppress(StorageFailed):  # the caller learns of the failure itself
                self._history.append_event(draft_event(PROVIDER_ERROR, {**failure, **turn}))

    def _forget_ended(self) -> None:
        for reception in list(self._receptions):
            if reception.ended:
                with suppress(ValueError):  # another thread did
                    self._receptions.remove(reception)

    def _store(
        self, fields: dict[str, Any], spent: Usage | None, answered: "_Answered", stored: Message | None = None
    ) -> Message:
        event, record = answered
        message = stored or self._append(fields, event, record)
        self._note_usage(message, spent, answered)
        return message

    def record_usage(self, message: Message, usage: object) -> None:
        """Record what the provider counted for a reply that is stored already."""
        self._note_usage(message, read_usage(usage), self._answered())

    def _note_usage(self, message: Message, spent: Usage | None, answered: "_Answered") -> None:
        event, record = answered
        if spent:
            with self._threads:
                usage_data = {"message": message.id, **_expected(event, record), **msgspec.to_builtins(spent)}
                self.unrecorded.append({name: value for name, value in usage_data.items() if value is not None})
                # The reply is stored, so a failure from here on must not raise. The next turn records the usage.
                with suppress(StorageFailed):
                    self._record_usage()

    def _append(self, fields: dict[str, Any], event: str | None, record: TurnRecord | None) -> Message:
        asked, possible, stamp = self._asked(record)
        reply = parse_reply(fields, stamp) if possible else None
        if reply and (asked or reply.cut):
            return self._snapshots.append(fields, reply, (event or "") if asked else None, stamp)
        return self._history.append((draft_from(fields),))[0]

    def _asked(self, record: TurnRecord | None) -> tuple[bool, bool, Stamp]:
        """Return whether a turn asked for a snapshot, whether one may come, and the stamp it should carry."""
        folded = self._inputs.ledger.read()
        switched = folded.switches.get(PROTOCOL, False)
        stamp = stamp_of(record.items) if record else None
        asked = stamp is not None or (record is None and switched)
        # A model may send another snapshot unasked: it is cut from the text, but only counts if a turn asked for it.
        return asked, asked or switched or folded.protocol_used, stamp

    def _splitter(self, record: TurnRecord | None) -> "Splitter | None":
        """Return what holds back the snapshot in a stream; None if none can come."""
        _, possible, stamp = self._asked(record)
        if not possible:
            return None
        from daypack.protocol import Splitter  # noqa: PLC0415 — only for sessions with the protocol

        return Splitter(expected=stamp)

    def settle(self) -> None:
        """Write the events that could not be written when the replies arrived."""
        self._record_usage()
        self._snapshots.settle()

    def _record_usage(self) -> None:
        while self.unrecorded:
            self._history.append_event(draft_event(USAGE, self.unrecorded[0]))
            del self.unrecorded[0]

    def _answered(self) -> "_Answered":
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
    if stop in CUT_OFF:
        hint = "raise the limit of output tokens and call again"
    elif stop in _WITHHELD:
        hint = "change the request and call again, or append your own words for it"
    reason = f" (the provider stopped with {stop!r})" if isinstance(stop, str) else ""
    problem = f"the reply is empty: no text and no tool calls{reason}; nothing was stored"
    raise EmptyReply(problem, operation="accept", place="reply", hint=hint)


def _is_empty(part: Part) -> bool:
    if isinstance(part, Text):
        return is_blank(part.text)
    # Thinking without text can have a seal that its provider takes back.
    sealed = isinstance(part, Thinking) and (part.signature or (part.meta or {}).get("encrypted_content"))
    return isinstance(part, Thinking) and is_blank(part.text) and not sealed


def _readable(
    gathered: "Gathered", incomplete: str | None, words: str
) -> tuple[dict[str, Any], Usage | None, Exception | None]:
    """Return the message of a reply that came in pieces, its usage, and the error if not all of it can be read."""
    try:
        read = dialect(gathered.dialect).read(gathered.value)
        if incomplete is None:
            require_content(read.message)
        fields = _marked(read.message, gathered.unfinished, incomplete)
        msgspec.json.encode(draft_from(fields))
    except EmptyReply:
        raise
    except Exception as error:  # whatever a server sent: the stream cannot be read a second time
        whole = json.dumps(gathered.value, default=repr)
        kept = {"role": "assistant", "content": words, "meta": {"dialect": gathered.dialect, "unreadable": whole}}
        return _marked(kept, (), incomplete or type(error).__name__), None, error
    return fields, read.usage, None


def _marked(fields: dict[str, Any], unfinished: "tuple[dict[str, Any], ...]", incomplete: str | None) -> dict[str, Any]:
    """Return a message that says why it is incomplete, with the calls that were cut off."""
    if incomplete is None:
        return fields
    cut = {"unfinished_calls": list(unfinished)} if unfinished else {}
    return {**fields, "meta": {**fields.get("meta", {}), INCOMPLETE: incomplete, **cut}}


def _expected(event: str | None, record: TurnRecord | None) -> dict[str, Any]:
    """Return the turn, its tokens and the cache hit that was expected."""
    if record is None:
        return {}
    cached = record.stable.expected_cached_tokens
    return {"turn": event, "expected_tokens": record.used.tokens, "expected_cached_tokens": cached}
