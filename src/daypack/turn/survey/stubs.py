"""Stubs made for one session: the shorter form of large tool outputs, measured and kept in memory."""

from collections.abc import Callable, Sequence

from daypack.derived.repeated_content import printed
from daypack.history.session import History
from daypack.turn.items import Cost, Entry, TokenMeter
from daypack.turn.pack.stubs import as_repeat, as_stub, find_repeats, is_large
from daypack.turn.survey.message_cost import message_cost
from daypack.types.history import Message


class Stubs:
    """Makes stubs and remembers them."""

    def __init__(self, history: History, meter: TokenMeter) -> None:
        self._history = history
        self._meter = meter
        self._made: dict[int, tuple[Message, Entry]] = {}

    def stub(self, entry: Entry) -> Entry:
        """Return an entry with a stub in place of its content."""
        message = entry.message
        made = self._made.get(message.seq)
        if made and made[0] is message:
            return made[1]
        raw = message
        if entry.redacted:  # the id is the digest of the content in history
            raw = next(iter(self._history.messages.reader.pick([message.seq])), message)
        stub = self._measure(as_stub(raw, message), entry)
        if len(self._made) > 4096:
            self._made.clear()
        self._made[message.seq] = message, stub
        return stub

    def stubs_for(self, entries: Sequence[Entry]) -> dict[int, Entry]:
        """Return the stub of each large output."""
        return {entry.message.seq: self.stub(entry) for entry in entries if is_large(entry)}

    def show(self, entries: Sequence[Entry], stubbed: frozenset[int], after: int) -> tuple[list[Entry], dict[int, int]]:
        """Return the entries of an epoch: chosen outputs as stubs, later repeats as a reference to the first copy.

        Then the repeats: seq -> seq of the first copy.
        """
        shown = [self.stub(entry) if entry.message.seq in stubbed else entry for entry in entries]
        repeats = find_repeats([entry.message for entry in shown], after)
        return [
            self.refer(entry, repeats[entry.message.seq]) if entry.message.seq in repeats else entry for entry in shown
        ], repeats

    def refer(self, entry: Entry, first: int) -> Entry:
        """Return an output as a reference to the message with the first copy."""
        return self._measure(as_repeat(entry.message, {entry.message.seq: first}), entry)

    def least_costs(self) -> Callable[[Entry], Cost]:
        """Return what says the least that a message takes from a window, asked newest first.

        That is the cost of a stub for a large output, and of a reference if a newer message has the same output.
        """
        newer: set[str] = set()

        def cost(entry: Entry) -> Cost:
            if not is_large(entry):
                return entry.cost
            content = printed(entry.message)
            if content is not None and content in newer:
                return self.refer(entry, entry.message.seq).cost
            newer.add(content or "")
            return self.stub(entry).cost

        return cost

    def _measure(self, message: Message, entry: Entry) -> Entry:
        return Entry(message, message_cost(message, self._meter.counter, model=self._meter.model), entry.redacted)
