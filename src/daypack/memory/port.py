"""The port to a memory: the nine tools, by the names and arguments they have everywhere."""

from collections.abc import Mapping
from typing import Any, Protocol

from daypack.types.memory import (
    About,
    Added,
    Consistency,
    ContextDocument,
    EntryPage,
    Level,
    Memory,
    SearchResult,
    User,
    Where,
)


class NineTools(Protocol):
    """The nine tools, wherever they are: a home, a server, a client of either."""

    def create_memory(self, title: str, memory_type: str = "chat", description: str = "") -> Memory:
        """Make a memory."""
        ...

    def get_memory(self, memory_id: str) -> Memory:
        """Return what is known about a memory."""
        ...

    def add_entry(
        self,
        memory_id: str,
        raw_entry: str,
        summary: str | None = None,
        *,
        about: About | Mapping[str, Any] | None = None,
        client_key: str | None = None,
    ) -> Added:
        """Store one raw message with its summary."""
        ...

    def list_entries(
        self, memory_id: str, limit: int | str = 25, before: str | None = None, after: str | None = None
    ) -> EntryPage:
        """Return entries, newest first."""
        ...

    def get_context(self, memory_id: str) -> ContextDocument:
        """Return the current document."""
        ...

    def put_context(self, memory_id: str, content: str) -> ContextDocument:
        """Write the document."""
        ...

    def await_consistency(
        self,
        memory_id: str | None = None,
        token: str | None = None,
        timeout_ms: int = 10_000,
        level: Level = "searchable",
    ) -> Consistency:
        """Wait until earlier writes hold, and say which do not."""
        ...

    def get_user(self) -> User:
        """Return the profile."""
        ...

    def search_memories(
        self,
        memory_id: str,
        query: str,
        top_k: int | str = 10,
        explain: bool = False,  # noqa: FBT001, FBT002 — as the tool has it
        where: Where | Mapping[str, Any] | None = None,
    ) -> SearchResult:
        """Return ranked entries, the best and the latest document."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...
