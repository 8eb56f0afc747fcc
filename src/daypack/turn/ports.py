"""Ports: what a turn asks of parts that may or may not be there."""

from collections.abc import Sequence
from typing import Protocol

from daypack.types.memory import Remembered


class MemoryPort(Protocol):
    """A memory across sessions."""

    def document(self) -> str | None:
        """Return the current context document; None when there is none yet."""
        ...

    def search(self, query: str, limit: int) -> Sequence[Remembered]:
        """Return the entries that fit a query, best first."""
        ...
