"""Snapshots in replies: cut from the text, stored with the message, and recorded for the tiers if a turn asked for one.

"meta":{"daypack":{"section":{"at":26,"turn":"ev-9","digest":"sha256:…","text":"<<<CONTEXT>>>{…}"}}}

The message and the section that was cut from it are one line of the log. A `context.snapshot` event with the result
follows. If that event could not be written, the next turn finds the message without it and records it then.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from daypack.derived.tiers import SNAPSHOT, Accepted, Policies, find_below_threshold
from daypack.errors import BadConfig, DaypackError, Overtaken
from daypack.history.draft import RESERVED, draft_event, draft_from
from daypack.turn.evidence.replay import read_turn
from daypack.turn.items import stamp_of
from daypack.turn.survey.inputs import TurnInputs
from daypack.types.carried import carry
from daypack.types.digest import digest_bytes
from daypack.types.history import INCOMPLETE, Message
from daypack.types.snapshot import POLICIES

if TYPE_CHECKING:
    from daypack.protocol import Reply, Violation

SECTION = "section"
CUT_OFF = ("length", "max_tokens", "max_output_tokens")  # what providers call the end of the room for a reply
Stamp = Mapping[str, Any] | None
_MAX_VIOLATIONS = 32  # violations that an event lists; all of them are counted
_MAX_SEARCHED = 256  # newest messages that are searched for sections without an event


class Snapshots:
    """Separates text and section in the replies of one session, and records the snapshots."""

    def __init__(self, inputs: TurnInputs) -> None:
        self._inputs = inputs
        self._history = inputs.history

    def append(self, fields: Mapping[str, Any], reply: "Reply", turn: str | None, stamp: Stamp) -> Message:
        """Append the text of a reply and record its section; `turn` is the event that asked for it, or None."""
        draft = draft_from({**fields, "content": _cut(fields.get("content") or "", reply.cut)})
        if reply.cut is not None:
            captured = self._history.capture(reply.raw.encode("utf-8", "replace"))
            asked = {} if turn is None else {"turn": turn}
            section = {"at": reply.cut[0], **asked, **captured}
            draft = replace(draft, meta={**(draft.meta or {}), RESERVED: {SECTION: section}})
        if turn is None:
            return self._history.append((draft,))[0]

        def store() -> tuple[Message, bool]:
            try:
                self.catch_up()
            except Overtaken:
                raise
            except DaypackError:
                pass
            message = self._history.append((draft,))[0]
            # The message is stored, so a failure from here on must not raise. The next turn records the section.
            try:
                self._record(message, reply, turn, stamp)
            except Overtaken:
                return message, False
            except DaypackError:
                pass
            return message, True

        message, tried = self._history.locked(store)  # so that no other reply comes between a message and its event
        if not tried:
            with suppress(DaypackError):
                self._history.locked(partial(self._record, message, reply, turn, stamp))
        return message

    def settle(self) -> None:
        """Record the sections whose event could not be written with the message."""
        if self._inputs.ledger.read().protocol_used:
            self._history.locked(self.catch_up)

    def catch_up(self) -> None:
        """Record the sections of stored replies that have no event yet."""
        last = self._history.messages.reader.newest().seq
        start = max(self._inputs.ledger.read().tiers.message, last - _MAX_SEARCHED) + 1
        for message in self._history.messages.records(start, last) if start <= last else ():
            section = _section_of(message)
            if message.role == "assistant" and "turn" in section:
                try:
                    original = self._original_text(message, section)
                    stamp = self._stamp(section["turn"])
                    if reply := parse_reply({"content": original, "meta": message.meta}, stamp):
                        self._record(message, reply, section["turn"], stamp)
                except Overtaken:
                    raise
                except (KeyError, TypeError, ValueError, AttributeError, DaypackError):
                    continue

    def _stamp(self, turn: str) -> Stamp:
        return stamp_of(read_turn(self._history, turn).items) if turn else None

    def _original_text(self, message: Message, section: Mapping[str, Any]) -> str:
        """Return the text of a stored message with its section put back."""
        at, data = int(section["at"]), self._history.captured(section)
        text = content_text(msgspec.to_builtins(message))
        if digest_bytes(data) != section["digest"] or not 0 <= at <= len(text):
            raise ValueError("the captured section was not cut from this message")
        return f"{text[:at]}{data.decode()}{text[at:]}"

    def _record(self, message: Message, reply: "Reply", turn: str, stamp: Stamp) -> None:
        """Append the event with the snapshot and the violations of a section."""
        folded = self._inputs.ledger.read()
        if message.seq <= folded.tiers.message:
            return  # a retry of the same reply
        violations = (*reply.violations, *_not_carried(folded.tiers.carried, reply))
        counts = Counter(violation.rule for violation in violations)
        section = _section_of(message)
        accepted = Accepted(
            message=message.id,
            round=stamp["runtime"]["round"] if stamp else folded.rounds,
            turn=turn or None,
            raw={name: section[name] for name in ("digest", "blob")} if "blob" in section else {},
            snapshot=reply.snapshot,
            below_threshold=find_below_threshold(reply.snapshot, self._policies()) if reply.snapshot else {},
            refused=counts["S0-R10"],
            violation_counts=dict(counts),
            violations=tuple(msgspec.to_builtins(violation) for violation in violations[:_MAX_VIOLATIONS]),
        )
        self._history.append_event(draft_event(SNAPSHOT, msgspec.to_builtins(accepted)))

    def _policies(self) -> Policies:
        try:
            return self._inputs.policies
        except BadConfig:
            return POLICIES  # the reply is paid for and stored; the next turn reports the bad configuration


def _not_carried(carried: Mapping[str, Any], reply: "Reply") -> "Iterator[Violation]":
    """Report the unknown keys of a snapshot that the next turn does not hand back."""
    from daypack.protocol import Violation  # noqa: PLC0415 — only for sessions with the protocol

    given = reply.snapshot.extra if reply.snapshot else {}
    for key, problem in carry(carried, given)[1].items():
        yield Violation("X40", f"is not carried on: {problem}", key[:40], "should")


def _section_of(message: Message) -> dict[str, Any]:
    reserved: Any = (message.meta or {}).get(RESERVED)
    section: Any = cast(dict[str, Any], reserved).get(SECTION) if isinstance(reserved, dict) else None
    return cast(dict[str, Any], section) if isinstance(section, dict) else {}


def parse_reply(fields: Mapping[str, Any], stamp: Stamp) -> "Reply | None":
    """Parse a reply; None if it calls tools and has no section, because the answer is still to come."""
    from daypack.protocol import SEPARATOR, parse  # noqa: PLC0415 — only for sessions with the protocol

    text = content_text(fields)
    meta: Mapping[str, Any] = fields.get("meta") or {}
    reply = parse(text, expected=stamp, cut_off=INCOMPLETE in meta or meta.get("stop") in CUT_OFF)
    return None if fields.get("tool_calls") and SEPARATOR not in text and reply.cut is None else reply


def content_text(fields: Mapping[str, Any]) -> str:
    """Return the text of a message's content, all text parts joined."""
    content = fields.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(_text(part) for part in cast(list[dict[str, Any]], content))


def _text(part: Mapping[str, Any]) -> str:
    return part["text"] if part.get("type") == "text" else ""


def _cut(content: Any, cut: tuple[int, int] | None) -> Any:  # noqa: ANN401 — text or parts
    """Cut a range of characters out of a content's text; text parts that become empty are dropped."""
    if cut is None:
        return content
    if isinstance(content, str):
        return content[: cut[0]] + content[cut[1] :]
    kept: list[dict[str, Any]] = []
    at = 0
    for part in cast(list[dict[str, Any]], content):
        text = _text(part)
        remaining = text[: max(0, cut[0] - at)] + text[max(0, cut[1] - at) :]
        at += len(text)
        if remaining == text:
            kept.append(part)
        elif remaining:
            kept.append({**part, "text": remaining})
    return kept
