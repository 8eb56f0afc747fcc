"""An observed turn: the request that another program sent, rebuilt from history and verified by its digests."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from daypack.errors import DaypackError, Erased, ReplayMismatch, SourceMissing
from daypack.forks import cached_property
from daypack.history.session import History
from daypack.turn.evidence.observed.blocks import api_role, blocks_of
from daypack.turn.evidence.observed.digests import (
    CACHE_CONTROL,
    Around,
    Block,
    RequestDigest,
    around_messages,
    message_bytes,
)
from daypack.turn.evidence.observed.record import (
    CacheMark,
    ObservedRecord,
    SentMessage,
    find_record,
    sent_messages,
)
from daypack.turn.evidence.observed.shapes import Shape, read_shape
from daypack.types.canonical import canonical
from daypack.types.digest import digest_bytes, file_name_of

BETAS = "betas"  # a parameter that is sent as a header
_UNREADABLE = (DaypackError, msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


class _StoredMessage(Struct):
    """A message in a blob."""

    role: str
    content: list[Block]


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


class RequestReader:
    """Rebuilds the requests of one session; successive ones share what they have in common."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._sent: tuple[str, tuple[SentMessage, ...]] = ("", ())  # of the request that was read last
        self._messages: dict[SentMessage, RebuiltMessage] = {}
        self._bytes: dict[SentMessage, tuple[bytes, bool]] = {}  # canonical, and whether they have their digest
        self._around: tuple[object, Around] | None = None  # of the request that was verified last
        self._digest = RequestDigest()

    def open(self, event_id: str) -> "ObservedTurn":
        """Return an observed turn by the id of its event."""
        return ObservedTurn(self, event_id, find_record(self.history, event_id))

    def sent(self, record: ObservedRecord, event_id: str) -> tuple[SentMessage, ...]:
        """Return the messages of a request as references."""
        event, before = self._sent
        if record.follows == event and record.keep <= len(before):
            sent = (*before[: record.keep], *record.tail)
        else:
            sent = sent_messages(self.history, record, event_id)
        self._sent = event_id, sent
        return sent

    def messages(self, sent: Sequence[SentMessage]) -> tuple[RebuiltMessage, ...]:
        """Return the messages of a request with their contents; those of the request before it are not read again."""
        found = {each: self._messages.get(each) or self._rebuild(each) for each in sent}
        self._messages = found
        self._bytes = {each: data for each, data in self._bytes.items() if each in found}
        return tuple(found[each] for each in sent)

    def is_intact(self, message: RebuiltMessage) -> bool:
        """Return True if a message has its digest."""
        return self._bytes_of(message)[1]

    def digest(self, turn: "ObservedTurn") -> str:
        """Return the digest of a request whose parts are all known."""
        record = turn.record
        own = [mark for mark in record.marks if mark.path[:1] != ("messages",)]
        key = record.shape, record.params, own
        if self._around is None or self._around[0] != key:
            shape = turn.shape.value if turn.shape else dict[str, Any]()
            self._around = key, around_messages(_marked({**record.params, **shape}, own))
        messages = [(message.sent.digest, self._bytes_of(message)[0]) for message in turn.messages]
        return self._digest.compute(self._around[1], messages, _marked_messages(turn))

    def _bytes_of(self, message: RebuiltMessage) -> tuple[bytes, bool]:
        found = self._bytes.get(message.sent)
        if found is None:
            try:
                data = message_bytes(message.value)
                found = data, digest_bytes(data) == message.sent.digest
            except _UNREADABLE:
                found = b"", False
            self._bytes[message.sent] = found
        return found

    def blob(self, name: str) -> bytes:
        """Return captured bytes by their name."""
        return self.history.blobs.get(name)

    def _rebuild(self, sent: SentMessage) -> RebuiltMessage:
        try:
            extent = sent.extent
            if extent:
                return self._from_history(sent, extent.start, extent.stop)
            if sent.unknown or not sent.digest:
                return RebuiltMessage(sent, known=False)
            value = cast(dict[str, Any], msgspec.json.decode(self.blob(file_name_of(sent.digest))))
            stored = msgspec.convert(value, _StoredMessage)
            more = {name: member for name, member in value.items() if name not in ("role", "content")}
            return RebuiltMessage(sent, stored.role, tuple(map(SentBlock, stored.content)), more)
        except _UNREADABLE:
            return RebuiltMessage(sent, known=False)

    def _from_history(self, sent: SentMessage, first: int, last: int) -> RebuiltMessage:
        messages = self.history.messages.reader.pick(range(first, last + 1))
        if len(messages) != last - first + 1:
            return RebuiltMessage(sent, known=False)
        blocks = [SentBlock(block, message.seq) for message in messages for block in blocks_of(message, self.blob)]
        return RebuiltMessage(sent, api_role(messages[0]), tuple(blocks))


class ObservedTurn:
    """A recorded request of another program: what was sent, as far as it is known."""

    def __init__(self, reader: RequestReader, event_id: str, record: ObservedRecord) -> None:
        self.event_id = event_id
        self.record = record
        self._reader = reader

    @cached_property
    def sent(self) -> tuple[SentMessage, ...]:
        """The messages of the request as references."""
        return self._reader.sent(self.record, self.event_id)

    @cached_property
    def messages(self) -> tuple[RebuiltMessage, ...]:
        """The messages of the request with their contents."""
        return self._reader.messages(self.sent)

    @cached_property
    def shape(self) -> Shape | None:
        """System prompt and tools; None if they are unknown."""
        return read_shape(self._reader.history, self.record.shape)

    @cached_property
    def request(self) -> dict[str, Any] | None:
        """The body of the request as it was sent, with marks for the cache; None if a part is unknown.

        The names of betas are not in it: they are sent as a header.
        """
        if self.shape is None or not all(message.known for message in self.messages):
            return None
        params = {name: value for name, value in self.record.params.items() if name != BETAS}
        messages = [message.value for message in self.messages]
        return _marked({**params, **self.shape.value, "messages": messages}, self.record.marks)

    @cached_property
    def verdict(self) -> Verdict:
        """What the recorded digests say about what was rebuilt."""
        rebuilt: tuple[RebuiltMessage, ...] = self.messages
        messages = list(enumerate(rebuilt))
        missing = [at for at, message in messages if not message.known]
        changed = tuple(at for at, message in messages if message.known and not self._reader.is_intact(message))
        same = None
        if self.record.digest and not missing and self.shape is not None:
            same = self._reader.digest(self) == self.record.digest
        return Verdict(
            unknown=tuple(at for at in missing if self.sent[at].unknown),
            lost=tuple(at for at in missing if not self.sent[at].unknown),
            changed=changed,
            shape=self.shape is not None,
            digest=same,
        )

    def verify(self) -> None:
        """Raise Erased, SourceMissing or ReplayMismatch unless the request is as it was recorded."""
        folder = self._reader.history.layout.folder
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


def open_observed(history: History, event_id: str) -> ObservedTurn:
    """Return an observed turn by the id of its event."""
    return RequestReader(history).open(event_id)


def _marked_messages(turn: ObservedTurn) -> dict[int, bytes]:
    """Return the bytes of the messages with marks for the cache, by position."""
    by_position: dict[int, list[CacheMark]] = {}
    for mark in turn.record.marks:
        if len(mark.path) > 1 and mark.path[0] == "messages" and isinstance(at := mark.path[1], int):
            by_position.setdefault(at, []).append(CacheMark(mark.path[2:], mark.value))
    return {
        at: canonical(_marked(turn.messages[at].value, marks))
        for at, marks in by_position.items()
        if 0 <= at < len(turn.messages)
    }


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
