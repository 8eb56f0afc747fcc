"""The nine tools as Python methods, the same for memories in files and on a server.

A tool called without `memory_id` uses the default memory, if the memories were opened with one.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self

from msgspec.structs import asdict, replace

from daypack.errors import BadInput, MemoryMissing
from daypack.memory.limits import FLUSH_EVERY
from daypack.memory.requests import (
    AddEntry,
    AwaitConsistency,
    CreateMemory,
    GetContext,
    GetMemory,
    GetUser,
    ListEntries,
    PutContext,
    Request,
    Result,
    SearchMemories,
    read_about,
    read_number,
    read_where,
)
from daypack.memory.store.port import is_id
from daypack.types.deadline import NO_DEADLINE, Deadline
from daypack.types.memory import (
    LIST_MAX_MEMORIES,
    About,
    Added,
    Consistency,
    ContextDocument,
    EntryPage,
    Level,
    Memory,
    MemoryPage,
    SearchResult,
    User,
    Where,
)
from daypack.types.names import complete, did_you_mean

_PAGE_MEMORIES = 50


class MemoryTools(ABC):
    """The memories of one user. Every tool becomes a request, which a subclass carries out in `call`.

    `default_memory` is the id, the start of the id or the title of the memory that a request without one means,
    `default_origin` the setting it is from, or "" for an argument. `find_default` returns its id at the first such
    request, and may create it; by default it is looked up.
    """

    default_memory: str = ""
    default_origin: str = ""
    deadline: Deadline = NO_DEADLINE
    find_default: Callable[[], str] | None = None
    _default_id: str = ""

    @abstractmethod
    def call(self, request: Request[Result]) -> Result:
        """Carry out a request of any of the nine tools and return its result."""

    @abstractmethod
    def list_memories(self, limit: int | str = _PAGE_MEMORIES, after: str | None = None) -> MemoryPage:
        """Return the user's own memories, oldest first: the first, or those after a memory id.

        A limit above 100 is lowered to 100. The next cursor is set only if there are more memories.
        """

    @abstractmethod
    def close(self) -> None:
        """Close files or connections; the next call opens them again."""

    @property
    def remote(self) -> bool:
        """True if calls wait for a network."""
        return False

    @property
    def place(self) -> str:
        """The address of the server that has the memories; empty for files."""
        return ""

    def within(self, deadline: Deadline) -> Self:
        """Return the same memories; calls over a network fail when the deadline has passed."""
        limited = copy.copy(self)  # with the same files or connections
        limited.deadline = deadline
        return limited

    @property
    def flush_every(self) -> int:
        """How many entries a keeper stores before it writes the document."""
        return FLUSH_EVERY

    def memories(self) -> tuple[Memory, ...]:
        """Return all memories of the user, oldest first."""
        found: list[Memory] = []
        page = self.list_memories(LIST_MAX_MEMORIES)
        found += page.memories
        while page.next_after is not None:
            page = self.list_memories(LIST_MAX_MEMORIES, page.next_after)
            found += page.memories
        return tuple(found)

    def find_memory(self, name: str) -> str:
        """Return the id of the memory with this id, start of an id, or title."""
        if is_id(name):  # no list is needed
            return self.get_memory(name).memory_id
        known = self.memories()
        titled = [memory for memory in known if memory.title == name]
        if len(titled) > 1:
            hint = "use an id: " + ", ".join(memory.memory_id for memory in titled[:5])
            raise BadInput(f"{len(titled)} memories have this title", operation="find memory", place=name, hint=hint)
        ids = (memory.memory_id for memory in known)
        found = titled[0].memory_id if titled else complete(name, ids, what="memories")
        if found is None:
            hint = did_you_mean(name, (memory.title for memory in known)) or "list them with `daypack memory list`"
            raise MemoryMissing("no such memory", operation="find memory", place=name, hint=hint)
        return found

    def with_default(self, request: Request[Result]) -> Request[Result]:
        """Return a request for the default memory if it names none, or names the default as it was given."""
        named, default = getattr(request, "memory_id", None), self.default_memory
        if named not in ("", default) or not default or (is_id(named) and self.find_default is None):
            return request
        if not self._default_id and self.find_default is not None:
            self._default_id = self.find_default()
        elif not self._default_id:
            try:
                self._default_id = default if is_id(default) else self.find_memory(default)
            except (MemoryMissing, BadInput) as error:
                if self.default_origin:
                    error.place = f"{default}, the default memory from {self.default_origin}"
                raise
        return replace(request, memory_id=self._default_id)

    def create_memory(self, title: str, memory_type: str = "chat", description: str = "") -> Memory:
        """Create a memory; its document is the placeholder."""
        return self.call(CreateMemory(title=title, memory_type=memory_type, description=description))

    def get_memory(self, memory_id: str = "") -> Memory:
        """Return a memory's title, type and size."""
        return self.call(GetMemory(memory_id=memory_id))

    def add_entry(
        self,
        memory_id: str = "",
        raw_entry: str = "",
        summary: str | None = None,
        *,
        about: About | Mapping[str, Any] | None = None,
        client_key: str | None = None,
    ) -> Added:
        """Store one raw message and its summary durably; without a summary one is generated.

        With a client key the call is idempotent: a repetition stores nothing and returns the first result.
        """
        fields = asdict(read_about(about))
        request = AddEntry(memory_id=memory_id, raw_entry=raw_entry, summary=summary, client_key=client_key, **fields)
        return self.call(request)

    def list_entries(
        self, memory_id: str = "", limit: int | str = 25, before: str | None = None, after: str | None = None
    ) -> EntryPage:
        """Return entries, newest first: the newest, or those before or right after a cursor (an entry id or a time).

        A limit above 50 is lowered to 50. A next cursor is set only if there are more entries on that side.
        """
        number = read_number(limit, "limit", "list_entries")
        return self.call(ListEntries(memory_id=memory_id, limit=number, before=before, after=after))

    def get_context(self, memory_id: str = "") -> ContextDocument:
        """Return the current context document; a new memory has the placeholder."""
        return self.call(GetContext(memory_id=memory_id))

    def put_context(self, memory_id: str = "", content: object = None) -> ContextDocument:
        """Write a new version of the context document: a text, or {} for the initial document."""
        return self.call(PutContext(memory_id=memory_id, content=content))

    def await_consistency(
        self,
        memory_id: str | None = None,
        token: str | None = None,
        timeout_ms: int = 10_000,
        level: Level = "searchable",
    ) -> Consistency:
        """Wait until earlier writes are durable, visible or searchable, and report whether they are.

        With a token it waits for that write, else for all writes to a memory, else for everything this user has
        written through this process. A failed write is reported once, by the next barrier.
        """
        wait_ms = read_number(timeout_ms, "timeout_ms", "await_consistency")
        request = AwaitConsistency(memory_id=memory_id, token=token, timeout_ms=wait_ms, level=level)
        return self.call(request)

    def get_user(self) -> User:
        """Return the user's profile, quotas and usage; the first call creates the profile."""
        return self.call(GetUser())

    def search_memories(
        self,
        memory_id: str = "",
        query: str = "",
        top_k: int | str = 10,
        explain: bool = False,  # noqa: FBT001, FBT002 — the tool's signature
        where: Where | Mapping[str, Any] | None = None,
    ) -> SearchResult:
        """Return the entries that match a query best, the latest document and the best matching document.

        `top_k` is a maximum: entries that are not about the query are left out, and if none is, `notes` says so.
        `explain` adds the parts of each score; `where` filters by time, tags, role, author and session. A placeholder
        does not count as a document.
        """
        number, filters = read_number(top_k, "top_k", "search_memories"), asdict(read_where(where))
        request = SearchMemories(memory_id=memory_id, query=query, top_k=number, explain=explain, **filters)
        return self.call(request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
