"""An observed turn: the request that another program sent, rebuilt from history and verified by its digests."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec

from daypack.errors import DaypackError, Erased, ReplayMismatch, SourceMissing
from daypack.files import blobs
from daypack.forks import cached_property
from daypack.history.session import History
from daypack.turn.evidence.observed.blocks import api_role, blocks_of
from daypack.turn.evidence.observed.digests import CACHE_CONTROL, Block, message_bytes, request_digest
from daypack.turn.evidence.observed.record import (
    CacheMark,
    ObservedRecord,
    SentMessage,
    find_record,
    sent_messages,
)
from daypack.turn.evidence.observed.shapes import Shape, read_shape
from daypack.types.digest import digest_bytes, file_name_of

BETAS = "betas"  # a parameter that is sent as a header
_UNREADABLE = (DaypackError, msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


class SentBlock(NamedTuple):
    """A block of a message, and the message of history that it is from."""

    block: Block
    seq: int | None = None


class RebuiltMessage(NamedTuple):
    """A message of a request; without blocks if its content is unknown."""

    sent: SentMessage
    role: str = ""
    blocks: tuple[SentBlock, ...] = ()
    more: Mapping[str, Any] = MappingProxyType({})  # what else it has beside role and content
    known: bool = True

    @property
    def value(self) -> dict[str, Any]:
        """The message as it is sent."""
        return {"role": self.role, "content": [sent.block for sent in self.blocks], **self.more}


class Verdict(NamedTuple):
    """What the digests of a request say: `verified` if all of it is as it was recorded. Positions are from 0."""

    unknown: tuple[int, ...]  # messages whose content was never known
    lost: tuple[int, ...]  # messages that were stored and cannot be read
    changed: tuple[int, ...]  # messages that differ from their digest
    shape: bool  # system prompt and tools can be read
    digest: bool | None  # the digest of the whole is right; None if it cannot be computed

    @property
    def verified(self) -> bool:
        """True if every byte is as it was recorded."""
        return self.digest is True


class ObservedTurn:
    """A recorded request of another program: what was sent, as far as it is known."""

    def __init__(self, history: History, event_id: str, record: ObservedRecord) -> None:
        self.event_id = event_id
        self.record = record
        self._history = history

    @cached_property
    def sent(self) -> tuple[SentMessage, ...]:
        """The messages of the request as references."""
        return sent_messages(self._history, self.record, self.event_id)

    @cached_property
    def messages(self) -> tuple[RebuiltMessage, ...]:
        """The messages of the request with their contents."""
        return tuple(map(self._rebuild, self.sent))

    @cached_property
    def shape(self) -> Shape | None:
        """System prompt and tools; None if they are unknown."""
        return read_shape(self._history, self.record.shape)

    @cached_property
    def body(self) -> dict[str, Any] | None:
        """The request as it was sent, with marks for the cache and beta names; None if a part is unknown."""
        if self.shape is None or not all(message.known for message in self.messages):
            return None
        messages = [message.value for message in self.messages]
        body = {**self.record.params, **self.shape.value, "messages": messages}
        return _marked(body, self.record.marks)

    @property
    def request(self) -> dict[str, Any] | None:
        """The body of the request on the wire: beta names are a header there."""
        return self.body and {name: value for name, value in self.body.items() if name != BETAS}

    @cached_property
    def verdict(self) -> Verdict:
        """What the recorded digests say about what was rebuilt."""
        missing = [at for at, message in enumerate(self.messages) if not message.known]
        unknown = tuple(at for at in missing if self.sent[at].unknown)
        lost = tuple(at for at in missing if not self.sent[at].unknown)
        changed = tuple(at for at, message in enumerate(self.messages) if message.known and not _is_intact(message))
        stated, body = self.record.digest, self.body
        same = None if body is None or not stated else request_digest(body) == stated
        return Verdict(unknown, lost, changed, self.shape is not None, same)

    def verify(self) -> None:
        """Raise Erased, SourceMissing or ReplayMismatch unless the request is as it was recorded."""
        folder = self._history.layout.folder
        if self.record.erased:
            raise Erased(
                f"{self.event_id} no longer verifies: something that it showed was erased ({self.record.erased})",
                operation="replay",
                place=folder,
                hint=f"nothing is damaged; {self.record.erased} records what was erased",
            )
        if changed := self._changed():
            problem = f"{self.event_id} does not verify: {changed}"
            hint = "a message or captured text was changed or lost since; see `daypack doctor`"
            raise ReplayMismatch(problem, operation="replay", place=folder, hint=hint)
        if unknown := self._unknown():
            problem = f"{self.event_id} cannot be verified: {unknown}"
            hint = "nothing is damaged: the transcript does not have it; `daypack explain` shows what is known"
            raise SourceMissing(problem, operation="replay", place=folder, hint=hint)

    def _changed(self) -> str:
        verdict = self.verdict
        if not verdict.shape and not self.record.shape_unknown:
            return "its system prompt and tools cannot be read"
        if verdict.lost:
            return f"the content of {_positions(verdict.lost)} cannot be read"
        if verdict.changed:
            return f"{_positions(verdict.changed)} changed"
        return "replay digest mismatch" if verdict.digest is False else ""

    def _unknown(self) -> str:
        verdict = self.verdict
        if not verdict.shape:
            return "its system prompt and tools are unknown"
        if verdict.unknown:
            return f"the content of {_positions(verdict.unknown)} is unknown"
        return "no digest of it was recorded" if verdict.digest is None else ""

    # Contents

    def _rebuild(self, sent: SentMessage) -> RebuiltMessage:
        try:
            extent = sent.extent
            if extent:
                return self._from_history(sent, extent.start, extent.stop)
            if sent.unknown or not sent.digest:
                return RebuiltMessage(sent, known=False)
            value = cast(dict[str, Any], msgspec.json.decode(self._blob(file_name_of(sent.digest))))
            blocks = tuple(SentBlock(block) for block in cast(Sequence[Block], value["content"]))
            more = {name: member for name, member in value.items() if name not in ("role", "content")}
            return RebuiltMessage(sent, value["role"], blocks, more)
        except _UNREADABLE:
            return RebuiltMessage(sent, known=False)

    def _from_history(self, sent: SentMessage, first: int, last: int) -> RebuiltMessage:
        messages = self._history.messages.reader.pick(range(first, last + 1))
        if len(messages) != last - first + 1:
            return RebuiltMessage(sent, known=False)
        blocks = [SentBlock(block, message.seq) for message in messages for block in blocks_of(message, self._blob)]
        return RebuiltMessage(sent, api_role(messages[0]), tuple(blocks))

    def _blob(self, name: str) -> bytes:
        return blobs.get(self._history.layout.blob, name)


def open_observed(history: History, event_id: str) -> ObservedTurn:
    """Return an observed turn by the id of its event."""
    return ObservedTurn(history, event_id, find_record(history, event_id))


def _is_intact(message: RebuiltMessage) -> bool:
    try:
        return digest_bytes(message_bytes(message.value)) == message.sent.digest
    except _UNREADABLE:
        return False


def _marked(body: dict[str, Any], marks: Sequence[CacheMark]) -> dict[str, Any]:
    """Return a body with its marks for the cache; a mark at a place that does not exist is left out."""
    if not marks:
        return body
    marked = cast(dict[str, Any], _copied(body))
    for mark in marks:
        place: Any = marked
        try:
            for step in mark.path:
                place = place[step]
            place[CACHE_CONTROL] = mark.value
        except (KeyError, IndexError, TypeError):
            continue
    return marked


def _copied(value: object) -> object:
    if isinstance(value, list):
        return [_copied(member) for member in cast(list[object], value)]
    if isinstance(value, dict):
        return {name: _copied(member) for name, member in cast(dict[str, object], value).items()}
    return value


def _positions(positions: Sequence[int]) -> str:
    shown = ", ".join(f"{at + 1}" for at in positions[:5]) + (" …" if len(positions) > 5 else "")
    return f"message {shown} of the request" if len(positions) == 1 else f"messages {shown} of the request"
