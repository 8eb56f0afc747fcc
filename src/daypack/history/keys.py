"""Client keys: the same key with the same payload is one message, however often it is sent."""

from collections.abc import Iterable, Iterator, Sequence

from daypack.errors import KeyConflict, StorageFailed
from daypack.files.keys import Keys
from daypack.files.offsets import UNCOUNTED
from daypack.history.draft import same_payload
from daypack.history.lines import KEYED
from daypack.history.reader import Reader
from daypack.types.history import Message

_BATCH = 10_000
BROKEN = (OSError, OverflowError, StorageFailed)  # what a damaged or unusable table can lead to


class ClientKeys:
    """Finds the message a key stands for; used only under the session's lock."""

    def __init__(self, path: str, reader: Reader[Message]) -> None:
        self._table = Keys(path)
        self._reader = reader

    def find(self, message: Message) -> Message | None:
        """Return the message that is stored under this one's key."""
        return self.match(message, self._candidates(message.client_key or ""))

    def match(self, message: Message, earlier: Iterable[Message]) -> Message | None:
        """Return the earlier message with this one's key; refuse the key when the payload is another."""
        for stored in earlier:
            if stored.client_key != message.client_key:
                continue
            if same_payload(stored, message):
                return stored
            raise KeyConflict(
                f"client key {message.client_key!r} already stands for another payload",
                operation="append",
                place=stored.id or "this batch",
                hint="use a new key for a new message",
            )
        return None

    def enter(self, messages: Sequence[Message], lines: int, crc: int) -> None:
        """Take in messages that were just written; `lines` and `crc` are those of the whole log now."""
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
        """Under the lock: make the table durable."""
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
                # Lines were taken back after a failed sync, or somebody edited the log.
                self._table.drop()
                self._table.open()
            if self._table.covered < lines:
                for line, stored in self._keyed(self._table.covered, lines):
                    self._table.put(stored.client_key or "", line)
                self._table.cover(lines, self._crc(lines, lines))
            numbers = list(self._table.find(key))
        except BROKEN:
            # Without the table the log itself is asked: slow, and right.
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
            for at, slot in enumerate(self._reader.slots(first, min(first + _BATCH, stop)), first):
                if slot.flags & KEYED or slot.tokens == UNCOUNTED:
                    for stored in self._reader.read(at, at + 1):
                        if stored.client_key:
                            yield at + 1, stored
