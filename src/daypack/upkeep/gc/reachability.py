"""Determine which derived files of a session are still referenced, and which history can reproduce.

References are collected from packs, records, refs, pins and children on disk, from the newest turn of each target
with the messages of its window, from imported and exported envelopes, and from the current compaction. The swap and
dedup indexes are derived and therefore not counted as referrers.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from daypack.derived.child_files import FILES, Files
from daypack.derived.children import UPDATED, recorded_files
from daypack.derived.dedup import recount
from daypack.derived.swap import chunk_of, digest_messages, id_of, range_of
from daypack.errors import BadSource, Damaged, NotFound
from daypack.files import atomic, blobs
from daypack.forks import cached_property
from daypack.history.layout import DERIVED
from daypack.history.session import History
from daypack.turn.evidence.replay import read_turn
from daypack.turn.ledger import EXPORTED, IMPORTED, Ledger, RecordedTurn
from daypack.types.digest import file_name_of
from daypack.types.history import Event
from daypack.types.records import Ref, SwapRecord, SwapReference
from daypack.types.source import Messages, parse_source
from daypack.upkeep.gc.policy import POLICY
from daypack.upkeep.gc.references import UNREADABLE, References, captured_by, strings, texts_of
from daypack.upkeep.gc.session_files import names_in, regular_file

RECORDS = ("context_doc", "summary", "facts", "decisions", "todo", "errors", "refs")
COMPACTIONS = ("context.compaction.completed", "context.compaction.undone")
# Events whose references are collected elsewhere, or that only mention removed files.
_SKIPPED_EVENTS = ("context.", "import.", "gc.")
_BULK_READ_MIN = 16  # more messages than this are read in one pass


class Reachability:
    """References in the logs and files of a session; `catch_up` reads the events appended since the last call."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.captured: dict[str, str] = {}  # name of a captured text -> the event that refers to it
        self.policy: Event | None = None
        self.compactions: list[Event] = []
        self._children: list[Event] = []
        self._mentions = References()
        self._recounted: tuple[tuple[int, int], dict[str, tuple[str, ...]]] = ((-1, -1), {})
        self._exported: list[Event] = []
        self._ledger = Ledger(history)
        self._last_event = 0
        self._unreadable = False
        self._range_digests: dict[tuple[int, int], str] = {}

    def catch_up(self) -> None:
        """Read the events appended since the last call."""
        for event in self.history.events.records(self._last_event + 1):
            self._last_event = event.seq
            for name in captured_by(event):
                self.captured.setdefault(name, f"{event.id} ({event.type})")
            if event.type == POLICY:
                self.policy = event
            elif event.type == EXPORTED:
                self._exported.append(event)
            elif event.type in COMPACTIONS:
                self.compactions.append(event)
            elif event.type == UPDATED:
                self._children.append(event)
            elif not event.type.startswith(_SKIPPED_EVENTS):
                for text in strings(event.data):
                    self._mentions.add_text(f"events:{event.id}", text, children=False)

    @property
    def damaged(self) -> bool:
        """True if something unreadable may contain references: then no unreferenced file is safe to remove."""
        return self._unreadable or bool(self.history.events.reader.damage or self.history.messages.reader.damage)

    def recorded_children(self) -> dict[str, Files]:
        """Return the files of children that events can restore: child name -> relative path -> content."""
        return recorded_files(self.history, self._children)

    def occurrences(self, name: str, swapped: Iterable[SwapRecord]) -> tuple[str, ...]:
        """Return the places in history that contain a blob's text; recounted when history has grown."""
        counts = self.history.messages.reader.count(), self.history.events.reader.count()
        if self._recounted[0] != counts:
            self._recounted = counts, recount(self.history, swapped=swapped)
        return self._recounted[1].get(name, ())

    def mentions(self, name: str) -> list[str]:
        """Return the events that mention a digest, excluding turns, compactions and imports."""
        return self._mentions.to_digest(name)

    def references(self) -> References:
        """Collect the references in files and logs as they are now."""
        references = References()
        layout = self.history.layout
        for file in ("pack", "pack_text", *RECORDS):
            self._add_file(references, DERIVED[file], layout.derived(file))
        for name, path in _files_in(layout.pinned):
            self._add_file(references, f"the pin {name}", path)
        for name, path in _files_in(layout.derived("child"), *FILES.values()):
            self._add_file(references, f"child {name}", path)
        for event in self._exported:
            references.add_value(f"{event.id} ({event.type})", event.data)
        state = self._ledger.read()
        for target, newest in state.turns.items():
            self._add_turn(references, target, newest)
        for digest in state.imported:
            self._add_captured(references, f"an imported envelope ({IMPORTED})", digest)
        if self.compactions:
            self._add_compaction(references)
        return references

    def _add_file(self, references: References, referrer: str, path: str) -> None:
        data = atomic.read(path)
        if data is None:
            return
        with suppress(*UNREADABLE):
            if path.endswith(".json"):
                references.add_value(referrer, msgspec.json.decode(data))
                return
            if path.endswith(".jsonl"):
                references.add_value(referrer, msgspec.json.Decoder().decode_lines(data))
                return
        references.add_text(referrer, data.decode("utf-8", "replace"))

    def _add_turn(self, references: References, target: str, newest: RecordedTurn) -> None:
        """Add the references in a turn's event, in its captured texts and in the messages of its window."""
        for event in self._events_of(newest):
            referrer = f"the newest turn for {target} ({event.id})"
            references.add_value(referrer, event.data)
            for name in captured_by(event):
                self._add_captured(references, referrer, name)
        try:
            opening = read_turn(self.history, newest.opening).opening
        except (NotFound, Damaged):
            opening = None
        if opening is None:
            self._unreadable = True  # the content of its window is unknown
            return
        for start, stop in ((opening.head, opening.head), (opening.start, None)):
            if start is not None:
                self._add_window(references, start, stop)

    def _events_of(self, newest: RecordedTurn) -> Iterator[Event]:
        """Yield the events that describe a turn: its own, that of its epoch, and those whose additions it shows."""
        waiting, seen = [newest.event, newest.opening], set[str]()
        while waiting:
            event_id = waiting.pop()
            if event_id in seen:
                continue
            seen.add(event_id)
            seq = int(event_id.removeprefix("ev-"))
            for event in self.history.events.records(seq, seq):
                yield event
                if isinstance(carried := event.data.get("carries"), str):
                    waiting.append(carried)

    def _add_window(self, references: References, start: int, stop: int | None) -> None:
        """Add the references in messages; a large tool output may be shown as a stub of its own chunk."""
        for message in self.history.messages.records(start, stop):
            referrer = f"messages:{message.seq}"
            for text in texts_of(message):
                references.add_text(referrer, text, children=False)
            if message.role == "tool":
                references.add_text(referrer, id_of(message), children=False)

    def _add_captured(self, references: References, referrer: str, digest: str) -> None:
        try:
            data = self.history.blobs.get(file_name_of(digest))
        except (NotFound, Damaged):
            self._unreadable = True
        else:
            references.add_text(referrer, data.decode("utf-8", "replace"))

    def _add_compaction(self, references: References) -> None:
        """Add the chunks and records of the current compaction, even if its files are missing."""
        from daypack.derived.records import fold  # noqa: PLC0415 — only for sessions with compactions

        folded = fold(self.history, self.compactions)
        completed = sum(event.type == COMPACTIONS[0] for event in self.compactions)
        self._unreadable |= completed != len(folded.accepted) + len(folded.undone)
        if folded.current:
            referrer = f"the compaction {folded.current.id}"
            references.add_value(referrer, msgspec.to_builtins(folded.current.swapped))
            references.add_value(referrer, msgspec.to_builtins(folded.records))
            references.add_value(referrer, msgspec.to_builtins(list(folded.refs.values())))

    # Swap chunks that history can reproduce

    @cached_property
    def _message_log(self) -> str:
        return os.path.basename(self.history.layout.messages)

    def _range_digest(self, start: int, stop: int) -> str:
        # History is append-only, so a digest never changes.
        if (start, stop) not in self._range_digests:
            self._range_digests[start, stop] = digest_messages(self.history.messages.records(start, stop))
        return self._range_digests[start, stop]

    def read_outputs(self, records: Iterable[SwapRecord]) -> None:
        """Digest the messages of many single-message records in one pass; each seek costs 0.3 ms."""
        wanted: set[int] = set()
        for record in records:
            with suppress(ValueError):
                span = range_of(record)
                if span.start == span.stop and (span.start, span.stop) not in self._range_digests:
                    wanted.add(span.start)
        if len(wanted) > _BULK_READ_MIN:
            for message in self.history.messages.records(min(wanted), max(wanted)):
                if message.seq in wanted:
                    self._range_digests[message.seq, message.seq] = digest_messages((message,))

    def can_make_chunk(self, name: str, data: bytes) -> bool:
        """Return True if history reproduces exactly these bytes of a chunk."""
        try:
            reference = msgspec.json.decode(data, type=SwapReference)
        except UNREADABLE:
            return False  # text instead of a reference: it may be the only copy
        start, stop = _seq(reference.start_event), _seq(reference.end_event)
        if reference.source != self._message_log or 0 in (start, stop) or blobs.name_of(data) != name:
            return False
        return chunk_of(start, stop, self._range_digest(start, stop)) == data

    def can_make_record(self, record: SwapRecord) -> bool:
        """Return True if history reproduces the chunk of an index record."""
        if record.source != self._message_log:
            seq = _seq(record.event or "")
            return bool(seq and list(self.history.events.records(seq, seq)))
        try:
            span = range_of(record)
        except ValueError:
            return False
        return self._reproduces(record.id, span)

    def can_make_ref(self, ref: Ref) -> bool:
        """Return True if history reproduces the chunk that a ref points to."""
        try:
            span = parse_source(ref.source or "")
        except BadSource:
            return False
        return isinstance(span, Messages) and self._reproduces(os.path.basename(ref.path), span)

    def _reproduces(self, name: str, span: Messages) -> bool:
        return blobs.name_of(chunk_of(span.start, span.stop, self._range_digest(span.start, span.stop))) == name


def _seq(event_id: str) -> int:
    """Return the number in `msg-12`, `ev-12` or `12`; 0 if there is none."""
    digits = event_id.removeprefix("msg-").removeprefix("ev-")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 18 else 0


def _files_in(folder: str, *files: str) -> Iterator[tuple[str, str]]:
    """Yield the regular files of a folder; with `files`, those in each of its subfolders."""
    for name in names_in(folder):
        for path in [os.path.join(folder, name, file) for file in files] or [os.path.join(folder, name)]:
            if regular_file(path):
                yield name, path
