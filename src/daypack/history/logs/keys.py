"""Client keys: a message that is sent again with the same key and payload is stored once."""

import struct
from collections.abc import Iterable, Iterator, Sequence

from daypack.errors import KeyConflict, StorageFailed
from daypack.files.keys import Keys
from daypack.files.offsets import UNCOUNTED
from daypack.history.draft import same_payload
from daypack.history.logs.lines import KEYED
from daypack.history.logs.reader import Reader
from daypack.types.history import Message

_BATCH = 10_000
# Raised by a damaged or unusable table; struct.error if the log has become shorter than it was a moment ago.
BROKEN = (OSError, OverflowError, StorageFailed, struct.error)


class ClientKeys:
    """Finds the message of a client key; used only under the session's lock."""

    def __init__(self, path: str, reader: Reader[Message]) -> None:
        self._table = Keys(path)
        self._reader = reader

    def find(self, message: Message) -> Message | None:
        """Return the stored message with the same key."""
        return self.match(message, self._candidates(message.client_key or ""))

    def match(self, message: Message, earlier: Iterable[Message]) -> Message | None:
        """Return the earlier message with the same key; raise KeyConflict if its payload differs."""
        for stored in earlier:
            if stored.client_key != message.client_key:
                continue
            if same_payload(stored, message):
                return stored
            raise KeyConflict(
                f"client key {message.client_key!r} was already used for a different payload",
                operation="append",
                place=stored.id or "this batch",
                hint="use a new key for a new message",
            )
        return None

    def add(self, messages: Sequence[Message], lines: int, crc: int) -> None:
        """Add messages that were just written; `lines` and `crc` are those of the whole log."""
        first = lines - len(messages) + 1
        try:
            if self._table.is_open and self._table.covered == first - 1:
                for line, message in enumerate(messages, first):
                    if message.client_key:
                        self._table.put(message.client_key, line)
                self._table.cover(lines, crc)
        except BROKEN:
            self._table.drop()

    def sync(self) -> None:
        """Sync the table; the caller holds the lock."""
        try:
            self._table.sync()
        except BROKEN:
            self._table.drop()

    def close(self) -> None:
        """Close the table."""
        self._table.close()

    def _candidates(self, key: str) -> Iterator[Message]:
        lines = self._reader.count()
        try:
            self._table.refresh()
            if self._crc(self._table.covered, lines) != self._table.crc:
                # Lines were removed after a failed sync, or the log was edited.
                self._table.drop()
                self._table.open()
            if self._table.covered < lines:
                for line, stored in self._keyed(self._table.covered, lines):
                    self._table.put(stored.client_key or "", line)
                self._table.cover(lines, self._crc(lines, lines))
            numbers = list(self._table.find(key))
        except BROKEN:
            # Without the table, scan the log: slow, but correct.
            self._table.drop()
            yield from (stored for _, stored in self._keyed(0, lines))
            return
        for number in numbers:
            yield from self._reader.read(number - 1, number)

    def _crc(self, covered: int, lines: int) -> int:
        if covered == 0:
            return 0
        slots = self._reader.slots(covered - 1, covered) if covered <= lines else []
        return slots[0].crc if slots else -1

    def _keyed(self, start: int, stop: int) -> Iterator[tuple[int, Message]]:
        for first in range(start, stop, _BATCH):
            for position, slot in enumerate(self._reader.slots(first, min(first + _BATCH, stop)), first):
                if slot.flags & KEYED or slot.tokens == UNCOUNTED:
                    for stored in self._reader.read(position, position + 1):
                        if stored.client_key:
                            yield position + 1, stored
