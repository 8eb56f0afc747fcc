"""Dedup: large contents that occur more than once, each stored once and named wherever it occurs.

    context/dedup/index.jsonl   {"hash":"sha256-…","refs":["messages:40","tool:call-7"],"bytes":12000,"tokens":3000}
    context/dedup/blob/<hash>   the content
    context/offsets/dedup.idx   how far the logs were read, and where which content was met

Contents are tool outputs, what calls write to files, pins and other captured texts, and results of children. History
has every copy: blobs and index are a cache, made again from it, and never the only place of anything. They hold the
bytes as the logs do, secrets too: who shows them clears them. Refs are those of `occurrences`, and `swap:<id>` for an
output that left the window.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from daypack.derived.children import UPDATED
from daypack.derived.occurrences import (
    MIN_REFS,
    OccurrenceIndex,
    advance,
    all_of,
    captured,
    of_event,
    of_message,
    reached,
)
from daypack.derived.swap import range_of
from daypack.errors import BadInput, Damaged, DaypackError, SourceMissing, UnsafePath
from daypack.files import atomic, blobs
from daypack.history.resolve import resolve
from daypack.history.session import History
from daypack.types.digest import file_name_of
from daypack.types.history import Event, Message
from daypack.types.records import DedupRecord, SwapRecord
from daypack.types.source import Source, ToolRef, parse_source

INDEX, BLOBS = "index.jsonl", "blob"
REREAD_CONTENTS = 32  # so many contents that occur once, or one of so many, are rather read again than noted
REREAD_MESSAGES = 1000  # where nothing is large, so many are rather read again than noted in a file

# Fold


def fold(
    history: History, upto: int | None = None, *, events: int | None = None, swapped: Iterable[SwapRecord] = ()
) -> tuple[DedupRecord, ...]:
    """Return what occurs more than once in the messages and events up to these numbers (None: all), by hash."""
    index = OccurrenceIndex()
    advance(history, index, upto, events=events)
    return records_of(index, swapped)


def records_of(index: OccurrenceIndex, swapped: Iterable[SwapRecord] = ()) -> tuple[DedupRecord, ...]:
    """Return what occurs more than once, by hash; an output that left the window is named by its swap id as well."""
    refs = _with_swapped(index, swapped)
    repeated = sorted(name for name, places in index.places.items() if len(places) >= MIN_REFS)
    return tuple(DedupRecord(name, _sorted(refs[name]), *index.sizes[name]) for name in repeated)


def recount(history: History, *, swapped: Iterable[SwapRecord] = ()) -> dict[str, tuple[str, ...]]:
    """Return every large content with all that refers to it, read off history: the index is not believed."""
    index = OccurrenceIndex()
    advance(history, index)
    return {name: _sorted(refs) for name, refs in sorted(_with_swapped(index, swapped).items())}


def _with_swapped(index: OccurrenceIndex, swapped: Iterable[SwapRecord]) -> dict[str, list[str]]:
    # Being swapped out is no occurrence: a chunk holds no copy.
    named = _swap_refs(swapped) or index.swapped
    numbers: dict[str, list[str]] = {}
    for name, refs in index.places.items():
        for ref in refs:
            numbers.setdefault(f"messages:{index.calls[ref]}" if ref in index.calls else ref, []).append(name)
    found = {name: list(refs) for name, refs in index.places.items()}
    for ref, ids in named.items():
        for name in numbers.get(ref, ()):
            found[name] += ids
    return found


def _swap_refs(swapped: Iterable[SwapRecord]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for record in swapped:
        with suppress(ValueError):  # a record of another writer, without a message
            found.setdefault(str(range_of(record)), []).append(f"swap:{record.id}")
    return dict(sorted(found.items()))


def _sorted(refs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(refs), key=lambda ref: (ref.rstrip("0123456789"), len(ref), ref)))


# Files


def refresh(
    history: History, upto: int | None = None, *, events: int | None = None, swapped: Iterable[SwapRecord] = ()
) -> tuple[DedupRecord, ...]:
    """Bring the files up to these numbers, reading only what is new, and return what the index says."""
    index = _load(history, upto, events)
    known = index.messages
    index.swapped = _swap_refs(swapped)
    advance(history, index, upto, events=events)  # without the lock: other processes need not wait for a long read
    if not index.repeats and not os.path.lexists(_folder(history)):
        if index.places or index.messages - known >= REREAD_MESSAGES:
            _save(history, index)
        return ()
    return _store(history, index)


def catch_up(
    history: History, index: OccurrenceIndex | None = None, appended: Sequence[Message] = ()
) -> OccurrenceIndex:
    """Read what is new, and write the files only if something occurred again; `index`: the last answer.

    The messages that were just `appended` need not be read. Names of swapped outputs stay as `refresh` wrote them.
    """
    if index is None or not _is_of(history, index):
        index = _load(history, None, None)
    known = index.repeats
    advance(history, index, appended=appended)
    repeated = index.repeats != known
    # Contents that occur once are noted now and then, so that the next process need not read them all again.
    if repeated or len(index.places) - index.noted >= max(REREAD_CONTENTS, index.noted // REREAD_CONTENTS):
        with history.lock:
            if (saved := _load(history, None, None)).messages:
                index.swapped = saved.swapped  # a compaction since the last call knows more
            advance(history, index)  # nor is anything overwritten that another process noted
            if index.repeats:
                _store(history, index)
            else:
                _save(history, index)
    return index


def _store(history: History, index: OccurrenceIndex) -> tuple[DedupRecord, ...]:
    with history.lock:
        stored = write(history, records_of(index), index.calls)
        _save(history, index)
    return stored


def _save(history: History, index: OccurrenceIndex) -> None:
    atomic.make_folders(history.layout.offsets, durable=False)
    _replace(history.layout.index("dedup"), _encode(index))
    index.noted = len(index.places)


def write(
    history: History, records: Iterable[DedupRecord], calls: Mapping[str, int] | None = None
) -> tuple[DedupRecord, ...]:
    """Write the blobs, then the index; return its records. A content that history no longer has is left out.

    `calls` says which message has which `tool:` ref; without it, history is read to find that out.
    """
    listed = tuple(sorted(records, key=lambda record: record.hash))
    with history.lock:
        folder = _folder(history)
        place = os.path.join(folder, BLOBS)
        atomic.make_folders(place, durable=False)
        wanted = {
            entry.hash: entry.refs for entry in listed if not _is_stored(os.path.join(place, entry.hash), entry.bytes)
        }
        lost = set(wanted)
        for name, data in _find(history, wanted, calls or {}):
            # Index after blob: a reader that sees the name can read the bytes.
            atomic.replace(os.path.join(place, name), data, durable=False)
            lost.discard(name)
        stored = tuple(entry for entry in listed if entry.hash not in lost)
        _replace(os.path.join(folder, INDEX), b"".join(msgspec.json.encode(entry) + b"\n" for entry in stored))
    return stored


def read_index(history: History) -> tuple[DedupRecord, ...]:
    """Return what the index says; a line that is no record is passed over, since it can be made again."""
    found: list[DedupRecord] = []
    for line in (atomic.read(os.path.join(_folder(history), INDEX)) or b"").split(b"\n"):
        with suppress(msgspec.DecodeError, UnicodeError):
            if line.strip():
                found.append(msgspec.json.decode(line, type=DedupRecord))
    return tuple(found)


def _folder(history: History) -> str:
    folder = history.layout.derived("dedup")
    for path in (folder, os.path.join(folder, BLOBS)):
        if os.path.islink(path):
            raise UnsafePath("is a symbolic link", operation="open dedup", place=path, hint="replace the link")
    return folder


def _is_stored(path: str, size: int) -> bool:
    try:
        return os.lstat(path).st_size == size
    except OSError:
        return False


def _replace(path: str, data: bytes) -> None:
    if atomic.read(path) != data:
        atomic.replace(path, data, durable=False)


def _encode(index: OccurrenceIndex) -> bytes:
    places = {name: list(_sorted(index.places[name])) for name in sorted(index.places)}
    calls, sizes = dict(sorted(index.calls.items())), dict(sorted(index.sizes.items()))
    return msgspec.json.encode(
        OccurrenceIndex(index.messages, index.events, index.marks, index.tokenizer, places, calls, sizes, index.swapped)
    )


def _load(history: History, upto: int | None, events: int | None) -> OccurrenceIndex:
    """Return what was seen before, if the logs still begin that way and no less is asked for."""
    try:
        data = atomic.read(history.layout.index("dedup"))
        index = OccurrenceIndex() if data is None else msgspec.json.decode(data, type=OccurrenceIndex)
        index.noted = len(index.places)
    except (DaypackError, msgspec.DecodeError, UnicodeError):
        return OccurrenceIndex()
    too_far = (upto is not None and upto < index.messages) or (events is not None and events < index.events)
    return index if _is_of(history, index) and not too_far else OccurrenceIndex()


def _is_of(history: History, index: OccurrenceIndex) -> bool:
    """Return True if the logs still begin as they did when the index was made."""
    ends = reached(history.messages.reader, index.messages), reached(history.events.reader, index.events)
    known = ends == ((index.messages, index.marks[0]), (index.events, index.marks[1]))
    return known and index.tokenizer == history.tokenizer


# Expansion


def lookup(history: History, name: str) -> str:
    """Return the text of a hash (from its blob, else from history; verified by its digest) or of a ref.

    A ref is looked up in history, not in the index; only `swap:<id>` needs the index to name the hash.
    """
    if name.startswith(("sha256-", "sha256:")):
        return _by_hash(history, file_name_of(name)).decode("utf-8", "replace")
    if name.startswith("child:"):
        return _result_of(history, name)
    if name.startswith("swap:"):
        for entry in read_index(history):
            if name in entry.refs:
                return lookup(history, entry.hash)
        raise _missing(history, name)
    source = parse_source(name)
    found = _contents_at(history, source)
    if len(found) > 1:
        raise BadInput("has several contents", operation="look up", place=name, hint="name one of them by its hash")
    return found[0] if found else _words(history, source)


def _contents_at(history: History, source: Source) -> list[str]:
    if isinstance(source, ToolRef):
        first = next((occurrence.content for occurrence in all_of(history) if occurrence.ref == str(source)), None)
        return [] if first is None else [first]
    found = resolve(history, source)
    if isinstance(found, Event):
        return [occurrence.content for occurrence in of_event(history, found)]
    return _contents(found[0]) if len(found) == 1 else []


def _words(history: History, source: Source) -> str:
    """Return the words of what is not large, or is several messages."""
    found = resolve(history, source)
    if isinstance(found, Event):
        raise _missing(history, str(source))
    return "\n\n".join(message.text for message in found)


def _by_hash(history: History, name: str) -> bytes:
    try:
        return blobs.get(os.path.join(_folder(history), BLOBS), name)
    except (SourceMissing, Damaged):
        refs = next((entry.refs for entry in read_index(history) if entry.hash == name), ())
        for _, data in _find(history, {name: refs}, {}):
            return data
    raise _missing(history, name)


def _result_of(history: History, name: str) -> str:
    newest: str | None = None
    for event in history.events.records():
        if event.type == UPDATED and name == f"child:{event.data.get('name')}":
            newest = captured(history, event.data.get("result")) or newest
    if newest is None:
        raise _missing(history, name)
    return newest


def _missing(history: History, name: str) -> SourceMissing:
    place, hint = f"{history.layout.folder}: {name}", "see context/dedup/index.jsonl"
    return SourceMissing("no such content", operation="look up", place=place, hint=hint)


def _find(
    history: History, wanted: Mapping[str, tuple[str, ...]], calls: Mapping[str, int]
) -> Iterator[tuple[str, bytes]]:
    """Read the contents of these hashes off history: by their refs where that is enough, else from the beginning."""
    missing = set(wanted)
    for name, refs in wanted.items():
        numbers = [number for ref in refs if (number := _number(ref, calls))]
        for message in history.messages.reader.pick(numbers):
            data = [data for data in map(str.encode, _contents(message)) if blobs.name_of(data) == name]
            if data:
                missing.discard(name)
                yield name, data[0]
                break
    for occurrence in all_of(history) if missing else ():
        data = occurrence.content.encode()
        if (name := blobs.name_of(data)) in missing:
            missing.discard(name)
            yield name, data
            if not missing:
                return


def _contents(message: Message) -> list[str]:
    return [occurrence.content for occurrence in of_message(message, {})]


def _number(ref: str, calls: Mapping[str, int]) -> int:
    number = ref.removeprefix("messages:")
    return int(number) if number.isdecimal() else calls.get(ref, 0)
