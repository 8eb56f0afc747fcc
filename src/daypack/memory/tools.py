"""Memories in a home folder: the nine tools, and what only their owner may do (delete, erase, export, import)."""

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from msgspec.structs import replace

from daypack.errors import AccessDenied, BadInput, Damaged, MemoryMissing
from daypack.history.home import find_home
from daypack.history.layout import check_name
from daypack.memory import limits as checks
from daypack.memory.archive import Archive, export_memory
from daypack.memory.audit_log.record import Action, Deed
from daypack.memory.backend import Backend, open_backend
from daypack.memory.consistency import Barrier, Pause
from daypack.memory.document.document import is_placeholder, read_content
from daypack.memory.limits import check_number, check_text
from daypack.memory.port import MemoryTools
from daypack.memory.requests import (
    NO_DEFAULT,
    NO_DEFAULT_HERE,
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
    read_number,
)
from daypack.memory.search.search import Question
from daypack.memory.store.port import (
    MAX_DAMAGED,
    EntryRange,
    NewDocument,
    NewEntry,
    NewMemory,
    is_id,
    memory_missing,
    split_damaged,
)
from daypack.memory.times import format_time, parse_time
from daypack.memory.users import Users
from daypack.memory.writes.recent_writes import Writer, failed_write
from daypack.postgres.address import is_address
from daypack.types.memory import (
    PLACEHOLDER,
    SUMMARY_MAX_CHARS,
    About,
    Added,
    Consistency,
    ContextDocument,
    DamagedRecord,
    Entry,
    EntryPage,
    Memory,
    MemoryPage,
    SearchResult,
    User,
)

if TYPE_CHECKING:
    from daypack.memory.remote import RemoteMemories

_Folder: TypeAlias = "str | os.PathLike[str] | None"


@overload
def open_memory(
    *, home: _Folder = None, url: None = None, user: str = "local", uid: str | None = None, memory: str | None = None
) -> "Memories": ...
@overload
def open_memory(
    *, home: _Folder = None, url: str | None, user: str = "local", uid: str | None = None, memory: str | None = None
) -> "Memories | RemoteMemories": ...
def open_memory(
    *,
    home: _Folder = None,
    url: str | None = None,
    user: str = "local",
    uid: str | None = None,
    memory: str | None = None,
) -> "Memories | RemoteMemories":
    """Open the memories of a user: in a home folder or, with `url`, on a memory server or in a database.

    `home` is the root folder (default: DAYPACK_HOME, else /ctx if writable, else ~/.daypack), `uid` the folder in it.
    With postgresql://USER@HOST/NAME as `url` the memories are in that database, and the home has the settings, prompts
    and models; without a `url`, DAYPACK_STORE_URL or [store] in config.toml may name a database. A server identifies
    the user by the token in DAYPACK_TOKEN, if that is for this address. `memory` is the memory of a call without a
    memory_id: an id, the start of one, or a title (default: DAYPACK_MEMORY, else `default` in the [memory] table of
    config.toml).
    """
    default, origin = memory or "", ""
    if not default:
        default, origin = os.environ.get("DAYPACK_MEMORY", ""), "DAYPACK_MEMORY"
    if url is not None and not is_address(url):
        from daypack.memory.remote import RemoteMemories  # noqa: PLC0415 — HTTP costs 30 ms

        remote = RemoteMemories(url, user=user, memory=default)
        remote.default_origin = origin
        return remote
    found = find_home(home, uid)
    backend = open_backend(found, url or "")
    if not default:
        default, origin = backend.limits.default_memory, found.config
    memories = Memories(backend, user, default)
    memories.default_origin = origin
    return memories


class Memories(MemoryTools):
    """The memories of one user in a home folder or a database. Threads may share it, and processes may do the same."""

    def __init__(
        self,
        backend: Backend,
        user: str = "local",
        default_memory: str = "",
        *,
        token_id: str = "",
        pause: Pause = time.sleep,
    ) -> None:
        """`token_id` names the caller of a server; `pause` is what a barrier does while it waits."""
        self.default_memory = default_memory
        self.user = check_name(user, "user")
        self._writer = Writer(self.user, token_id)
        self._missing_hint = NO_DEFAULT
        self._pause = pause
        self.backend = backend
        self.users = Users(backend.store.accounts)
        self._store = backend.store
        self._limits = backend.limits

    def as_user(self, user: str) -> "Memories":
        """Return the memories of another user, with the same files open and without a default memory."""
        return Memories(self.backend, user)

    def as_caller(self, user: str, token_id: str, pause: Pause = time.sleep) -> "Memories":
        """Return the memories of a user for one call to a server, with the same files open."""
        memories = Memories(self.backend, user, token_id=token_id, pause=pause)
        own = self.default_memory, self._missing_hint
        memories.default_memory, memories._missing_hint = own if user == self.user else ("", NO_DEFAULT_HERE)
        return memories

    def since(self, token: str) -> "Memories":
        """Return these memories; from now on, all reads of this user are as new as the write of a token, or newer.

        That makes a difference with a replica, if the write went through another process.
        """
        self.backend.require(self.user, token)
        return self

    @property
    def remote(self) -> bool:
        """True if calls wait for a database, or searches for an embedding model on a server."""
        return self.backend.server is not None or self.backend.embedding_model.startswith("openai:")

    @property
    def place(self) -> str:
        """The address of the database, without its password; empty for files."""
        return "" if self.backend.server is None else self.backend.server.database.place

    @property
    def flush_every(self) -> int:
        """How many entries a keeper stores before it writes the document, as config.toml says."""
        return self._limits.flush_every

    # The nine tools

    def call(self, request: Request[Result]) -> Result:
        """Carry out a request of any of the nine tools and return its result."""
        calls: dict[type[Request[Any]], Callable[[Any], Any]] = {
            CreateMemory: self._create_memory,
            GetMemory: self._get_memory,
            AddEntry: self._add_entry,
            ListEntries: self._list_entries,
            GetContext: self._get_context,
            PutContext: self._put_context,
            AwaitConsistency: self._await_consistency,
            GetUser: self._get_user,
            SearchMemories: self._search_memories,
        }
        try:
            request = self.with_default(request)
            if getattr(request, "memory_id", None) == "":
                raise BadInput("memory_id is missing", operation=request.tool, hint=self._missing_hint)
            with self.backend.waiting(self.deadline):
                return calls[type(request)](request)
        except MemoryMissing as error:
            error.operation = request.tool  # a tool may read the memory with the means of another
            raise

    def _create_memory(self, request: CreateMemory) -> Memory:
        with self._recording_failure("create_memory"):
            if not self._limits.create_memory:
                hint = "set create_memory = true in the [memory] table of config.toml"
                raise AccessDenied("create_memory is switched off", operation="create_memory", hint=hint)
            new = NewMemory(
                title=checks.check_title(request.title, self._limits),
                memory_type=checks.check_type(request.memory_type),
                description=checks.check_description(request.description, self._limits),
            )
            return self._with_token(self._store.load(self.user, new, (NewDocument(PLACEHOLDER),), ()))

    def _get_memory(self, request: GetMemory) -> Memory:
        return self._store.memory(self.user, request.memory_id)

    def _add_entry(self, request: AddEntry) -> Added:
        memory_id, client_key = request.memory_id, request.client_key
        with self._recording_failure("add_entry", memory_id, client_key):
            stored = self._store.add(self.user, memory_id, (self._draft(request),))[0]
        self.backend.writes.record_success(self._writer, memory_id, client_key)
        return Added(
            memory_id=memory_id,
            entry_id=stored.entry_id,
            seq=stored.seq,
            created_at=format_time(stored.created_at),
            summary=stored.summary,
            token=self.backend.token(self.user, memory_id, entries=stored.seq),
            replayed=stored.replayed,
            notes=checks.summary_notes(request.summary),
        )

    def _list_entries(self, request: ListEntries) -> EntryPage:
        memory_id = request.memory_id
        number = check_number(
            min(request.limit, self._limits.list_entries), self._limits.list_entries, "limit", "list_entries"
        )
        entries, damaged = self._read_page(memory_id, self._span(request, number))
        older = newer = False
        if entries:
            older = bool(self._store.page(self.user, memory_id, EntryRange(limit=1, before_seq=entries[-1].seq)))
            newer = bool(self._store.page(self.user, memory_id, EntryRange(limit=1, after_seq=entries[0].seq)))
        return EntryPage(
            memory_id=memory_id,
            entries=tuple(entries),
            count=len(entries),
            applied_limit=number,
            next_before=entries[-1].entry_id if older else None,
            next_after=entries[0].entry_id if newer else None,
            damaged=tuple(damaged[:MAX_DAMAGED]),
        )

    def _read_page(self, memory_id: str, entries: EntryRange) -> tuple[list[Entry], list[DamagedRecord]]:
        """Return as many intact entries of a range as it allows, and the damaged ones among them."""
        intact: list[Entry] = []
        damaged: list[DamagedRecord] = []
        wanted = entries
        while True:
            page = self._store.page(self.user, memory_id, wanted)
            more, skipped = split_damaged(page)
            intact = [*more, *intact] if entries.forward else [*intact, *more]
            damaged += skipped
            missing = entries.limit - len(intact)
            if not skipped or not missing or len(page) < wanted.limit or len(damaged) >= MAX_DAMAGED:
                return intact, damaged
            edge = {"after_seq": page[0].seq} if entries.forward else {"before_seq": page[-1].seq}
            wanted = replace(entries, limit=missing, **edge)

    def _get_context(self, request: GetContext) -> ContextDocument:
        return self._store.document(self.user, request.memory_id)

    def _put_context(self, request: PutContext) -> ContextDocument:
        memory_id = request.memory_id
        with self._recording_failure("put_context", memory_id):
            text = checks.check_document(read_content(request.content), self._limits)
            document = self._store.put_document(self.user, memory_id, text)
        self.backend.writes.record_success(self._writer, memory_id)
        return replace(document, token=self.backend.token(self.user, memory_id, documents=document.version))

    def _await_consistency(self, request: AwaitConsistency) -> Consistency:
        barrier = Barrier(self.backend, self._writer, request.timeout_ms, request.level, self._pause)
        return barrier.wait(request.memory_id, request.token)

    def _get_user(self, _: GetUser) -> User:
        return self.users.get(self.user)

    def _search_memories(self, request: SearchMemories) -> SearchResult:
        question = Question(
            query=checks.check_query(request.query, self._limits),
            top_k=check_number(request.top_k, self._limits.search_entries, "top_k", "search_memories"),
            explain=request.explain,
            where=checks.check_where(request.where, self._limits),
        )
        return self.backend.search(self.user, request.memory_id, question)

    # Beyond the tools

    def list_memories(self, limit: int | str = 50, after: str | None = None) -> MemoryPage:
        """Return the user's own memories, oldest first: the first, or those after a memory id, deleted or not."""
        operation, most = "list_memories", self._limits.list_memories
        number = check_number(min(read_number(limit, "limit", operation), most), most, "limit", operation)
        store = self._store if after is None else self.backend.primary  # a replica may not know it yet
        known = store.memories(self.user)
        start = 0
        if after is not None:
            order = [memory.memory_id for memory in store.memories(self.user, deleted=None)]
            if after not in order:
                raise memory_missing(after, "list_memories")
            passed = frozenset(order[: order.index(after) + 1])
            start = sum(memory.memory_id in passed for memory in known)
        page = known[start : start + number]
        following = page[-1].memory_id if start + number < len(known) else None
        damaged = self._store.damaged(self.user)[:MAX_DAMAGED]
        return MemoryPage(memories=page, count=len(page), applied_limit=number, next_after=following, damaged=damaged)

    # Local files only

    def memories(self, *, deleted: bool = False) -> tuple[Memory, ...]:
        """Return the user's memories, oldest first; or the deleted ones, which can be restored."""
        return self._store.memories(self.user, deleted=deleted)

    def delete_memory(self, memory_id: str) -> None:
        """Hide a memory until it is restored."""
        with self._recorded("hide", memory_id):
            self._store.delete(self.user, memory_id)

    def restore_memory(self, memory_id: str) -> Memory:
        """Restore a deleted memory."""
        with self._recorded("unhide", memory_id):
            self._store.restore(self.user, memory_id)
        return self.get_memory(memory_id)

    def erase_memory(self, memory_id: str) -> None:
        """Remove a memory, deleted or not, from the files permanently."""
        with self._recorded("erase", memory_id), self._without_index(memory_id):
            self._store.erase(self.user, memory_id)

    def erase_entry(self, memory_id: str, entry_id: str) -> None:
        """Remove an entry from the files permanently; the search index is rebuilt without it."""
        self._store.seq_of(self.user, memory_id, entry_id)  # raises EntryMissing before the index is removed
        with self._recorded("erase", memory_id, entry_id), self._without_index(memory_id):
            self._store.erase_entry(self.user, memory_id, entry_id)

    def export_memory(self, memory_id: str) -> Iterator[bytes]:
        """Return the lines of a memory as JSONL, read lazily; without secrets, unless redaction is off."""
        self.get_memory(memory_id)
        return self._export(memory_id)

    def import_memory(self, lines: Iterable[bytes | str], title: str | None = None) -> Memory:
        """Store the lines of an export, all or none; it keeps its id unless a title is given or the id is taken.

        If this user has a memory with that id, only what it lacks is added.
        """
        archive = Archive(self._limits, _summarise)
        with self._recording_failure("import_memory"), self._recorded("import") as recorded:
            archive.read(lines)
            memory = self._with_token(archive.store(self._store, self.user, title))
            recorded["memory"] = memory.memory_id
            return memory

    def close(self) -> None:
        """Close all files; the next call opens them again."""
        self.backend.close()

    def __repr__(self) -> str:
        return f"<daypack memories of {self.user}>"

    def _export(self, memory_id: str) -> Iterator[bytes]:
        with self._recorded("export", memory_id):
            yield from export_memory(self._store, self.user, memory_id, self.backend.shown)

    def _recorded(self, action: Action, *ids: str) -> AbstractContextManager[dict[str, Any]]:
        """Record in the audit log what is done to a memory, or to an entry of it."""
        memory_id, *entries = [found for found in ids if is_id(found)] or [""]  # anything else could be contents
        return self.backend.recording(Deed(action=action, user=self.user, memory=memory_id, entries=tuple(entries)))

    @contextmanager
    def _without_index(self, memory_id: str) -> Generator[None]:
        """Remove the index before and after, so that no crash and no search keeps erased words in it."""
        owned = self.backend.primary.memories(self.user, deleted=None)
        if memory_id not in [memory.memory_id for memory in owned]:
            raise memory_missing(memory_id, "erase")
        self.backend.indexes.erase(memory_id)
        try:
            yield
        finally:
            self.backend.indexes.erase(memory_id)

    def _draft(self, request: AddEntry) -> NewEntry:
        raw = checks.check_raw(request.raw_entry, self._limits)
        about = checks.check_about(request.about, self._limits)
        key = checks.check_key(request.client_key, self._limits)
        if request.summary is not None:
            text = checks.check_summary(request.summary, self._limits)
            return NewEntry(raw=raw, summary=text, about=about, client_key=key)
        draft = NewEntry(raw=raw, summary="", about=about, client_key=key, summary_given=False)
        if key is not None and (stored := self._store.find_key(self.user, request.memory_id, key)):
            return replace(draft, summary=stored.summary)  # a repetition
        return replace(draft, summary=_summarise(raw, about, self._document_text(request.memory_id)))

    def _document_text(self, memory_id: str) -> str:
        """Return the context document; empty if no version is intact, so that entries can still be added."""
        try:
            return self._store.document(self.user, memory_id).content
        except Damaged:
            return ""

    def _span(self, request: ListEntries, limit: int) -> EntryRange:
        memory_id, before, after = request.memory_id, request.before, request.after
        if before is not None and after is not None:
            hint = "send only one of them"
            raise BadInput("before and after are both given", operation="list_entries", hint=hint)
        cursor = before if before is not None else after
        if cursor is None:
            self._store.memory(self.user, memory_id)
            return EntryRange(limit=limit)
        side = "before" if before is not None else "after"
        if is_id(cursor):
            return EntryRange(limit=limit, **{f"{side}_seq": self._store.seq_of(self.user, memory_id, cursor)})
        moment = parse_time(check_text(cursor, side, "list_entries"))
        if moment is None:
            hint = f"{side} takes an entry id of this memory or an ISO 8601 time"
            raise BadInput(f"{side} is {cursor[:64]!r}", operation="list_entries", hint=hint)
        return EntryRange(limit=limit, **{f"{side}_time": moment})

    def _with_token(self, memory: Memory) -> Memory:
        self.backend.writes.record_success(self._writer, memory.memory_id)
        newest = self._store.newest(self.user, memory.memory_id)
        numbers = {"entries": newest.assigned, "documents": newest.documents}
        return replace(memory, token=self.backend.token(self.user, memory.memory_id, **numbers))

    @contextmanager
    def _recording_failure(
        self, operation: str, memory_id: object = None, client_key: object = None
    ) -> Generator[None]:
        """Record a failed write, which the next barrier reports."""
        try:
            yield
        except Exception as error:
            self.backend.writes.record_failure(self._writer, failed_write(operation, error, memory_id, client_key))
            raise


def _summarise(raw: str, about: About, document: str) -> str:
    from daypack.memory.summary.summary import summarise_entry  # noqa: PLC0415 — only without a summary

    known = "" if is_placeholder(document) else document
    return summarise_entry(raw, about, known) or raw[:SUMMARY_MAX_CHARS]
