"""Find references to chunks, blobs and children in texts, events and index files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec

from daypack.errors import BadSource
from daypack.files import atomic
from daypack.turn.evidence.observed.record import blobs_of
from daypack.turn.ledger import IMPORTED, OBSERVED, TURN
from daypack.types.digest import file_name_of
from daypack.types.history import Event, Message, Text
from daypack.types.records import DedupRecord, Ref, SwapRecord

_MIN_DIGITS = 8  # a stub may refer to a chunk by the first hexadecimal digits of its digest
_DIGEST = re.compile(rf"sha256[-:]([0-9a-f]{{{_MIN_DIGITS},64}})(?![0-9a-f])")
UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


class References:
    """The digests and child names that occur in texts, each with its referrers."""

    def __init__(self) -> None:
        self._by_digest: dict[str, dict[str, None]] = {}
        self._by_prefix: list[tuple[str, str]] = []
        self._texts: list[tuple[str, str]] = []

    def add_text(self, referrer: str, text: str, *, children: bool = True) -> None:
        """Record the digests in a text; `children`: also search it for names of children."""
        for match in _DIGEST.finditer(text):
            if len(match[1]) == 64:
                self._by_digest.setdefault(match[1], {})[referrer] = None
            else:
                self._by_prefix.append((match[1], referrer))
        if children:
            self._texts.append((referrer, text))

    def add_value(self, referrer: str, value: object) -> None:
        """Record the references in all strings of a JSON value."""
        for text in strings(value):
            self.add_text(referrer, text)

    def to_digest(self, name: str) -> list[str]:
        """Return the distinct referrers to a digest, in full or by a prefix."""
        digits = name[7:]
        referrers = dict(self._by_digest.get(digits, {}))
        referrers.update((referrer, None) for prefix, referrer in self._by_prefix if digits.startswith(prefix))
        return list(referrers)

    def to_child(self, name: str) -> list[str]:
        """Return the distinct referrers to a child, excluding the child's own files."""
        spellings = (f"child/{name}", f"child:{name}", f"child_result:{name}", f"child_refs:{name}")
        texts = [(referrer, text) for referrer, text in self._texts if referrer != f"child {name}"]
        referrers = (referrer for referrer, text in texts if any(spelling in text for spelling in spellings))
        return list(dict.fromkeys(referrers))


def strings(value: object) -> Iterator[str]:
    """Yield every string of a JSON value, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, member in cast(Mapping[object, object], value).items():
            yield from strings(key)
            yield from strings(member)
    elif isinstance(value, list | tuple):
        for element in cast(Iterable[object], value):
            yield from strings(element)


def texts_of(message: Message) -> Iterator[str]:
    """Yield the texts of a message that may be copied elsewhere: its text, its parts, and its call arguments."""
    yield message.text
    if not isinstance(message.content, str):
        yield from (part.text for part in message.content if isinstance(part, Text))
    for call in message.tool_calls:
        yield call.arguments
        with suppress(*UNREADABLE):
            yield from strings(msgspec.json.decode(call.arguments))


def captured_by(event: Event) -> Iterator[str]:
    """Yield the names of the captured texts (files in blob/) that an event refers to."""
    if event.type == TURN:
        opening, added, tools = (event.data.get(name) for name in ("opening", "added", "tools"))
        parts: list[Any] = [event.data, opening, *(cast(list[Any], added) if isinstance(added, list) else ())]
        if isinstance(tools, dict):
            yield from _file_name(cast(dict[str, Any], tools).get("digest"))
        for part in [cast(dict[str, Any], part) for part in parts if isinstance(part, dict)]:
            items = part.get("items")
            for item in cast(list[Any], items) if isinstance(items, list) else ():
                fields: dict[str, Any] = cast(dict[str, Any], item) if isinstance(item, dict) else {}
                if "text" not in fields:
                    yield from _file_name(fields.get("digest"))
                yield from _file_name(fields.get("stated_digest"))
    elif event.type == IMPORTED:
        yield from _file_name(event.data.get("digest"))
    elif event.type == OBSERVED:
        for digest in blobs_of(event):
            yield from _file_name(digest)
    else:
        yield from _captured_in(event.data)


def _captured_in(value: object) -> Iterator[str]:
    """Yield the captured texts in a value: an object with a digest and the blob of the same name."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        if "blob" in fields:
            yield from set(_file_name(fields.get("digest"))) & set(_file_name(fields["blob"]))
        for member in fields.values():
            yield from _captured_in(member)
    elif isinstance(value, list):
        for element in cast(list[object], value):
            yield from _captured_in(element)


def _file_name(digest: object) -> Iterator[str]:
    if isinstance(digest, str):
        with suppress(BadSource):
            yield file_name_of(digest)


def read_index(path: str, record_type: type[SwapRecord] | type[DedupRecord] | type[Ref]) -> list[tuple[bytes, Any]]:
    """Return the lines of an index or of refs.jsonl with their records; None for a line that does not decode."""
    lines: list[tuple[bytes, Any]] = []
    for line in (atomic.read(path) or b"").splitlines(keepends=True):
        try:
            lines.append((line, msgspec.json.decode(line, type=record_type)))
        except UNREADABLE:
            lines.append((line, None))
    return lines
