"""The calls of a session, brought up to date with its logs and kept for the next process.

context/calls.jsonl   {"version":2,"events":[420,420,37359,91822],"messages":[210,…],"calls":12,…}⏎ {"prepared":…}⏎

The first line says how far both logs were folded: lines, number and running crc of the last one, bytes. The second line
has the rows. Both have a checksum. Folding continues there if the logs still begin with these lines; if not, or without
a file, it starts again. The file holds no text of history.
"""

import os
from typing import NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.files.offsets import START
from daypack.forks import ThreadLock
from daypack.history.layout import Layout
from daypack.history.logs.lines import UNREADABLE
from daypack.history.logs.reader import Reader, Record
from daypack.history.session import History
from daypack.plain_files import open_fd
from daypack.turn.evidence.calls.observed import ObservedCalls, ObservedState
from daypack.turn.evidence.calls.prepared import PreparedCalls, PreparedState
from daypack.turn.evidence.calls.rows import Calls, merge

_VERSION = 2  # increased when the rows are made otherwise
# What lines contain that are folded; all others are checked and not decoded.
_EVENTS = (
    *(b'"context.turn"', b'"context.usage"', b'"context.observed"', b'"context.compaction.'),
    *(b'"provider.error"', b'"provider.overflow"', b'"token_count"', b'"compacted"', b'"compact_boundary"'),
)
_MESSAGES = (b'"usage":{', b'"isApiErrorMessage":true')
_SAVE_EVERY = 2000  # lines of both logs; reading them again costs less than writing a file with every call
_SAVE_CALLS = 32
_HEAD_BYTES = 1 << 10  # more than the first line has
_MOST_TRIES = 3  # while another process rewrites the logs


class Position(NamedTuple):
    """How far a log was folded."""

    lines: int = 0
    seq: int = 0
    crc: int = 0
    end: int = 0  # bytes


class Summary(Struct, frozen=True):
    """The first line of the file."""

    version: int = 0
    events: Position = Position()
    messages: Position = Position()
    calls: int = 0
    compactions: int = 0  # undone ones too
    rows: int = 0  # checksum of the second line
    checksum: int = 0  # of all other fields

    def sealed(self) -> "Summary":
        """Return it with its checksum."""
        return replace(self, checksum=crc32(msgspec.json.encode(replace(self, checksum=0))))

    @property
    def is_whole(self) -> bool:
        """True if it is of this version and as it was written."""
        return self.version == _VERSION and self == self.sealed()


class _Rows(Struct, omit_defaults=True):
    prepared: PreparedState
    observed: ObservedState


class _Folded:
    """A fold in memory."""

    def __init__(self, history: History, rows: _Rows, summary: Summary) -> None:
        self.rows = rows
        self.events, self.messages = summary.events, summary.messages
        self.prepared = PreparedCalls(history, rows.prepared)
        self.observed = ObservedCalls(history, rows.observed)

    @property
    def lines(self) -> int:
        """The number of lines that were folded."""
        return self.events.lines + self.messages.lines


class CallFold:
    """The calls of one session; reading them brings them up to date."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._path = history.layout.derived("calls")
        self._folded: _Folded | None = None
        self._saved = (-_SAVE_EVERY, 0)  # lines and calls
        self._threads = ThreadLock(self._drop)

    def read(self) -> Calls:
        """Return all calls so far, oldest first."""
        with self._threads:
            folded = self._folded or self._load()
            self._folded = None  # an update that fails leaves half a fold
            for _ in range(_MOST_TRIES):
                if self._update(folded):
                    break
                folded = self._new()
            self._folded = folded
            calls = merge(folded.prepared.calls(), folded.observed.calls())
            self._save(folded, calls)
            return calls

    def _drop(self) -> None:
        self._folded = None

    def _new(self) -> _Folded:
        self._saved = (-_SAVE_EVERY, 0)
        return _Folded(self._history, _Rows(PreparedState(), ObservedState()), Summary())

    def _update(self, folded: _Folded) -> bool:
        """Fold what was appended; return False if the logs do not begin with what was folded."""
        events, messages = self._history.events, self._history.messages
        # In this order: a message is written before the events about it.
        last_event, last_message = _end(events.reader), _end(messages.reader)
        if (last_event, last_message) == (folded.events, folded.messages):
            return True
        if not _is_of(events.reader, folded.events) or not _is_of(messages.reader, folded.messages):
            return False
        generations = events.reader.generation, messages.reader.generation
        for event in events.holding(_EVENTS, folded.events.seq + 1, last_event.seq):
            folded.prepared.take(event)
            folded.observed.take(event)
        for message in messages.holding(_MESSAGES, folded.messages.seq + 1, last_message.seq):
            folded.observed.take_message(message)
        folded.observed.settle()
        folded.events, folded.messages = last_event, last_message
        if generations == (events.reader.generation, messages.reader.generation):
            return True
        return _is_of(events.reader, folded.events) and _is_of(messages.reader, folded.messages)

    def _load(self) -> _Folded:
        try:
            head, _, body = (atomic.read(self._path) or b"").partition(b"\n")
            summary = _summaries.decode(head)
            if summary.is_whole and summary.rows == crc32(body):
                folded = _Folded(self._history, _rows.decode(body), summary)
                self._saved = folded.lines, summary.calls
                return folded
        except (DaypackError, *UNREADABLE):
            pass
        return self._new()

    def _save(self, folded: _Folded, calls: Calls) -> None:
        """Write the fold for the next process; a failure costs only time."""
        lines, count = self._saved
        if folded.lines - lines < _SAVE_EVERY and len(calls.rows) - count < _SAVE_CALLS:
            return
        self._saved = folded.lines, len(calls.rows)  # do not try a read-only folder again with every call
        body = msgspec.json.encode(folded.rows) + b"\n"
        summary = Summary(
            version=_VERSION,
            events=folded.events,
            messages=folded.messages,
            calls=len(calls.rows),
            compactions=len(calls.folds),
            rows=crc32(body),
        ).sealed()
        try:
            layout = self._history.layout
            atomic.make_folders(layout.context, durable=False, inside=layout.folder)
            atomic.replace(self._path, msgspec.json.encode(summary) + b"\n" + body, durable=False)
        except DaypackError:
            return


def _end(reader: Reader[Record]) -> Position:
    lines = reader.count()
    last = reader.slots(lines - 1, lines)[-1] if lines else START
    return Position(lines, last.seq, last.crc, last.end)


def _is_of(reader: Reader[Record], position: Position) -> bool:
    """Return True if a log still begins with the lines up to a position."""
    lines = position.lines
    slots = reader.slots(lines - 1, lines) if lines else [START]
    return bool(slots) and Position(lines, slots[0].seq, slots[0].crc, slots[0].end) == position


def read_summary(layout: Layout) -> Summary | None:
    """Return what the file of a session states, without opening the session; None unless both logs are as they were."""
    try:
        fd = open_fd(layout.derived("calls"), os.O_NOFOLLOW)
        try:
            summary = _summaries.decode(os.read(fd, _HEAD_BYTES).partition(b"\n")[0])
        finally:
            os.close(fd)
        sizes = os.stat(layout.events).st_size, os.stat(layout.messages).st_size
    except (OSError, *UNREADABLE):
        return None
    is_current = summary.is_whole and (summary.events.end, summary.messages.end) == sizes
    return summary if is_current else None


# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_summaries = msgspec.json.Decoder(Summary)
_rows = msgspec.json.Decoder(_Rows)
