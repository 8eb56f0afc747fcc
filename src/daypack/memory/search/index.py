"""The search index of one memory: derived from the store, updated by searches and barriers.

It has parts, which are files (see `index_files`) or tables of a database. The store is the queue: indexing continues
after the newest number in each part. A part that is missing, broken or of an unknown format is rebuilt and gives the
same results.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct

from daypack.errors import DaypackError, StorageFailed
from daypack.memory.search.lookup import entry_doc
from daypack.memory.search.skipped import Skipped
from daypack.memory.search.vectors import EntryVectorIndex, VectorQuery
from daypack.memory.store.port import next_after, split_damaged
from daypack.search.floor import EXAMINED, relevant
from daypack.search.fuse import Closeness, Ranked, rank, without_names
from daypack.search.indexing import Doc
from daypack.search.lexical import Lexical, WordMatches
from daypack.search.words import is_paraphrase
from daypack.types.memory import PLACEHOLDER, ContextDocument, DamagedRecord, Entry

POSTINGS = 40_000  # read per search; with 100,000 entries as good as reading all
CLOSEST = 100  # entries taken from the vectors, at least
_SEEDS = 40  # best matches whose neighbours are examined, at least; LoCoMo and BEAM are answered as with 160
_ANSWERS = 256  # kept
_BATCH = 2_000
_EMBEDDED_BY_SEARCH = 64  # a search embeds up to so many missing entries …
_EMBEDDING_SECONDS = 1.0  # … for so long

_Answer = TypeVar("_Answer")


class Feed(Protocol):
    """The entries and documents of one memory, in the order they were stored."""

    def newest(self) -> tuple[int, int]:
        """Return the highest number of an entry and the highest version of the document."""
        ...

    def entries(self, after: int, limit: int) -> Sequence[Entry | DamagedRecord]:
        """Return entries with higher numbers, ascending."""
        ...

    def documents(self, after: int, limit: int) -> Sequence[ContextDocument | DamagedRecord]:
        """Return later versions, ascending."""
        ...


class IndexParts(NamedTuple):
    """What an index is made of, wherever it is; `erase` removes all of it, and the next use begins anew."""

    words: Lexical  # of entries
    documents: Lexical  # the words of the context document's versions
    vectors: EntryVectorIndex | None  # of entries, if there is an embedder
    skipped: Skipped  # what the index lacks because it is damaged in the store
    erase: Callable[[], None]
    together: Callable[[], AbstractContextManager[None]] = nullcontext  # lets reads share one transaction


class RankedEntry(Struct, frozen=True):
    """A search hit; `parts` adds up to `score`."""

    seq: int
    score: float
    parts: dict[str, float]
    relevance: float = 0.0  # 1 is the floor


class IndexProgress(Struct, frozen=True):
    """The newest entry and document indexed by words, and the newest entry that has a vector."""

    entries: int
    documents: int
    vectors: int = 0
    problem: str | None = None


class _Notes(threading.local):
    """The limitations of a thread's last search."""

    texts: tuple[str, ...] = ()


class _Answers:
    """The answers to the last questions, as long as the index is the same: agents ask again within a task."""

    def __init__(self) -> None:
        self._state: object = None
        self._known: OrderedDict[object, list[RankedEntry]] = OrderedDict()

    def find(self, state: object, asked: object) -> list[RankedEntry] | None:
        if state != self._state:
            self._known.clear()
            self._state = state
        return self._known.get(asked)

    def keep(self, state: object, asked: object, answer: list[RankedEntry]) -> None:
        if state == self._state:  # another thread may have seen a newer one
            self._known[asked] = answer
            while len(self._known) > _ANSWERS:
                self._known.popitem(last=False)


class Index:
    """The index of the memory that `feed` reads; threads and processes may share it."""

    def __init__(self, parts: IndexParts, feed: Feed) -> None:
        self._words, self._documents, self._vectors, self._skipped, self._erase, self.together = parts
        self._feed = feed
        self._notes = _Notes()
        # Read for the words, used again for the vectors.
        self._last_batch: tuple[int, Sequence[Entry | DamagedRecord]] = (-1, ())
        self._answers = _Answers()

    @property
    def notes(self) -> tuple[str, ...]:
        """The limitations of this thread's last search: missing vectors, an embedder that failed."""
        return self._notes.texts

    @property
    def damaged(self) -> tuple[DamagedRecord, ...]:
        """The entries and documents that the index lacks because they are damaged."""
        return self._skipped.records

    # Indexing

    def catch_up(
        self,
        *,
        deadline: float | None = None,
        progress: Callable[[IndexProgress], object] | None = None,
    ) -> IndexProgress:
        """Index what was stored since the last update; no batch starts after `deadline` (monotonic)."""

        def work() -> IndexProgress:
            known, there = self._compare(documents=True)
            reached = IndexProgress(
                self._add_entries(known.entries, there.entries, deadline),
                self._add_documents(known.documents, there.documents, deadline),
            )
            if self._vectors is None:
                return reached
            return self._embed(self._vectors, reached, deadline, progress)

        return self._retry_once(work)

    def add_words(self) -> None:
        """Index the words of what was stored since the last update; vectors, which may cost more, are left out."""

        def work() -> None:
            known, there = self._compare(documents=False)
            self._add_entries(known.entries, there.entries, None)

        self._retry_once(work)

    def covers(self, entries: int, documents: int) -> bool:
        """Return True if a search finds everything up to these numbers; it indexes a few missing entries itself."""

        def work() -> bool:
            spare = min(_EMBEDDED_BY_SEARCH, entries)
            if self._words.newest + spare < entries or (documents and self._documents.newest + spare < documents):
                return False
            vectors = self._vectors
            return vectors is None or vectors.newest + (spare if vectors.instant else 0) >= entries

        return self._retry_once(work)

    def is_complete(self) -> bool:
        """Return True if nothing that is stored is missing, so that a search has nothing to write."""
        known = self._words.newest, self._documents.newest, self._vectors.newest if self._vectors else None
        entries, documents = self._feed.newest()
        return known == (entries, documents, entries if self._vectors else None)

    def lag(self) -> int:
        """Return how many entries are stored and not indexed by their words yet."""
        return max(0, self._feed.newest()[0] - self._words.newest)

    def _compare(self, *, documents: bool) -> tuple[IndexProgress, IndexProgress]:
        """Return the progress of index and store; an index ahead of the store (restored from a backup) is erased."""
        self._last_batch = (-1, ())  # its entries may have been erased since
        # The index is read first, so that the store can only be ahead.
        known = IndexProgress(self._words.newest, self._documents.newest if documents else 0)
        there = IndexProgress(*self._feed.newest())
        is_ahead = known.entries > there.entries or known.documents > there.documents
        if is_ahead or self._skipped.is_outdated(self._is_intact):
            self._erase()
            self._skipped.forget()
            known = IndexProgress(self._words.newest, self._documents.newest)
        return known, there

    def _add_entries(self, newest: int, goal: int, deadline: float | None) -> int:
        while newest < goal and not _has_passed(deadline) and (batch := self._feed.entries(newest, _BATCH)):
            self._last_batch = newest, batch
            entries, damaged = split_damaged(batch)
            self._skipped.add(damaged)
            reached = next_after(batch, newest)
            if entries:
                added = self._words.add(entry_doc(entry) for entry in entries if entry.seq > newest)
                reached = max(added, reached) if added >= entries[-1].seq else added  # less: it was erased meanwhile
            newest = reached
        return newest

    def _add_documents(self, newest: int, goal: int, deadline: float | None) -> int:
        while newest < goal and not _has_passed(deadline) and (batch := self._feed.documents(newest, _BATCH)):
            documents, damaged = split_damaged(batch)
            self._skipped.add(damaged)
            newest = next_after(batch, newest)
            if documents:
                added = self._documents.add(map(_document_doc, documents))
                newest = max(added, newest) if added >= documents[-1].version else added
        return newest

    def _is_intact(self, record: DamagedRecord) -> bool:
        read = self._feed.documents if record.kind == "document" else self._feed.entries
        return any(
            not isinstance(found, DamagedRecord) and _number_of(found) == record.number
            for found in read(record.number - 1, 1)
        )

    def _embed(
        self,
        vectors: EntryVectorIndex,
        reached: IndexProgress,
        deadline: float | None,
        progress: Callable[[IndexProgress], object] | None = None,
    ) -> IndexProgress:
        def texts(after: int, limit: int) -> list[tuple[int, Sequence[str]]]:
            if progress is not None:
                progress(IndexProgress(reached.entries, reached.documents, after))
            known, batch = self._last_batch
            if known != after or len(batch) > limit:
                batch = self._feed.entries(after, limit)
            entries, _ = split_damaged(batch)
            while batch and not entries:  # all of them are damaged
                after = next_after(batch, after)
                batch = self._feed.entries(after, limit)
                entries, _ = split_damaged(batch)
            return [(entry.seq, _texts(entry)) for entry in entries]

        problem = vectors.catch_up(reached.entries, texts, deadline)
        newest = 0
        with suppress(DaypackError):
            newest = vectors.newest
            if problem is None and newest < reached.entries and not texts(newest, 1):
                newest = reached.entries  # only damaged entries follow
        return IndexProgress(reached.entries, reached.documents, newest, problem)

    # Searching

    def search(self, query: str, limit: int, *, allowed: Collection[int] | None = None) -> list[RankedEntry]:
        """Return the best entries that are relevant, best first; with `allowed` only those."""

        some = None if allowed is None else frozenset(allowed)
        asked = query, limit, some

        def work() -> list[RankedEntry]:
            notes: list[str] = []
            self._notes.texts = ()
            known, there = self._compare(documents=False)
            newest = self._add_entries(known.entries, there.entries, None)
            state = newest, self._words.identity, self._vectors.newest if self._vectors else 0
            if (answer := self._answers.find(state, asked)) is not None:
                return answer
            nearest = self._search_vectors(query, limit, some, newest, notes)
            self._notes.texts = tuple(notes)
            also, seeds = nearest.ids if nearest else (), max(_SEEDS, 2 * limit)
            matches = self._words.match(query, also=also, allowed=some, seeds=seeds)
            closeness: Closeness | None = None
            if nearest and self._vectors:
                closeness = self._vectors.compare(nearest, matches.places.keys())
            examined = max(limit, EXAMINED)
            ranked = rank(
                matches.rated, matches.places, matches.participants, examined, closeness=closeness, allowed=some
            )
            answer = relevant([_rate(entry, matches, closeness) for entry in ranked])[:limit]
            if not notes:  # what was limited is asked again
                self._answers.keep(state, asked, answer)
            return answer

        return self._retry_once(work) if limit > 0 else []

    def _search_vectors(
        self, query: str, limit: int, allowed: Collection[int] | None, newest: int, notes: list[str]
    ) -> VectorQuery | None:
        """Return the closest entries; a few missing vectors are made first, and limitations are noted."""
        if self._vectors is None or not newest:
            return None
        try:
            embedded = self._vectors.newest
            if 0 < newest - embedded <= _EMBEDDED_BY_SEARCH:
                deadline = time.monotonic() + _EMBEDDING_SECONDS
                reached = self._embed(self._vectors, IndexProgress(newest, 0), deadline)
                embedded = reached.vectors
                notes += [f"vectors: {reached.problem}"] if reached.problem else []
            if embedded < newest and not notes:
                notes.append(f"vectors: {embedded:,} of {newest:,} entries; await_consistency embeds the rest")
            return self._vectors.search(without_names(query, self._words.names_in(query)), max(limit, CLOSEST), allowed)
        except DaypackError as error:
            notes.append(f"without vectors: {error}")
            return None

    def best_document(self, query: str) -> tuple[int, float] | None:
        """Return the version that matches a query best and its score from 0 to 1; None if no version matches."""

        def work() -> tuple[int, float] | None:
            self._add_documents(self._documents.newest, self._feed.newest()[1], None)
            matches = self._documents.match(query)
            own, version = max(((rated.own, number) for number, rated in matches.rated.items()), default=(0.0, 0))
            if not version or matches.relevance(version) < 1:
                return None
            return version, min(1.0, own / matches.worth)

        return self._retry_once(work)

    # Closing

    def _retry_once(self, work: Callable[[], _Answer]) -> _Answer:
        """Call `work` again if it failed: another process may have erased the index at the same time."""
        try:
            return work()
        except StorageFailed:
            return work()  # a lasting problem fails again

    def close(self) -> None:
        """Close files and connections; the next call opens them again."""
        self._words.close()
        self._documents.close()
        if self._vectors:
            self._vectors.close()


def _rate(ranked: Ranked, matches: WordMatches, closeness: Closeness | None) -> RankedEntry:
    """Return an entry with its relevance, by words or by vectors."""
    relevance = matches.relevance(ranked.id)
    if closeness is not None and (cosine := closeness.cosines.get(ranked.id)) is not None:
        relevance = max(relevance, closeness.similarity.rate(cosine, matches.entries))
    return RankedEntry(ranked.id, ranked.score, ranked.parts, relevance)


def _number_of(found: Entry | ContextDocument) -> int:
    return found.seq if isinstance(found, Entry) else found.version


def _document_doc(document: ContextDocument) -> Doc:
    # A group of its own: versions are not neighbours of each other.
    text = "" if document.content == PLACEHOLDER else document.content
    return Doc(document.version, text, when=document.created_at, group=str(document.version))


def _texts(entry: Entry) -> tuple[str, ...]:
    """Return the texts to embed: the raw entry, and the summary if its words differ."""
    return (entry.raw_entry, entry.summary) if is_paraphrase(entry.raw_entry, entry.summary) else (entry.raw_entry,)


def _has_passed(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
