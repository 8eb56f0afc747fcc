"""Replaces what is erased in texts and JSON values, and notes the digests of texts that changed."""

import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, cast

import msgspec

from daypack.history.logs.lines import UNREADABLE
from daypack.upkeep.erase.copies import Copies
from daypack.upkeep.erase.spellings import Spellings

_DIGITS = re.compile(r"[0-9a-f]{12,64}")
_SHORTENED = (12, 16, 24)  # digits of a digest in the ids of questions, ranges, keys and turns
# Values that only look like the digits of a secret: numbers of records, digests, times.
_STRUCTURE = re.compile(
    r"(?:msg|ev)-\d+|(?:messages|events):[\w-]+|ctx-[0-9a-f]{24}|\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{64}"
)
# What a record says, when all of it comes from an erased message.
_SAID = ("text", "decision", "error", "cause", "resolution", "purpose", "summary", "what", "question")


class Texts:
    """Replaces spellings by a marker; `digests` maps those of changed texts (hexadecimal digits) to the new ones."""

    def __init__(self, spellings: Spellings | Copies, marker: str, sources: frozenset[str] = frozenset()) -> None:
        self.spellings = spellings
        self.marker = marker
        self.digests: dict[str, str] = {}
        self.matches = 0
        self._sources = sources  # of an erased message, such as messages:12

    def replace(self, text: str, *, structured: bool = False) -> str:
        """Return a text without what is erased; a structured one may be a number or digest that only looks like it."""
        if structured and _STRUCTURE.fullmatch(text) and not self.spellings.is_whole(text):
            return text
        changed = self._valid(text, self.spellings.replace(text, self.marker))
        if changed != text:
            self.matches += self.spellings.count(text)
            self.note(text.encode("utf-8", "surrogatepass"), changed.encode("utf-8", "surrogatepass"))
            self._note_nested(text)
        return changed

    def replace_bytes(self, data: bytes) -> bytes:
        """Return the bytes of a file without what is erased; bytes that are no UTF-8 stay as they are."""
        if not self.spellings.found_in(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        changed = self._valid(text, self.spellings.replace(text, self.marker))
        self.matches += self.spellings.count(text)
        self._note_nested(text)  # an envelope has the digests of its items
        return changed.encode("utf-8", "surrogateescape")

    def replace_value(self, value: object, *, structured: bool = False) -> Any:  # noqa: ANN401 — JSON
        """Return a JSON value without what is erased, in keys too."""
        if isinstance(value, str):
            return self.replace(value, structured=structured)
        if isinstance(value, list):
            return [self.replace_value(part, structured=structured) for part in cast("list[object]", value)]
        if isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            whole = fields.get("source") in self._sources
            return {
                self.replace(key): self._whole(key, part) if whole else self.replace_value(part, structured=structured)
                for key, part in fields.items()
            }
        if isinstance(value, int | float) and not structured and self.spellings.found_in(msgspec.json.encode(value)):
            self.matches += 1
            return self.marker
        return value

    def _valid(self, text: str, changed: str) -> str:
        """Return the new text; JSON stays JSON where a number was erased."""
        if changed == text or text[:1] not in ("{", "["):
            return changed
        with suppress(*UNREADABLE):
            value = msgspec.json.decode(text)
            try:
                msgspec.json.decode(changed)
            except UNREADABLE:
                matches = self.matches
                whole = msgspec.json.encode(self.replace_value(value)).decode()
                self.matches = matches
                return changed if self.spellings.found_in(whole.encode()) else whole
        return changed

    def note(self, old: bytes, new: bytes) -> None:
        """Note that a text with a digest changed."""
        if old != new:
            before, after = sha256(old).hexdigest(), sha256(new).hexdigest()
            self.digests[before] = after
            self.digests.update({before[:digits]: after[:digits] for digits in _SHORTENED})

    def replace_digests(self, data: bytes) -> bytes:
        """Return bytes with the new digests of texts that changed."""
        if not self.digests:
            return data
        text = data.decode("utf-8", "surrogateescape")
        changed = _DIGITS.sub(lambda match: self.digests.get(match[0], match[0]), text)
        return changed.encode("utf-8", "surrogateescape")

    def _whole(self, key: str, value: object) -> Any:  # noqa: ANN401 — JSON
        if key in _SAID and isinstance(value, str) and value:
            self.matches += 1
            return self.marker
        return self.replace_value(value)

    def _note_nested(self, text: str) -> None:
        """Note the texts inside a JSON text: a file that is written by a call has a digest of its own."""
        if text[:1] not in ("{", "["):
            return
        try:
            values: list[object] = [msgspec.json.decode(text)]
        except UNREADABLE:
            return
        while values:
            value = values.pop()
            if isinstance(value, str):
                self.note(value.encode(), self.spellings.replace(value, self.marker).encode())
            elif isinstance(value, Mapping):
                values += cast("Mapping[str, object]", value).values()
            elif isinstance(value, list):
                values += cast("list[object]", value)
