"""Keeps the search indexes of recently used memories open, and the embedding model they share."""

import os
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from daypack.errors import DaypackError
from daypack.forks import ThreadLock
from daypack.memory.store.port import StoreFeed

if TYPE_CHECKING:
    from daypack.llm.embedding.port import Embedder
    from daypack.memory.search.index import Index

MAX_OPEN = 64


class _Opened:
    """An open index and its number of users; it is closed only when idle."""

    def __init__(self, index: "Index") -> None:
        self.index = index
        self.users = 0


class IndexCache:
    """Opens an index at its first use and keeps the most recently used ones open."""

    def __init__(self, folder: str, open_embedder: "Callable[[], Embedder | None]") -> None:
        self.folder = folder
        self._open_embedder = open_embedder
        self._embedder: Embedder | None = None
        self._embedder_known = False
        self._problem = ""
        self._opened: OrderedDict[tuple[str, str], _Opened] = OrderedDict()
        self._threads = ThreadLock(self._drop)

    def _drop(self) -> None:
        self._embedder = None
        self._embedder_known = False

    @contextmanager
    def use(self, feed: StoreFeed) -> "Generator[Index]":
        """Yield the index of the memory that `feed` reads."""
        from daypack.memory.search.index import Index  # noqa: PLC0415 — 25 ms that only a search needs

        with self._threads:
            # By user too: another user may import a memory with an id that was erased.
            key = feed.memory_id, feed.user
            opened = self._opened.get(key)
            if opened is None:
                opened = _Opened(Index(self._path(feed.memory_id), feed, self._find_embedder()))
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
            opened = list(self._opened.values())
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

    def _find_embedder(self) -> "Embedder | None":
        if not self._embedder_known:
            self._embedder_known = True
            try:
                self._embedder = self._open_embedder()
            except DaypackError as error:
                self._problem = f"without vectors: {error}"
        return self._embedder

    def erase(self, memory_id: str) -> None:
        """Remove the index of a memory from disk."""
        from daypack.memory.search.index import erase_index  # noqa: PLC0415

        with self._threads:
            keys = [key for key in self._opened if key[0] == memory_id]
            removed = [self._opened.pop(key) for key in keys]
        for opened in removed:
            opened.index.close()
        erase_index(self._path(memory_id))

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

    def _path(self, memory_id: str) -> str:
        return os.path.join(self.folder, memory_id)
