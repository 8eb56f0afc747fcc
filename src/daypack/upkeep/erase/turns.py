"""Which recorded turns showed something that is erased, and no longer verify."""

from collections.abc import Iterable
from typing import Any, cast

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
