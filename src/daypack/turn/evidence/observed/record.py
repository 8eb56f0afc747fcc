"""The event of an observed turn: what a recorded request contained, as references and digests.

{"type":"context.observed","data":{"program":"claude-code","request":"30cb…","model":"claude-opus-5-5","shape":"sha256:…",
 "follows":"ev-12","keep":6,"tail":[{"digest":"sha256:…","messages":"messages:7"},{"digest":"sha256:…"}],"digest":"sha256:…",…}}

The messages of a request are the first `keep` of the request that it `follows`, then its `tail`. A message of the tail
is in `messages` of history, or in the blob of its digest, or unknown. The blob of `shape` has system prompt and tools.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from daypack.errors import BadSource, Damaged, SourceMissing
from daypack.history.resolve import resolve
from daypack.history.session import History
from daypack.turn.ledger import OBSERVED
from daypack.types.history import Event
from daypack.types.source import EventRef, Messages, parse_source

MAX_KEPT = 100_000  # more messages than any window holds


class SentMessage(Struct, frozen=True, omit_defaults=True):
    """One message of a request: in history, in a blob, or unknown."""

    digest: str = ""
    messages: str = ""  # in history: messages:12, or messages:12-14
    unknown: bool = False  # nothing that was imported has its content

    @property
    def extent(self) -> Messages | None:
        """The messages of history that it consists of; None if it is not in history."""
        try:
            found = parse_source(self.messages) if self.messages else None
        except BadSource:
            return None
        if isinstance(found, Messages) and found.stop - found.start < MAX_KEPT:
            return found
        return None


UNKNOWN = SentMessage(unknown=True)


class CacheMark(Struct, frozen=True):
    """A mark for the provider's cache: where it is in the request, and its value."""

    path: tuple[str | int, ...]
    value: dict[str, Any] = {}


class ObservedRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A request as it was recorded."""

    program: str  # that made the call and recorded it: claude-code
    request: str  # its id there
    dialect: str = "anthropic"
    source: str = ""  # the transcript
    line: int = 0
    version: str = ""  # of the program
    purpose: str = ""  # what it made the call for, in its own words
    agent: str = ""  # the sub-agent that made it
    model: str = ""
    shape: str = ""  # digest of system prompt and tools
    shape_unknown: bool = False
    params: dict[str, Any] = {}
    follows: str | None = None  # the event whose request it continues
    keep: Annotated[int, Meta(ge=0, le=MAX_KEPT)] = 0
    tail: tuple[SentMessage, ...] = ()
    marks: tuple[CacheMark, ...] = ()
    digest: str = ""  # of the request
    cut: dict[str, Any] | None = None  # the program left texts out of its record
    row: dict[str, Any] = {}  # what else the row states
    erased: str = ""

    @property
    def count(self) -> int:
        """The number of messages in the request."""
        return self.keep + len(self.tail)


def read_record(event: Event) -> ObservedRecord:
    """Return the record in an event; raise an error of msgspec if it is of another program that shares the type."""
    return msgspec.convert(event.data, ObservedRecord)


def blobs_of(event: Event) -> tuple[str, ...]:
    """Return the digests of the blobs that an observed turn refers to; none if the event is of another program."""
    try:
        record = read_record(event)
    except msgspec.ValidationError:
        return ()
    shape = (record.shape,) if record.shape and not record.shape_unknown else ()
    return (*shape, *(sent.digest for sent in record.tail if sent.digest and not sent.messages and not sent.unknown))


def find_record(history: History, event_id: str) -> ObservedRecord:
    """Return the record of an observed turn by the id of its event."""
    event = resolve(history, EventRef(event_id))
    if not isinstance(event, Event) or event.type != OBSERVED:
        problem = f"{event_id} is not an observed turn"
        raise SourceMissing(
            problem, operation="read turn", place=history.layout.events, hint="`daypack turns` lists them"
        )
    try:
        return read_record(event)
    except msgspec.ValidationError as error:
        problem = f"{event_id} is not a valid turn: {error}"
        raise Damaged(
            problem, operation="read turn", place=history.layout.events, hint="see `daypack doctor`"
        ) from error


def sent_messages(history: History, record: ObservedRecord, event_id: str) -> tuple[SentMessage, ...]:
    """Return the messages of a request, from its event and those that it builds on; unknown where one is missing."""
    found: list[Sequence[SentMessage]] = []
    wanted, before = record.count, event_id
    while wanted > 0:
        if wanted > record.keep:
            found.append(record.tail[: wanted - record.keep])
            wanted = record.keep
        earlier = _followed(history, record, before) if wanted else None
        if earlier is None or earlier.count < wanted:
            found.append((UNKNOWN,) * wanted)
            break
        before, record = record.follows or "", earlier
    return tuple(message for part in reversed(found) for message in part)


def count_common(before: Sequence[SentMessage], after: Sequence[SentMessage]) -> int:
    """Return how many messages two requests begin with in common; one that is unknown is like no other."""
    count = 0
    for old, new in zip(before, after, strict=False):
        if not old.digest or old.digest != new.digest:
            break
        count += 1
    return count


def _followed(history: History, record: ObservedRecord, event_id: str) -> ObservedRecord | None:
    """Return the record that another follows; None if it is missing. An event follows an earlier one only."""
    if record.follows is None or _number(record.follows) >= _number(event_id):
        return None
    try:
        return find_record(history, record.follows)
    except (SourceMissing, Damaged):
        return None


def _number(event_id: str) -> int:
    digits = event_id.removeprefix("ev-")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 18 else 0


# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_WARM = msgspec.json.Decoder(ObservedRecord)
