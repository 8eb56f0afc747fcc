"""The events of recorded requests: each request as an observed turn, each reply to one with its usage.

What a request contains is stored as a reference where history has it, and once as a blob named by its digest where not.
An import that is repeated adds nothing: requests and replies are known by their ids.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from daypack.forks import cached_property
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.importers.import_events import PROGRESS
from daypack.importers.readers.claude_requests import (
    REQUEST,
    Content,
    Joined,
    Request,
    message_contents,
    other_fields,
    read_content,
    read_request,
    reply_to,
)
from daypack.importers.transcript import Origin, RawRow, Row, StoreBlob, time_of
from daypack.turn.dialects.reply import read_usage
from daypack.turn.evidence.observed.blocks import find_runs
from daypack.turn.evidence.observed.record import (
    UNKNOWN,
    ObservedRecord,
    SentMessage,
    count_common,
    read_record,
    sent_messages,
)
from daypack.turn.ledger import OBSERVED, USAGE
from daypack.types.digest import file_name_of
from daypack.types.history import Event, Message
from daypack.types.source import Messages

_BATCH = 256  # events that are read in one go
_NEAR = 64  # messages before an import, among which those of its requests usually are
_UNNUMBERED = "#"  # before the id of a request whose event is not written yet
_LAST = 1 << 62  # a line after all others


class Recorded(NamedTuple):
    """What the request rows of a batch come to: events with their lines, and rows to keep verbatim."""

    events: list[tuple[int, Event]]
    rows: list[RawRow]

    @property
    def calls(self) -> int:
        """The number of requests."""
        return sum(event.type == OBSERVED for _, event in self.events)


class _Turn:
    """A request: its event, and its messages by the request that it follows. Most are never asked for all of them."""

    __slots__ = ("_followed", "_load", "_tail", "count", "event", "keep")

    def __init__(self, event: str, followed: "_Turn | None", keep: int, tail: tuple[SentMessage, ...]) -> None:
        self.event = event
        self.keep = keep
        self.count = keep + len(tail)
        self._followed = followed
        self._tail = tail
        self._load: Callable[[], tuple[SentMessage, ...]] | None = None

    @classmethod
    def stored(cls, history: History, event: str, record: ObservedRecord) -> "_Turn":
        """Return a request of an earlier import, whose messages are read when they are asked for."""
        turn = cls(event, None, record.keep, record.tail)
        turn._load = partial(sent_messages, history, record, event)
        return turn

    def sent(self) -> list[SentMessage]:
        """Return the messages of the request."""
        parts: list[Sequence[SentMessage]] = []
        turn, wanted = self, self.count
        while wanted:
            if turn._load:
                parts.append(turn._load()[:wanted])
                break
            parts.append(turn._tail[: max(0, wanted - turn.keep)])
            wanted = min(wanted, turn.keep)
            if turn._followed is None:
                parts.append((UNKNOWN,) * wanted)
                break
            turn = turn._followed
        return [message for part in reversed(parts) for message in part]


class _Given:
    """The contents in the rows of one batch."""

    def __init__(self, contents: Iterable[Content], message_rows: Sequence[Row]) -> None:
        self.contents = {content.digest: content for content in contents}
        self._message_rows = message_rows

    @cached_property
    def messages(self) -> dict[str, Joined]:
        """The messages of user and assistant rows, for those that history has in another form."""
        return {content.digest: content for content in message_contents(self._message_rows)}


class ObservedEvents:
    """Makes the events of one transcript's requests."""

    def __init__(self, history: History, origin: Origin, store_blob: StoreBlob) -> None:
        self._history = history
        self._origin = origin
        self._store_blob = store_blob
        self._stored = _StoredTurns(history, origin)
        self._messages = _MessagesByDigest(history)
        self._new: dict[str, _Turn] = {}  # of this import, by request id
        self._newest: dict[str, str] = {}  # the newest request of each agent
        self._known: dict[str, SentMessage] = {}  # of the requests so far, by digest

    def start_after(self, line: int) -> None:
        """Set the line up to which an earlier import stored all rows."""
        self._stored.start_line = line

    def read(self, rows: Sequence[Row], stored: Sequence[Message | None], message_rows: Sequence[Row]) -> Recorded:
        """Return what is new in request rows, and in the messages that were stored with them."""
        found = Recorded([], [])
        given = _Given(self._contents(rows, found), message_rows)
        for row in rows:
            if row.fields.get("type") == REQUEST:
                self._read_request(row, given, found)
        for content in given.contents.values():  # a request in a later import may name them
            if not self._is_in_history(content.digest):
                self._store_blob(content.data)
        for message in stored:
            if message and (event := self._usage(message)):
                found.events.append((_LAST, event))
        return found

    def number(self, events: Sequence[Event], first: int) -> list[Event]:
        """Return events that are about to be written, the first with this number, with the ids of those they name."""
        numbered: list[Event] = []
        for seq, event in enumerate(events, first):
            if event.type == OBSERVED:
                self._new[event.data["request"]].event = f"ev-{seq}"
            for name in ("follows", "turn") if event.type in (OBSERVED, USAGE) else ():
                named = event.data.get(name)
                if isinstance(named, str) and named.startswith(_UNNUMBERED):
                    turn = self._new[named.removeprefix(_UNNUMBERED)]
                    event = msgspec.structs.replace(event, data={**event.data, name: turn.event})  # noqa: PLW2901
            numbered.append(event)
        return numbered

    # Requests

    def _contents(self, rows: Sequence[Row], found: Recorded) -> Iterator[Content]:
        for row in rows:
            if row.fields.get("type") == REQUEST:
                continue
            content = read_content(row)
            if content:
                yield content
            if content is None or content.more:
                found.rows.append(RawRow(row, _without_content(row, content) if content else None))

    def _read_request(self, row: Row, given: _Given, found: Recorded) -> None:
        request = read_request(row)
        if request is None:
            found.rows.append(RawRow(row))
        elif not self._is_stored(request.id):
            record = msgspec.to_builtins(self._record(request, row, given))
            found.events.append((row.number, _event(OBSERVED, record, time_of(request.timestamp))))

    def _is_stored(self, request: str) -> bool:
        return request in self._new or self._stored.has_new(request)

    def _turn(self, request: str) -> _Turn | None:
        return self._new.get(request) or self._stored.find(request)

    def _record(self, request: Request, row: Row, given: _Given) -> ObservedRecord:
        followed, keep, more = self._followed(request), request.keep, other_fields(row)
        # A session that is resumed names all its messages again.
        newest = self._newest_of(request.agent_id) if followed is None and not keep else None
        tail = tuple(self._sent(f"sha256:{digest}", given) for digest in request.tail)
        if followed is None and keep:
            more = {**more, "base": request.follows}
        elif newest:
            keep = count_common(newest.sent(), tail)
            followed, tail, more = (newest, tail[keep:], {**more, "keep": 0}) if keep else (None, tail, more)
        self._new[request.id] = _Turn(f"{_UNNUMBERED}{request.id}", followed, keep, tail)
        self._newest[request.agent_id] = request.id
        self._note(tail)
        shape = _digest(request.shape_hash)
        return ObservedRecord(
            program=self._origin.format,
            request=request.id,
            source=self._origin.source,
            line=row.number,
            version=request.version,
            purpose=request.query_source,
            agent=request.agent_id,
            model=str(request.params.get("model") or ""),
            shape=shape,
            shape_unknown=bool(shape) and not self._has_blob(shape, given),
            params=request.params,
            follows=followed.event if followed else None,
            keep=keep,
            tail=tail,
            marks=request.cache_control,
            digest=_digest(request.request_digest or request.cut_request_digest),
            cut=request.cut,
            row=more,
        )

    def _followed(self, request: Request) -> _Turn | None:
        """Return the request that another follows; None if it is missing, or has fewer messages than are kept."""
        followed = self._turn(request.follows) if request.follows else None
        return followed if followed and request.keep <= followed.count else None

    def _newest_of(self, agent: str) -> _Turn | None:
        if agent in self._newest:
            return self._new[self._newest[agent]]
        newest = self._stored.newest(agent)
        if newest:
            self._note(newest.sent())
        return newest

    def _note(self, sent: Iterable[SentMessage]) -> None:
        self._known.update((message.digest, message) for message in sent if message.digest and not message.unknown)

    def _sent(self, digest: str, given: _Given) -> SentMessage:
        if known := self._known.get(digest):
            return known
        found = self._messages.near(digest)
        if found is None and self._has_blob(digest, given):
            return SentMessage(digest)
        found = found or self._messages.anywhere(digest)
        if found is None and (content := given.messages.get(digest)):
            self._store_blob(content.data)
            return SentMessage(digest)
        return found or SentMessage(digest, unknown=True)

    def _has_blob(self, digest: str, given: _Given) -> bool:
        if content := given.contents.get(digest):
            self._store_blob(content.data)
            return True
        return self._history.blobs.has(file_name_of(digest))

    def _is_in_history(self, digest: str) -> bool:
        known = self._known.get(digest) or self._messages.near(digest)
        return known is not None and bool(known.messages)

    # Replies

    def _usage(self, message: Message) -> Event | None:
        """Return the event with the usage of a reply; None if it is stored, or the request is not recorded."""
        request = reply_to(message.meta)
        turn = self._turn(request) if request else None
        if turn is None or self._stored.is_answered(turn.event, message.id):
            return None
        usage = read_usage((message.meta or {}).get("usage"))
        amounts = msgspec.structs.asdict(usage) if usage else {}
        reported = {name: value for name, value in amounts.items() if value is not None}
        return _event(USAGE, {"message": message.id, "turn": turn.event, **reported}, message.ts)


class _StoredTurns:
    """The requests in the events of a session, read from the newest as far as they are asked for."""

    def __init__(self, history: History, origin: Origin) -> None:
        self.start_line = 0
        self._history = history
        self._source = origin.source
        self._events = self._newest_first()
        self._records: dict[str, tuple[str, ObservedRecord]] = {}  # request -> event and record
        self._newest: dict[str, str] = {}  # agent -> request
        self._answered: set[tuple[str, str]] = set()  # event and reply
        self._reached_start = False

    def has_new(self, request: str) -> bool:
        """Return True if a request after the start line is stored: an import was interrupted, or the file changed."""
        while request not in self._records and not self._reached_start and self._read():
            pass
        return request in self._records

    def find(self, request: str) -> _Turn | None:
        """Return a stored request."""
        while request not in self._records and self._read():
            pass
        if request not in self._records:
            return None
        return _Turn.stored(self._history, *self._records[request])

    def newest(self, agent: str) -> _Turn | None:
        """Return the newest request of an agent."""
        while agent not in self._newest and self._read():
            pass
        return self.find(self._newest[agent]) if agent in self._newest else None

    def is_answered(self, event: str, message: str) -> bool:
        """Return True if the usage of a reply to a request that was found is stored."""
        return (event, message) in self._answered

    def _read(self) -> bool:
        event = next(self._events, None)
        if event is None:
            return False
        data = event.data
        if event.type == USAGE:
            self._answered.add((str(data.get("turn")), str(data.get("message"))))
        elif event.type == PROGRESS and data.get("source") == self._source:
            self._reached_start = 0 < data.get("lines", 0) <= self.start_line
        elif event.type == OBSERVED and data.get("source") == self._source:
            try:
                record = read_record(event)
            except msgspec.ValidationError:
                return True  # of another program, which only shares the type
            self._records.setdefault(record.request, (event.id, record))
            self._newest.setdefault(record.agent, record.request)
        return True

    def _newest_first(self) -> Iterator[Event]:
        reader = self._history.events.reader
        for stop in range(reader.count(), 0, -_BATCH):
            yield from reversed(reader.read(max(0, stop - _BATCH), stop))


class _MessagesByDigest:
    """The messages of requests that history has, by the digest that requests name them by."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._found: dict[str, SentMessage] = {}
        self._next = max(1, self._newest() - _NEAR)  # where the run begins that the next message may continue
        self._read_to = 0
        self._is_whole = self._next == 1

    def near(self, digest: str) -> SentMessage | None:
        """Return a message that is new, or a little older."""
        newest = self._newest()
        if newest > self._read_to:
            self._next = self._read(self._next, newest)
            self._read_to = newest
        return self._found.get(digest)

    def anywhere(self, digest: str) -> SentMessage | None:
        """Return a message from anywhere in history."""
        if not self._is_whole:
            self._is_whole = True
            self._read(1, self._newest())
        return self._found.get(digest)

    def _read(self, first: int, last: int) -> int:
        """Read messages; return where the last run of them begins."""
        begin = first
        for run in find_runs(self._history.messages.records(first, last), self._blob):
            begin = run.first
            # A run that was read from the middle has a digest that no request has, or by chance the right one.
            self._found.setdefault(run.digest, SentMessage(run.digest, str(Messages(run.first, run.last))))
        return begin

    def _blob(self, name: str) -> bytes:
        return self._history.blobs.get(name)

    def _newest(self) -> int:
        return self._history.messages.reader.newest().seq


def _digest(hexadecimal: str | None) -> str:
    return f"sha256:{hexadecimal}" if hexadecimal else ""


def _without_content(row: Row, content: Content) -> dict[str, Any]:
    return {"type": row.fields["type"], "digest": content.digest, **content.more}


def _event(kind: str, data: dict[str, Any], ts: str) -> Event:
    return msgspec.structs.replace(draft_event(kind, data), ts=ts)
