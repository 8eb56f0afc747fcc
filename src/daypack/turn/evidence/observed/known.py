"""The calls of other programs as single lines of a log have them, and what a call is compared with: the one before it.

A recorded request is an event. Of older programs only the replies are there: a message with the usage that the provider
reported (Claude Code), or a row with token counts (Codex). The contents of such calls are unknown.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.history.session import History
from daypack.turn.dialects.reply import Usage, read_usage
from daypack.turn.evidence.observed.cache import CacheBreak, Change, Side, find_break, ttl_of, ttl_of_usage
from daypack.turn.evidence.observed.record import ObservedRecord, count_common, read_record, sent_messages
from daypack.turn.evidence.observed.shapes import compare_shapes, read_shape
from daypack.types.history import Event, Message

ROW = "import.row"
SYNTHETIC = "<synthetic>"  # the model of messages that Claude Code writes itself, for instance about errors
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


class Known(Struct):
    """A call with what the cache depends on."""

    call: Call
    side: Side
    record: ObservedRecord | None = None
    names_request: bool = False  # a reply that names the request it answers: that is recorded, if nothing was lost


class Counted(NamedTuple):
    """A row with token counts: `total` tells rows of one call from those of the next."""

    total: int
    known: Known


def read_request(event: Event, usage: Mapping[str, Any]) -> Known | None:
    """Return the call of a recorded request, with the usage of its reply; None for an event of another program."""
    try:
        record = read_record(event)
    except msgspec.ValidationError:
        return None
    call = Call(
        event=event.id,
        at=event.ts,
        program=record.program,
        model=record.model or None,
        content="recorded",
        messages=record.count,
        purpose=record.purpose or None,
        agent=record.agent or None,
        erased=record.erased or None,
    )
    return with_usage(_known(call, record, ttl_of(record.marks)), usage)


def with_usage(known: Known, usage: Mapping[str, Any]) -> Known:
    """Return a call with the usage of its reply, which is an event of its own."""
    reported = read_usage(usage) or Usage()
    reply = usage.get("message")
    call = replace(known.call, reply=reply if isinstance(reply, str) else None, **msgspec.structs.asdict(reported))
    side = replace(known.side, input_tokens=reported.input_tokens, cached_tokens=reported.cached_tokens)
    return replace(known, call=call, side=side)


def read_row(history: History, event: Event) -> Counted | Compacted | None:
    """Return what an imported row has: token counts of a call of Codex, or a compaction; None for any other row."""
    stated = event.data.get("row") if event.type == ROW else None
    if not isinstance(stated, dict):
        return None
    row = cast(dict[str, Any], stated)
    payload: dict[str, Any] = row["payload"] if isinstance(row.get("payload"), dict) else {}
    if row.get("type") == "event_msg" and payload.get("type") == "token_count":
        return _count(history, event, payload)
    if row.get("type") == "compacted" or row.get("subtype") == "compact_boundary":
        return _compaction(event, row)
    return None


def _count(history: History, event: Event, payload: dict[str, Any]) -> Counted | None:
    """Return a call by its token counts; the row is written again with each limit that changes."""
    info: dict[str, Any] = payload["info"] if isinstance(payload.get("info"), dict) else {}
    last, total = info.get("last_token_usage"), info.get("total_token_usage")
    if not isinstance(last, dict) or not isinstance(total, dict):
        return None
    tokens, usage = cast(dict[str, Any], total).get("total_tokens"), cast(dict[str, Any], last)
    if not isinstance(tokens, int) or not usage.get("input_tokens"):  # after a compaction nothing was sent
        return None
    reported = read_usage(
        {
            "input_tokens": usage.get("input_tokens"),
            "output_tokens": usage.get("output_tokens"),
            "cached_tokens": usage.get("cached_input_tokens"),
            "cache_written_tokens": usage.get("cache_write_input_tokens"),
        }
    )
    call = Call(
        event=event.id,
        at=event.ts,
        program=str(event.data.get("format") or ""),
        model=history.config.model,  # rows with token counts name none
        content="unknown",
        **msgspec.structs.asdict(reported or Usage()),
    )
    return Counted(tokens, _known(call, None, _UNSTATED_TTL))


def read_reply(message: Message) -> Known | None:
    """Return the call that an imported reply answers, by the usage that it states; None for any other message."""
    meta = (message.meta or {}) if message.role == "assistant" else {}
    usage, program = meta.get("usage"), meta.get("format")
    if not isinstance(usage, dict) or not isinstance(program, str):
        return None
    stated = cast(dict[str, Any], usage)
    reported = read_usage(stated)
    model = meta.get("model")
    if reported is None or model == SYNTHETIC:
        return None
    call = Call(
        event=message.id,
        at=message.ts,
        program=program,
        model=model if isinstance(model, str) else None,
        content="unknown",
        reply=message.id,
        **msgspec.structs.asdict(reported),
    )
    row = meta.get("row")
    named = isinstance(row, dict) and "requestRef" in row
    return replace(_known(call, None, ttl_of_usage(stated)), names_request=named)


def is_imported(history: History) -> bool:
    """Return True if the first or the last messages came from another program: else nothing was observed."""
    reader = history.messages.reader
    count = reader.count()
    ends = [*reader.read(0, 1), *reader.read(count - 1, count)]
    return any((message.meta or {}).get("format") for message in ends)


# A call and the one before it


def compare_calls(history: History, before: Known | None, after: Known, compaction: Compacted | None) -> Call:
    """Return a call with what changed since the one before it, and the compaction between the two."""
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


def _kept(history: History, before: Known, after: Known, record: ObservedRecord) -> int | None:
    """Return how many messages two requests begin with in common; None if it is not known."""
    if record.follows == before.call.event:
        return record.keep
    if before.record is None:
        return None
    old = sent_messages(history, before.record, before.call.event)
    new = sent_messages(history, record, after.call.event)
    return count_common(old, new)


def _known(call: Call, record: ObservedRecord | None, ttl_seconds: int) -> Known:
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
    return Known(call, side, record)


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
