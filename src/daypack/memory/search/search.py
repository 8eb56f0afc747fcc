"""Searches one memory: ranked entries, the latest context document and the best matching one."""

from typing import TYPE_CHECKING

import msgspec

from daypack.errors import Damaged
from daypack.memory.document.document import is_placeholder
from daypack.memory.search.index_cache import CopiedIndexes, IndexCache
from daypack.memory.search.supersession import mark_superseded
from daypack.memory.store.port import MAX_DAMAGED, Store, StoreFeed, split_damaged
from daypack.search.floor import EXAMINED
from daypack.types.memory import NOTHING_RELEVANT, ContextDocument, DamagedRecord, Entry, Hit, SearchResult, Where

if TYPE_CHECKING:
    from daypack.memory.search.index import Index, RankedEntry


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A checked query and its options."""

    query: str
    top_k: int
    explain: bool = False
    where: Where | None = None


def search(
    store: Store, indexes: IndexCache | CopiedIndexes, user: str, memory_id: str, question: Question
) -> SearchResult:
    """Search a memory of this user."""
    latest = _latest_document(store, user, memory_id)  # raises MemoryMissing if the user has no such memory
    allowed = None if question.where is None else store.find(user, memory_id, question.where)
    with indexes.use(StoreFeed(store, user, memory_id)) as index, index.together():
        # More than asked for: the newer value of a matter may rank below the older one.
        ranked = index.search(question.query, max(question.top_k, EXAMINED), allowed=allowed)
        best, score = _best_document(store, user, index, memory_id, question.query)
        notes = (*index.notes, *filter(None, (indexes.problem,)))
        skipped = index.damaged
        intact, damaged = split_damaged(store.pick(user, memory_id, [entry.seq for entry in ranked]).values())
    stored = {entry.seq: entry for entry in intact}
    # An entry may have been erased in the meantime.
    hits = [_hit(stored[entry.seq], entry, explain=question.explain) for entry in ranked if entry.seq in stored]
    best_hits = tuple(mark_superseded(hits)[: question.top_k])
    written = latest is not None and not is_placeholder(latest.content)
    return SearchResult(
        memory_id=memory_id,
        entries=best_hits,
        count=len(best_hits),
        latest_context=latest.content if latest and written else None,
        context_timestamp=latest.created_at if latest and written else None,
        best_context=best.content if best else None,
        best_context_timestamp=best.created_at if best else None,
        best_context_score=score,
        notes=notes if hits else (NOTHING_RELEVANT, *notes),
        damaged=_once(*damaged, *(latest.damaged if latest else ()), *skipped),
    )


def _once(*damaged: DamagedRecord) -> tuple[DamagedRecord, ...]:
    return tuple({(record.kind, record.number): record for record in damaged}.values())[:MAX_DAMAGED]


def _latest_document(store: Store, user: str, memory_id: str) -> ContextDocument | None:
    """Return the newest intact version of the document; None if there is none."""
    try:
        return store.document(user, memory_id)
    except Damaged:
        store.memory(user, memory_id)  # a damaged memory cannot be searched
        return None


def _best_document(
    store: Store, user: str, index: "Index", memory_id: str, query: str
) -> tuple[ContextDocument | None, float | None]:
    best = index.best_document(query)
    if best is None:
        return None, None
    try:
        document = store.document(user, memory_id, best[0])
    except Damaged:  # since it was indexed
        return None, None
    return (None, None) if is_placeholder(document.content) else (document, best[1])


def _hit(entry: Entry, ranked: "RankedEntry", *, explain: bool) -> Hit:
    fields = {name: getattr(entry, name) for name in Entry.__struct_fields__}
    parts = ranked.parts if explain else None
    return Hit(**fields, score=ranked.score, score_parts=parts, relevance=round(ranked.relevance, 3))
