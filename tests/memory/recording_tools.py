"""A double for the nine tools: it records every call, and fails on demand."""

from collections.abc import Callable
from typing import Any

from daypack.errors import StorageFailed
from daypack.memory.port import MemoryTools
from daypack.memory.requests import (
    AddEntry,
    AwaitConsistency,
    GetContext,
    GetMemory,
    ListEntries,
    PutContext,
    Request,
    Result,
)
from daypack.types.memory import (
    PLACEHOLDER,
    Added,
    Consistency,
    ContextDocument,
    Entry,
    EntryPage,
    FailedWrite,
    Memory,
    MemoryPage,
)

NOW = "2026-01-01T00:00:00Z"


class RecordingTools(MemoryTools):
    """Tools that hold one memory in lists. `fails`: the error of an add; `answers`: the results of the barrier."""

    def __init__(self, document: str = PLACEHOLDER, entries: tuple[Entry, ...] = ()) -> None:
        self.calls: list[str] = []
        self.documents = [document]
        self.entries = list(entries)
        self.keys: dict[str, Entry] = {}
        self.fails: Callable[[str], Exception | None] = lambda raw: None
        self.put_fails: Callable[[int], Exception | None] = lambda number: None
        self.answers: list[Consistency] = []
        self.limits: list[int] = []

    def call(self, request: Request[Result]) -> Result:
        self.calls.append(request.tool)
        answers: dict[type[Request[Any]], Callable[[Any], Any]] = {
            GetMemory: self._get_memory,
            AddEntry: self._add_entry,
            ListEntries: self._list_entries,
            GetContext: self._get_context,
            PutContext: self._put_context,
            AwaitConsistency: self._await_consistency,
        }
        return answers[type(request)](request)

    def list_memories(self, limit: int | str = 50, after: str | None = None) -> MemoryPage:
        assert after is None
        return MemoryPage(memories=(self._get_memory(GetMemory(memory_id="m")),), count=1, applied_limit=int(limit))

    def _get_memory(self, request: GetMemory) -> Memory:
        return Memory(memory_id=request.memory_id, title="t", memory_type="task", created_at=NOW)

    def _add_entry(self, request: AddEntry) -> Added:
        if error := self.fails(request.raw_entry):
            raise error
        summary, client_key, about = request.summary, request.client_key, request.about
        assert summary
        assert client_key
        entry = self.keys.get(client_key)
        if entry is None:
            seq = len(self.entries) + 1
            entry = Entry(
                entry_id=f"e{seq}", memory_id=request.memory_id, seq=seq, created_at=NOW, raw_entry=request.raw_entry,
                summary=summary, role=about.role, author=about.author, at=about.at, session=about.session,
                source=about.source,
            )  # fmt: skip
            self.entries.append(entry)
            self.keys[client_key] = entry
        return Added(
            memory_id=request.memory_id,
            entry_id=entry.entry_id,
            seq=entry.seq,
            created_at=NOW,
            summary=summary,
            token=f"t{entry.seq}",
        )

    def _list_entries(self, request: ListEntries) -> EntryPage:
        self.limits.append(request.limit)
        page = tuple(reversed(self.entries))[: request.limit]
        return EntryPage(memory_id=request.memory_id, entries=page, count=len(page), applied_limit=request.limit)

    def _get_context(self, request: GetContext) -> ContextDocument:
        return self._document(request.memory_id)

    def _put_context(self, request: PutContext) -> ContextDocument:
        if error := self.put_fails(self.calls.count("put_context")):
            raise error
        self.documents.append(request.content)
        return self._document(request.memory_id)

    def _await_consistency(self, request: AwaitConsistency) -> Consistency:
        if self.answers:
            return self.answers.pop(0)
        return Consistency(status="consistent", level=request.level, token=request.token or "", search_index=True)

    def close(self) -> None:
        self.calls.append("close")

    def _document(self, memory_id: str) -> ContextDocument:
        version = len(self.documents)
        content = self.documents[-1]
        return ContextDocument(
            document_id=f"d{version}", memory_id=memory_id, version=version, created_at=NOW, content=content
        )


def failure(key: str) -> Consistency:
    """Return the result of a barrier that reports a lost write."""
    write = FailedWrite(operation="add_entry", problem="disk full", memory_id="m", client_key=key)
    return Consistency(status="failed", level="visible", token="", search_index=False, failed_writes=(write,))


def once(problem: str) -> Callable[[str], Exception | None]:
    """Fail the first add that has this text, and no other."""
    left = [StorageFailed("disk full")]
    return lambda raw: left.pop() if problem in raw and left else None
