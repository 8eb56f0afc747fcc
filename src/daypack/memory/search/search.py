"""Searching one memory: the entries that fit a query, the latest context document and the one that fits best."""

from typing import TYPE_CHECKING

import msgspec

from daypack.memory.document.document import is_placeholder
from daypack.memory.search.open_indexes import Indexes
from daypack.memory.store.port import Store, StoreFeed
from daypack.types.memory import ContextDocument, Entry, Hit, SearchResult, Where

if TYPE_CHECKING:
    from daypack.memory.search.index import Found, Index


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    query: str
    top_k: int
    explain: bool = False
    where: Where | None = None


def search(store: Store, indexes: Indexes, user: str, memory_id: str, question: Question) -> SearchResult:
    """Search a memory of this user."""
    latest = store.document(user, memory_id)  # refuses who has no such memory
    allowed = None if question.where is None else store.find(user, memory_id, question.where)
    with indexes.use(StoreFeed(store, user, memory_id)) as index:
        found = index.search(question.query, question.top_k, allowed=allowed)
        best, score = _best_document(store, user, index, memory_id, question.query)
        notes = (*index.notes, *filter(None, (indexes.problem,)))
    stored = store.pick(user, memory_id, [one.seq for one in found])
    # One that was erased meanwhile is left out.
    hits = tuple(_hit(stored[one.seq], one, explain=question.explain) for one in found if one.seq in stored)
    known = not is_placeholder(latest.content)
    return SearchResult(
        memory_id=memory_id,
        entries=hits,
        count=len(hits),
        latest_context=latest.content if known else None,
        context_timestamp=latest.created_at if known else None,
        best_context=best.content if best else None,
        best_context_timestamp=best.created_at if best else None,
        best_context_score=score,
        notes=notes,
    )


def _best_document(
    store: Store, user: str, index: "Index", memory_id: str, query: str
) -> tuple[ContextDocument | None, float | None]:
    best = index.best_document(query)
    if best is None:
        return None, None
    document = store.document(user, memory_id, best[0])
    return (None, None) if is_placeholder(document.content) else (document, best[1])


def _hit(entry: Entry, found: "Found", *, explain: bool) -> Hit:
    fields = {name: getattr(entry, name) for name in Entry.__struct_fields__}
    return Hit(**fields, score=found.score, score_parts=found.parts if explain else None)
