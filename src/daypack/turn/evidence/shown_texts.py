"""The texts that turns and hooks of a session showed, by their digests, to recognise them when they come back."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from daypack.history.session import History
from daypack.text.injected import INJECTED
from daypack.turn.evidence.record import short_digest
from daypack.turn.ledger import TURN


class ShownTexts:
    """The digests in the recorded turns and injections of one session, read when they are first asked for."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._digests: set[str] = set()
        self._read = 0  # the newest event that was read

    def has(self, digest: str) -> bool:
        """Return True if a turn or a hook showed the text with this digest."""
        if not self._knows(digest):
            for event in self._history.events.records(self._read + 1):
                self._read = event.seq
                if event.type == TURN:
                    self._digests.update(_digests(event.data))
                elif event.type == INJECTED:
                    self._digests.update(map(str, cast("Iterable[object]", event.data.get("digests") or ())))
        return self._knows(digest)

    def _knows(self, digest: str) -> bool:
        return digest in self._digests or short_digest(digest) in self._digests


def _digests(data: Mapping[str, Any]) -> Iterator[str]:
    opening: Mapping[str, Any] = data.get("opening") or {}
    yield from _of_items(data.get("items"))
    yield from _of_items(opening.get("items"))
    for addition in cast("Iterable[Mapping[str, Any]]", data.get("added") or ()):
        yield from _of_items(addition.get("items"))
        yield str(addition.get("past"))


def _of_items(items: object) -> Iterator[str]:
    for item in cast("Iterable[Mapping[str, Any]]", items or ()):
        yield str(item.get("digest"))
