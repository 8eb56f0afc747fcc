"""Describes messages as events: tool calls, their results and replies that broke off, as references and digests."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from daypack.derived.artifacts.settled_calls import SettledCall, settle_call
from daypack.derived.artifacts.tool_calls import read_call
from daypack.history.draft import MAX_KEY_CHARS
from daypack.history.logs.lines import CALLS, ROLE_SHIFT
from daypack.history.logs.reader import Reader
from daypack.history.message_events import CALLED, PROVIDER_ERROR, RETURNED, is_provider_error
from daypack.types.digest import digest_text
from daypack.types.history import Event, Message, ToolCall

MAX_CALLS = 1_000  # of one message that its event lists; it counts the others
_DURATIONS = {"duration_ms": 1, "durationMs": 1, "duration_seconds": 1000, "durationSeconds": 1000}
_SLOTS = 256  # of the log that are looked at in one go
_LATE = 4_096  # messages that can come between a call and its result


class _Made(NamedTuple):
    """A call, and the message that made it."""

    message: Message
    call: ToolCall


class Description:
    """Describes the messages of one session, given in their order; the calls of results may be earlier in the log."""

    def __init__(self) -> None:
        self._newest: list[_Made] = []  # the calls of the newest message that has some
        self._waiting: list[_Made] = []  # those of them without a result

    def __call__(self, messages: Sequence[Message], reader: Reader[Message]) -> list[Event]:
        """Return the events of messages."""
        events: list[Event] = []
        for message in messages:
            if message.tool_calls:
                self._newest = [_Made(message, call) for call in message.tool_calls]
                self._waiting = list(self._newest)
                events.append(Event(type=CALLED, data=_called(message)))
            elif message.role == "tool":
                events.append(Event(type=RETURNED, data=_returned(message, self._find(message, reader))))
            if is_provider_error(message.incomplete):
                data = {"message": message.id, "error": (message.incomplete or "")[:MAX_KEY_CHARS]}
                events.append(Event(type=PROVIDER_ERROR, data=data))
        return events

    def _find(self, result: Message, reader: Reader[Message]) -> _Made | None:
        """Return the call that a result answers; one without an id answers the first that waits."""
        if result.tool_call_id is None:
            return self._waiting.pop(0) if self._waiting else None
        for made in self._newest:
            if made.call.id == result.tool_call_id:
                if made in self._waiting:
                    self._waiting.remove(made)
                return made
        return _find_earlier(result, reader)


def _find_earlier(result: Message, reader: Reader[Message]) -> _Made | None:
    stop = reader.position(result.seq)
    end = max(0, stop - _LATE)
    while stop > end:
        start = max(end, stop - _SLOTS)
        slots = reader.slots(start, stop)
        for at in range(start + len(slots) - 1, start - 1, -1):
            flags = slots[at - start].flags
            if flags & CALLS or not flags >> ROLE_SHIFT & 7:
                for message in reader.read(at, at + 1):
                    for call in message.tool_calls:
                        if call.id == result.tool_call_id:
                            return _Made(message, call)
        stop = start
    return None


def _called(message: Message) -> dict[str, Any]:
    calls = [
        {"id": _cut(call.id), "name": _cut(call.name), "arguments": digest_text(call.arguments)}
        for call in message.tool_calls[:MAX_CALLS]
    ]
    more = len(message.tool_calls) - len(calls)
    return {"message": message.id, "calls": calls} | ({"more": more} if more else {})


def _returned(result: Message, made: _Made | None) -> dict[str, Any]:
    name = made.call.name if made else result.name or ""
    call_id = result.tool_call_id or (made.call.id if made else None)
    settled = _settle(name, made.call.arguments if made else "", result)
    data = {
        "message": result.id,
        "call": _cut(call_id) if call_id else None,
        "name": _cut(name) or None,
        "called_by": made.message.id if made else None,
        "outcome": _outcome(settled),
        "exit": settled.outcome.exit if settled else None,
        "error": settled.error_class if settled else None,
        "duration_ms": _duration_ms(result, made.message if made else None),
    }
    return {field: value for field, value in data.items() if value is not None}


def _settle(name: str, arguments: str, result: Message) -> SettledCall | None:
    try:
        return settle_call(name, read_call(name, arguments), result)
    except Exception:  # whatever a tool printed: the message is stored, and its append must not fail
        return None


def _outcome(settled: SettledCall | None) -> str:
    if settled is None:
        return "unknown"
    if settled.outcome.cancelled:
        return "cancelled"
    if settled.outcome.running:
        return "running"
    return "unknown" if settled.failed is None else "error" if settled.failed else "ok"


def _duration_ms(result: Message, call: Message | None) -> int | None:
    """Return how long a call took: as its result states it, else the time between the two messages."""
    meta: dict[str, Any] = result.meta or {}
    inner = meta.get("result")
    for stated in (meta, cast(dict[str, Any], inner) if isinstance(inner, dict) else {}):
        for name, factor in _DURATIONS.items():
            value = stated.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
                return round(value * factor)
    if call is None:
        return None
    try:
        passed = datetime.fromisoformat(result.ts) - datetime.fromisoformat(call.ts)
    except (ValueError, TypeError):  # a line written by hand
        return None
    milliseconds = round(passed.total_seconds() * 1000)
    return milliseconds if milliseconds >= 0 else None  # a clock that was set back


def _cut(name: str) -> str:
    return name[:MAX_KEY_CHARS]
