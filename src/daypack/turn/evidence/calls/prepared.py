"""The turns that daypack prepared, as rows: folded from their events, one after the other."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct, convert
from msgspec.structs import replace

from daypack.derived.records import COMPACTED, UNDONE
from daypack.errors import DaypackError
from daypack.files.offsets import UNCOUNTED
from daypack.history.logs.lines import BROKEN, ROLE_SHIFT
from daypack.history.message_events import PROVIDER_ERROR
from daypack.history.session import History
from daypack.turn.evidence.calls.excerpt_tokens import ExcerptTokens
from daypack.turn.evidence.calls.parts import Part, part_of_item
from daypack.turn.evidence.calls.rows import CallRow, Calls, FoldRow, split_of
from daypack.turn.evidence.record import AdditionRef, Opening, expand
from daypack.turn.evidence.turn_list import ListedTurn, read_listed
from daypack.turn.evidence.words import EPOCHS
from daypack.turn.items import Item
from daypack.turn.ledger import NOT_REDACTED, OVERFLOW, TURN, USAGE
from daypack.types.history import Event
from daypack.types.kinds import ROLES

# A provider that reads less from its cache than expected has lost it. Providers count other tokens than we do, round to
# blocks of up to 1,024 tokens and cache nothing shorter, so a small difference says nothing.
_MISSED_SHARE = 0.2
_MISSED_TOKENS = 1024
_ASSISTANT = ROLES.index("assistant") + 1
_LOOK_AHEAD = 256  # messages after a turn among which its reply is looked for
_UNREADABLE = (msgspec.MsgspecError, KeyError, TypeError, AttributeError, ValueError)


class LastTurn(Struct, omit_defaults=True):
    """The newest turn of a target: what the next one of its epoch has too."""

    at: int  # position of its row
    stable_tokens: int = 0
    newest: int = 0  # message
    tools: str = ""
    epoch: str = ""
    parts: dict[Part, int] = {}  # of the prefix
    recalled: int = 0


class PreparedState(Struct, omit_defaults=True):
    """The fold of the events so far."""

    rows: list[CallRow] = []
    folds: list[FoldRow] = []
    last: dict[str, LastTurn] = {}


class _Stable(Struct):
    tokens: int = 0
    prefix_tokens: int = 0
    cache_lost: str = ""


class _Usage(Struct):
    turn: str = ""
    message: str = ""
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None


class PreparedCalls:
    """Folds the events of one session about turns of daypack."""

    def __init__(self, history: History, state: PreparedState) -> None:
        self._history = history
        self._state = state
        self._excerpts = ExcerptTokens(history)
        self._places = {row.event: at for at, row in enumerate(state.rows)}

    def take(self, event: Event) -> None:
        """Fold one event; those of other programs that only share the type are ignored."""
        if event.type == TURN:
            self._turn(event)
        elif event.type == USAGE:
            self._usage(event.data)
        elif event.type in (PROVIDER_ERROR, OVERFLOW):
            self._error(event.data)
        elif event.type == COMPACTED:
            self._compacted(event)
        elif event.type == UNDONE:
            name = event.data.get("compaction")
            self._state.folds = [
                replace(fold, undone=True) if fold.event == name else fold for fold in self._state.folds
            ]

    def calls(self) -> Calls:
        """Return the rows so far; the reply to the newest turn may have no event yet."""
        state = self._state
        rows, last = list(state.rows), state.last.get("model")
        if last:
            rows[last.at] = self._answered(rows[last.at], last.newest, self._history.messages.reader.newest().seq)
        return Calls(rows, tuple(state.folds))

    # Turns

    def _turn(self, event: Event) -> None:
        turn = read_listed(event, {})
        if turn is None:
            return
        state, before = self._state, self._state.last.get(turn.target)
        try:
            stable = convert(event.data["stable"], _Stable)
        except _UNREADABLE:
            stable = _Stable()
        last = self._last_turn(event, turn, stable, before)
        row = CallRow(
            event=turn.event,
            at=turn.at,
            kind="prepared",
            target=turn.target,
            model=turn.model,
            tokens=turn.tokens,
            budget=turn.budget_tokens,
            split=_split(turn.tokens, stable, last),
            omitted=turn.omitted,
            missing=turn.missing,
            epoch=turn.epoch,
            cache_break=None,
            lost=None,
            expected=turn.expected_cached_tokens,
            input=None,
            cached=None,
            output=None,
            reply=None,
            mark="erased" if turn.erased else None,
        )
        if before:
            previous = state.rows[before.at]
            if turn.target == "model":
                previous = state.rows[before.at] = self._answered(previous, before.newest, turn.last_message)
            if turn.last_message == before.newest and previous.reply is None and row.mark is None:
                row = replace(row, mark="retry" if turn.target == "model" else None)
            row = self._broken(row, turn, stable, before, last)
        self._places[row.event] = last.at
        state.rows.append(row)
        state.last[turn.target] = last

    def _last_turn(self, event: Event, turn: ListedTurn, stable: _Stable, before: LastTurn | None) -> LastTurn:
        data: dict[str, Any] = event.data
        last = LastTurn(
            len(self._state.rows), stable.tokens, turn.last_message, _text(data.get("tools"), "digest"), turn.epoch
        )
        if turn.new_epoch is not None:
            last.parts = _prefix_parts(data)
        elif before and before.epoch == turn.epoch:
            last.parts, last.recalled = before.parts, before.recalled
        else:  # the turns of the epoch in between cannot be read
            last.parts = self._parts_of_epoch(turn.epoch)
        last.recalled += self._recalled(data)
        return last

    def _parts_of_epoch(self, event_id: str) -> dict[Part, int]:
        number = event_id.removeprefix("ev-")
        if not (number.isascii() and number.isdecimal() and len(number) < 18):
            return {}
        found = self._history.events.reader.pick([int(number)])
        return _prefix_parts(found[0].data) if found and found[0].type == TURN else {}

    def _recalled(self, data: dict[str, Any]) -> int:
        """Return the tokens that a turn added to its tail: what was recalled and found."""
        if not data.get("added"):
            return 0
        try:
            added = convert(expand({"added": data["added"]})["added"], list[AdditionRef])
        except _UNREADABLE:
            return 0
        items = [item for addition in added for item in addition.items]
        recalled = sum(item.tokens for item in items if part_of_item(item) == "recalled")
        refs = [ref for addition in added for ref in addition.excerpts]
        redacting = NOT_REDACTED not in (data.get("redacted") or {})
        return recalled + self._excerpts.count(refs, str(data.get("tokenizer")), redacting=redacting)

    def _broken(self, row: CallRow, turn: ListedTurn, stable: _Stable, before: LastTurn, last: LastTurn) -> CallRow:
        """Return a row with why the cache broke, as far as the turn itself shows it."""
        lost = max(0, before.stable_tokens - turn.expected_cached_tokens)
        words = ""
        if stable.cache_lost:
            words = _tools_changed(self._history, before.tools, last.tools)
        elif turn.new_epoch is not None and turn.new_epoch != "first":
            words = EPOCHS.get(turn.new_epoch, turn.new_epoch)
        return replace(row, cache_break=words, lost=lost) if words and lost else row

    # Replies

    def _usage(self, data: Mapping[str, Any]) -> None:
        try:
            usage = convert(data, _Usage)
        except msgspec.ValidationError:
            return
        at = self._places.get(usage.turn)
        if at is None:
            return
        row = self._state.rows[at]
        row = replace(row, input=usage.input_tokens, cached=usage.cached_tokens, output=usage.output_tokens)
        number = usage.message.removeprefix("msg-")
        if number.isascii() and number.isdecimal() and len(number) < 18:
            row = self._with_reply(row, int(number))
        if missed := _missed(row):
            row = replace(row, cache_break=missed, lost=(row.expected or 0) - (row.cached or 0))
        self._state.rows[at] = row

    def _error(self, data: Mapping[str, Any]) -> None:
        at = self._places.get(str(data.get("turn")))
        if at is not None and self._state.rows[at].mark != "erased":
            row = self._state.rows[at]
            self._state.rows[at] = replace(row, mark="error" if row.reply is None else row.mark)

    def _answered(self, row: CallRow, after: int, through: int) -> CallRow:
        """Return a row with its reply: the first of an assistant after the messages of the turn."""
        if row.reply is not None or through <= after:
            return row
        reader = self._history.messages.reader
        usual = not after or _is_at(reader.slots(after - 1, after), after)
        start = after if usual else reader.position(after + 1)
        for at, slot in enumerate(reader.slots(start, start + min(through - after, _LOOK_AHEAD)), start):
            if slot.seq > through:
                break
            role = slot.flags >> ROLE_SHIFT & 7
            if role == _ASSISTANT or (not role and any(found.role == "assistant" for found in reader.read(at, at + 1))):
                return self._with_reply(row, slot.seq)
        return row

    def _with_reply(self, row: CallRow, seq: int) -> CallRow:
        mark = row.mark
        if mark != "erased" and self._is_incomplete(seq):
            mark = "incomplete"
        elif mark == "error":
            mark = "retry"  # the turn was sent again
        return replace(row, reply=seq, mark=mark)

    def _is_incomplete(self, seq: int) -> bool:
        reader = self._history.messages.reader
        slots = reader.slots(seq - 1, seq) if seq else []
        if _is_at(slots, seq) and slots[0].tokens != UNCOUNTED:
            return bool(slots[0].flags & BROKEN)
        return any(message.incomplete for message in reader.pick([seq]))

    # Compactions

    def _compacted(self, event: Event) -> None:
        data: dict[str, Any] = event.data
        fold = FoldRow(
            event=event.id,
            at=event.ts,
            before=len(self._state.rows),
            trigger=_text(data, "trigger"),
            before_tokens=_number(data.get("before_tokens")),
            after_tokens=_number(data.get("after_tokens")),
            own=True,
        )
        self._state.folds.append(fold)


def _is_at(slots: Sequence[Any], seq: int) -> bool:
    return bool(slots) and slots[0].seq == seq


def _prefix_parts(data: dict[str, Any]) -> dict[Part, int]:
    """Return the tokens of the items of a prefix by part."""
    parts: dict[Part, int] = {}
    try:
        opening: dict[str, Any] = expand({"renderer": data.get("renderer"), "opening": data["opening"]})["opening"]
        items = convert(opening["items"], list[Item])
    except _UNREADABLE:
        return parts
    for item in items:
        part = part_of_item(item) if item.placement == "prefix" else "prefix"
        if part != "prefix":
            parts[part] = parts.get(part, 0) + item.tokens
    return parts


def _split(tokens: int, stable: _Stable, last: LastTurn) -> tuple[int, ...]:
    """Return the tokens of a turn by part; what is around the items counts as prefix."""
    room = max(0, min(tokens, stable.tokens))
    split: dict[Part, int] = {"volatile": tokens - room}
    prefix = max(0, min(room, stable.prefix_tokens))
    room -= prefix
    for part, count in last.parts.items():
        split[part] = max(0, min(prefix, count))
        prefix -= split[part]
    split["prefix"] = prefix
    split["recalled"] = max(0, min(room, last.recalled))
    split["tail"] = room - split["recalled"]
    return split_of(split)


def _missed(row: CallRow) -> str:
    """Return in words that a provider read much less from its cache than expected; empty if it did not."""
    if row.cache_break is not None or row.cached is None or not row.expected:
        return ""
    missed = row.expected - row.cached
    if missed < max(_MISSED_TOKENS, _MISSED_SHARE * row.expected):
        return ""
    return f"provider read {row.cached:,} of {row.expected:,} expected tokens from its cache"


def _tools_changed(history: History, before: str, after: str) -> str:
    from daypack.turn.evidence.observed.shapes import Shape, compare_shapes  # noqa: PLC0415 — few turns change them
    from daypack.turn.tools import load_tools  # noqa: PLC0415

    try:
        old, new = (
            Shape(tools=tuple(map(_named, load_tools(history, digest) if digest else ()))) for digest in (before, after)
        )
    except (DaypackError, *_UNREADABLE):
        return "tools changed"
    return f"tools changed: {compare_shapes(old, new).tools}"


def _named(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a definition with its name at the top, where each dialect has it elsewhere."""
    inner = tool.get("function") or tool.get("custom")
    return {**tool, "name": cast(dict[str, Any], inner).get("name")} if isinstance(inner, dict) else tool


def _text(data: object, name: str) -> str:
    value = cast(dict[str, Any], data).get(name) if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_WARM = tuple(map(msgspec.json.Decoder, (PreparedState, _Stable, _Usage, list[AdditionRef], list[Item], Opening)))
