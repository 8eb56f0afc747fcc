"""The events of an import: how far earlier ones came, which rows are kept, and how new ones are written.

    import.begun        {"format","source","path"}                               once per source, before all else
    import.row          {"format","source","line","row"}                         a row that is no message, word for word
    import.rolled_back  {"format","source","line","turns","messages":"messages:5-9"}    turns the user took back
    import.file         {"format","source","file","digest","text" or "blob"}     a side file that rows refer to
    import.progress     {"format","source","path","lines","digest","totals"}     all rows up to here are taken in

A row that cannot be read has "text" or "blob" in the place of "row", and says why in "problem".
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from daypack.errors import BadMessage, BadSource
from daypack.files import atomic, blobs
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.importers.transcript import EXTRAS, Kept, Origin, Row, time_of
from daypack.types.digest import digest_of
from daypack.types.history import Event, File, Image, Message
from daypack.types.source import Messages, parse_source

BEGUN, ROW, ROLLED_BACK = "import.begun", "import.row", "import.rolled_back"
FILE, PROGRESS = "import.file", "import.progress"
_MOST_TEXT_BYTES = 64 << 10  # of what cannot be read; more goes to the session's blobs
_MOST_ROW_BYTES = 8 << 20


class Totals(msgspec.Struct):
    """What a transcript came to so far."""

    messages: int = 0
    tool_calls: int = 0
    rows: int = 0  # kept as events


class Boundary(NamedTuple):
    """All rows up to a line were taken in, and this is the digest of their bytes."""

    lines: int = 0
    digest: str = ""
    totals: Totals = Totals()


class ImportLog:
    """The import events of one source in one session."""

    def __init__(self, history: History, origin: Origin) -> None:
        self.begun = False
        self.boundaries: list[Boundary] = []
        self.rolled_back: dict[int, Messages] = {}  # by the line that says so
        self._history = history
        self._origin = origin
        self._files: set[tuple[str, str]] = set()  # name and digest
        self._rows: list[tuple[int, int]] = []  # line and mark
        self._known: Counter[int] = Counter()
        for event in history.events.records():
            if event.type.startswith("import."):
                self._fold(event)

    def _fold(self, event: Event) -> None:
        data = event.data
        if data.get("source") == self._origin.source.removesuffix(EXTRAS):
            self.begun = True
        if data.get("source") != self._origin.source:
            return
        if event.type == ROW:
            self._rows.append((data.get("line", 0), _mark(data)))
        elif event.type == FILE:
            self._files.add((str(data.get("file")), str(data.get("digest"))))
        elif event.type == PROGRESS:
            self.boundaries.append(Boundary(data["lines"], data["digest"], msgspec.convert(data["totals"], Totals)))
        elif event.type == ROLLED_BACK:
            try:
                reference = parse_source(data.get("messages", ""))
            except BadSource:
                return
            if isinstance(reference, Messages):
                self.rolled_back[data.get("line", 0)] = reference

    def start_behind(self, line: int) -> None:
        """Say from where on rows are read: those behind it that are there already are not kept twice."""
        self._known = Counter(mark for number, mark in self._rows if number > line)

    # Writing

    def draft(self, kind: str, facts: Mapping[str, Any], row: Row | None = None) -> Event:
        """Return an event of this import, with the time of its row."""
        event = draft_event(kind, {"format": self._origin.format, "source": self._origin.source, **facts})
        moment = time_of(row.fields.get("timestamp") or row.fields.get("ts")) if row else ""
        return msgspec.structs.replace(event, ts=moment)

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Append one event."""
        event = self._history.append_event(self.draft(kind, facts))
        self._fold(event)

    def append(self, events: Sequence[Event]) -> None:
        """Append events, all or none, with one sync."""
        if events:
            self._history.events.append(
                events, self._history.clock(), durable=self._history.config.durability == "sync"
            )

    def new_row(self, kept: Kept) -> list[Event]:
        """Return the event for a row, or none when it is there already."""
        event = self._row(kept)
        mark = _mark(event.data)
        if self._known[mark]:
            self._known[mark] -= 1
            return []
        return [event]

    def _row(self, kept: Kept) -> Event:
        facts: dict[str, Any] = {"line": kept.row.number}
        if kept.problem:
            facts["problem"] = kept.problem
        if kept.changed:
            facts["changed"] = kept.changed
        value = kept.row.value if kept.value is None else kept.value
        if value is not None and len(kept.row.raw) <= _MOST_ROW_BYTES:
            try:
                return self.draft(ROW, {**facts, "row": value}, kept.row)
            except BadMessage as error:
                facts.setdefault("problem", error.problem)
        return self.draft(ROW, {**facts, **self._capture(kept.row.raw)}, kept.row)

    def take_files(self, paths: Sequence[str]) -> None:
        """Keep side files that are not there yet."""
        for path in paths:
            with open(path, "rb") as file:
                data = file.read()
            name, digest = os.path.basename(path), blobs.digest_bytes(data)
            if (name, digest) not in self._files:
                self.tell(FILE, {"file": name, "digest": digest, **self._capture(data)})

    # Bytes from outside

    def keep(self, data: bytes) -> str:
        """Keep bytes beside the logs and return their name."""
        atomic.make_folders(self._history.layout.blob)
        return blobs.put(self._history.layout.blob, data)

    def copy_blobs(self, child: History, messages: Sequence[Message]) -> None:
        """Give a child's session the pictures its messages name: they were kept in the parent's."""
        for message in messages:
            for part in message.content if isinstance(message.content, tuple) else ():
                if isinstance(part, Image | File) and part.source.startswith("sha256-"):
                    atomic.make_folders(child.layout.blob)
                    blobs.put(child.layout.blob, blobs.get(self._history.layout.blob, part.source))

    def _capture(self, data: bytes) -> dict[str, Any]:
        """Return what an event says of bytes: the text itself, or where they are kept."""
        if len(data) <= _MOST_TEXT_BYTES:
            try:
                return {"text": data.decode()}
            except UnicodeDecodeError:
                pass
        name = self.keep(data)
        return {"digest": digest_of(name), "blob": name, "bytes": len(data)}


def _mark(data: Mapping[str, Any]) -> int:
    """Return a number that stands for what a row's event says, whatever line it came from."""
    return hash(msgspec.json.encode([data.get("row"), data.get("text"), data.get("digest")]))
