"""The tail: messages in a form that providers accept, every tool call with its results.

A batch is an assistant message with tool calls and the results that follow it. The next message that is not a result
closes it. Decisions about a closed batch never change as messages are appended, so the tail only grows:

- a result that answers no call of the batch before it is dropped, and so is a second result of one call;
- a call of a closed batch without a result gets one that says so, also if its result comes later;
- calls of a message that is not the assistant's are left out;
- an open batch at the end is dropped until all its results have arrived;
- a reply that broke off is dropped if the next message is another reply, which is the second attempt, and at the end.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from daypack.turn.items import Cost
from daypack.turn.surface import Window
from daypack.types.history import Message
from daypack.types.kinds import OmissionReason

UNANSWERED = "(no result was recorded)"
_PLACEHOLDER = Cost(13, len(UNANSWERED), 1)  # a missing result; upper bound over all counters


class Dropped(Struct, frozen=True):
    """A message that a valid tail cannot contain."""

    seq: int
    reason: OmissionReason
    note: str


class Shortened(Struct, frozen=True):
    """A field of a message that is in the tail without it."""

    seq: int
    field: str
    note: str


class Settled(Struct, frozen=True):
    """The messages of a valid tail, the others, and the calls that have no result yet."""

    messages: tuple[Message, ...]
    dropped: tuple[Dropped, ...]
    waiting: tuple[str, ...] = ()
    open: int | None = None  # seq of the message with those calls
    shortened: tuple[Shortened, ...] = ()


def settle(messages: Sequence[Message]) -> Settled:
    """Return the messages of a valid tail, oldest first."""
    kept: list[Message] = []
    dropped: list[Dropped] = []
    shortened: list[Shortened] = []
    late: set[str] = set()  # calls of closed batches that have no result
    batch: _Batch | None = None
    broken: Message | None = None  # a reply that broke off; the next message decides
    for message in messages:
        if message.tool_calls and message.role != "assistant":
            shortened.append(Shortened(message.seq, "tool_calls", f"a {message.role} message makes no calls"))
            message = replace(message, tool_calls=())  # noqa: PLW2901 — as it would be stored today
        if broken:
            if message.role == "assistant":
                dropped.append(Dropped(broken.seq, "custom", REPEATED))
            else:
                batch = _keep(broken, kept, dropped)
            broken = None
        if message.role == "tool":
            problem = batch.take(message, kept) if batch else _NO_CALL
            if problem:
                problem = LATE if problem == _NO_CALL and message.tool_call_id in late else problem
                dropped.append(Dropped(message.seq, "duplicate" if problem == _SECOND else "custom", problem))
            continue
        if batch:
            kept.extend(batch.fill())
            late.update(batch.waiting)
            batch = None
        if message.role == "assistant" and message.meta and message.incomplete:
            broken = message
        else:
            batch = _keep(message, kept, dropped)
    if broken:
        dropped.append(Dropped(broken.seq, "custom", BROKEN))
    if batch and batch.waiting:
        dropped += [Dropped(message.seq, "custom", "results pending") for message in kept[batch.at :]]
        return Settled(tuple(kept[: batch.at]), tuple(dropped), tuple(batch.waiting), batch.seq, tuple(shortened))
    return Settled(tuple(kept), tuple(dropped), shortened=tuple(shortened))


def _keep(message: Message, kept: list[Message], dropped: list[Dropped]) -> "_Batch | None":
    """Keep a message that says something; return the batch it begins."""
    if message.tool_calls:
        kept.append(message)
        return _Batch(message, len(kept) - 1)
    content = message.content
    if message.role == "user" or (content and not (isinstance(content, str) and content.isspace())):
        kept.append(message)
    else:
        dropped.append(Dropped(message.seq, "custom", "empty message"))
    return None


BROKEN = "broke off; the next reply replaces it"
REPEATED = "broke off; the reply after it replaces it"
_SECOND = "second result of the same call"
_NO_CALL = "answers no call"
LATE = "came after the conversation continued without it"


class _Batch:
    """The calls of one message, and which of them have results."""

    def __init__(self, message: Message, at: int) -> None:
        self.at = at
        self.seq = message.seq
        self.waiting = [call.id for call in message.tool_calls]
        self._answered: list[str] = []

    def take(self, message: Message, kept: list[Message]) -> str:
        """Keep an expected result and return ""; return the problem with any other."""
        call = message.tool_call_id
        if call is None and self.waiting:
            # Results without ids (written by hand, or by systems that have none) come in the order of the calls.
            call = self.waiting[0]
            message = replace(message, tool_call_id=call)
        if call not in self.waiting:
            return _SECOND if call in self._answered else _NO_CALL
        self.waiting.remove(call)
        self._answered.append(call)
        kept.append(message)
        return ""

    def fill(self) -> list[Message]:
        """Return a placeholder for each missing result."""
        return [Message(seq=self.seq, role="tool", content=UNANSWERED, tool_call_id=call) for call in self.waiting]


class SettledWindow(Struct, frozen=True):
    """A window with its valid messages and the cost of each."""

    window: Window
    settled: Settled
    costs: tuple[Cost, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of a valid tail."""
        return self.settled.messages


def settle_window(window: Window) -> SettledWindow:
    """Return the valid messages of a window and what each costs."""
    messages: list[Message] = []
    by_identity: dict[int, Cost] = {}
    by_seq: dict[int, Cost] = {}
    for message, cost, _ in window.entries:
        messages.append(message)
        by_identity[id(message)] = by_seq[message.seq] = cost
    settled = settle(messages)
    costs: list[Cost] = []
    for message in settled.messages:
        cost = by_identity.get(id(message))
        costs.append(cost or (by_seq[message.seq] if message.id else _PLACEHOLDER))
    return SettledWindow(window, settled, tuple(costs))
