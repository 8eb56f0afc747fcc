"""The vectors of one memory: made batch by batch by the embedder, another one's removed when they are complete.

    <folder>/vectors-<name of the model, hashed>/

A batch is added or it is not: after a kill it goes on with the newest entry that has a vector. One process embeds at a
time and the others wait for it: the same work done twice would not be done sooner.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from daypack.errors import DaypackError, StorageFailed
from daypack.files.atomic import make_folders, release
from daypack.search.fuse import Closeness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from daypack.llm.embedding.port import Embedder
    from daypack.search.vectors import Nearest, Vectors

PREFIX = "vectors-"
_LOCK = "embedding.lock"
_BATCH = 64
_POLL_SECONDS = 0.05


class Texts(Protocol):
    """Where the texts come from."""

    def __call__(self, after: int, limit: int) -> Sequence[tuple[int, Sequence[str]]]:
        """Return the numbers of later entries, ascending, and the texts of each."""
        ...


class Asked(NamedTuple):
    """A query as a vector, and the entries closest to it."""

    row: "NDArray[np.float32]"
    nearest: "Nearest"
    allowed: "Nearest | None"

    @property
    def ids(self) -> list[int]:
        """Who is close."""
        return self.nearest.ids + (self.allowed.ids if self.allowed else [])


class Meaning:
    """The vectors below `folder`, made by `embedder`; threads and processes may share them."""

    def __init__(self, folder: str, embedder: "Embedder") -> None:
        from hashlib import sha256  # noqa: PLC0415 — only who has an embedder pays for it

        self.folder = os.path.join(folder, PREFIX + sha256(embedder.name.encode()).hexdigest()[:16])
        self._embedder = embedder
        self._vectors: Vectors | None = None
        self._alone = False  # the vectors of other models are gone

    @property
    def newest(self) -> int:
        """The newest entry that has a vector."""
        return self._open().newest

    @property
    def instant(self) -> bool:
        """Whether a search makes the few vectors that are missing."""
        return self._embedder.instant

    def catch_up(self, goal: int, texts: Texts, deadline: float | None) -> str | None:
        """Embed entries up to `goal`; return what went wrong. After the deadline no further batch is begun."""
        try:
            vectors = self._open()
            with self._turn(goal, deadline) as ours:
                while ours and (newest := vectors.newest) < goal and not _is_late(deadline):
                    batch = texts(newest, _BATCH)
                    if not batch:
                        break
                    ids = [one for one, said in batch for _ in said]
                    vectors.add(ids, self._embedder.encode([text for _, said in batch for text in said]))
                if not self._alone and vectors.newest >= goal:
                    self._remove_others()
                    self._alone = True
        except DaypackError as error:
            return str(error)
        return None

    def ask(self, query: str, limit: int, allowed: Collection[int] | None) -> Asked | None:
        """Return the entries closest to a query, and the closest of those that are allowed; None without vectors."""
        vectors = self._open()
        if not vectors.newest:
            return None
        row = self._embedder.encode([query])[0]
        # What is close is scaled by all there is, so that a filter leaves scores as they are.
        nearest = vectors.search(row, limit)
        return Asked(row, nearest, None if allowed is None else vectors.search(row, limit, allowed=allowed))

    def compare(self, asked: Asked, ids: Collection[int]) -> Closeness:
        """Return how close these entries are."""
        known: Mapping[int, float] = self._open().cosines(asked.row, ids)
        return Closeness(known, asked.nearest.low, asked.nearest.high, self._embedder.weight)

    def close(self) -> None:
        """Let go of the files; the embedder belongs to others."""
        if self._vectors is not None:
            self._vectors.close()

    def _open(self) -> "Vectors":
        if self._vectors is None:
            from daypack.search.vectors import Vectors  # noqa: PLC0415 — needs numpy, 100 ms

            self._vectors = Vectors(self.folder, model=self._embedder.name, dimensions=self._embedder.dimensions)
        return self._vectors

    @contextmanager
    def _turn(self, goal: int, deadline: float | None) -> Generator[bool]:
        """Wait until nobody else embeds; False when somebody did all there was to do, or time ran out."""
        parent = os.path.dirname(self.folder)
        if not os.path.isdir(parent):
            make_folders(parent, durable=False)
        path = os.path.join(parent, _LOCK)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageFailed(error.strerror or str(error), operation="embed", place=path) from error
        try:
            while not (ours := _try_lock(fd)):
                if self._open().newest >= goal or _is_late(deadline):
                    break
                time.sleep(_POLL_SECONDS)
            yield ours
        finally:
            release(fd)

    def _remove_others(self) -> None:
        """Remove vectors that another model made."""
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
    except OSError:  # a file system without locks: as good as it gets
        return True
    return True


def _is_late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
