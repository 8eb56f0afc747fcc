"""The tail of messages as a provider accepts it: every call with its results, each result once.

A batch is an assistant message with tool calls and the results that follow it. It is closed by the next message that
is not a result. What is decided about a closed batch never changes as more messages come, so the tail only grows:

- a result that answers no call of the batch before it is left out, and so is a second result of one call;
- a call of a closed batch that was never answered gets a result that says so;
- a batch at the very end that still waits for results is left out until they are there.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from daypack.types.history import Message
from daypack.types.kinds import OmissionReason

UNANSWERED = "(no result was recorded)"


class Dropped(Struct, frozen=True):
    """A message that cannot be part of a valid tail."""

    seq: int
    reason: OmissionReason
    note: str


class Settled(Struct, frozen=True):
    """Messages that go together, those that do not, and the calls that still wait for a result."""

    messages: tuple[Message, ...]
    dropped: tuple[Dropped, ...]
    waiting: tuple[str, ...] = ()
    open: int | None = None  # the number of the message whose calls they are


def settle(messages: Sequence[Message]) -> Settled:
    """Return the messages that make a valid tail, oldest first."""
    kept: list[Message] = []
    dropped: list[Dropped] = []
    batch: _Batch | None = None
    for message in messages:
        if message.role == "tool":
            problem = batch.take(message, kept) if batch else "answers no call"
            if problem:
                reason = "duplicate" if problem == _AGAIN else "custom"
                dropped.append(Dropped(message.seq, reason, problem))
            continue
        if batch:
            kept.extend(batch.fill())
            batch = None
        if message.tool_calls:
            batch = _Batch(message, len(kept))
            kept.append(message)
        elif message.content or message.role == "user":
            kept.append(message)
        else:
            dropped.append(Dropped(message.seq, "custom", "says nothing"))
    if batch and batch.waiting:
        dropped += [Dropped(one.seq, "custom", "waits for results") for one in kept[batch.at :]]
        return Settled(tuple(kept[: batch.at]), tuple(dropped), tuple(batch.waiting), batch.seq)
    return Settled(tuple(kept), tuple(dropped))


_AGAIN = "a second result of one call"


class _Batch:
    """The calls of one message and which of them are answered."""

    def __init__(self, message: Message, at: int) -> None:
        self.at = at
        self.seq = message.seq
        self.waiting = [call.id for call in message.tool_calls]
        self._answered: list[str] = []

    def take(self, message: Message, kept: list[Message]) -> str:
        """Keep a result that is waited for; say what is wrong with any other."""
        call = message.tool_call_id
        if call is None and self.waiting:
            # Written by hand, or by a system that has no ids: results come in the order of the calls.
            call = self.waiting[0]
            message = replace(message, tool_call_id=call)
        if call not in self.waiting:
            return _AGAIN if call in self._answered else "answers no call"
        self.waiting.remove(call)
        self._answered.append(call)
        kept.append(message)
        return ""

    def fill(self) -> list[Message]:
        return [Message(seq=self.seq, role="tool", content=UNANSWERED, tool_call_id=call) for call in self.waiting]
