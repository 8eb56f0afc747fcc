"""The events of an import: the progress of earlier imports, raw rows and side files.

    import.begun        {"format","source","path"}                               once per source, first
    import.row          {"format","source","line","row"}                         a row that is not a message, verbatim
    import.rolled_back  {"format","source","line","turns","messages":"messages:5-9"}    turns the user rolled back
    import.compacted    {"format","source","line","id","through":58,"kept":[55,57],"trigger","before_tokens",…}
                        a compaction: of the messages up to `through`, only `kept` stayed in the window
    import.file         {"format","source","file","digest","text" or "blob"}     a side file that rows refer to
    import.progress     {"format","source","path","lines","after","digest","totals","mark","reader"}
                                                                                 all rows up to here are stored

A row that cannot be parsed has "text" or "blob" instead of "row", and the reason in "problem".

The digest of a progress covers the digest of the progress that it continues ("after", if any) and the bytes since. A
progress with a mark (`lines.py`) and the reader's state is where the next import continues, without reading the file or
the events before it. "highest" is in a progress if rows of an earlier version of the file beyond its line are stored.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from daypack.errors import BadMessage, BadSource
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.importers.imported_files import FILE, ImportedFiles
from daypack.importers.lines import Mark
from daypack.importers.transcript import EXTRA_ROWS, Origin, RawRow, Row, time_of
from daypack.plain_files import open_plain
from daypack.types.digest import digest_bytes, digest_of
from daypack.types.history import Event, File, Image, Message
from daypack.types.source import Messages, parse_source

BEGUN, ROW, ROLLED_BACK = "import.begun", "import.row", "import.rolled_back"
COMPACTED = "import.compacted"
PROGRESS = "import.progress"
_MAX_TEXT_BYTES = 64 << 10  # larger unparsable rows are stored as blobs
_MAX_ROW_BYTES = 8 << 20
_NEWEST, _MOST_NEWEST = 64, 4096  # events that are read at a time, from the newest
Number = Callable[[Sequence[Event], int], Sequence[Event]]  # given events, and the number of the first


class Totals(msgspec.Struct):
    """Counts over all imports of a transcript."""

    messages: int = 0
    tool_calls: int = 0
    rows: int = 0  # kept as events
    calls: int = 0  # recorded requests


class Boundary(Struct, frozen=True):
    """All rows up to a line are stored; `digest` covers the bytes since the boundary with the digest `after`."""

    lines: int = 0
    digest: str = ""
    totals: Totals = field(default_factory=Totals)
    after: str = ""
    mark: Mark | None = None
    reader: dict[str, Any] | None = None  # the state of the row reader
    highest: int = 0

    @property
    def resumable(self) -> bool:
        """True if nothing before it has to be read to continue after it."""
        return self.mark is not None and self.reader is not None and self.highest <= self.lines


class ImportLog:
    """The import events of one source in one session."""

    def __init__(self, history: History, origin: Origin) -> None:
        self.begun = False
        self.boundaries: list[Boundary] = []
        self.rolled_back: dict[int, Messages] = {}  # by the line of the rollback
        self.compacted: set[str] = set()  # ids of compactions
        self._history = history
        self._origin = origin
        self._files: set[tuple[str, str]] = set()  # name and digest
        self._rows: list[tuple[int, int]] = []  # line and content hash
        self._stored_rows: Counter[int] = Counter()
        self._whole = False  # all events were read
        self._read_newest()

    @property
    def newest(self) -> Boundary:
        """The newest progress; of a source that was not imported, the beginning of the file."""
        return self.boundaries[-1] if self.boundaries else Boundary()

    @property
    def highest(self) -> int:
        """The highest line of which anything is stored."""
        lines = (max(boundary.lines, boundary.highest) for boundary in self.boundaries)
        return max((*lines, *(line for line, _ in self._rows)), default=0)

    def _read_newest(self) -> None:
        """Read the events from the newest to the newest progress: an import that continues there needs no others."""
        found: list[Event] = []
        for event in self._newest_first():
            if event.type.startswith("import."):
                found.append(event)
                if self._is_progress(event):
                    break
        else:
            self._whole = True
        for event in reversed(found):
            self._fold(event)

    def _newest_first(self) -> Iterator[Event]:
        reader = self._history.events.reader
        stop, count = reader.count(), _NEWEST
        while stop > 0:
            start = max(0, stop - count)
            yield from reversed(reader.read(start, stop))
            stop, count = start, min(2 * count, _MOST_NEWEST)

    def _is_progress(self, event: Event) -> bool:
        return event.type == PROGRESS and event.data.get("source") == self._origin.source

    def read_all(self) -> None:
        """Read all events, unless they were."""
        if self._whole:
            return
        self.boundaries, self.rolled_back, self.compacted, self._files, self._rows = [], {}, set(), set(), []
        self._whole = True
        for event in self._history.events.records():
            if event.type.startswith("import."):
                self._fold(event)

    def _fold(self, event: Event) -> None:
        data = event.data
        if data.get("source") in (self._origin.source, self._origin.source.removesuffix(EXTRA_ROWS)):
            self.begun = True
        if data.get("source") != self._origin.source:
            return
        if event.type == ROW:
            self._rows.append((data.get("line", 0), _content_hash(data)))
        elif event.type == FILE:
            self._files.add((str(data.get("file")), str(data.get("digest"))))
        elif event.type == COMPACTED:
            self.compacted.add(str(data.get("id")))
        elif event.type == PROGRESS:
            self.boundaries.append(msgspec.convert(data, Boundary))
        elif event.type == ROLLED_BACK:
            try:
                reference = parse_source(data.get("messages", ""))
            except BadSource:
                return
            if isinstance(reference, Messages):
                self.rolled_back[data.get("line", 0)] = reference

    def start_after(self, line: int) -> None:
        """Set the line after which rows are read; rows after it that are already stored are not stored twice."""
        self._stored_rows = Counter(content for number, content in self._rows if number > line)

    # Writing

    def draft(self, kind: str, facts: Mapping[str, Any], row: Row | None = None) -> Event:
        """Return an event of this import, with the time of its row."""
        event = draft_event(kind, {"format": self._origin.format, "source": self._origin.source, **facts})
        timestamp = time_of(row.fields.get("timestamp") or row.fields.get("ts")) if row else ""
        return msgspec.structs.replace(event, ts=timestamp)

    def record(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Append one event."""
        event = self._history.append_event(self.draft(kind, facts))
        self._fold(event)

    def append(self, events: Sequence[Event], number: Number | None = None) -> None:
        """Append events atomically, with one sync; `number` completes those that name the ids of others."""
        if not events:
            return
        log, durable = self._history.events, self._history.config.durability == "sync"
        if number is None:
            log.append(events, self._history.clock(), durable=durable)
            return
        with log.lock:  # until they are written, so that the next line has the number that was given
            log.begin()
            log.append(number(events, log.reader.newest().seq + 1), self._history.clock(), durable=durable)

    def new_row(self, raw_row: RawRow) -> list[Event]:
        """Return the event for a raw row, or none if it is already stored."""
        event = self._row_event(raw_row)
        content = _content_hash(event.data)
        if self._stored_rows[content]:
            self._stored_rows[content] -= 1
            return []
        return [event]

    def _row_event(self, raw_row: RawRow) -> Event:
        facts: dict[str, Any] = {"line": raw_row.row.number}
        if raw_row.problem:
            facts["problem"] = raw_row.problem
        if raw_row.changed:
            facts["changed"] = raw_row.changed
        value = raw_row.row.value if raw_row.value is None else raw_row.value
        if value is not None and len(raw_row.row.raw) <= _MAX_ROW_BYTES:
            try:
                return self.draft(ROW, {**facts, "row": value}, raw_row.row)
            except BadMessage as error:
                facts.setdefault("problem", error.problem)
        return self.draft(ROW, {**facts, **self._capture(raw_row.row.raw)}, raw_row.row)

    def record_files(self, paths: Sequence[str]) -> None:
        """Record side files that are not stored yet."""
        files = ImportedFiles(self._history)
        changed = files.changed(paths)
        if not changed:
            return
        stored = files.stored(self._origin.source)
        if stored is None:
            self.read_all()
            stored = self._files
        for path in changed:
            with open_plain(path) as file:
                data = file.read()
            name, digest = os.path.basename(path), digest_bytes(data)
            if (name, digest) not in stored:
                self.record(FILE, {"file": name, "digest": digest, **self._capture(data)})
                stored.add((name, digest))
        files.keep(self._origin.source, stored, changed)

    # Blobs

    def store_blob(self, data: bytes) -> str:
        """Store bytes in the session's blob folder and return their name."""
        return self._history.blobs.put(data)

    def copy_blobs(self, child: History, messages: Sequence[Message]) -> None:
        """Copy the images and files of a child's messages from the parent's blobs to the child's."""
        for message in messages:
            for part in message.content if isinstance(message.content, tuple) else ():
                if isinstance(part, Image | File) and part.source.startswith("sha256-"):
                    child.blobs.put(self._history.blobs.get(part.source))

    def _capture(self, data: bytes) -> dict[str, Any]:
        """Return the event fields for bytes: the text itself, or a reference to a blob."""
        if len(data) <= _MAX_TEXT_BYTES:
            try:
                return {"text": data.decode()}
            except UnicodeDecodeError:
                pass
        name = self.store_blob(data)
        return {"digest": digest_of(name), "blob": name, "bytes": len(data)}


def _content_hash(data: Mapping[str, Any]) -> int:
    """Return a hash of a row event's content, without its line number."""
    return hash(msgspec.json.encode([data.get("row"), data.get("text"), data.get("digest")]))
