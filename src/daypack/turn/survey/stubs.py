"""Stubs made for one session: the shorter form of large tool outputs, measured and kept in memory."""

from collections.abc import Sequence

from daypack.history.session import History
from daypack.turn.items import Cost, Entry, TokenMeter
from daypack.turn.pack.stubs import as_repeat, as_stub, find_repeats, is_large
from daypack.turn.survey.message_cost import message_cost
from daypack.types.history import Message


class Stubs:
    """Makes stubs and remembers them."""

    def __init__(self, history: History, meter: TokenMeter, fresh_outputs: int) -> None:
        self._history = history
        self._meter = meter
        self.fresh_outputs = fresh_outputs
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

    def steps(self, entries: Sequence[Entry]) -> tuple[dict[int, Entry], ...]:
        """Return the stubs that a new epoch can use, in steps.

        The first step has the large outputs before the newest few. Each further step adds one of those few, oldest
        first, for windows where the steps before leave too little space.
        """
        outputs = [entry for entry in entries if entry.message.role == "tool"]
        steps: list[dict[int, Entry]] = []
        for stop in range(len(outputs) - self.fresh_outputs, len(outputs) + 1):
            step = {entry.message.seq: self.stub(entry) for entry in outputs[: max(0, stop)] if is_large(entry)}
            if not steps or len(step) > len(steps[-1]):
                steps.append(step)
        return tuple(steps)

    def show(self, entries: Sequence[Entry], stubbed: frozenset[int], after: int) -> list[Entry]:
        """Return the entries of an epoch: chosen outputs as stubs, later repeats as a reference to the first copy."""
        shown = [self.stub(entry) if entry.message.seq in stubbed else entry for entry in entries]
        repeats = find_repeats([entry.message for entry in shown], after)
        return [
            self._measure(as_repeat(entry.message, repeats), entry) if entry.message.seq in repeats else entry
            for entry in shown
        ]

    def _measure(self, message: Message, entry: Entry) -> Entry:
        return Entry(message, message_cost(message, self._meter.counter), entry.redacted)


class StubbedCost:
    """The cost of messages newest first, counting large outputs as stubs where a new epoch may stub them."""

    def __init__(self, stubs: Stubs, room: Cost) -> None:
        self._stubs = stubs
        self._half = room.part(0.5)
        self._outputs = 0

    def __call__(self, entry: Entry) -> Cost:
        """Return the cost of the next older message."""
        if entry.message.role == "tool":
            self._outputs += 1
            if is_large(entry) and (self._outputs > self._stubs.fresh_outputs or not entry.cost.fits(self._half)):
                return self._stubs.stub(entry).cost
        return entry.cost
