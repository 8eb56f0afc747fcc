"""The search index of one memory: derived from the store, brought up to date by whoever searches or waits.

    <folder>/words.sqlite       the words of entries
    <folder>/documents.sqlite   the words of the context document's versions
    <folder>/vectors-…/         the vectors of entries, when there is an embedder (see `meaning`)

There is no queue: the store is the queue, and the newest number in each file says how far it has got. A file that is
missing, broken or of another format is begun anew and comes back with the same answers.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from daypack.errors import DaypackError, StorageFailed
from daypack.files.atomic import discard
from daypack.memory.search.vectors import Asked, Meaning
from daypack.search.fuse import Closeness, rank, without_names
from daypack.search.lexical import Doc, Lexical
from daypack.search.words import is_told_anew
from daypack.types.memory import PLACEHOLDER, ContextDocument, Entry

if TYPE_CHECKING:
    from daypack.llm.embedding.port import Embedder

POSTINGS = 40_000  # read by one search: among 100,000 entries as good as all
CLOSEST = 100  # entries taken from the vectors, at least
_BATCH = 2_000
_WAITED_ENTRIES = 64  # without vectors, for which a search waits …
_WAITED_SECONDS = 1.0  # … and how long

_Answer = TypeVar("_Answer")


class Feed(Protocol):
    """Where an index reads: the entries and documents of one memory, in the order they were stored."""

    def newest(self) -> tuple[int, int]:
        """Return the highest number of an entry and the highest version of the document."""
        ...

    def entries(self, after: int, limit: int) -> Sequence[Entry]:
        """Return entries with higher numbers, ascending."""
        ...

    def documents(self, after: int, limit: int) -> Sequence[ContextDocument]:
        """Return later versions, ascending."""
        ...


class Found(Struct, frozen=True):
    """An entry that was found; `parts` adds up to `score`."""

    seq: int
    score: float
    parts: dict[str, float]


class Reached(Struct, frozen=True):
    """How far an index has got: the newest entry and document with words, the newest entry with a vector."""

    entries: int
    documents: int
    vectors: int = 0
    problem: str | None = None


class _Notes(threading.local):
    """What the last search of a thread had to do without."""

    said: tuple[str, ...] = ()


class Index:
    """The index of one memory in `folder`; threads and processes may share it."""

    def __init__(self, folder: str, feed: Feed, embedder: "Embedder | None" = None) -> None:
        self.folder = folder
        self._feed = feed
        self._words = Lexical(os.path.join(folder, "words.sqlite"), postings=POSTINGS)
        self._documents = Lexical(os.path.join(folder, "documents.sqlite"))
        self._meaning = Meaning(folder, embedder) if embedder else None
        self._notes = _Notes()
        self._lately: tuple[int, Sequence[Entry]] = (-1, ())  # read for the words: the vectors are made of the same

    @property
    def notes(self) -> tuple[str, ...]:
        """What the last search of this thread had to do without."""
        return self._notes.said

    # Catching up

    def catch_up(
        self,
        *,
        deadline: float | None = None,
        progress: Callable[[Reached], object] | None = None,
    ) -> Reached:
        """Take in what was stored since; after the `deadline` (monotonic) no further batch is begun."""

        def work() -> Reached:
            known, there = self._compare(documents=True)
            reached = Reached(
                self._add_entries(known.entries, there.entries, deadline),
                self._add_documents(known.documents, there.documents, deadline),
            )
            if self._meaning is None:
                return reached
            return self._embed(self._meaning, reached, deadline, progress)

        return self._steadily(work)

    def finds(self, entries: int, documents: int) -> bool:
        """Say whether a search finds all up to these, because it takes in the few itself that the files do not hold."""

        def work() -> bool:
            spare = min(_WAITED_ENTRIES, entries)
            if self._words.newest + spare < entries or (documents and self._documents.newest + spare < documents):
                return False
            meaning = self._meaning
            return meaning is None or meaning.newest + (spare if meaning.instant else 0) >= entries

        return self._steadily(work)

    def _compare(self, *, documents: bool) -> tuple[Reached, Reached]:
        """Return how far the index has got and how far the store; one that an older store was put under begins anew."""
        self._lately = (-1, ())  # what was read for another call may have been erased since
        # The index is read first: the store may only be ahead.
        known = Reached(self._words.newest, self._documents.newest if documents else 0)
        there = Reached(*self._feed.newest())
        if known.entries > there.entries or known.documents > there.documents:
            erase_index(self.folder)
            known = Reached(self._words.newest, self._documents.newest)
        return known, there

    def _add_entries(self, newest: int, goal: int, deadline: float | None) -> int:
        while newest < goal and not _is_late(deadline) and (batch := self._feed.entries(newest, _BATCH)):
            self._lately = newest, batch
            newest = self._words.add(_entry_doc(entry) for entry in batch)
        return newest

    def _add_documents(self, newest: int, goal: int, deadline: float | None) -> int:
        while newest < goal and not _is_late(deadline) and (batch := self._feed.documents(newest, _BATCH)):
            newest = self._documents.add(_document_doc(document) for document in batch)
        return newest

    def _embed(
        self,
        meaning: Meaning,
        reached: Reached,
        deadline: float | None,
        progress: Callable[[Reached], object] | None = None,
    ) -> Reached:
        def texts(after: int, limit: int) -> list[tuple[int, Sequence[str]]]:
            if progress is not None:
                progress(Reached(reached.entries, reached.documents, after))
            known, batch = self._lately
            if known != after or len(batch) > limit:
                batch = self._feed.entries(after, limit)
            return [(entry.seq, _texts(entry)) for entry in batch]

        problem = meaning.catch_up(reached.entries, texts, deadline)
        vectors = 0
        with suppress(DaypackError):
            vectors = meaning.newest
        return Reached(reached.entries, reached.documents, vectors, problem)

    # Searching

    def search(self, query: str, limit: int, *, allowed: Collection[int] | None = None) -> list[Found]:
        """Return the best entries, best first; with `allowed` only those."""

        some = None if allowed is None else frozenset(allowed)

        def work() -> list[Found]:
            notes: list[str] = []
            self._notes.said = ()
            known, there = self._compare(documents=False)
            newest = self._add_entries(known.entries, there.entries, None)
            asked = self._ask(query, limit, some, newest, notes)
            self._notes.said = tuple(notes)
            survey = self._words.survey(query, also=asked.ids if asked else (), allowed=some)
            closeness: Closeness | None = None
            if asked and self._meaning:
                closeness = self._meaning.compare(asked, survey.places.keys())
            ranked = rank(survey.rated, survey.places, survey.cast, limit, closeness=closeness, allowed=some)
            return [Found(one, score, parts) for score, one, parts in ranked]

        return self._steadily(work) if limit > 0 else []

    def _ask(
        self, query: str, limit: int, allowed: Collection[int] | None, newest: int, notes: list[str]
    ) -> Asked | None:
        """Ask the vectors; a few that are missing are made first, and what cannot be had is noted."""
        if self._meaning is None or not newest:
            return None
        try:
            behind = self._meaning.newest
            if behind < newest and len(self._feed.entries(behind, _WAITED_ENTRIES + 1)) <= _WAITED_ENTRIES:
                deadline = time.monotonic() + _WAITED_SECONDS
                reached = self._embed(self._meaning, Reached(newest, 0), deadline)
                behind = reached.vectors
                notes += [f"vectors: {reached.problem}"] if reached.problem else []
            if behind < newest and not notes:
                notes.append(f"vectors: {behind:,} of {newest:,} entries; waiting for consistency makes the others")
            return self._meaning.ask(without_names(query, self._words.names_in(query)), max(limit, CLOSEST), allowed)
        except DaypackError as error:
            notes.append(f"without vectors: {error}")
            return None

    def best_document(self, query: str) -> tuple[int, float] | None:
        """Return the version that fits a query best, and how well, from 0 to 1; None when none has a word of it."""

        def work() -> tuple[int, float] | None:
            self._add_documents(self._documents.newest, self._feed.newest()[1], None)
            survey = self._documents.survey(query)
            own, version = max(((rated.own, one) for one, rated in survey.rated.items()), default=(0.0, 0))
            return (version, min(1.0, own / survey.worth)) if version else None

        return self._steadily(work)

    # Closing

    def _steadily(self, work: Callable[[], _Answer]) -> _Answer:
        """Do it again where somebody removed the index meanwhile."""
        try:
            return work()
        except StorageFailed:
            return work()  # what is really wrong is wrong again

    def close(self) -> None:
        """Close the files; the next call opens them again."""
        self._words.close()
        self._documents.close()
        if self._meaning:
            self._meaning.close()


def erase_index(folder: str) -> None:
    """Remove the files of an index."""
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder), reverse=True):  # what belongs to a file goes before it
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                discard(path)
        with suppress(OSError):
            os.rmdir(folder)


def _entry_doc(entry: Entry) -> Doc:
    return Doc(
        entry.seq,
        entry.raw_entry,
        entry.author or "",
        entry.role or "",
        entry.at or entry.created_at,
        entry.session or "",
        entry.summary if is_told_anew(entry.raw_entry, entry.summary) else "",
    )


def _document_doc(document: ContextDocument) -> Doc:
    # Each version stands alone: one is not the neighbour of the next.
    text = "" if document.content == PLACEHOLDER else document.content
    return Doc(document.version, text, when=document.created_at, group=str(document.version))


def _texts(entry: Entry) -> tuple[str, ...]:
    """Return what is embedded of an entry: one vector, and another where the summary has other words for it."""
    return (entry.raw_entry, entry.summary) if is_told_anew(entry.raw_entry, entry.summary) else (entry.raw_entry,)


def _is_late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
