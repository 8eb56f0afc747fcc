"""The two sides of a copy: what a session is read from, and what it is written to."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from daypack.history.logs.upstream import Mark

LOGS = ("messages.jsonl", "events.jsonl")


class Small(NamedTuple):
    """The small files that are copied; b"" if a file is missing."""

    meta: bytes
    cwd: bytes
    created_at: bytes


class Extent(NamedTuple):
    """A session at one moment. `ends` are the bytes of complete lines of each log, `sizes` all bytes."""

    files: Small
    ends: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def torn(self) -> int:
        """The bytes after the last complete lines: an append in progress, or one that a crash cut short."""
        return sum(self.sizes) - sum(self.ends)


class SessionSide(Protocol):
    """A session in one of the two places."""

    @property
    def place(self) -> str:
        """Where it is, for people."""
        ...

    def measure(self) -> Extent:
        """Return how far the logs reach now; `read` reads what was there at the newest measure."""
        ...

    def read(self, log: int, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes of a log between two places, in parts of bounded size; fewer if it has fewer."""
        ...

    def blob_names(self) -> list[str]:
        """Return the names of all blobs."""
        ...

    def blob(self, name: str) -> bytes:
        """Return the bytes of a blob, whether they match the name or not."""
        ...

    def put_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Store blobs durably."""
        ...

    def append(self, log: int, place: Mark, data: bytes, crc: int) -> None:
        """Store complete lines at the end of a log, which must be at `place`; raise Overtaken if it is not."""
        ...

    def put_settings(self, files: Small) -> None:
        """Replace meta.json, and cwd if it is missing."""
        ...

    def finish(self) -> None:
        """Make what follows from the logs; called after everything was compared."""
        ...

    def is_finished(self) -> bool:
        """Return False if a copy to it was interrupted before `finish`."""
        ...

    def close(self) -> None:
        """Close its files."""
        ...


class Side(Protocol):
    """A home or a database, with the sessions of one user."""

    @property
    def place(self) -> str:
        """The folder, or the address without its password."""
        ...

    def names(self) -> list[tuple[str, str]]:
        """Return the agent and the name of every session."""
        ...

    def find(self, agent: str, name: str) -> SessionSide | None:
        """Return a session; None if there is none of that name."""
        ...

    def create(self, agent: str, name: str, files: Small) -> SessionSide:
        """Create a session without lines; one that exists is returned as it is."""
        ...
