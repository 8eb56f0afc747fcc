"""The damaged entries and documents that the index of a memory was built without.

    <folder>/skipped.json   [{"kind":"entry","id":"…","number":17,"problem":"checksum mismatch"}]

Every search and barrier reports them, also in a later process. They are removed with the index.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

import msgspec

from daypack.errors import StorageFailed
from daypack.files.atomic import make_folders, read, replace
from daypack.types.memory import DamagedRecord

NAME = "skipped.json"
_MOST = 1_000
_DECODER = msgspec.json.Decoder(tuple[DamagedRecord, ...])


class SkippedRecords(Protocol):
    """Where the records are: one JSON list beside the index."""

    def load(self) -> bytes:
        """Return the list, empty if there is none."""
        ...

    def save(self, records: bytes) -> None:
        """Replace the list; raises StorageFailed or OSError if it cannot be written."""
        ...


class SkippedFile:
    """The records in a file of `folder`."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, NAME)

    def load(self) -> bytes:
        """Return the contents of the file."""
        return read(self._path) or b""

    def save(self, records: bytes) -> None:
        """Replace the file; what it holds is found again after a crash, so it is not flushed."""
        make_folders(os.path.dirname(self._path), durable=False)
        replace(self._path, records, durable=False)


class Skipped:
    """What an index lacks."""

    def __init__(self, place: SkippedRecords) -> None:
        self._place = place
        self._known: dict[tuple[str, int], DamagedRecord] | None = None

    @property
    def records(self) -> tuple[DamagedRecord, ...]:
        """The damaged records, by kind and number."""
        known = self._read()
        return tuple(known[key] for key in sorted(known))

    def add(self, damaged: Iterable[DamagedRecord]) -> None:
        """Remember records that are being skipped."""
        known = self._read()
        new = {(record.kind, record.number): record for record in damaged}
        if new.keys() <= known.keys() or len(known) >= _MOST:
            return
        known.update(new)
        with suppress(OSError, StorageFailed):  # a full or read-only disk: this process still knows them
            self._place.save(msgspec.json.encode(self.records))

    def is_outdated(self, is_intact: Callable[[DamagedRecord], bool]) -> bool:
        """Return True if a record that the index lacks is intact now: the store was restored. Asked once."""
        return self._known is None and any(map(is_intact, self._read().values()))

    def forget(self) -> None:
        """Forget everything: the index was erased."""
        self._known = {}

    def _read(self) -> dict[tuple[str, int], DamagedRecord]:
        if self._known is None:
            try:
                found = _DECODER.decode(self._place.load() or b"[]")
            except (StorageFailed, msgspec.MsgspecError, UnicodeError):
                found = ()
            self._known = {(record.kind, record.number): record for record in found}
        return self._known
