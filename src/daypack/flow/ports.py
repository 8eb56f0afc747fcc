"""Ports: what a turn asks of parts that may or may not be there."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Remembered(Struct, frozen=True):
    """One entry a memory found."""

    id: str
    text: str
    score: float = 0.0
    when: str = ""


class MemoryPort(Protocol):
    """A memory across sessions."""

    def document(self) -> str | None:
        """Return the current context document; None when there is none yet."""
        ...

    def search(self, query: str, limit: int) -> Sequence[Remembered]:
        """Return the entries that fit a query, best first."""
        ...
