"""Where the lines of a session are stored whose folder is only a cache."""

from typing import NamedTuple, Protocol


class Mark(NamedTuple):
    """A place in a log: the bytes before it, and their running checksum."""

    end: int = 0
    crc: int = 0


class Upstream(Protocol):
    """Where the lines of a cached session are stored; `history/postgres/cache.py` has the one there is."""

    is_filling: bool  # the logs lack lines: only the thread that holds the lock, which adds them, may read

    def append(self, path: str, place: Mark, data: bytes, crc: int) -> None:
        """Store lines at the end of a log, whose checksum is then `crc`; raise Overtaken if others are there."""
        ...

    def make(self) -> None:
        """Create the files of the folder that are missing, empty."""
        ...

    def refresh(self) -> None:
        """Bring the folder up to date."""
        ...

    def wait_until_filled(self) -> None:
        """Return when no other thread is filling the logs; it may hold the session's lock for longer."""
        ...

    def remake(self) -> None:
        """Make files again that were deleted, and fill the files that another process has made."""
        ...
