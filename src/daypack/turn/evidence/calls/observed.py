"""The calls of other programs, as rows: folded from both logs, line after line, as `newest_calls` lists them."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import DaypackError
from daypack.history.session import History
from daypack.turn.dialects.reply import Usage, read_usage
from daypack.turn.evidence.calls.request_split import CountedSplit, RequestSplits
from daypack.turn.evidence.calls.rows import NO_SPLIT, UNKNOWN, CallRow, Calls, FoldRow, Mark
from daypack.turn.evidence.observed.known import (
    SYNTHETIC,
    Call,
    Compacted,
    Known,
    compare_calls,
    is_imported,
    read_reply,
    read_request,
    read_row,
    with_usage,
)
from daypack.turn.evidence.words import cause_words
from daypack.turn.ledger import OBSERVED, USAGE
from daypack.types.history import Event, Message

_UNKNOWN = CountedSplit(whole=False)


class ObservedCall(Struct, omit_defaults=True):
    """A call with what its row depends on."""

    row: CallRow
    counted: CountedSplit | None = None  # None: what it contained is unknown
    compared: str = ""  # the call before it, and the compaction between the two, that it was compared with
    repeats: bool = False  # the call before it sent the same messages
    erased: bool = False


class ObservedState(Struct, omit_defaults=True):
    """The fold of both logs so far."""

    requests: list[ObservedCall] = []  # from events
    replies: list[ObservedCall] = []  # from messages, where no request is recorded
    folds: list[FoldRow] = []  # `before`: the position among the requests
    total: int | None = None  # of the newest row with token counts: those with the same are of one call
    errors: list[str] = []  # when the program noted that the provider refused a call


class _Place(NamedTuple):
    """A call in the order of time, and the compaction before it."""

    call: ObservedCall
    fold: FoldRow | None


class ObservedCalls:
    """Folds the lines of one session about calls of other programs."""

    def __init__(self, history: History, state: ObservedState) -> None:
        self._history = history
        self._state = state
        self._splits = RequestSplits(history)
        self._by_event = {call.row.event: call for call in (*state.requests, *state.replies)}
        self._known: dict[str, Known] = {}  # of the calls that were read since the last comparison
        self._answered: set[str] = set()  # replies to recorded requests, of the same events
        self._changed: set[str] = set()
        self._calls: Calls | None = None

    def take(self, event: Event) -> None:
        """Fold one event; those of other programs that only share the type are ignored."""
        if event.type == USAGE:
            self._usage(event.data)
        elif event.type == OBSERVED:
            if known := read_request(event, {}):
                self._add(self._state.requests, known)
        elif found := read_row(self._history, event):
            if isinstance(found, Compacted):
                self._fold(found)
            elif found.total != self._state.total:
                self._state.total = found.total
                self._add(self._state.requests, found.known)

    def take_message(self, message: Message) -> None:
        """Fold one message, after the events that were written before it was read."""
        if message.id not in self._answered and (known := read_reply(message)):
            self._add(self._state.replies, known)
        elif _is_error(message):
            self._state.errors.append(message.ts)
            self._calls = None

    def settle(self) -> None:
        """Compare what was read with the calls before it."""
        if self._calls is None or self._changed:
            self._count_requests()
            self._compare()
            self._mark()
            self._calls = self._ordered()
        self._known.clear()
        self._answered.clear()
        self._changed.clear()

    def calls(self) -> Calls:
        """Return the rows so far, by time."""
        if not self._by_event and not self._state.folds:
            return Calls()
        if not is_imported(self._history):
            return Calls()
        if self._calls is None:
            self._calls = self._ordered()
        return self._calls

    # Lines

    def _add(self, calls: list[ObservedCall], known: Known) -> None:
        call = ObservedCall(_row(known.call), erased=known.call.erased is not None)
        calls.append(call)
        self._by_event[known.call.event] = call
        self._known[known.call.event] = known
        self._changed.add(known.call.event)

    def _fold(self, found: Compacted) -> None:
        state = self._state
        state.total, self._calls = None, None
        state.folds.append(
            FoldRow(
                event=found.event,
                at=found.at,
                before=len(state.requests),
                trigger=found.trigger,
                before_tokens=found.before_tokens,
                after_tokens=found.after_tokens,
            )
        )

    def _usage(self, data: Mapping[str, Any]) -> None:
        message, turn = str(data.get("message")), str(data.get("turn"))
        self._answered.add(message)
        if listed := self._by_event.get(message):  # its usage came after it was read
            del self._by_event[message]
            self._state.replies.remove(listed)
            self._calls = None
        call = self._by_event.get(turn)
        if call:
            reported = read_usage(data) or Usage()
            call.row = replace(
                call.row,
                input=reported.input_tokens,
                cached=reported.cached_tokens,
                output=reported.output_tokens,
                reply=_seq(message),
            )
            if known := self._known.get(turn):
                self._known[turn] = with_usage(known, data)
            self._changed.add(turn)

    # What follows from several lines

    def _count_requests(self) -> None:
        """Count the requests that are new, and share out what the provider reported."""
        updated = False
        for name in sorted(self._changed, key=_seq_of):
            call, known = self._by_event.get(name), self._known_of(name)
            if call is None:
                continue
            if known and known.record and call.counted is None:
                if not updated:
                    self._splits.update()
                    updated = True
                with suppress(DaypackError):  # a blob cannot be read
                    call.counted = self._splits.count(name, known.record)
            tokens, split = (call.counted or _UNKNOWN).scaled(call.row.input)
            call.row = replace(call.row, tokens=tokens, split=split)

    def _compare(self) -> None:
        before = ""
        for call, fold in self._places():
            name = call.row.event
            compared = f"{before} {fold.event if fold else ''}"
            if compared != call.compared or name in self._changed or before in self._changed:
                self._compare_with(call, before, fold)
                call.compared = compared
            before = name

    def _compare_with(self, call: ObservedCall, before: str, fold: FoldRow | None) -> None:
        known, earlier = self._known_of(call.row.event), self._known_of(before) if before else None
        if known is None:
            return
        compaction = Compacted(event=fold.event, at=fold.at, trigger=fold.trigger) if fold else None
        found = compare_calls(self._history, earlier, known, compaction)
        lost = found.cache_break
        call.row = replace(
            call.row,
            cache_break=cause_words(lost) if lost else None,
            lost=lost.lost_tokens if lost else None,
        )
        call.repeats = bool(earlier and earlier.record and found.added == 0 and earlier.call.reply is None)

    def _mark(self) -> None:
        """Mark what was erased, and what a provider refused: the refused call if it is recorded, else the next."""
        calls = [place.call for place in self._places()]
        marks: dict[str, Mark] = {call.row.event: "retry" for call in calls if call.repeats}
        at = 0
        for moment in sorted(self._state.errors):
            while at < len(calls) and calls[at].row.at <= moment:
                at += 1
            refused = calls[at - 1].row if at else None
            if refused and refused.reply is None and refused.event.startswith("ev-") and refused.input is None:
                marks[refused.event] = "error"
            elif at < len(calls):
                marks.setdefault(calls[at].row.event, "retry")
        for call in calls:
            call.row = replace(call.row, mark="erased" if call.erased else marks.get(call.row.event))

    def _known_of(self, event_id: str) -> Known | None:
        """Return a call as its line has it, from memory or from the log."""
        known = self._known.get(event_id)
        if known is None:
            known = self._read(event_id)
            if known:
                self._known[event_id] = known
        return known

    def _read(self, event_id: str) -> Known | None:
        call = self._by_event.get(event_id)
        if call is None:
            return None
        if event_id.startswith("msg-"):
            return next(map(read_reply, self._history.messages.reader.pick([_seq_of(event_id)])), None)
        for event in self._history.events.reader.pick([_seq_of(event_id)]):
            if event.type == OBSERVED:
                row = call.row
                amounts = {"input_tokens": row.input, "cached_tokens": row.cached, "output_tokens": row.output}
                message = {} if row.reply is None else {"message": f"msg-{row.reply}"}
                return read_request(event, {name: n for name, n in amounts.items() if n is not None} | message)
            if (found := read_row(self._history, event)) and not isinstance(found, Compacted):
                return found.known
        return None

    # Order

    def _places(self) -> Iterator[_Place]:
        """Yield the calls by time, oldest first, each with the first compaction since the call before it."""
        fold: FoldRow | None = None
        for entry in self._entries():
            if isinstance(entry, FoldRow):
                fold = fold or entry
            else:
                yield _Place(entry, fold)
                fold = None

    def _entries(self) -> list[ObservedCall | FoldRow]:
        state = self._state
        events: list[ObservedCall | FoldRow] = []
        start = 0
        for fold in state.folds:
            events += state.requests[start : fold.before]
            events.append(fold)
            start = fold.before
        events += state.requests[start:]
        replies = list(state.replies)
        entries: list[ObservedCall | FoldRow] = []  # newest first
        while events and replies:
            entries.append(events.pop() if _at(events[-1]) > _at(replies[-1]) else replies.pop())
        entries += reversed(events or replies)
        return entries[::-1]

    def _ordered(self) -> Calls:
        rows: list[CallRow] = []
        folds: list[FoldRow] = []
        for entry in self._entries():
            if isinstance(entry, FoldRow):
                folds.append(replace(entry, before=len(rows)))
            else:
                rows.append(entry.row)
        return Calls(rows, folds)


def _row(call: Call) -> CallRow:
    tokens = call.input_tokens
    return CallRow(
        event=call.event,
        at=call.at,
        kind="observed",
        target="model",
        model=call.model,
        tokens=tokens,
        budget=None,
        split=(*NO_SPLIT[:UNKNOWN], tokens or 0),
        omitted=None,
        missing=None,
        epoch=None,
        cache_break=None,
        lost=None,
        expected=None,
        input=tokens,
        cached=call.cached_tokens,
        output=call.output_tokens,
        reply=_seq(call.reply or ""),
    )


def _is_error(message: Message) -> bool:
    """Return True for a reply that Claude Code itself wrote because the provider refused the call."""
    meta = message.meta or {}
    row = meta.get("row")
    stated = isinstance(row, dict) and row.get("isApiErrorMessage") is True  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return meta.get("model") == SYNTHETIC and stated


def _at(entry: ObservedCall | FoldRow) -> str:
    return entry.row.at if isinstance(entry, ObservedCall) else entry.at


def _seq(name: str) -> int | None:
    number = name.removeprefix("msg-")
    return int(number) if number != name and number.isascii() and number.isdecimal() and len(number) < 18 else None


def _seq_of(event_id: str) -> int:
    return int(event_id.partition("-")[2] or 0)
