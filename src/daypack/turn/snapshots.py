"""The snapshots in replies: cut from the words, kept beside them, taken into the tiers when they were asked for.

"meta":{"daypack":{"section":{"at":26,"turn":"ev-9","digest":"sha256:…","text":"<<<CONTEXT>>>{…}"}}}

The message and what was cut from it are one line. The event that tells what it came to follows; when that could not be
written, the next turn finds the message without one and makes up for it.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from daypack.derived.tiers import SNAPSHOT, Accepted, Policies, find_low
from daypack.errors import BadConfig, DaypackError
from daypack.files import blobs
from daypack.history.draft import RESERVED, draft_event, draft_from
from daypack.turn.evidence import record as evidence
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.tiers import stamp_of
from daypack.types.history import Message
from daypack.types.snapshot import POLICIES

if TYPE_CHECKING:
    from daypack.protocol import Reply

SECTION = "section"
Stamp = Mapping[str, Any] | None
_TOLD = 32  # violations that an event spells out
_LOOKED_AT = 256  # newest messages that are looked at for a section nobody took in


class Snapshots:
    """Takes the sections of replies to one session apart from their words."""

    def __init__(self, inputs: TurnInputs) -> None:
        self._inputs = inputs
        self._history = inputs.history

    def append(self, fields: Mapping[str, Any], reply: "Reply", turn: str | None, stamp: Stamp) -> Message:
        """Append the words of a reply and what its section came to; `turn`: what asked for it, None: nobody did."""
        draft = draft_from({**fields, "content": _cut(fields.get("content") or "", reply.cut)})
        if reply.cut is not None:
            kept = self._history.capture(reply.raw.encode("utf-8", "replace"))
            asked = {} if turn is None else {"turn": turn}
            own = {SECTION: {"at": reply.cut[0], **asked, **kept}}
            draft = replace(draft, meta={**(draft.meta or {}), RESERVED: own})
        if turn is None:
            return self._history.append((draft,))[0]
        # Nobody else's reply may stand between a message and its event.
        with self._history.lock:
            with suppress(DaypackError):
                self.catch_up()
            message = self._history.append((draft,))[0]
            # It is stored and must not look as if it were not: what fails now is made up for by the next turn.
            with suppress(DaypackError):
                self._take_in(message, reply, turn, stamp)
        return message

    def settle(self) -> None:
        """Take in what could not be taken in when it came."""
        if self._inputs.ledger.read().stamped:
            with self._history.lock:
                self.catch_up()

    def catch_up(self) -> None:
        """Take in the sections of stored replies that nobody has taken in."""
        last = self._history.messages.reader.newest().seq
        start = max(self._inputs.ledger.read().tiers.message, last - _LOOKED_AT) + 1
        for message in self._history.messages.records(start, last) if start <= last else ():
            kept = _kept(message)
            if message.role == "assistant" and "turn" in kept:
                with suppress(KeyError, TypeError, ValueError, AttributeError, DaypackError):
                    whole = self._whole(message, kept)
                    stamp = self._stamp(kept["turn"])
                    if reply := parse_reply({"content": whole}, stamp):
                        self._take_in(message, reply, kept["turn"], stamp)

    def _stamp(self, turn: str) -> Stamp:
        return stamp_of(evidence.read_turn(self._history, turn).items) if turn else None

    def _whole(self, message: Message, kept: Mapping[str, Any]) -> str:
        """Return the words of a stored message as they came."""
        at, data = int(kept["at"]), self._history.captured(kept)
        words = words_of(msgspec.to_builtins(message))
        if blobs.digest_bytes(data) != kept["digest"] or not 0 <= at <= len(words):
            raise ValueError("it is not what was cut from this message")
        return f"{words[:at]}{data.decode()}{words[at:]}"

    def _take_in(self, message: Message, reply: "Reply", turn: str, stamp: Stamp) -> None:
        """Record what a section came to."""
        folded = self._inputs.ledger.read()
        if message.seq <= folded.tiers.message:
            return  # the same reply, sent again
        told: dict[str, int] = {}
        for one in reply.violations:
            told[one.rule] = told.get(one.rule, 0) + 1
        kept = _kept(message)
        accepted = Accepted(
            message=message.id,
            round=stamp["runtime"]["round"] if stamp else folded.rounds,
            turn=turn or None,
            raw={name: kept[name] for name in ("digest", "blob")} if "blob" in kept else {},
            snapshot=reply.snapshot,
            low=find_low(reply.snapshot, self._policies()) if reply.snapshot else {},
            refused=told.get("S0-R10", 0),
            told=told,
            violations=tuple(msgspec.to_builtins(one) for one in reply.violations[:_TOLD]),
        )
        self._history.append_event(draft_event(SNAPSHOT, msgspec.to_builtins(accepted)))

    def _policies(self) -> Policies:
        try:
            return self._inputs.policies
        except BadConfig:
            return POLICIES  # a reply that was paid for is taken in; the next turn tells what is wrong


def _kept(message: Message) -> dict[str, Any]:
    own: Any = (message.meta or {}).get(RESERVED)
    kept: Any = cast(dict[str, Any], own).get(SECTION) if isinstance(own, dict) else None
    return cast(dict[str, Any], kept) if isinstance(kept, dict) else {}


def parse_reply(fields: Mapping[str, Any], stamp: Stamp) -> "Reply | None":
    """Take a reply apart; None: it calls tools and has no section, it is on its way to an answer."""
    from daypack.protocol import SEPARATOR, parse  # noqa: PLC0415 — only for sessions with the protocol

    words = words_of(fields)
    return parse(words, expected=stamp) if not fields.get("tool_calls") or SEPARATOR in words else None


def words_of(fields: Mapping[str, Any]) -> str:
    """Return the words of a message's content, all parts in one."""
    content = fields.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(_text(part) for part in cast(list[dict[str, Any]], content))


def _text(part: Mapping[str, Any]) -> str:
    return part["text"] if part.get("type") == "text" else ""


def _cut(content: Any, cut: tuple[int, int] | None) -> Any:  # noqa: ANN401 — text or parts
    """Take a stretch out of the words of a content; parts that are left without words go."""
    if cut is None:
        return content
    if isinstance(content, str):
        return content[: cut[0]] + content[cut[1] :]
    kept: list[dict[str, Any]] = []
    at = 0
    for part in cast(list[dict[str, Any]], content):
        text = _text(part)
        words = text[: max(0, cut[0] - at)] + text[max(0, cut[1] - at) :]
        at += len(text)
        if words == text:
            kept.append(part)
        elif words:
            kept.append({**part, "text": words})
    return kept
