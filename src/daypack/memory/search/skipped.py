"""The damaged entries and documents that the index of a memory was built without.

    <folder>/skipped.json   [{"kind":"entry","id":"…","number":17,"problem":"checksum mismatch"}]

Every search and barrier reports them, also in a later process. The file is removed with the index.
"""

import os
from collections.abc import Callable, Iterable

import msgspec

from daypack.errors import StorageFailed
from daypack.files.atomic import make_folders, read, replace
from daypack.types.memory import DamagedRecord

NAME = "skipped.json"
_MOST = 1_000
_DECODER = msgspec.json.Decoder(tuple[DamagedRecord, ...])


class Skipped:
    """What the index in `folder` lacks; `is_intact` asks the store whether a record can be read now."""

    def __init__(self, folder: str, is_intact: Callable[[DamagedRecord], bool]) -> None:
        self._path = os.path.join(folder, NAME)
        self._is_intact = is_intact
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
        try:
            make_folders(os.path.dirname(self._path), durable=False)
            replace(self._path, msgspec.json.encode(self.records), durable=False)
        except (OSError, StorageFailed):
            pass  # a full or read-only disk: this process still knows them

    def is_outdated(self) -> bool:
        """Return True if a record that the index lacks is intact now: the store was restored. Asked once."""
        return self._known is None and any(map(self._is_intact, self._read().values()))

    def forget(self) -> None:
        """Forget everything: the index was erased."""
        self._known = {}

    def _read(self) -> dict[tuple[str, int], DamagedRecord]:
        if self._known is None:
            try:
                found = _DECODER.decode(read(self._path) or b"[]")
            except (StorageFailed, msgspec.MsgspecError, UnicodeError):
                found = ()
            self._known = {(record.kind, record.number): record for record in found}
        return self._known
