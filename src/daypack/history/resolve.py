"""Resolves source references to messages and events."""

import os
from collections.abc import Callable
from contextlib import suppress

import msgspec

from daypack.errors import SourceMissing
from daypack.files import atomic
from daypack.history.session import History
from daypack.types.history import Event, Message
from daypack.types.records import SwapRecord
from daypack.types.source import EventRef, Messages, Source, SwapRef, Tail, ToolRef, UserLatest, parse_source

_BATCH = 256


def settle(history: History, source: Source) -> Source:
    """Return a reference whose meaning cannot change: `user:latest` and a tail become numbers."""
    if isinstance(source, UserLatest):
        message = _newest(history, lambda message: message.role == "user")
        if message is None:
            raise _missing(history, source, "there is no user message yet")
        return Messages(message.seq, message.seq)
    if isinstance(source, Tail):
        newest = history.messages.tail(source.count)
        if not newest:
            raise _missing(history, source, "there is no message yet")
        return Messages(newest[0].seq, newest[-1].seq)
    return source


def resolve(history: History, source: Source) -> tuple[Message, ...] | Event:
    """Return the messages or the event a reference names; raise SourceMissing if the session does not have it."""
    source = settle(history, source)
    if isinstance(source, Messages):
        return _messages(history, source)
    if isinstance(source, EventRef):
        return _event(history, source)
    if isinstance(source, ToolRef):
        message = _newest(history, lambda message: message.role == "tool" and message.tool_call_id == source.call_id)
        if message is None:
            raise _missing(history, source, "no message has the result of that call")
        return (message,)
    if isinstance(source, SwapRef):
        return _messages(history, _swapped(history, source))
    raise _missing(history, source, "this kind of source cannot be resolved")


def text_of(found: tuple[Message, ...] | Event) -> str:
    """Return the text of messages, separated by blank lines, or of an event."""
    if isinstance(found, Event):
        return str(found.data.get("text", ""))
    return "\n\n".join(message.text for message in found)


def _swapped(history: History, source: SwapRef) -> Messages:
    """Return the messages a swapped chunk refers to, from the derived index of swapped chunks."""
    data = atomic.read(os.path.join(history.layout.derived("swap"), "index.jsonl")) or b""
    for line in data.split(b"\n"):
        with suppress(msgspec.DecodeError, UnicodeError):
            record = msgspec.json.decode(line, type=SwapRecord)
            found = parse_source(record.range or (record.event or "").removeprefix("msg-"))
            if record.id == source.id and isinstance(found, Messages):
                return found
    raise _missing(history, source, "nothing is swapped out under this id")


def _messages(history: History, source: Messages) -> tuple[Message, ...]:
    found = tuple(history.messages.records(source.start, source.stop))
    if not found:
        raise _missing(history, source, f"the session has {_counted(history.messages.reader.count(), 'message')}")
    return found


def _event(history: History, source: EventRef) -> Event:
    number = source.id.removeprefix("ev-")
    if number.isdecimal():
        for event in history.events.records(int(number), int(number)):
            return event
    raise _missing(history, source, f"the session has {_counted(history.events.reader.count(), 'event')}")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"


def _newest(history: History, wanted: Callable[[Message], bool]) -> Message | None:
    reader = history.messages.reader
    stop = reader.count()
    while stop > 0:
        start = max(0, stop - _BATCH)
        for message in reversed(reader.read(start, stop)):
            if wanted(message):
                return message
        stop = start
    return None


def _missing(history: History, source: Source, problem: str) -> SourceMissing:
    from shlex import quote  # noqa: PLC0415 — only for errors

    events = " --events" if isinstance(source, EventRef) else ""
    hint = f"see `daypack log {quote(history.layout.name)}{events}`"
    return SourceMissing(f"{source}: {problem}", operation="resolve", place=history.layout.folder, hint=hint)
