"""Replies: the message to append, what it cost, and the snapshot a reply of the hybrid protocol carries."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec

from daypack.derived.tiers import SNAPSHOT, Accepted, find_low
from daypack.errors import DaypackError, StorageFailed
from daypack.files.lock import ThreadLock
from daypack.flow import evidence
from daypack.flow.blocks import PROTOCOL, stamp_of
from daypack.flow.desk import Desk
from daypack.flow.dialects import read_reply, read_usage
from daypack.flow.evidence import TurnRecord
from daypack.flow.ledger import USAGE
from daypack.flow.turn import Turn
from daypack.history.draft import draft_event, draft_from
from daypack.types.history import Message
from daypack.types.kinds import Tier

if TYPE_CHECKING:
    from daypack.protocol import Reply

_Asked = tuple[str | None, Mapping[str, Any] | None]  # the event of the turn that is answered, and its stamp
RAW = "snapshot"  # the key of a message's meta that holds what was cut from its text
_TOLD = 32  # violations that an event spells out
_UNRECORDED = 8  # newest messages that are looked at for a section nobody took in


class Replies:
    """Takes in the replies to the turns of one session."""

    def __init__(self, desk: Desk, threads: ThreadLock) -> None:
        self._desk = desk
        self._history = desk.history
        self._threads = threads
        self._owed: list[dict[str, Any]] = []  # what replies cost and could not be recorded yet
        self.prepared: Turn | None = None  # the newest turn for a model that was prepared here

    def accept(self, reply: object, usage: object = None) -> Message:
        """Append a reply; the answer is the message as stored, its text without the section of the protocol."""
        read = read_reply(reply)
        spent = read_usage(usage) if usage is not None else read.usage
        event, record = self._answered()
        stamp = stamp_of(record.items) if record else None
        on = stamp is not None or (record is None and self._desk.ledger.read().switches.get(PROTOCOL, False))
        parsed = _parse(read.message, stamp) if on else None
        if parsed:
            message = self._append(read.message, parsed, (event, stamp))
        else:
            message = self._history.append((draft_from(read.message),))[0]
        if spent:
            with self._threads:
                told = {"message": message.id, **_expected(event, record), **msgspec.to_builtins(spent)}
                self._owed.append({name: value for name, value in told.items() if value is not None})
                with suppress(StorageFailed):
                    self.tell_usage()
        return message

    def _append(self, fields: Mapping[str, Any], reply: "Reply", asked: "_Asked") -> Message:
        """Append the words of a reply, then what its section came to; nobody else's may stand between the two."""
        draft = draft_from(self._without_section(fields, reply))
        low = find_low(reply.snapshot, self._desk.policies) if reply.snapshot else {}
        with self._history.lock:
            with suppress(StorageFailed):
                self._catch_up()
            message = self._history.append((draft,))[0]
            # It is stored and must not look as if it were not: what fails now is made up for by the next turn.
            with suppress(StorageFailed):
                self._take_in(message, reply, low, asked)
        return message

    def settle(self) -> None:
        """Record what could not be recorded when the replies came."""
        self.tell_usage()
        if self._desk.ledger.read().stamped:
            with self._history.lock:
                self._catch_up()

    def _catch_up(self) -> None:
        """Take in the sections of stored messages that nobody has taken in."""
        folded = self._desk.ledger.read()
        for message in self._history.messages.tail(_UNRECORDED):
            if message.seq > folded.tiers.message and (whole := self._whole(message)) is not None:
                event, record = self._answered()
                stamp = stamp_of(record.items) if record else None
                if reply := _parse({"content": whole}, stamp):
                    low = find_low(reply.snapshot, self._desk.policies) if reply.snapshot else {}
                    self._take_in(message, reply, low, (event, stamp))

    def tell_usage(self) -> None:
        """Record what replies cost."""
        while self._owed:
            self._history.append_event(draft_event(USAGE, self._owed[0]))
            del self._owed[0]

    def _answered(self) -> tuple[str | None, TurnRecord | None]:
        """Return the turn that a reply answers, and its event: the newest, which another process may have prepared."""
        newest = self._desk.ledger.read().turns.get("model")
        if newest and (self.prepared is None or newest.event != self.prepared.event_id):
            with suppress(DaypackError):
                return newest.event, evidence.read_turn(self._history, newest.event)
        return (self.prepared.event_id, self.prepared.record) if self.prepared else (None, None)

    def _without_section(self, fields: Mapping[str, Any], reply: "Reply") -> dict[str, Any]:
        """Return a message without the section; what was cut stands in its meta, so nothing is lost with it."""
        if reply.cut is None:
            return dict(fields)
        kept = self._history.capture(reply.raw.encode("utf-8", "replace"))
        meta: dict[str, Any] = {**(fields.get("meta") or {}), RAW: {"at": reply.cut[0], **kept}}
        return {**fields, "content": _cut(fields["content"], reply.cut), "meta": meta}

    def _whole(self, message: Message) -> str | None:
        """Return the words of a stored message as they came; None: nothing was cut from them, or it is gone."""
        kept: Any = (message.meta or {}).get(RAW)
        try:
            at, raw = int(kept["at"]), self._history.captured(kept).decode()
        except (KeyError, TypeError, ValueError, AttributeError, DaypackError):
            return None
        words = _words(msgspec.to_builtins(message))
        return f"{words[:at]}{raw}{words[at:]}"

    def _take_in(self, message: Message, reply: "Reply", low: dict[Tier, tuple[str, ...]], asked: "_Asked") -> None:
        """Record what a section came to."""
        folded = self._desk.ledger.read()
        if message.seq <= folded.tiers.message:
            return  # the same reply, sent again
        event, stamp = asked
        kept: dict[str, Any] = (message.meta or {}).get(RAW, {})
        told: dict[str, int] = {}
        for one in reply.violations:
            told[one.rule] = told.get(one.rule, 0) + 1
        accepted = Accepted(
            message=message.id,
            round=stamp["runtime"]["round"] if stamp else folded.rounds,
            turn=event,
            raw={name: value for name, value in kept.items() if name in ("digest", "blob")} if "blob" in kept else {},
            snapshot=reply.snapshot,
            low=low,
            refused=sum(one.rule == "S0-R10" or (one.rule == "S0-R7" and "[" in one.where) for one in reply.violations),
            told=told,
            violations=tuple(msgspec.to_builtins(one) for one in reply.violations[:_TOLD]),
        )
        self._history.append_event(draft_event(SNAPSHOT, msgspec.to_builtins(accepted)))


def _expected(event: str | None, record: TurnRecord | None) -> dict[str, Any]:
    """What a reply answers, and what of it a cache could have had."""
    if record is None:
        return {}
    cached = record.stable.expected_cached_tokens
    return {"turn": event, "expected_tokens": record.used.tokens, "expected_cached_tokens": cached}


def _words(fields: Mapping[str, Any]) -> str:
    content = fields.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(_text(part) for part in cast(list[dict[str, Any]], content))


def _text(part: Mapping[str, Any]) -> str:
    return part["text"] if part.get("type") == "text" else ""


def _parse(fields: Mapping[str, Any], stamp: Mapping[str, Any] | None) -> "Reply | None":
    """Take a reply apart; None: it calls tools and has no section, it is on its way to an answer."""
    from daypack.protocol import SEPARATOR, parse  # noqa: PLC0415 — only for sessions with the protocol

    words = _words(fields)
    return parse(words, expected=stamp) if not fields.get("tool_calls") or SEPARATOR in words else None


def _cut(content: Any, cut: tuple[int, int]) -> Any:  # noqa: ANN401 — text or parts
    """Take a stretch out of the words of a content; parts that are left without words go."""
    if isinstance(content, str):
        return content[: cut[0]] + content[cut[1] :]
    kept: list[dict[str, Any]] = []
    at = 0
    for part in cast(list[dict[str, Any]], content):
        text = _text(part)
        start, stop = max(0, cut[0] - at), max(0, cut[1] - at)
        at += len(text)
        words = text[:start] + text[stop:]
        if words != text or not text:
            if words or not text:
                kept.append({**part, "text": words} if text else part)
        else:
            kept.append(part)
    return kept
