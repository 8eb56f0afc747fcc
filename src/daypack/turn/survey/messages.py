"""Recent messages as they would be sent: decoded, redacted and measured once, then kept in memory."""

from bisect import bisect_left
from collections.abc import Callable

from daypack.files.offsets import DAMAGED, UNCOUNTED, Slot
from daypack.history.session import History
from daypack.text.redact.redact import redact_message
from daypack.turn.items import Cost, Entry, TokenMeter
from daypack.turn.survey.message_cost import message_cost
from daypack.types.history import Message

_BATCH = 256

CostOf = Callable[[Entry], Cost]


class RecentMessages:
    """The newest messages of one history, measured with one counter. Grows as it is asked for older ones."""

    def __init__(self, history: History, meter: TokenMeter, *, redacting: bool) -> None:
        self._history = history
        self._meter = meter
        self._counts_known = meter.counter.name == history.tokenizer  # the sidecar has counts of one tokenizer
        self._redacting = redacting
        self._entries: list[Entry] = []
        self._from = self._to = 0  # positions read so far
        self._newest: Slot | None = None  # slot of the last of them: its CRC covers everything before it
        self._generation = -1

    def since(self, seq: int) -> list[Entry]:
        """Return the messages from `seq` on."""
        self._catch_up()
        if not self._entries or self._entries[0].message.seq > seq:
            self._read_back(self._history.messages.reader.position(seq))
        return self._entries[self._index_of(seq) :]

    def tokens_since(self, seq: int, without: frozenset[int] = frozenset()) -> int:
        """Return about how many tokens the messages from `seq` on have, without decoding any."""
        reader = self._history.messages.reader
        self._catch_up_positions()
        tokens = 0
        if self._entries and self._entries[0].message.seq <= seq:
            for entry in self.since(seq):
                tokens += 0 if entry.message.seq in without else entry.cost.tokens
            return tokens
        for slot in reader.slots(reader.position(seq), reader.count()):
            if slot.seq not in without and not slot.flags & DAMAGED and slot.tokens != UNCOUNTED:
                tokens += slot.tokens
        return tokens

    def newest(self, room: Cost, cost_of: CostOf | None = None) -> tuple[list[Entry], bool]:
        """Return the newest messages that fit the room, and True if these are all messages.

        `cost_of` is called newest first; it can return a lower cost for a message that may be shown as a stub.
        """
        self._catch_up()
        used, at = Cost(), len(self._entries)
        while True:
            while at > 0:
                entry = self._entries[at - 1]
                used = used.plus(cost_of(entry) if cost_of else entry.cost)
                if not used.fits(room):
                    return self._entries[at:], False
                at -= 1
            if self._from == 0:
                return list(self._entries), True
            before = len(self._entries)
            self._read_back(max(0, self._from - _BATCH))
            at = len(self._entries) - before

    def newest_user(self) -> Entry | None:
        """Return the newest message of the user."""
        self._catch_up()
        at = len(self._entries)
        while True:
            while at > 0:
                at -= 1
                if self._entries[at].message.role == "user":
                    return self._entries[at]
            if self._from == 0:
                return None
            before = len(self._entries)
            self._read_back(max(0, self._from - _BATCH))
            at = len(self._entries) - before

    def user_before(self, seq: int) -> Entry | None:
        """Return the newest message of the user before `seq`. Messages passed on the way are not kept in memory."""
        self._catch_up()
        for entry in reversed(self._entries):
            if entry.message.role == "user" and entry.message.seq < seq:
                return entry
        stop = self._from
        while stop > 0:
            start = max(0, stop - _BATCH)
            for message in reversed(self._history.messages.reader.read(start, stop)):
                if message.role == "user" and message.seq < seq:
                    return self.measure(message)
            stop = start
        return None

    def forget_before(self, seq: int) -> None:
        """Free messages that no later turn needs."""
        at = self._index_of(seq)
        if at > 4 * _BATCH:
            self._from = self._history.messages.reader.position(seq)
            del self._entries[:at]

    def measure(self, message: Message, tokens: int | None = None) -> Entry:
        """Return a message as it would be sent, with its cost."""
        kinds: tuple[str, ...] = ()
        if self._redacting:
            redacted, kinds = redact_message(message)
            if kinds:
                message, tokens = redacted, None
        return Entry(message, message_cost(message, self._meter.counter, tokens, self._meter.model), kinds)

    def _index_of(self, seq: int) -> int:
        return bisect_left(self._entries, seq, key=_seq_of)

    def _catch_up_positions(self) -> None:
        reader = self._history.messages.reader
        if self._generation != reader.generation or self._slot() != self._newest:
            # Lines were removed, erased or renumbered: positions read before may hold other lines now.
            self._entries.clear()
            self._from = self._to = reader.count()
            self._generation = reader.generation
            self._newest = self._slot()

    def _catch_up(self) -> None:
        self._catch_up_positions()
        count = self._history.messages.reader.count()
        if count > self._to:
            if not self._entries and count - self._to > _BATCH:
                self._from = count
            else:
                self._entries += self._read(self._to, count)
            self._to = count
            self._newest = self._slot()

    def _slot(self) -> Slot | None:
        if not self._to:
            return None
        slots = self._history.messages.reader.slots(self._to - 1, self._to)
        return slots[0]._replace(tokens=0, flags=0) if slots else None  # these two are filled in later

    def _read_back(self, start: int) -> None:
        if start < self._from:
            self._entries[:0] = self._read(start, self._from)
            self._from = start

    def _read(self, start: int, stop: int) -> list[Entry]:
        reader = self._history.messages.reader
        counts: dict[int, int] = {}
        if self._counts_known:
            for slot in reader.slots(start, stop):
                if slot.tokens != UNCOUNTED and not slot.flags & DAMAGED:
                    counts[slot.seq] = slot.tokens
        return [self.measure(message, counts.get(message.seq)) for message in reader.read(start, stop)]


def _seq_of(entry: Entry) -> int:
    return entry.message.seq
