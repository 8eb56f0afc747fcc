"""The vectors of one memory, embedded in batches; those of a former model are removed once the new ones are complete.

    <folder>/vectors-<name of the model, hashed>/

Batches are atomic: after a crash embedding continues after the newest entry that has a vector. One process embeds at a
time and the others wait for it, because doing the same work twice saves no time.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from daypack.errors import DaypackError, StorageFailed
from daypack.files.atomic import make_folders
from daypack.files.lock import LockableFile
from daypack.search.fuse import Closeness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from daypack.llm.embedding.port import Embedder
    from daypack.search.vectors import Nearest, Vectors

PREFIX = "vectors-"
_LOCK_NAME = "embedding.lock"
_BATCH = 64
_POLL_SECONDS = 0.05


class Texts(Protocol):
    """Supplies the texts to embed."""

    def __call__(self, after: int, limit: int) -> Sequence[tuple[int, Sequence[str]]]:
        """Return the numbers of later entries, ascending, and the texts of each."""
        ...


class VectorQuery(NamedTuple):
    """A query as a vector, and the entries closest to it."""

    row: "NDArray[np.float32]"
    nearest: "Nearest"
    allowed: "Nearest | None"

    @property
    def ids(self) -> list[int]:
        """The seqs of the closest entries."""
        return self.nearest.ids + (self.allowed.ids if self.allowed else [])


class EntryVectorIndex(Protocol):
    """The vectors of one memory's entries, made by one embedder; threads and processes may share them."""

    @property
    def newest(self) -> int:
        """The newest entry that has a vector."""
        ...

    @property
    def instant(self) -> bool:
        """True if the embedder is fast enough for a search to embed a few missing entries."""
        ...

    def catch_up(self, goal: int, texts: Texts, deadline: float | None) -> str | None:
        """Embed entries up to `goal` and return the problem, if any. No batch starts after the deadline."""
        ...

    def search(self, query: str, limit: int, allowed: Collection[int] | None) -> VectorQuery | None:
        """Return the entries closest to a query, overall and among those allowed; None if there are no vectors."""
        ...

    def compare(self, query: VectorQuery, ids: Collection[int]) -> Closeness:
        """Return how close these entries are to a query."""
        ...

    def close(self) -> None:
        """Close files and connections; the embedder is shared and stays open."""
        ...


class EntryVectors:
    """The vectors below `folder`, made by `embedder`; threads and processes may share them."""

    def __init__(self, folder: str, embedder: "Embedder") -> None:
        from hashlib import sha256  # noqa: PLC0415 — only with an embedder

        self.folder = os.path.join(folder, PREFIX + sha256(embedder.name.encode()).hexdigest()[:16])
        self._embedder = embedder
        self._vectors: Vectors | None = None
        self._others_removed = False  # vectors of other models

    @property
    def newest(self) -> int:
        """The newest entry that has a vector."""
        return self._open().newest

    @property
    def instant(self) -> bool:
        """True if the embedder is fast enough for a search to embed a few missing entries."""
        return self._embedder.instant

    def catch_up(self, goal: int, texts: Texts, deadline: float | None) -> str | None:
        """Embed entries up to `goal` and return the problem, if any. No batch starts after the deadline."""
        try:
            vectors = self._open()
            with self._lock(goal, deadline) as locked:
                while locked and (newest := vectors.newest) < goal and not _has_passed(deadline):
                    batch = texts(newest, _BATCH)
                    if not batch:
                        break
                    ids = [seq for seq, parts in batch for _ in parts]
                    vectors.add(ids, self._embedder.encode([part for _, parts in batch for part in parts]))
                if not self._others_removed and vectors.newest >= goal:
                    self._remove_others()
                    self._others_removed = True
        except DaypackError as error:
            return str(error)
        return None

    def search(self, query: str, limit: int, allowed: Collection[int] | None) -> VectorQuery | None:
        """Return the entries closest to a query, overall and among those allowed; None if there are no vectors."""
        vectors = self._open()
        if not vectors.newest:
            return None
        row = self._embedder.encode([query])[0]
        # Closeness is scaled by all entries, so that a filter does not change scores.
        nearest = vectors.search(row, limit)
        return VectorQuery(row, nearest, None if allowed is None else vectors.search(row, limit, allowed=allowed))

    def compare(self, query: VectorQuery, ids: Collection[int]) -> Closeness:
        """Return how close these entries are to a query."""
        vectors = self._open()
        known: Mapping[int, float] = vectors.cosines(query.row, ids)
        low, high = query.nearest.low, query.nearest.high
        return Closeness(known, low, high, self._embedder.weight, vectors.similarity())

    def close(self) -> None:
        """Close the files; the embedder is shared and stays open."""
        if self._vectors is not None:
            self._vectors.close()

    def _open(self) -> "Vectors":
        if self._vectors is None:
            from daypack.search.vectors import Vectors  # noqa: PLC0415 — needs numpy, 100 ms

            self._vectors = Vectors(self.folder, model=self._embedder.name, dimensions=self._embedder.dimensions)
        return self._vectors

    @contextmanager
    def _lock(self, goal: int, deadline: float | None) -> Generator[bool]:
        """Wait until no other process embeds; yield False if another has reached `goal` or the deadline has passed."""
        parent = os.path.dirname(self.folder)
        if not os.path.isdir(parent):
            make_folders(parent, durable=False)
        path = os.path.join(parent, _LOCK_NAME)
        file = LockableFile()
        try:
            file.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageFailed(error.strerror or str(error), operation="embed", place=path) from error
        try:
            while not (locked := _try_lock(file.fd)):
                if self._open().newest >= goal or _has_passed(deadline):
                    break
                time.sleep(_POLL_SECONDS)
            yield locked
        finally:
            file.close()

    def _remove_others(self) -> None:
        """Remove the vectors of other models."""
        parent, own = os.path.split(self.folder)
        with suppress(OSError):
            for name in os.listdir(parent):
                if name.startswith(PREFIX) and name != own:
                    shutil.rmtree(os.path.join(parent, name), ignore_errors=True)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks
        return True
    return True


def _has_passed(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
