"""The vectors of one memory: a derived, memory-mapped file of rows, shared by threads and processes.

    <folder>/vectors.bin    header, 64 bytes: magic "daypvec1" · dimensions u32 · 20 spare · sha256 of the model's name
                            then rows (see `nearest`), ascending by id, the rows of an id together

Rows are only appended, by one process at a time. Rows count once all rows of their id are in the file, so nothing has
to be synced or rolled back: the next writer overwrites incomplete rows. A file with another header is replaced by an
empty one, a damaged file by the rows before the damage. A file never shrinks, because it may be mapped.
"""

import fcntl
import mmap
import os
from bisect import bisect_right
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from daypack.errors import BadInput, ExtraMissing, StorageFailed, WriteFailed
from daypack.files.atomic import make_folders, refusal, release, replace
from daypack.files.jsonl import read_at, write_all
from daypack.forks import ThreadLock
from daypack.plain_files import open_fd
from daypack.search.floor import Similarity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from daypack.search.nearest import CheckedRows, Codec, Scan

NAME = "vectors.bin"
_MAGIC = b"daypvec1"
_HEADER = Struct("<8sI20x32s")
_TAIL_ROWS = 64  # read to find the newest id; if none of them ends an id, all rows are read


class Nearest(NamedTuple):
    """Ids, best first, and the cosine of each id's best row.

    `low` and `high` scale the cosines: the lowest of all rows, allowed or not, and the highest found. If not all rows
    are compared, the lowest is searched among the rows whose signs differ most.
    """

    ids: list[int]
    cosines: list[float]
    low: float
    high: float


class _File(NamedTuple):
    """The identity of a file's content: if it is equal, the rows are the same."""

    inode: int
    size: int
    changed: int


class _Tail(NamedTuple):
    """Where the rows of the newest complete id end."""

    file: _File
    end: int
    newest: int


class _State(NamedTuple):
    """The mapped rows."""

    file: _File
    checked: "CheckedRows"


class Vectors:
    """The vectors in `folder`, of one model; the first `add` discards those of another model."""

    def __init__(self, folder: str, *, model: str, dimensions: int) -> None:
        from hashlib import sha256  # noqa: PLC0415 — costs milliseconds

        self.path = os.path.join(os.path.abspath(folder), NAME)
        self._header = _HEADER.pack(_MAGIC, dimensions, sha256(model.encode()).digest())
        self._codec = open_codec(dimensions)
        self._threads = ThreadLock(self._drop)
        self._drop()

    def _drop(self) -> None:
        self._state: _State | None = None
        self._tail: _Tail | None = None
        self._similarity: tuple[CheckedRows, Similarity] | None = None

    @property
    def newest(self) -> int:
        """The highest id that is held, 0 when there is none."""
        tail = self._tail
        if tail is not None and tail.file == self._look():
            return tail.newest
        with self._threads, self._opened() as fd:
            if fd < 0:
                self._tail = None
                return 0
            return self._find_tail(fd).newest

    def add(self, ids: Sequence[int], rows: "NDArray[np.float32]") -> int:
        """Add vectors and return the newest id; known ids are skipped.

        Ids ascend; all rows of an id are added in one call. Rows are normalised to length 1; a row without a finite
        length is stored as zeros.
        """
        if any(first > second for first, second in pairwise(ids)) or (len(ids) and not 0 < ids[0] <= ids[-1] < 1 << 62):
            raise BadInput("ids do not ascend from 1", operation="add vectors", place=self.path)
        with self._threads, self._locked() as fd:
            tail = self._tail
            if tail is None or tail.file != self._status(fd):
                tail = self._find_tail(fd)
            new = bisect_right(ids, tail.newest)
            if new == len(ids) == len(rows):
                return tail.newest
            data = self._codec.encode(ids[new:], rows[new:])
            try:
                os.lseek(fd, tail.end, os.SEEK_SET)
                write_all(fd, data)
            except OSError as error:
                hint = "free space, then try again; missing vectors are added later"
                problem = error.strerror or str(error)
                raise WriteFailed(problem, operation="add vectors", place=self.path, hint=hint) from error
            self._tail = _Tail(self._status(fd), tail.end + len(data), ids[-1])
            return ids[-1]

    def search(self, query: "NDArray[np.float32]", limit: int, *, allowed: Collection[int] | None = None) -> Nearest:
        """Return the ids whose best row is nearest to `query`, among `allowed` if given."""
        return Nearest(*self._scan(query).find(max(limit, 0), allowed))

    def cosines(self, query: "NDArray[np.float32]", ids: Collection[int]) -> dict[int, float]:
        """Return the cosine of the best row of each of these ids."""
        return self._scan(query).cosines(ids)

    def similarity(self) -> Similarity:
        """Return how similar the vectors of different ids are to each other."""
        checked, known = self._current(), self._similarity
        if known is None or known[0] is not checked:  # there are new rows
            known = self._similarity = checked, Similarity(*self._codec.compare_pairs(checked))
        return known[1]

    def close(self) -> None:
        """Unmap the file; the next call opens it again."""
        with self._threads:
            self._drop()

    # Reading

    def _scan(self, query: "NDArray[np.float32]") -> "Scan":
        from daypack.search.nearest import Scan  # noqa: PLC0415 — imports numpy

        return Scan(self._codec, self._current(), query)

    def _look(self) -> _File | None:
        try:
            return _describe(os.stat(self.path))
        except OSError:
            return None

    def _status(self, fd: int) -> _File:
        try:
            return _describe(os.fstat(fd))
        except OSError as error:
            raise refusal(self.path, error, "read vectors") from error

    @contextmanager
    def _opened(self) -> Generator[int]:
        """Open the file for reading; -1 if there is none, or one of another model."""
        try:
            fd = open_fd(self.path, os.O_NOFOLLOW)
        except FileNotFoundError:
            yield -1
            return
        except OSError as error:
            raise refusal(self.path, error, "open vectors") from error
        try:
            yield fd if self._fits(fd) else -1
        finally:
            release(fd)

    def _fits(self, fd: int) -> bool:
        try:
            return read_at(fd, 0, _HEADER.size) == self._header
        except OSError as error:
            raise refusal(self.path, error, "read vectors") from error

    def _find_tail(self, fd: int) -> _Tail:
        file = self._status(fd)
        row_bytes = self._codec.row_bytes
        rows = (file.size - _HEADER.size) // row_bytes
        first = max(0, rows - _TAIL_ROWS)
        try:
            data = read_at(fd, _HEADER.size + first * row_bytes, (rows - first) * row_bytes)
        except OSError as error:
            raise refusal(self.path, error, "read vectors") from error
        count, newest = self._codec.last_complete(data)
        if not count and first:
            checked = self._map(fd).checked
            count, newest = checked.total, int(checked.ids[checked.total - 1]) if checked.total else 0
        else:
            count += first if count else 0
        self._tail = _Tail(file, _HEADER.size + count * row_bytes, newest)
        return self._tail

    def _current(self) -> "CheckedRows":
        """Return the current rows, mapping those added since."""
        state = self._state
        if state is not None and state.file == self._look():
            return state.checked
        with self._threads:
            return self._load()

    def _load(self) -> "CheckedRows":
        with self._opened() as fd:
            if fd < 0:
                self._state = None
                return self._codec.empty
            checked = self._map(fd).checked
        if checked.intact:
            return checked
        with suppress(StorageFailed), self._locked() as fd:
            # The damage may have been a row that another process was writing.
            checked = self._map(fd).checked
            if not checked.intact:
                replace(self.path, self._header + checked.rows[: checked.total].tobytes(), durable=False)
        return checked

    def _map(self, fd: int) -> _State:
        file = self._status(fd)
        count = (file.size - _HEADER.size) // self._codec.row_bytes
        before = self._state  # a mapped file keeps its inode, so no other file has it
        checked = before.checked if before is not None and before.file.inode == file.inode else self._codec.empty
        if count < checked.total or not checked.intact:
            checked = self._codec.empty
        if count > checked.total:
            try:
                mapped = mmap.mmap(fd, _HEADER.size + count * self._codec.row_bytes, prot=mmap.PROT_READ)
            except OSError as error:
                raise refusal(self.path, error, "map vectors") from error
            checked = self._codec.check(memoryview(mapped)[_HEADER.size :], checked)
        self._state = _State(file, checked)
        return self._state

    # Writing

    @contextmanager
    def _locked(self) -> Generator[int]:
        """Open the file for writing, with the right header, while no other process writes."""
        make_folders(os.path.dirname(self.path), durable=False)
        while True:
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise refusal(self.path, error, "open vectors") from error
            try:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(fd, fcntl.LOCK_EX)
                if not self._is_named(fd):
                    continue
                if self._fits(fd):
                    yield fd
                    return
                replace(self.path, self._header, durable=False)
            finally:
                with suppress(OSError):  # explicit: a forked child shares the open file
                    fcntl.flock(fd, fcntl.LOCK_UN)
                release(fd)

    def _is_named(self, fd: int) -> bool:
        try:
            return os.stat(self.path).st_ino == os.fstat(fd).st_ino
        except OSError:
            return False


def open_codec(dimensions: int) -> "Codec":
    """Return what encodes and compares vectors of so many dimensions, or raise ExtraMissing."""
    try:
        from daypack.search.nearest import Codec  # noqa: PLC0415 — imports numpy
    except ImportError as error:
        hint = "pip install 'daypack[vectors]'"
        raise ExtraMissing("numpy is not installed", operation="open vectors", hint=hint) from error
    return Codec(dimensions)


def _describe(status: os.stat_result) -> _File:
    return _File(status.st_ino, status.st_size, status.st_mtime_ns)
