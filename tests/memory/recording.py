"""A double for the nine tools: it remembers every call, and fails when it is told to."""

from collections.abc import Callable, Mapping
from typing import Any

from daypack.errors import StorageFailed
from daypack.types.memory import (
    PLACEHOLDER,
    About,
    Added,
    Consistency,
    ContextDocument,
    Entry,
    EntryPage,
    FailedWrite,
    Level,
    Memory,
    SearchResult,
    User,
    Where,
)

NOW = "2026-01-01T00:00:00Z"


class Recording:
    """Tools that hold one memory in lists. `fails`: the error of an add; `answers`: what the barrier says."""

    def __init__(self, document: str = PLACEHOLDER, entries: tuple[Entry, ...] = ()) -> None:
        self.calls: list[str] = []
        self.documents = [document]
        self.entries = list(entries)
        self.keys: dict[str, Entry] = {}
        self.fails: Callable[[str], Exception | None] = lambda raw: None
        self.put_fails: Callable[[int], Exception | None] = lambda number: None
        self.answers: list[Consistency] = []
        self.limits: list[int | str] = []

    def create_memory(self, title: str, memory_type: str = "chat", description: str = "") -> Memory:
        raise NotImplementedError

    def get_memory(self, memory_id: str) -> Memory:
        self.calls.append("get_memory")
        return Memory(memory_id=memory_id, title="t", memory_type="task", created_at=NOW)

    def add_entry(
        self,
        memory_id: str,
        raw_entry: str,
        summary: str | None = None,
        *,
        about: About | Mapping[str, Any] | None = None,
        client_key: str | None = None,
    ) -> Added:
        self.calls.append("add_entry")
        if error := self.fails(raw_entry):
            raise error
        assert isinstance(about, About)
        assert summary
        assert client_key
        entry = self.keys.get(client_key)
        if entry is None:
            seq = len(self.entries) + 1
            entry = Entry(
                entry_id=f"e{seq}", memory_id=memory_id, seq=seq, created_at=NOW, raw_entry=raw_entry, summary=summary,
                role=about.role, author=about.author, at=about.at, session=about.session, source=about.source,
            )  # fmt: skip
            self.entries.append(entry)
            self.keys[client_key] = entry
        return Added(
            memory_id=memory_id,
            entry_id=entry.entry_id,
            seq=entry.seq,
            created_at=NOW,
            summary=summary,
            token=f"t{entry.seq}",
        )

    def list_entries(
        self, memory_id: str, limit: int | str = 25, before: str | None = None, after: str | None = None
    ) -> EntryPage:
        self.calls.append("list_entries")
        self.limits.append(limit)
        page = tuple(reversed(self.entries))[: int(limit)]
        return EntryPage(memory_id=memory_id, entries=page, count=len(page), applied_limit=int(limit))

    def get_context(self, memory_id: str) -> ContextDocument:
        self.calls.append("get_context")
        return self._document(memory_id)

    def put_context(self, memory_id: str, content: str) -> ContextDocument:
        self.calls.append("put_context")
        if error := self.put_fails(self.calls.count("put_context")):
            raise error
        self.documents.append(content)
        return self._document(memory_id)

    def await_consistency(
        self,
        memory_id: str | None = None,
        token: str | None = None,
        timeout_ms: int = 10_000,
        level: Level = "searchable",
    ) -> Consistency:
        self.calls.append("await_consistency")
        if self.answers:
            return self.answers.pop(0)
        return Consistency(status="consistent", level=level, token=token or "", search_index=True)

    def get_user(self) -> User:
        raise NotImplementedError

    def search_memories(
        self,
        memory_id: str,
        query: str,
        top_k: int | str = 10,
        explain: bool = False,
        where: Where | Mapping[str, Any] | None = None,
    ) -> SearchResult:
        raise NotImplementedError

    def close(self) -> None:
        self.calls.append("close")

    def _document(self, memory_id: str) -> ContextDocument:
        version = len(self.documents)
        content = self.documents[-1]
        return ContextDocument(
            document_id=f"d{version}", memory_id=memory_id, version=version, created_at=NOW, content=content
        )


def failure(key: str) -> Consistency:
    """What a barrier says when a write did not hold."""
    write = FailedWrite(operation="add_entry", problem="disk full", memory_id="m", client_key=key)
    return Consistency(status="failed", level="visible", token="", search_index=False, failed_writes=(write,))


def once(problem: str) -> Callable[[str], Exception | None]:
    """Fail the first add that has this text, and no other."""
    left = [StorageFailed("disk full")]
    return lambda raw: left.pop() if problem in raw and left else None
