"""Which recorded turns showed something that is erased, and no longer verify."""

from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from daypack.turn.evidence.observed.record import ObservedRecord, SentMessage, read_record
from daypack.types.history import Event


class ShownParts:
    """What the turns of a session showed: finds those that showed an erased message or text."""

    def __init__(self, messages: frozenset[int], digests: Iterable[str]) -> None:
        self._messages = messages
        self._digests = frozenset(digests)
        self._epochs: dict[str, tuple[int, int | None, bool]] = {}  # event -> start, head, prefix is affected
        self._additions: dict[str, bool] = {}  # event -> something in its tail was added from what is erased

    def is_affected(self, event: Event) -> bool:
        """Return True if a turn showed something that is erased; call it for every turn, oldest first."""
        data = event.data
        opening = data.get("opening")
        if isinstance(opening, dict):
            fields = cast("dict[str, Any]", opening)
            prefix = self._has_text(fields.get("items"))
            self._epochs[event.id] = fields.get("start") or 1, fields.get("head"), prefix
        start, head, prefix = self._epochs.get(data.get("epoch") or event.id, (1, None, False))
        added = self._additions.get(str(data.get("carries")), False)
        for addition in data.get("added") or ():
            excerpts: list[list[int]] = addition.get("excerpts") or []
            added = added or self._has_text(addition.get("items")) or any(ref[0] in self._messages for ref in excerpts)
        self._additions[event.id] = added
        last = data.get("last") or 0
        shown = head in self._messages or any(start <= seq <= last for seq in self._messages)
        given: dict[str, Any] = data.get("tools") or {}
        tools = str(given.get("digest"))[7:] in self._digests
        return prefix or added or shown or tools or self._has_text(data.get("items"))

    def has_prefix(self, event: Event) -> bool:
        """Return True if what is erased was in the prefix of a turn, whose digest the turns of an epoch share."""
        return self._epochs.get(event.data.get("epoch") or event.id, (1, None, False))[2]

    def _has_text(self, items: object) -> bool:
        found = cast("Iterable[dict[str, Any]]", items or ())
        return any(str(item.get("digest"))[7:] in self._digests for item in found)


class ObservedParts:
    """What the calls of other programs contained: finds those that contained an erased message or text."""

    def __init__(self, messages: frozenset[int], digests: Iterable[str]) -> None:
        self._messages = messages
        self._digests = frozenset(digests)
        self._first: dict[str, int] = {}  # event -> position of the first message that is affected

    def is_affected(self, event: Event) -> bool:
        """Return True if a call contained something that is erased; call it for every call, oldest first."""
        record = read_record(event)
        kept = self._first.get(record.follows or "", record.keep)
        found = [at for at, sent in enumerate(record.tail, record.keep) if self._holds(sent)]
        if kept < record.keep or found:
            self._first[event.id] = min([kept, *found])
        return event.id in self._first or self._is_changed(record.shape)

    def hide(self, data: dict[str, Any], hide: Callable[[str], str]) -> dict[str, Any]:
        """Return the data of an affected call without digests that could confirm a guess of what is erased.

        The digest of a blob is replaced with that of its new bytes, like everywhere; a message of history has none.
        """
        record = msgspec.convert(data, ObservedRecord)
        tail = [
            replace(sent, digest=hide(sent.digest)) if sent.messages and self._holds(sent) else sent
            for sent in record.tail
        ]
        return {**data, "digest": record.digest and hide(record.digest), "tail": msgspec.to_builtins(tail)}

    def _holds(self, sent: SentMessage) -> bool:
        extent = sent.extent
        if extent and any(extent.start <= seq <= extent.stop for seq in self._messages):
            return True
        return self._is_changed(sent.digest)

    def _is_changed(self, digest: str) -> bool:
        return digest[7:] in self._digests
