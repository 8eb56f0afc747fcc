"""Keeps the search indexes of recently used memories open, and the embedding model they share."""

from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from daypack.errors import DaypackError, StorageFailed
from daypack.forks import ThreadLock
from daypack.memory.store.port import StoreFeed

if TYPE_CHECKING:
    from daypack.llm.embedding.port import Embedder
    from daypack.memory.search.index import Index, IndexParts

MAX_OPEN = 64


class IndexLocation(Protocol):
    """Where the indexes of all memories are: below a folder, or in a database."""

    def open(self, feed: StoreFeed, embedder: "Embedder | None") -> "IndexParts":
        """Return the parts of the index of the memory that `feed` reads; nothing is read yet."""
        ...

    def erase(self, memory_id: str) -> None:
        """Remove the index of a memory, if there is one."""
        ...


class _Opened:
    """An open index and its number of users; it is closed only when idle."""

    def __init__(self, index: "Index") -> None:
        self.index = index
        self.users = 0


class IndexCache:
    """Opens an index at its first use and keeps the most recently used ones open; a path is a folder of indexes."""

    def __init__(self, location: "str | IndexLocation", open_embedder: "Callable[[], Embedder | None]") -> None:
        self.folder = location if isinstance(location, str) else ""
        self._location = None if isinstance(location, str) else location
        self._open_embedder = open_embedder
        self._embedder: Embedder | None = None
        self._embedder_known = False
        self._problem = ""
        self._opened: OrderedDict[tuple[str, str, bool], _Opened] = OrderedDict()
        self._threads = ThreadLock(self._drop)

    def _drop(self) -> None:
        self._embedder = None
        self._embedder_known = False

    @contextmanager
    def use(self, feed: StoreFeed, copy: "IndexLocation | None" = None) -> "Generator[Index]":
        """Yield the index of the memory that `feed` reads; `copy`: the one in a replica."""
        from daypack.memory.search.index import Index  # noqa: PLC0415 — 25 ms that only a search needs

        with self._threads:
            # By user too: another user may import a memory with an id that was erased.
            key = feed.memory_id, feed.user, copy is not None
            opened = self._opened.get(key)
            if opened is None:
                location = copy or self._find_location()
                opened = _Opened(Index(location.open(feed, self._find_embedder()), feed))
                self._opened[key] = opened
            self._opened.move_to_end(key)
            opened.users += 1
            self._close_idle(MAX_OPEN)
        try:
            yield opened.index
        finally:
            with self._threads:
                opened.users -= 1

    @property
    def problem(self) -> str:
        """Why the configured embedding model could not be opened; empty if it could."""
        return self._problem

    @property
    def has_vectors(self) -> bool:
        """True if entries are embedded."""
        with self._threads:
            return self._find_embedder() is not None

    def lag(self) -> int:
        """Return how many stored entries the open indexes do not have yet."""
        with self._threads:
            opened = [use for key, use in self._opened.items() if not key[2]]
            for use in opened:
                use.users += 1
        lag = 0
        try:
            for use in opened:
                with suppress(DaypackError):  # erased meanwhile
                    lag += use.index.lag()
        finally:
            with self._threads:
                for use in opened:
                    use.users -= 1
        return lag

    def _find_location(self) -> IndexLocation:
        if self._location is None:
            from daypack.memory.search.index_files import IndexFiles  # noqa: PLC0415 — as slow as the index

            self._location = IndexFiles(self.folder)
        return self._location

    def _find_embedder(self) -> "Embedder | None":
        if not self._embedder_known:
            self._embedder_known = True
            try:
                self._embedder = self._open_embedder()
            except DaypackError as error:
                self._problem = f"without vectors: {error}"
        return self._embedder

    def erase(self, memory_id: str) -> None:
        """Remove the index of a memory."""
        with self._threads:
            keys = [key for key in self._opened if key[0] == memory_id]
            removed = [self._opened.pop(key) for key in keys]
        for opened in removed:
            opened.index.close()
        self._find_location().erase(memory_id)

    def close(self) -> None:
        """Close idle indexes and the embedding model; the next use opens them again."""
        with self._threads:
            self._close_idle(0)
            embedder, self._embedder = self._embedder, None
            self._embedder_known = False
            if embedder is not None:
                embedder.close()

    def _close_idle(self, keep: int) -> None:
        idle = [key for key, opened in self._opened.items() if not opened.users]
        for key in idle[: max(0, len(self._opened) - keep)]:
            self._opened.pop(key).index.close()


class CopiedIndexes:
    """The indexes of a cache as a replica has them: only to search, and only if they lack nothing."""

    def __init__(self, cache: IndexCache, location: IndexLocation) -> None:
        self._cache = cache
        self._location = location

    @property
    def problem(self) -> str:
        """Why the configured embedding model could not be opened; empty if it could."""
        return self._cache.problem

    @contextmanager
    def use(self, feed: StoreFeed) -> "Generator[Index]":
        """Yield the index of the memory that `feed` reads, or raise StorageFailed if something is not indexed there."""
        with self._cache.use(feed, self._location) as index:
            if not index.is_complete():
                raise StorageFailed("the index in the replica is not complete", operation="search")
            yield index
