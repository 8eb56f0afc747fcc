"""The calls that other programs made, newest first: recorded requests, replies with their usage, and compactions.

A recorded request is an event. Of older programs only the replies are there: a message with the usage that the provider
reported (Claude Code), or a row with token counts (Codex). The contents of such calls are unknown. A line of a list
comes from an event or a message alone: no request is rebuilt.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.history.session import History
from daypack.turn.dialects.reply import Usage, read_usage
from daypack.turn.evidence.observed.cache import CacheBreak, Change, Side, find_break, ttl_of, ttl_of_usage
from daypack.turn.evidence.observed.record import ObservedRecord, count_common, read_record, sent_messages
from daypack.turn.evidence.observed.shapes import compare_shapes, read_shape
from daypack.turn.ledger import OBSERVED, USAGE
from daypack.types.history import Event, Message

_BATCH = 256  # events or messages that are read in one go
_ROW = "import.row"
_SYNTHETIC = "<synthetic>"  # the model of messages that Claude Code writes itself, for instance about errors
_UNSTATED_TTL = 3600  # seconds; the longest that is usual, where a provider states none
Content = Literal["recorded", "unknown"]


class Call(Struct, frozen=True, kw_only=True):
    """A call of another program in a few facts."""

    kind: Literal["observed"] = "observed"
    event: str  # the event, or the reply where only that is known: what commands name it by
    at: str
    program: str
    model: str | None
    content: Content  # whether it is recorded what the call contained
    messages: int | None = None  # in the request
    kept: int | None = None  # messages that the call before begins with too
    added: int | None = (
        None  # messages that are new in it; where only replies are known, those of history since the last
    )
    input_tokens: int | None = None  # as the provider reported them
    cached_tokens: int | None = None
    cache_written_tokens: int | None = None
    output_tokens: int | None = None
    reply: str | None = None
    purpose: str | None = None
    agent: str | None = None
    cache_break: CacheBreak | None = None
    first: bool = False  # no earlier call is known
    previous: str | None = None  # the call before, which the cache break is about
    erased: str | None = None


class Compacted(Struct, frozen=True, kw_only=True):
    """The program replaced earlier messages with a summary."""

    kind: Literal["compaction"] = "compaction"
    event: str
    at: str
    trigger: str = ""
    before_tokens: int | None = None
    after_tokens: int | None = None


class _Known(Struct):
    """A call with what the cache depends on."""

    call: Call
    side: Side
    record: ObservedRecord | None = None
    names_request: bool = False  # a reply that names the request it answers: that is recorded, if nothing was lost


_Entry = _Known | Compacted


def find_call(history: History, name: str | None = None) -> Call | None:
    """Return a call by its event or its reply; without a name, the newest."""
    calls = (entry for entry in newest_calls(history) if isinstance(entry, Call))
    return next((call for call in calls if name in (None, call.event, call.reply)), None)


def newest_calls(history: History) -> Iterator[Call | Compacted]:
    """Yield the calls of other programs and their compactions, the newest first."""
    if not _is_imported(history):
        return
    waiting: list[_Known | Compacted] = []  # since the newest call whose predecessor is not known yet
    for entry in _merged(_Events(history), _replies(history)):
        if isinstance(entry, _Known):
            yield from _settled(history, waiting, entry)
            waiting = [entry]
        elif waiting:
            waiting.append(entry)
        else:
            yield entry
    yield from _settled(history, waiting, None)


def _settled(history: History, waiting: list[_Entry], before: _Known | None) -> Iterator[Call | Compacted]:
    """Yield a call whose predecessor is known, and the compactions between the two."""
    if not waiting:
        return
    known, *compactions = waiting
    assert isinstance(known, _Known)
    between = [entry for entry in compactions if isinstance(entry, Compacted)]
    yield _compared(history, before, known, between[-1] if between else None)
    yield from between


def _compared(history: History, before: _Known | None, after: _Known, compaction: Compacted | None) -> Call:
    if before is None:
        return replace(after.call, first=True)
    if before.call.agent != after.call.agent:
        return after.call
    kept, added = None, _replies_between(before.call, after.call)
    change = Change(compaction=compaction.trigger if compaction else None)
    if after.record and before.record:
        kept = _kept(history, before, after, after.record)
        added = None if kept is None else after.record.count - kept
        change = replace(change, kept=kept)
        if before.record.shape != after.record.shape:
            old, new = (read_shape(history, record.shape) for record in (before.record, after.record))
            shapes = compare_shapes(old, new)
            change = replace(change, tools=shapes.tools, system=shapes.system)
    found = find_break(before.side, after.side, change)
    return replace(after.call, kept=kept, added=added, cache_break=found, previous=before.call.event)


def _replies_between(before: Call, after: Call) -> int | None:
    numbers = [(call.reply or "").removeprefix("msg-") for call in (before, after)]
    if not all(number.isdecimal() for number in numbers):
        return None
    return max(0, int(numbers[1]) - int(numbers[0]))


def _kept(history: History, before: _Known, after: _Known, record: ObservedRecord) -> int | None:
    """Return how many messages two requests begin with in common; None if it is not known."""
    if record.follows == before.call.event:
        return record.keep
    if before.record is None:
        return None
    old = sent_messages(history, before.record, before.call.event)
    new = sent_messages(history, record, after.call.event)
    return count_common(old, new)


# The two logs


def _merged(events: "_Events", replies: Iterator[_Known]) -> Iterator[_Entry]:
    """Yield what the events and the messages have, the newest first; a reply whose call is recorded is left out."""
    entries = events.read()
    waiting = deque(islice(entries, 1))
    reply = next(replies, None)
    while waiting or reply:
        if waiting and (reply is None or _at(waiting[0]) > reply.call.at):
            yield waiting.popleft()
            waiting.extend(islice(entries, 0 if waiting else 1))
            continue
        assert reply is not None
        # Its usage comes after its call in the log, and before all older ones unless a clock was set back.
        while reply.names_request and reply.call.event not in events.answered and (entry := next(entries, None)):
            waiting.append(entry)
        if reply.call.event not in events.answered:
            yield reply
        reply = next(replies, None)


def _at(entry: _Entry) -> str:
    return entry.call.at if isinstance(entry, _Known) else entry.at


class _Events:
    """The calls and compactions in the events of a session."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.answered: set[str] = set()  # replies whose usage was read: their calls are recorded
        self._usages: dict[str, Mapping[str, Any]] = {}  # by turn
        self._counted: tuple[int, _Known] | None = None  # of Codex: the total of the oldest row that was read

    def read(self) -> Iterator[_Entry]:
        """Yield them, the newest first; events of other programs that only share the type are ignored."""
        reader = self._history.events.reader
        for stop in range(reader.count(), 0, -_BATCH):
            for event in reversed(reader.read(max(0, stop - _BATCH), stop)):
                yield from self._entries(event)
        yield from self._settle_count()

    def _entries(self, event: Event) -> Iterator[_Entry]:
        if event.type == USAGE:
            turn = str(event.data.get("turn"))
            self._usages.setdefault(turn, event.data)  # of several replies, the last
            self.answered.add(str(event.data.get("message")))
        elif event.type == OBSERVED:
            try:
                yield self._observed(event, read_record(event))
            except msgspec.ValidationError:
                return
        elif event.type == _ROW and isinstance(row := event.data.get("row"), dict):
            yield from self._row(event, cast(dict[str, Any], row))

    def _observed(self, event: Event, record: ObservedRecord) -> _Known:
        usage = self._usages.pop(event.id, {})
        reported = read_usage(usage) or Usage()
        reply = usage.get("message")
        call = Call(
            event=event.id,
            at=event.ts,
            program=record.program,
            model=record.model or None,
            content="recorded",
            messages=record.count,
            reply=reply if isinstance(reply, str) else None,
            purpose=record.purpose or None,
            agent=record.agent or None,
            erased=record.erased or None,
            **_amounts(reported),
        )
        return _known(call, record, ttl_of(record.marks))

    def _row(self, event: Event, row: dict[str, Any]) -> Iterator[_Entry]:
        payload: dict[str, Any] = row["payload"] if isinstance(row.get("payload"), dict) else {}
        if row.get("type") == "event_msg" and payload.get("type") == "token_count":
            yield from self._count(event, payload)
        elif row.get("type") == "compacted" or row.get("subtype") == "compact_boundary":
            yield from self._settle_count()
            yield _compaction(event, row)

    def _count(self, event: Event, payload: dict[str, Any]) -> Iterator[_Known]:
        """Read a row with token counts of Codex; it is written again with each limit that changes."""
        info: dict[str, Any] = payload["info"] if isinstance(payload.get("info"), dict) else {}
        last, total = info.get("last_token_usage"), info.get("total_token_usage")
        if not isinstance(last, dict) or not isinstance(total, dict):
            return
        tokens, usage = cast(dict[str, Any], total).get("total_tokens"), cast(dict[str, Any], last)
        if not isinstance(tokens, int) or not usage.get("input_tokens"):  # after a compaction nothing was sent
            return
        if self._counted and self._counted[0] != tokens:
            yield from self._settle_count()
        reported = read_usage(
            {
                "input_tokens": usage.get("input_tokens"),
                "output_tokens": usage.get("output_tokens"),
                "cached_tokens": usage.get("cached_input_tokens"),
                "cache_written_tokens": usage.get("cache_write_input_tokens"),
            }
        )
        program = str(event.data.get("format") or "")
        call = Call(
            event=event.id,
            at=event.ts,
            program=program,
            model=self._history.config.model,  # rows with token counts name none
            content="unknown",
            **_amounts(reported or Usage()),
        )
        self._counted = tokens, _known(call, None, _UNSTATED_TTL)

    def _settle_count(self) -> Iterator[_Known]:
        if self._counted:
            yield self._counted[1]
        self._counted = None


def _is_imported(history: History) -> bool:
    """Return True if the first or the last messages came from another program: else nothing was observed."""
    reader = history.messages.reader
    count = reader.count()
    ends = [*reader.read(0, 1), *reader.read(count - 1, count)]
    return any((message.meta or {}).get("format") for message in ends)


def _replies(history: History) -> Iterator[_Known]:
    """Yield the imported replies that have a usage, the newest first."""
    reader = history.messages.reader
    for stop in range(reader.count(), 0, -_BATCH):
        for message in reversed(reader.read(max(0, stop - _BATCH), stop)):
            if message.role == "assistant" and (known := _reply(message)):
                yield known


def _reply(message: Message) -> _Known | None:
    meta = message.meta or {}
    usage, program = meta.get("usage"), meta.get("format")
    if not isinstance(usage, dict) or not isinstance(program, str):
        return None
    stated = cast(dict[str, Any], usage)
    reported = read_usage(stated)
    model = meta.get("model")
    if reported is None or model == _SYNTHETIC:
        return None
    call = Call(
        event=message.id,
        at=message.ts,
        program=program,
        model=model if isinstance(model, str) else None,
        content="unknown",
        reply=message.id,
        **_amounts(reported),
    )
    row = meta.get("row")
    named = isinstance(row, dict) and "requestRef" in row
    return replace(_known(call, None, ttl_of_usage(stated)), names_request=named)


def _known(call: Call, record: ObservedRecord | None, ttl_seconds: int) -> _Known:
    side = Side(
        at=call.at,
        model=call.model,
        input_tokens=call.input_tokens,
        cached_tokens=call.cached_tokens,
        count=call.messages,
        shape=record.shape if record else "",
        params=record.params if record else {},
        ttl_seconds=ttl_seconds,
    )
    return _Known(call, side, record)


def _amounts(usage: Usage) -> dict[str, Any]:
    return msgspec.structs.asdict(usage)


def _compaction(event: Event, row: Mapping[str, Any]) -> Compacted:
    stated = row.get("compactMetadata")
    facts = cast(dict[str, Any], stated) if isinstance(stated, dict) else dict[str, Any]()
    trigger = facts.get("trigger")
    return Compacted(
        event=event.id,
        at=event.ts,
        trigger=trigger if isinstance(trigger, str) else "",
        before_tokens=_number(facts.get("preTokens")),
        after_tokens=_number(facts.get("postTokens")),
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
