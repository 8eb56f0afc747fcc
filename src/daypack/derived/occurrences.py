"""Occurrences: where in history which large content is met, as digests and references.

tool:<call id>   the first large result of that call      messages:N     what message N printed or wrote
child:<name>     a result of that child                   events:ev-N    a pin or another captured text
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from msgspec import Struct

from daypack.derived.children import UPDATED
from daypack.derived.repeated_content import content_of, is_large, printed, written
from daypack.errors import DaypackError
from daypack.files import blobs
from daypack.history.logs.reader import Reader
from daypack.history.session import LARGE_BYTES, OWN_EVENTS, History
from daypack.types.history import Event, Message

MIN_REFS = 2  # a content that occurs once is where it is
_STRETCH = 256  # lines that are read or skipped together
_MAX_CALL_CHARS = 255  # of a call id in a source reference


class OccurrenceIndex(Struct):
    """The contents found in the logs so far: digests and places, no texts."""

    messages: int = 0  # the number of the last message that was read
    events: int = 0
    marks: tuple[int, int] = (0, 0)  # checksums of both logs up to there: other lines, another beginning
    tokenizer: str = ""
    places: dict[str, list[str]] = {}  # hash -> refs
    calls: dict[str, int] = {}  # `tool:` ref -> the number of its message
    sizes: dict[str, tuple[int, int]] = {}  # hash -> bytes and tokens of what occurs more than once
    swapped: dict[str, list[str]] = {}  # ref of a message -> `swap:` refs of its output
    noted: int = 0  # how many contents the file has

    @property
    def repeats(self) -> int:
        """How many references there are to contents that occur more than once."""
        return sum(len(self.places[name]) for name in self.sizes)


class Occurrence(Struct, frozen=True):
    """One content at one place; `message` is 0 for a content of an event."""

    ref: str
    content: str
    message: int = 0


def advance(
    history: History,
    index: OccurrenceIndex,
    upto: int | None = None,
    *,
    events: int | None = None,
    appended: Sequence[Message] = (),
) -> None:
    """Add the occurrences from where `index` ends up to these numbers (None: all), as if all were read at once.

    `appended`: the newest messages, if the caller has them. They may be long, and are not read again.
    """
    index.tokenizer = history.tokenizer
    # Where to stop is settled first: what is appended meanwhile belongs to the next time.
    last, first_mark = reached(history.messages.reader, upto)
    last_event, second_mark = reached(history.events.reader, events)
    first, known = index.messages + 1, _newest(appended, index.messages + 1, last)
    for message in chain(_of_long_lines(history, first, last - len(known)), known):
        for occurrence in of_message(message, index.calls):
            if occurrence.ref.startswith("tool:"):
                index.calls[occurrence.ref] = occurrence.message
            _enter(index, occurrence)
    for event in history.events.records(index.events + 1, last_event):
        for occurrence in of_event(history, event):
            _enter(index, occurrence)
    index.messages, index.events, index.marks = last, last_event, (first_mark, second_mark)


def _newest(appended: Sequence[Message], first: int, last: int) -> Sequence[Message]:
    """Return what was appended if it is the end of a range of messages, without gaps; else nothing."""
    numbers = [message.seq for message in appended]
    return appended if numbers == list(range(last - len(numbers) + 1, last + 1)) and numbers[:1] >= [first] else ()


def _of_long_lines(history: History, first: int, last: int) -> Iterator[Message]:
    """Return the messages of a range, without stretches where no line is long enough for a large content."""
    reader = history.messages.reader
    at, stop = reader.position(first), reader.position(last + 1)
    while at < stop:
        slots = reader.slots(at, min(at + _STRETCH, stop))
        if any(slot.length > LARGE_BYTES for slot in slots):
            yield from history.messages.records(slots[0].seq, slots[-1].seq)
        at += _STRETCH


def reached(reader: Reader[Any], upto: int | None) -> tuple[int, int]:
    """Return the last number up to `upto` and the checksum of the log up to it."""
    at = reader.count() if upto is None else reader.position(upto + 1)
    slots = reader.slots(at - 1, at) if at else []
    return (slots[0].seq, slots[0].crc) if slots else (0, 0)


def of_message(message: Message, calls: Mapping[str, int]) -> Iterator[Occurrence]:
    """Return the large contents of a message; `calls`: the `tool:` refs that are taken."""
    here = f"messages:{message.seq}"
    content = printed(message)
    if content is None:
        for text in written(message):
            yield Occurrence(here, text, message.seq)
        return
    call = message.tool_call_id or ""
    named = f"tool:{call}"
    # An id that was used before names the first result, and one that the grammar cannot spell names none.
    spelled = 0 < len(call) <= _MAX_CALL_CHARS and call.isascii() and call.isprintable() and call[0] != " "
    yield Occurrence(named if spelled and named not in calls else here, content, message.seq)


def of_event(history: History, event: Event) -> Iterator[Occurrence]:
    """Return the large texts that were captured with an event."""
    if event.type.startswith(OWN_EVENTS):
        return
    for part, kept in (("", event.data), *event.data.items()):
        text = captured(history, kept)
        if text is not None and is_large(content := content_of(text)):
            child = event.type == UPDATED and part == "result"
            yield Occurrence(f"child:{event.data.get('name')}" if child else f"events:{event.id}", content)


def all_of(history: History) -> Iterator[Occurrence]:
    """Return every large content of both logs, read while one iterates."""
    calls: dict[str, int] = {}
    for message in history.messages.records():
        for occurrence in of_message(message, calls):
            if occurrence.ref.startswith("tool:"):
                calls[occurrence.ref] = occurrence.message
            yield occurrence
    for event in history.events.records():
        yield from of_event(history, event)


def captured(history: History, kept: object) -> str | None:
    """Return a captured text; None if it is no text, or lost (`doctor` reports that)."""
    if not isinstance(kept, Mapping) or "digest" not in kept:
        return None
    try:
        return history.captured(cast(Mapping[str, Any], kept)).decode()
    except (DaypackError, KeyError, TypeError, AttributeError, UnicodeError):
        return None


def _enter(index: OccurrenceIndex, occurrence: Occurrence) -> None:
    data = occurrence.content.encode()
    name = blobs.name_of(data)
    refs = index.places.setdefault(name, [])
    if occurrence.ref in refs:
        return
    refs.append(occurrence.ref)
    if len(refs) == MIN_REFS:
        from daypack.text.tokens import counter_named  # noqa: PLC0415 — only for what occurs again

        index.sizes[name] = len(data), counter_named(index.tokenizer).count(occurrence.content)
