"""The lines of a transcript, from its beginning or from where an earlier import stopped.

    {"offset":8839,"file":[66306,1181],"tail":[412,"sha256:…"]}

Such a mark is part of the event that records the progress of an import. The file continues what was imported if it is
the same file and the bytes just before the offset are the same. An edit before them that changes no length is found
only by reading the whole file, which an import does when a mark does not match, and when it is asked to.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, NamedTuple, Protocol, cast

from msgspec import Struct

from daypack.errors import BadInput, ExtraMissing
from daypack.plain_files import open_named, open_plain
from daypack.types.digest import digest_bytes

_BOM = b"\xef\xbb\xbf"
_TAIL_BYTES = 4096
_STREAMED = (".zst",)  # their bytes cannot be found by an offset
_ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard", "pyzstd")


class Line(NamedTuple):
    """The bytes of a row without the end of the line, True if the line is terminated, and the offset after it."""

    raw: bytes
    complete: bool = True
    end: int = 0


class Mark(Struct, frozen=True):
    """How far a file was read: the offset, the device and inode, and the length and digest of the bytes before it."""

    offset: int
    file: tuple[int, int]
    tail: tuple[int, str]


class Lines(Protocol):
    """The rows of a transcript as lines."""

    def read(self) -> Iterator[Line]:
        """Yield all lines."""
        ...

    def read_after(self, mark: Mark) -> Iterator[Line]:
        """Yield the lines after a mark that matches."""
        ...

    def matches(self, mark: Mark) -> bool:
        """Return True if the file still continues what was read up to a mark."""
        ...

    def mark(self, line: Line) -> Mark | None:
        """Return the mark after a line that was just read; None if reading cannot continue there."""
        ...


class FileLines:
    """The lines of a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = (0, 0)

    def read(self) -> Generator[Line]:
        """Yield all lines."""
        return self._read(0)

    def read_after(self, mark: Mark) -> Generator[Line]:
        """Yield the lines after a mark that matches."""
        return self._read(mark.offset, mark.file)

    def matches(self, mark: Mark) -> bool:
        """Return True if it is the same file, and has the same bytes before the mark."""
        length, digest = mark.tail
        if self._path.endswith(_STREAMED) or not 0 < length <= mark.offset:
            return False
        try:
            with open_plain(self._path) as file:
                if _identity(file) != mark.file:
                    return False
                file.seek(mark.offset - length)
                tail = file.read(length)
        except OSError:
            return False
        return len(tail) == length and digest_bytes(tail) == digest

    def mark(self, line: Line) -> Mark | None:
        """Return the mark after a terminated line; a stream of the shell has none."""
        if not line.complete or self._file == (0, 0) or self._path.endswith(_STREAMED):
            return None
        tail = (line.raw[-_TAIL_BYTES:] + b"\n")[-_TAIL_BYTES:]
        try:
            with open_plain(self._path) as file:
                file.seek(line.end - len(tail))
                same = file.read(len(tail)) == tail  # not after CR LF, and not if the file was replaced meanwhile
        except OSError:
            return None
        return Mark(line.end, self._file, (len(tail), digest_bytes(tail))) if same else None

    def _read(self, start: int, expected: tuple[int, int] | None = None) -> Generator[Line]:
        try:
            with _open(self._path) as file:
                self._file = _identity(file)
                if start:
                    if self._file != expected:
                        raise unreadable(self._path, "was replaced while it was read", "import it again")
                    file.seek(start)
                end = start
                for line in file:
                    text = line.rstrip(b"\r\n")
                    raw = text if end else text.removeprefix(_BOM)
                    end += len(line)
                    yield Line(raw, line.endswith(b"\n"), end)
        except _damage(self._path) as error:
            raise unreadable(self._path, _describe(error), "give a readable file") from error


class MemoryLines:
    """Rows in memory: the elements of a list in a JSON document."""

    def __init__(self, rows: Sequence[bytes]) -> None:
        self._rows = rows

    def read(self) -> Iterator[Line]:
        """Yield all rows."""
        return map(Line, self._rows)

    def read_after(self, mark: Mark) -> Iterator[Line]:  # noqa: ARG002 — required by Lines
        """Yield all rows: there are no marks in memory."""
        return self.read()

    def matches(self, mark: Mark) -> bool:  # noqa: ARG002 — required by Lines
        """Return False: the document has to be read anyway."""
        return False

    def mark(self, line: Line) -> Mark | None:  # noqa: ARG002 — required by Lines
        """Return None: rows in memory have no offsets."""
        return None


def unreadable(path: str, problem: str, hint: str) -> BadInput:
    """Return the error for a file that cannot be imported."""
    return BadInput(problem, operation="import", place=path, hint=hint)


def _identity(file: IO[bytes]) -> tuple[int, int]:
    try:
        found = os.fstat(file.fileno())
    except (OSError, AttributeError, ValueError):  # decompressed
        return 0, 0
    return found.st_dev, found.st_ino


def _open(path: str) -> IO[bytes]:
    if not path.endswith(_STREAMED):
        return open_named(path)
    module = _zstd()
    if module is None:
        hint = f"pip install 'daypack[zstd]', or unpack it with `zstd -d {os.path.basename(path)}`"
        problem = "is zstd-compressed, and no zstd module is installed"
        raise ExtraMissing(problem, operation="import", place=path, hint=hint)
    open_named(path).close()  # refuses what is no file
    return module.open(path, "rb")


def _zstd() -> Any:  # noqa: ANN401 — a module
    """Return the first zstd module that is installed; None if there is none."""
    for name in _ZSTD_MODULES:
        with suppress(ImportError):
            return import_module(name)
    return None


def _damage(path: str) -> tuple[type[Exception], ...]:
    """Return the errors that reading a file may raise."""
    error: object = getattr(_zstd(), "ZstdError", None) if path.endswith(_STREAMED) else None
    known = (OSError, EOFError)
    return (*known, cast(type[Exception], error)) if isinstance(error, type) else known


def _describe(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error) or type(error).__name__
