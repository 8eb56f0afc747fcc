"""Looks into a memory from a process that has a tenth of a second: its document, and a search by words.

`open_memory` costs as much as the rest of a hook. Here only a few of the entries that were stored since the last search
are indexed, and no process is waited for: the rest is found after a search, or at the end of the agent's turn. A memory
that does not exist (any more) has no document and no entries. A database is waited for as long as a turn would.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import takewhile
from threading import Thread
from typing import NamedTuple, TypeVar

from daypack.errors import Damaged, MemoryMissing, StorageFailed
from daypack.memory.store.port import Store
from daypack.search.floor import EXAMINED, relevant
from daypack.search.indexing import Doc
from daypack.search.lexical import Hit, Lexical
from daypack.search.words import is_paraphrase
from daypack.types.deadline import Deadline
from daypack.types.memory import PLACEHOLDER, Entry

WORDS = "words.sqlite"  # in the folder of an index
INDEXED = 200  # entries that a lookup indexes, at most …
_INDEXED_CHARS = 60_000  # … and until they have so many characters
_WAITING_SECONDS = 0.02  # for a process that writes to the index
_OVERSAMPLING = 3  # hits beyond those asked for, because some are skipped

_Answer = TypeVar("_Answer")


class FoundEntry(NamedTuple):
    """An entry, the hit of the index, and its relevance, of which 1 is the floor."""

    entry: Entry
    hit: Hit
    relevance: float


class MemoryLookup:
    """One memory of one user. Calls that are limited raise StorageFailed if there is no answer in time."""

    def __init__(self, store: Store | None, open_words: Callable[[], Lexical], user: str, memory_id: str) -> None:
        self._store = store
        self._open_words = open_words
        self._user = user
        self._memory_id = memory_id
        self._seconds: float | None = None
        self._place = ""

    def limit(self, seconds: float, place: str) -> None:
        """Wait for each answer of a store at `place` so long, and then no more."""
        self._seconds, self._place = seconds, place

    def document(self) -> str | None:
        """Return the context document; None if there is none, or only the placeholder of a new memory."""
        return self._limited(self._document)

    def search(self, query: str, limit: int, *, without_session: str) -> list[FoundEntry]:
        """Return the entries of other sessions that clear the relevance floor, best first."""
        return self._limited(lambda: self._search(query, limit, without_session))

    def _limited(self, work: Callable[[], _Answer]) -> _Answer:
        if self._seconds is None:
            return work()
        done: list[_Answer | Exception] = []

        def run() -> None:
            try:
                done.append(work())
            except Exception as error:
                done.append(error)

        thread = Thread(target=run, name="daypack memory", daemon=True)
        thread.start()
        thread.join(self._seconds)
        if not done:
            self._store = None  # it is not waited for when it is closed, either
            problem = f"no answer in {self._seconds * 1000:,.0f} ms"
            hint = "check that the database runs; memory_ms is how long it is waited for"
            raise StorageFailed(problem, operation="look into memory", place=self._place, hint=hint)
        answer = done[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _document(self) -> str | None:
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

    def _search(self, query: str, limit: int, without_session: str) -> list[FoundEntry]:
        if self._store is None:
            return []
        try:
            newest = self._store.newest(self._user, self._memory_id).entries
        except MemoryMissing:
            return []
        if not newest:
            return []
        words = self._open_words()
        try:
            with suppress(StorageFailed):  # another process writes to the index: what it has is searched
                self._catch_up(self._store, words, newest)
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

    def _catch_up(self, store: Store, words: Lexical, newest: int) -> None:
        """Index the next entries. A damaged one ends it: a search notes what its index lacks."""
        known = words.newest
        if known >= newest:
            return
        batch = store.after(self._user, self._memory_id, known, INDEXED)
        intact = takewhile(lambda entry: isinstance(entry, Entry), batch)
        docs = list(_first([entry_doc(entry) for entry in intact if isinstance(entry, Entry)]))
        if docs:
            with words.waiting(Deadline.after(_WAITING_SECONDS)):
                words.add(docs)

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()


def entry_doc(entry: Entry) -> Doc:
    """Return an entry as it is indexed."""
    return Doc(
        entry.seq,
        entry.raw_entry,
        entry.author or "",
        entry.role or "",
        entry.at or entry.created_at,
        entry.session or "",
        entry.summary if is_paraphrase(entry.raw_entry, entry.summary) else "",
    )


def _first(docs: list[Doc]) -> Iterator[Doc]:
    """Yield texts until they are long enough; at least one."""
    chars = 0
    for doc in docs:
        yield doc
        chars += len(doc.text)
        if chars >= _INDEXED_CHARS:
            return
