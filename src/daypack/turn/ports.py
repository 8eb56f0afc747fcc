"""Ports: the interface of the memory that a turn asks, if its session is bound to one."""

from collections.abc import Sequence
from typing import Protocol

from daypack.types.memory import Remembered


class MemoryPort(Protocol):
    """A memory across sessions."""

    def document(self) -> str | None:
        """Return the current context document; None if there is none yet."""
        ...

    def search(self, query: str, limit: int) -> Sequence[Remembered]:
        """Return the entries that match a query, best first."""
        ...
