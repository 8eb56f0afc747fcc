"""Looks into a memory from a process that has a tenth of a second: its document, and a search by words.

`open_memory` costs as much as the rest of a hook. Here nothing is written, created or brought up to date: what is not
indexed yet is not found, and a memory that does not exist (any more) has no document and no entries.
"""

import os
from typing import NamedTuple

from daypack.errors import Damaged, MemoryMissing
from daypack.history.layout import Home
from daypack.memory.store.sqlite import SqliteStore
from daypack.search.floor import EXAMINED, relevant
from daypack.search.lexical import Hit, Lexical
from daypack.types.memory import PLACEHOLDER, Entry

WORDS = "words.sqlite"  # in the folder of an index
_OVERSAMPLING = 3  # hits beyond those asked for, because some are skipped


class FoundEntry(NamedTuple):
    """An entry, the hit of the index, and its relevance, of which 1 is the floor."""

    entry: Entry
    hit: Hit
    relevance: float


class MemoryLookup:
    """One memory of one user."""

    def __init__(self, home: Home, user: str, memory_id: str) -> None:
        self._words = os.path.join(home.memory_indexes, memory_id, WORDS)
        self._store = SqliteStore(home.store) if os.path.exists(home.store) else None
        self._user = user
        self._memory_id = memory_id

    def document(self) -> str | None:
        """Return the context document; None if there is none, or only the placeholder of a new memory."""
        if self._store is None:
            return None
        try:
            content = self._store.document(self._user, self._memory_id).content
        except (MemoryMissing, Damaged):
            return None
        if PLACEHOLDER in content:
            from daypack.memory.document.document import is_placeholder  # noqa: PLC0415 — rarely more than the constant

            return None if is_placeholder(content) else content
        return content

    def search(self, query: str, limit: int, *, without_session: str) -> list[FoundEntry]:
        """Return the entries of other sessions that clear the relevance floor, best first."""
        if self._store is None or not os.path.exists(self._words):
            return []
        words = Lexical(self._words)
        try:
            ranked = words.search(query, limit=max(EXAMINED, _OVERSAMPLING * limit))
        finally:
            words.close()
        if not relevant(ranked):
            return []
        try:
            stored = self._store.pick(self._user, self._memory_id, [hit.id for hit in ranked])
        except MemoryMissing:
            return []
        found: list[FoundEntry] = []
        for hit in ranked:
            entry = stored.get(hit.id)  # it may have been erased since it was indexed
            if isinstance(entry, Entry) and entry.session != without_session:
                found.append(FoundEntry(entry, hit, hit.relevance))
        # The floor again: what made the answer relevant may have been said in the session that is left out.
        return relevant(found)[:limit]

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()
