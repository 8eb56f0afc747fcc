"""The nine tools as methods of one object, for one user, and what else an owner may do with memories."""

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from msgspec.structs import replace

from daypack.errors import AccessDenied, BadInput
from daypack.history.layout import check_name, find_home
from daypack.memory import limits as checks
from daypack.memory.archive import Archive, export_memory
from daypack.memory.consistency import Barrier
from daypack.memory.consistency_token import Position, write_token
from daypack.memory.document.document import initial_document, is_placeholder
from daypack.memory.limits import check_number, check_text
from daypack.memory.recent_writes import failed_write
from daypack.memory.search.search import Question, check_question, search
from daypack.memory.shared import Holding, open_holding
from daypack.memory.store.port import Draft, NewDocument, NewMemory, Span, is_id, memory_missing
from daypack.memory.times import moment_of, time_of
from daypack.memory.users import Users
from daypack.types.memory import (
    PLACEHOLDER,
    SUMMARY_MAX_CHARS,
    SUMMARY_TOKENS,
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


def open_memory(
    *,
    home: "str | os.PathLike[str] | None" = None,
    url: str | None = None,
    user: str = "local",
    uid: str | None = None,
) -> "Memories":
    """Open the memories of a user: those in a home, or with `url` those on a memory server.

    `home` is the root folder (default: DAYPACK_HOME, else /ctx if writable, else ~/.daypack), `uid` the folder in it.
    `user` is whose memories they are; a server decides that by the token in DAYPACK_TOKEN.
    """
    if url is not None:
        from daypack.memory.remote import RemoteMemories  # noqa: PLC0415 — HTTP costs 30 ms

        return cast("Memories", RemoteMemories(url, user=user))  # the same methods
    return Memories(open_holding(find_home(home, uid)), user)


class Memories:
    """The memories of one user. Threads may share it, processes may work in the same home."""

    def __init__(self, holding: Holding, user: str = "local") -> None:
        self.user = check_name(user, "user")
        self.holding = holding
        self.users = Users(holding.store.accounts)
        self._store = holding.store
        self._limits = holding.limits

    def as_user(self, user: str) -> "Memories":
        """Return the memories of another user, with the same files open."""
        return Memories(self.holding, user)

    # The nine tools

    @property
    def flush_every(self) -> int:
        """How many entries a keeper of these memories stores before it writes the document."""
        return self._limits.flush_every

    def create_memory(self, title: str, memory_type: str = "chat", description: str = "") -> Memory:
        """Make a memory; its document is the placeholder."""
        with self._noting("create_memory"):
            if not self._limits.create_memory:
                hint = "create_memory = false stands in the [memory] table of config.toml"
                raise AccessDenied("memories cannot be made here", operation="create_memory", hint=hint)
            new = NewMemory(
                title=checks.check_title(title, self._limits),
                memory_type=checks.check_type(memory_type),
                description=checks.check_description(description, self._limits),
            )
            return self._made(self._store.load(self.user, new, (NewDocument(PLACEHOLDER),), ()))

    def get_memory(self, memory_id: str) -> Memory:
        """Return what is known about a memory."""
        return self._store.memory(self.user, memory_id)

    def add_entry(
        self,
        memory_id: str,
        raw_entry: str,
        summary: str | None = None,
        *,
        about: About | Mapping[str, Any] | None = None,
        client_key: str | None = None,
    ) -> Added:
        """Store one raw message with its summary, durably; without a summary one is made.

        With a client key it is safe to do it twice: the second time answers as the first.
        """
        with self._noting("add_entry", memory_id, client_key):
            draft = self._draft(memory_id, raw_entry, summary, about, client_key)
            kept = self._store.add(self.user, memory_id, (draft,))[0]
        self.holding.writes.note_done(self.user, memory_id, client_key)
        return Added(
            memory_id=memory_id,
            entry_id=kept.entry_id,
            seq=kept.seq,
            created_at=time_of(kept.created_at),
            summary=kept.summary,
            token=self._token(memory_id, entries=kept.seq),
            replayed=kept.replayed,
            notes=_notes(summary),
        )

    def list_entries(
        self, memory_id: str, limit: int | str = 25, before: str | None = None, after: str | None = None
    ) -> EntryPage:
        """Return entries, newest first: the newest, those before or those right after a cursor (an id or a time).

        Of a limit above 50 it applies 50. A next cursor is there when there are entries on that side.
        """
        if before is not None and after is not None:
            raise BadInput("before and after are both given", operation="list_entries", hint="give one of them")
        number = check_number(limit, self._limits.list_entries, "limit", "list_entries", clipped=True)
        span = self._span(memory_id, number, before, after)
        entries = self._store.page(self.user, memory_id, span)
        older = newer = False
        if entries:
            older = bool(self._store.page(self.user, memory_id, Span(limit=1, before_seq=entries[-1].seq)))
            newer = bool(self._store.page(self.user, memory_id, Span(limit=1, after_seq=entries[0].seq)))
        return EntryPage(
            memory_id=memory_id,
            entries=tuple(entries),
            count=len(entries),
            applied_limit=number,
            next_before=entries[-1].entry_id if older else None,
            next_after=entries[0].entry_id if newer else None,
        )

    def get_context(self, memory_id: str) -> ContextDocument:
        """Return the current context document; of a new memory it is the placeholder."""
        return self._store.document(self.user, memory_id)

    def put_context(self, memory_id: str, content: object) -> ContextDocument:
        """Write a new version of the context document: a text, or {} for the initial document."""
        with self._noting("put_context", memory_id):
            text = checks.check_document(_document_text(content), self._limits)
            document = self._store.put_document(self.user, memory_id, text)
        self.holding.writes.note_done(self.user, memory_id)
        return replace(document, token=self._token(memory_id, documents=document.version))

    def await_consistency(
        self,
        memory_id: str | None = None,
        token: str | None = None,
        timeout_ms: int = 10_000,
        level: Level = "searchable",
    ) -> Consistency:
        """Wait until earlier writes are durable, visible or searchable, and say whether they are.

        It waits for the write a token stands for, else for all of a memory, else for all memories this user has
        written to through this process. Writes that failed since the last barrier are told once.
        """
        return Barrier(self.holding, self.user, timeout_ms, level).wait(memory_id, token)

    def get_user(self) -> User:
        """Return the profile with quotas and what is used of them; it is made when it is first asked for."""
        return self.users.get(self.user)

    def search_memories(
        self,
        memory_id: str,
        query: str,
        top_k: int | str = 10,
        explain: bool = False,  # noqa: FBT001, FBT002 — the tool's own signature
        where: Where | Mapping[str, Any] | None = None,
    ) -> SearchResult:
        """Return the entries of a memory that fit a query best, the latest document and the one that fits best.

        `explain` adds the parts of each score; `where` limits by time, tags, role, author and session. A placeholder
        counts as no document.
        """
        text, number = check_question(query, top_k, self.holding)
        chosen = checks.check_where(where, self._limits)
        question = Question(query=text, top_k=number, explain=explain, where=chosen)
        return search(self.holding, self.user, memory_id, question)

    # No tools: for the owner

    def memories(self, *, deleted: bool = False) -> tuple[Memory, ...]:
        """Return the user's memories, oldest first; or those that were deleted and can be restored."""
        return self._store.memories(self.user, deleted=deleted)

    def delete_memory(self, memory_id: str) -> None:
        """Hide a memory everywhere until it is restored."""
        self._store.delete(self.user, memory_id)

    def restore_memory(self, memory_id: str) -> Memory:
        """Bring a deleted memory back."""
        self._store.restore(self.user, memory_id)
        return self.get_memory(memory_id)

    def erase_memory(self, memory_id: str) -> None:
        """Remove a memory, deleted or not, from the files for good."""
        with self._erasing(memory_id):
            self._store.erase(self.user, memory_id)

    def erase_entry(self, memory_id: str, entry_id: str) -> None:
        """Remove an entry from the files for good; the search index is built again without it."""
        self._store.seq_of(self.user, memory_id, entry_id)  # or it is missing, and the index stays
        with self._erasing(memory_id):
            self._store.erase_entry(self.user, memory_id, entry_id)

    def export_memory(self, memory_id: str) -> Iterator[bytes]:
        """Return the lines of a memory as JSONL; they are read while one iterates."""
        self.get_memory(memory_id)
        return export_memory(self._store, self.user, memory_id)

    def import_memory(self, lines: Iterable[bytes | str], title: str | None = None) -> Memory:
        """Store the lines of an export, all or none. It keeps its id, unless a title is given or the id is taken.

        Where this user has a memory of that id, what is there is passed over and the rest added.
        """
        archive = Archive(self._limits, _summarise)
        with self._noting("import_memory"):
            archive.read(lines)
            return self._made(archive.store(self._store, self.user, title))

    def close(self) -> None:
        """Close all files; the next call opens them again."""
        self.holding.close()

    def __enter__(self) -> "Memories":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<daypack memories of {self.user}>"

    @contextmanager
    def _erasing(self, memory_id: str) -> Generator[None]:
        """Remove the index before and after: neither a kill in between nor a search leaves words behind."""
        owned = (*self.memories(), *self.memories(deleted=True))
        if memory_id not in [one.memory_id for one in owned]:
            raise memory_missing(memory_id, "erase")
        self.holding.indexes.erase(memory_id)
        try:
            yield
        finally:
            self.holding.indexes.erase(memory_id)

    def _draft(self, memory_id: str, raw_entry: object, summary: object, about: object, client_key: object) -> Draft:
        raw = checks.check_raw(raw_entry, self._limits)
        known = checks.check_about(about, self._limits)
        key = checks.check_key(client_key, self._limits)
        if summary is not None:
            text = checks.check_summary(summary, self._limits)
            return Draft(raw=raw, summary=text, about=known, client_key=key)
        draft = Draft(raw=raw, summary="", about=known, client_key=key, stated=False)
        if key is not None and (found := self._store.find_key(self.user, memory_id, key)):
            return replace(draft, summary=found.summary)  # a repetition
        document = self._store.document(self.user, memory_id).content
        return replace(draft, summary=_summarise(raw, known, document))

    def _span(self, memory_id: str, limit: int, before: str | None, after: str | None) -> Span:
        cursor = before if before is not None else after
        if cursor is None:
            self._store.memory(self.user, memory_id)
            return Span(limit=limit)
        side = "before" if before is not None else "after"
        if is_id(cursor):
            return Span(limit=limit, **{f"{side}_seq": self._store.seq_of(self.user, memory_id, cursor)})
        moment = moment_of(check_text(cursor, side, "list_entries"))
        if moment is None:
            hint = "give an entry id of this memory, or an ISO 8601 time"
            raise BadInput(f"{side} is {cursor[:64]!r}", operation="list_entries", hint=hint)
        return Span(limit=limit, **{f"{side}_time": moment})

    def _made(self, memory: Memory) -> Memory:
        self.holding.writes.note_done(self.user, memory.memory_id)
        newest = self._store.newest(self.user, memory.memory_id)
        token = self._token(memory.memory_id, entries=newest.given, documents=newest.documents)
        return replace(memory, token=token)

    def _token(self, memory_id: str, *, entries: int = 0, documents: int = 0) -> str:
        return write_token(Position(self._store.store_id, memory_id, entries, documents))

    @contextmanager
    def _noting(self, operation: str, memory_id: object = None, client_key: object = None) -> Generator[None]:
        """Remember a write that fails until the next barrier."""
        try:
            yield
        except Exception as error:
            self.holding.writes.note_failed(self.user, failed_write(operation, error, memory_id, client_key))
            raise


def _document_text(content: object) -> object:
    """Return the text of a document; {} stands for the initial one, as an object and as a text."""
    if isinstance(content, Mapping):
        if content:
            hint = "the context document is Markdown text; {} writes the initial document"
            raise BadInput("content is an object", operation="put_context", hint=hint)
        return initial_document()
    if isinstance(content, str) and "".join(content.split()) == "{}":
        return initial_document()
    return content


def _summarise(raw: str, about: About, document: str) -> str:
    from daypack.memory.summary.summary import summarise_entry  # noqa: PLC0415 — for those who give none

    known = "" if is_placeholder(document) else document
    return summarise_entry(raw, about, known) or raw[:SUMMARY_MAX_CHARS]


def _notes(summary: str | None) -> tuple[str, ...]:
    """Return what to tell about a given summary that is within its cap."""
    if summary is None or len(summary.encode()) <= 3 * SUMMARY_TOKENS:  # in no script more tokens than that
        return ()
    from daypack.text.tokens import counter_for  # noqa: PLC0415 — its vocabulary is loaded for long summaries only

    tokens = counter_for(None).count(summary)
    return (f"the summary has {tokens} tokens; about {SUMMARY_TOKENS} are enough",) if tokens > SUMMARY_TOKENS else ()
