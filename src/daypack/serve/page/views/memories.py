"""The memories of the user that looks at the page: entries, versions of the document, search; hide, restore, erase.

A memory of another user is refused exactly like one that does not exist. What is read is recorded in the audit log, as
the tools of a server are; what is hidden, restored or erased, as the commands are.
"""

import difflib
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from daypack.errors import BadInput, Damaged, MemoryMissing, NotFound
from daypack.memory.audit_log.record import Actor, actor
from daypack.memory.search.lookup import WORDS
from daypack.memory.store.port import StoreFeed, memory_missing, split_damaged
from daypack.search.floor import EXAMINED, KEPT
from daypack.search.lexical import Lexical
from daypack.serve.audited import audited
from daypack.serve.observe.request_facts import current
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.types.memory import ContextDocument, Entry, Hit, Memory, SearchResult

if TYPE_CHECKING:
    from daypack.memory.tools import Memories

FLOOR = 1.0  # the relevance that one of the best entries must reach
_VERSIONS = 200  # of a document that are listed, the newest
_ENTRIES = 50
_HITS = 20
_ERASE = "erase"  # what confirms the erasure of an entry
_BY_WORDS = "relevance below the floor is by words alone"


def list_memories(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return the memories of the user, oldest first, then the hidden ones."""
    memories = _memories(home, asked)
    if memories is None:
        return {"memories": []}
    with audited(memories, "list_memories"):
        found = (*memories.memories(), *memories.memories(deleted=True))
    return {"memories": [_describe(memories, memory) for memory in found]}


def show_memory(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return a memory with its document and the list of the document's versions; of a hidden one, only what it is."""
    memory_id = asked.text("id")
    memories = _require(home, asked, memory_id)
    with audited(memories, "get_context", memory_id) as outcome:
        try:
            memory = memories.get_memory(memory_id)
        except MemoryMissing:
            if (hidden := _find_own(memories, memory_id)) is None:
                raise
            return {**_describe(memories, hidden), "document": None, "versions": []}
        document = _newest_document(memories, memory_id)
        outcome.value = document
        versions = _versions(memories, memory_id)
    return {
        **_describe(memories, memory),
        "document": document and _document(memories, document),
        "versions": [
            {"version": known.version, "created_at": known.created_at, "chars": len(known.content)}
            for known in reversed(versions)
        ],
    }


def list_entries(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return entries, newest first: the newest, or those before an entry."""
    memory_id = asked.text("id")
    memories = _require(home, asked, memory_id)
    with audited(memories, "list_entries", memory_id) as outcome:
        page = memories.list_entries(memory_id, limit=_ENTRIES, before=asked.text("before", "") or None)
        outcome.value = page
    return {
        "entries": [_entry(entry) for entry in memories.backend.shown(page).entries],
        "next": page.next_before,
        "damaged": [str(record) for record in page.damaged],
    }


def show_document(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return a version of the document, and its difference to another, by default the one before."""
    memory_id = asked.text("id")
    memories = _require(home, asked, memory_id)
    with audited(memories, "get_context", memory_id) as outcome:
        newest = memories.backend.store.newest(memories.user, memory_id).documents
        version = asked.number("version", newest, least=1)
        against = asked.number("against", version - 1)
        for number in (version, against):
            _require_version(number, newest)
        after = memories.backend.store.document(memories.user, memory_id, version)
        before = memories.backend.store.document(memories.user, memory_id, against) if against else None
        outcome.value = after
    old, new = (memories.backend.shown(known).content if known else "" for known in (before, after))
    names = f"version {against}" if against else "nothing", f"version {version}"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")
    return {**_document(memories, after), "against": against or None, "lines": list(lines)}


def search_memory(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return the entries that answer a query with the parts of their scores, and the best ones below the floor."""
    memory_id, query = asked.text("id"), asked.text("q")
    memories = _require(home, asked, memory_id)
    with audited(memories, "search_memories", memory_id) as outcome:
        result: SearchResult = memories.search_memories(memory_id, query, top_k=_HITS, explain=True)
        below = _below(home, memories, memory_id, query, result)
        outcome.value = result
    notes = (*result.notes, _BY_WORDS) if below and memories.backend.indexes.has_vectors else result.notes
    return {
        "floor": FLOOR,
        "kept": KEPT,
        "hits": [_hit(hit) for hit in memories.backend.shown(result).entries],
        "notes": notes,
        "below": [_hit(memories.backend.shown(hit)) for hit in below],
    }


# Actions


def hide_memory(home: OpenedHome, asked: Asked) -> dict[str, str]:
    """Hide a memory until it is restored."""
    memory_id = asked.text("id")
    memories = _require(home, asked, memory_id)
    with _acting():
        memories.delete_memory(memory_id)
    return {"done": "the memory is hidden: no tool finds it until it is restored"}


def restore_memory(home: OpenedHome, asked: Asked) -> dict[str, str]:
    """Show a hidden memory again."""
    memory_id = asked.text("id")
    memories = _require(home, asked, memory_id)
    with _acting():
        memory = memories.restore_memory(memory_id)
    return {"done": f"{memories.backend.shown(memory).title} is restored"}


def erase_memory(home: OpenedHome, asked: Asked) -> dict[str, str]:
    """Erase a memory for good, if its title confirms it."""
    memory_id, confirm = asked.text("id"), asked.text("confirm", "")
    memories = _require(home, asked, memory_id)
    memory = _find_own(memories, memory_id)
    if memory is None:
        raise memory_missing(memory_id, "erase")
    title = memories.backend.shown(memory).title  # as the page shows it
    if confirm not in (memory.title, title):
        hint = f"type the title of the memory to confirm: {title}"
        raise BadInput("the confirmation is not the title of the memory", operation="erase", place="confirm", hint=hint)
    with _acting():
        memories.erase_memory(memory_id)
    return {"done": f"{title} is erased, with all its entries and documents"}


def erase_entry(home: OpenedHome, asked: Asked) -> dict[str, str]:
    """Erase one entry for good, if the word "erase" confirms it."""
    memory_id, entry_id = asked.text("id"), asked.text("entry")
    memories = _require(home, asked, memory_id)
    if asked.text("confirm", "") != _ERASE:
        hint = f"type {_ERASE} to confirm"
        raise BadInput("the erasure is not confirmed", operation="erase", place="confirm", hint=hint)
    with _acting():
        memories.erase_entry(memory_id, entry_id)
    return {"done": "the entry is erased; the search index is built again without it"}


@contextmanager
def _acting() -> Generator[None]:
    """Record in the audit log for which request of the server it is done."""
    facts = current.get()
    reset = actor.set(Actor(facts.door, facts.token_id, facts.request_id)) if facts else None
    try:
        yield
    finally:
        if reset is not None:
            actor.reset(reset)


# Reading


def _memories(home: OpenedHome, asked: Asked) -> "Memories | None":
    return home.memories.as_user(asked.viewer.user) if home.memories is not None else None


def _require(home: OpenedHome, asked: Asked, memory_id: str) -> "Memories":
    memories = _memories(home, asked)
    if memories is None:
        raise memory_missing(memory_id, asked.view)
    return memories


def _find_own(memories: "Memories", memory_id: str) -> Memory | None:
    own = (*memories.memories(), *memories.memories(deleted=True))
    return next((memory for memory in own if memory.memory_id == memory_id), None)


def _describe(memories: "Memories", memory: Memory) -> dict[str, Any]:
    shown = memories.backend.shown(memory)
    return {
        "id": shown.memory_id,
        "title": shown.title,
        "type": shown.memory_type,
        "description": shown.description,
        "created_at": shown.created_at,
        "hidden_at": shown.deleted_at,
        "entries": shown.stats.entries,
        "documents": shown.stats.documents,
        "bytes": shown.stats.bytes,
    }


def _newest_document(memories: "Memories", memory_id: str) -> ContextDocument | None:
    try:
        return memories.get_context(memory_id)
    except Damaged:
        return None


def _versions(memories: "Memories", memory_id: str) -> list[ContextDocument]:
    """Return the newest versions of a document that are intact, oldest first."""
    store = memories.backend.store
    newest = store.newest(memories.user, memory_id).documents
    found = store.documents(memories.user, memory_id, max(0, newest - _VERSIONS), _VERSIONS)
    return split_damaged(found)[0]


def _require_version(version: int, newest: int) -> None:
    if version > newest:
        hint = f"there are versions 1 to {newest:,}"
        raise NotFound(f"the document has no version {version:,}", operation="document", place="version", hint=hint)


def _document(memories: "Memories", document: ContextDocument) -> dict[str, Any]:
    content = memories.backend.shown(document).content
    return {"version": document.version, "created_at": document.created_at, "content": content}


def _below(home: OpenedHome, memories: "Memories", memory_id: str, query: str, result: SearchResult) -> list[Hit]:
    """Return the best entries that a search left out, rated by their words; the search has indexed them all."""
    words = _open_words(home, memories, memory_id)
    if words is None:
        return []
    try:
        ranked = words.search(query, limit=EXAMINED)
    finally:
        words.close()
    stored = memories.backend.store.pick(memories.user, memory_id, [hit.id for hit in ranked])
    known = {hit.seq for hit in result.entries}
    below: list[Hit] = []
    for hit in ranked:
        entry = stored.get(hit.id)  # it may have been erased since
        if isinstance(entry, Entry) and entry.seq not in known and hit.relevance < FLOOR:
            fields = {name: getattr(entry, name) for name in Entry.__struct_fields__}
            below.append(Hit(**fields, score=hit.score, score_parts=hit.parts, relevance=round(hit.relevance, 3)))
    return below


def _open_words(home: OpenedHome, memories: "Memories", memory_id: str) -> Lexical | None:
    if (server := memories.backend.server) is not None:
        from daypack.memory.search.postgres.indexes import PostgresIndexes  # noqa: PLC0415 — few have a database

        feed = StoreFeed(memories.backend.primary, memories.user, memory_id)
        return PostgresIndexes(server.database).open(feed, None).words
    path = os.path.join(home.home.memory_indexes, memory_id, WORDS)
    return Lexical(path) if os.path.exists(path) else None


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.entry_id,
        "seq": entry.seq,
        "created_at": entry.created_at,
        "raw": entry.raw_entry,
        "summary": entry.summary,
        "author": entry.author,
        "role": entry.role,
        "at": entry.at,
        "session": entry.session,
        "tags": entry.tags,
        "source": entry.source,
    }


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        **_entry(hit),
        "score": hit.score,
        "parts": hit.score_parts or {},
        "relevance": hit.relevance,
        "superseded_by": hit.superseded_by,
    }
