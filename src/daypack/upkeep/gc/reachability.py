"""What of a session's derived files is reachable, and from where: who names a chunk, a blob or a child.

Named by: the packs, the records, refs, pins and children as they stand on disk, the newest turn of each target with
every text it showed, its window's messages, envelopes that came from or went elsewhere, the compaction that counts.
An index names nothing: it is derived, and not trusted.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, cast

import msgspec

from daypack.derived.child_files import FILES, Files
from daypack.derived.children import UPDATED, recorded_files
from daypack.derived.dedup import recount
from daypack.derived.swap import chunk_of, digest_messages, id_of, range_of
from daypack.errors import BadSource, Damaged, NotFound
from daypack.files import atomic, blobs
from daypack.history.layout import DERIVED
from daypack.history.session import History
from daypack.turn.evidence.record import read_turn
from daypack.turn.ledger import EXPORTED, IMPORTED, TURN, Ledger, Newest
from daypack.types.digest import file_name_of
from daypack.types.history import Event, Message, Text
from daypack.types.records import DedupRecord, Ref, SwapRecord, SwapReference
from daypack.types.source import Messages, parse_source
from daypack.upkeep.gc.policy import POLICY
from daypack.upkeep.gc.tree import names_in, plain

RECORDS = ("context_doc", "summary", "facts", "decisions", "todo", "errors", "refs")
COMPACTIONS = ("context.compaction.completed", "context.compaction.undone")
# What these say is told in full by what else is looked at, or tells only what is gone.
_OWN_EVENTS = ("context.", "import.", "gc.")
_FEW = 16
_SHORTEST = 8  # hexadecimal digits by which a stub may name a chunk
_DIGEST = re.compile(rf"sha256[-:]([0-9a-f]{{{_SHORTEST},64}})(?![0-9a-f])")
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


class Named:
    """Who names what, found in texts."""

    def __init__(self) -> None:
        self._whole: dict[str, dict[str, None]] = {}
        self._begun: list[tuple[str, str]] = []
        self._texts: list[tuple[str, str]] = []

    def take(self, who: str, text: str, *, children: bool = True) -> None:
        """Note the digests in a text; `children`: look for the names of children in it too."""
        for match in _DIGEST.finditer(text):
            if len(match[1]) == 64:
                self._whole.setdefault(match[1], {})[who] = None
            else:
                self._begun.append((match[1], who))
        if children:
            self._texts.append((who, text))

    def take_value(self, who: str, value: object) -> None:
        """Note the digests and names in the strings of a JSON value."""
        for text in strings(value):
            self.take(who, text)

    def digest(self, name: str) -> list[str]:
        """Return who names a digest, in full or by its beginning, each once."""
        digits = name[7:]
        found = dict(self._whole.get(digits, {}))
        found.update((who, None) for begun, who in self._begun if digits.startswith(begun))
        return list(found)

    def child(self, name: str) -> list[str]:
        """Return who names a child, itself not counted, each once."""
        marks = (f"child/{name}", f"child:{name}", f"child_result:{name}", f"child_refs:{name}")
        own = f"child {name}"
        return list(dict.fromkeys(who for who, text in self._texts if who != own and any(one in text for one in marks)))


def strings(value: object) -> Iterator[str]:
    """Yield every string of a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in cast(Mapping[object, object], value).items():
            yield from strings(key)
            yield from strings(one)
    elif isinstance(value, list | tuple):
        for one in cast(Iterable[object], value):
            yield from strings(one)


class Reach:
    """What the logs tell about references: read once, then brought up to date by what was appended since."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.blobs: dict[str, str] = {}  # captured text -> the event that refers to it
        self.policy: Event | None = None
        self.compactions: list[Event] = []
        self._children: list[Event] = []
        self._mentions = Named()
        self._counted: tuple[tuple[int, int], dict[str, tuple[str, ...]]] = ((-1, -1), {})
        self._exported: list[Event] = []
        self._ledger = Ledger(history)
        self._events = 0
        self._unread = False
        self._ranges: dict[tuple[int, int], str] = {}

    def catch_up(self) -> None:
        """Read the events that were appended since."""
        for event in self.history.events.records(self._events + 1):
            self._events = event.seq
            for name in captured_by(event):
                self.blobs.setdefault(name, f"{event.id} ({event.type})")
            if event.type == POLICY:
                self.policy = event
            elif event.type == EXPORTED:
                self._exported.append(event)
            elif event.type in COMPACTIONS:
                self.compactions.append(event)
            elif event.type == UPDATED:
                self._children.append(event)
            elif not event.type.startswith(_OWN_EVENTS):
                for text in strings(event.data):
                    self._mentions.take(f"events:{event.id}", text, children=False)

    @property
    def damaged(self) -> bool:
        """Whether something that may refer to others cannot be read: then nobody knows what it referred to."""
        return self._unread or bool(self.history.events.reader.damage or self.history.messages.reader.damage)

    def recorded_children(self) -> dict[str, Files]:
        """Return what comes back of children from the events: name -> path in its folder -> its bytes."""
        return recorded_files(self.history, self._children)

    def occurrences(self, name: str, swapped: Iterable[SwapRecord]) -> tuple[str, ...]:
        """Return where history says the words of a blob, counted anew when it has grown."""
        state = self.history.messages.reader.count(), self.history.events.reader.count()
        if self._counted[0] != state:
            self._counted = state, recount(self.history, swapped=swapped)
        return self._counted[1].get(name, ())

    def mentions(self, name: str) -> list[str]:
        """Return the events that name a digest, those of turns and compactions not counted."""
        return self._mentions.digest(name)

    def named(self) -> Named:
        """Return who names what, as files and logs are now."""
        named = Named()
        layout = self.history.layout
        for file in ("pack", "pack_text", *RECORDS):
            self._take_file(named, DERIVED[file], layout.derived(file))
        for name, path in _texts_in(layout.pinned):
            self._take_file(named, f"the pin {name}", path)
        for name, path in _texts_in(layout.derived("child"), *FILES.values()):
            self._take_file(named, f"child {name}", path)
        for event in self._exported:
            named.take_value(f"{event.id} ({event.type})", event.data)
        folded = self._ledger.read()
        for target, newest in folded.turns.items():
            self._take_turn(named, target, newest)
        for digest in folded.imported:
            self._take_blob(named, f"an envelope that was imported ({IMPORTED})", digest)
        if self.compactions:
            self._take_compactions(named)
        return named

    def _take_file(self, named: Named, who: str, path: str) -> None:
        data = atomic.read(path)
        if data is None:
            return
        with suppress(*_UNREADABLE):
            if path.endswith(".json"):
                named.take_value(who, msgspec.json.decode(data))
                return
            if path.endswith(".jsonl"):
                named.take_value(who, msgspec.json.Decoder().decode_lines(data))
                return
        named.take(who, data.decode("utf-8", "replace"))

    def _take_turn(self, named: Named, target: str, newest: Newest) -> None:
        """A turn names what its event says, what its texts say, and what stands in its window."""
        events = dict.fromkeys((newest.event, newest.opening))
        for name in events:
            number = int(name.removeprefix("ev-"))
            for event in self.history.events.records(number, number):
                who = f"the newest turn for {target} ({name})"
                named.take_value(who, event.data)
                for blob in captured_by(event):
                    self._take_blob(named, who, blob)
        try:
            opening = read_turn(self.history, newest.opening).opening
        except (NotFound, Damaged):
            opening = None
        if opening is None:
            self._unread = True  # nobody knows what stood in its window
            return
        for start, stop in ((opening.head, opening.head), (opening.start, None)):
            if start is not None:
                self._take_window(named, start, stop)

    def _take_window(self, named: Named, start: int, stop: int | None) -> None:
        """Messages in a window name what they say, and a large one may stand there as the stub of its own chunk."""
        for message in self.history.messages.records(start, stop):
            who = f"messages:{message.seq}"
            for text in texts_of(message):
                named.take(who, text, children=False)
            if message.role == "tool":
                named.take(who, id_of(message), children=False)

    def _take_blob(self, named: Named, who: str, digest: str) -> None:
        try:
            data = blobs.get(self.history.layout.blob, file_name_of(digest))
        except (NotFound, Damaged):
            self._unread = True
        else:
            named.take(who, data.decode("utf-8", "replace"))

    def _take_compactions(self, named: Named) -> None:
        """The compaction that counts names what it swapped out and its records, also where a file of it is missing."""
        from daypack.derived.records import fold  # noqa: PLC0415 — only of a session with compactions

        folded = fold(self.history, self.compactions)
        told = sum(event.type == COMPACTIONS[0] for event in self.compactions)
        self._unread |= told != len(folded.accepted) + len(folded.undone)
        if folded.current:
            who = f"the compaction {folded.current.id}"
            named.take_value(who, msgspec.to_builtins(folded.current.swapped))
            named.take_value(who, msgspec.to_builtins(folded.records))
            named.take_value(who, msgspec.to_builtins(list(folded.refs.values())))

    # Swap

    @cached_property
    def _log(self) -> str:
        return os.path.basename(self.history.layout.messages)

    def _digest(self, start: int, stop: int) -> str:
        # History is only added to: what was read once holds.
        if (start, stop) not in self._ranges:
            self._ranges[start, stop] = digest_messages(self.history.messages.records(start, stop))
        return self._ranges[start, stop]

    def read_outputs(self, records: Iterable[SwapRecord]) -> None:
        """Read the messages of many records in one go: one by one, each would cost a third of a millisecond."""
        wanted: set[int] = set()
        for record in records:
            with suppress(ValueError):
                extent = range_of(record)
                if extent.start == extent.stop and (extent.start, extent.stop) not in self._ranges:
                    wanted.add(extent.start)
        if len(wanted) > _FEW:
            for message in self.history.messages.records(min(wanted), max(wanted)):
                if message.seq in wanted:
                    self._ranges[message.seq, message.seq] = digest_messages((message,))

    def can_make_chunk(self, name: str, data: bytes) -> bool:
        """Whether history gives exactly these bytes of a chunk again."""
        try:
            reference = msgspec.json.decode(data, type=SwapReference)
        except _UNREADABLE:
            return False  # a copy of words, and not a reference: it may be the only one
        ends = _number(reference.start_event), _number(reference.end_event)
        if reference.source != self._log or 0 in ends or blobs.name_of(data) != name:
            return False
        return chunk_of(*ends, self._digest(*ends)) == data

    def can_make_record(self, record: SwapRecord) -> bool:
        """Whether history gives the chunk of an index record again."""
        if record.source != self._log:
            number = _number(record.event or "")
            return bool(number and list(self.history.events.records(number, number)))
        try:
            extent = range_of(record)
        except ValueError:
            return False
        return self._stands_for(record.id, extent)

    def can_make_ref(self, ref: Ref) -> bool:
        """Whether history gives the chunk that a ref names again."""
        try:
            extent = parse_source(ref.source or "")
        except BadSource:
            return False
        return isinstance(extent, Messages) and self._stands_for(os.path.basename(ref.path), extent)

    def _stands_for(self, name: str, extent: Messages) -> bool:
        return blobs.name_of(chunk_of(extent.start, extent.stop, self._digest(extent.start, extent.stop))) == name


def captured_by(event: Event) -> Iterator[str]:
    """Yield the names of the blobs an event refers to."""
    if event.type == TURN:
        opening = event.data.get("opening")
        for part in (event.data, cast(dict[str, Any], opening) if isinstance(opening, dict) else {}):
            items = part.get("items")
            for item in cast(list[Any], items) if isinstance(items, list) else ():
                if isinstance(item, dict) and "text" not in item:
                    yield from _name(cast(dict[str, Any], item).get("digest"))
    elif event.type == IMPORTED:
        yield from _name(event.data.get("digest"))
    else:
        yield from _kept(event.data)


def _kept(value: object) -> Iterator[str]:
    """Yield the blobs in a value: captured text has a digest, and the blob of the same name."""
    if isinstance(value, dict):
        known = cast(dict[str, Any], value)
        if "blob" in known:
            yield from set(_name(known.get("digest"))) & set(_name(known["blob"]))
        for one in known.values():
            yield from _kept(one)
    elif isinstance(value, list):
        for one in cast(list[object], value):
            yield from _kept(one)


def _name(digest: object) -> Iterator[str]:
    if isinstance(digest, str):
        with suppress(BadSource):
            yield file_name_of(digest)


def _number(name: str) -> int:
    """Return the number in `msg-12`, `ev-12` or `12`; 0 when there is none."""
    digits = name.removeprefix("msg-").removeprefix("ev-")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 18 else 0


def _texts_in(folder: str, *files: str) -> Iterator[tuple[str, str]]:
    """Yield the plain files of a folder; with `files`, those of the folders in it."""
    for name in names_in(folder):
        for path in [os.path.join(folder, name, file) for file in files] or [os.path.join(folder, name)]:
            if plain(path):
                yield name, path


def texts_of(message: Message) -> Iterator[str]:
    """Yield the texts of a message of which a copy may be kept elsewhere: its words, its parts, what its calls hold."""
    yield message.text
    if not isinstance(message.content, str):
        yield from (part.text for part in message.content if isinstance(part, Text))
    for call in message.tool_calls:
        yield call.arguments
        with suppress(*_UNREADABLE):
            yield from strings(msgspec.json.decode(call.arguments))


def read_index(path: str, shape: type[SwapRecord] | type[DedupRecord] | type[Ref]) -> list[tuple[bytes, Any]]:
    """Return the lines of an index or of refs, each with its record; None where a line has not the shape."""
    found: list[tuple[bytes, Any]] = []
    for line in (atomic.read(path) or b"").splitlines(keepends=True):
        try:
            found.append((line, msgspec.json.decode(line, type=shape)))
        except _UNREADABLE:
            found.append((line, None))
    return found
