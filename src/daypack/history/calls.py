"""Tool calls that wait for results: a result has to answer one of them, or no turn would show it."""

from collections.abc import Sequence

from daypack.errors import BadMessage
from daypack.history.logs.lines import CALLS, ROLE_SHIFT
from daypack.history.logs.reader import Reader
from daypack.history.session import History
from daypack.types.history import Message, ToolCall
from daypack.types.kinds import ROLES

_SLOTS = 64  # of the log that are looked at in one go
_LATE = 4_096  # messages that can come between a call and its result
_TOOL = ROLES.index("tool") + 1
_SHOWN = 8  # waiting calls that a message names


class Batch:
    """The calls of one message: those that wait, and the results of the others."""

    def __init__(self, calls: Sequence[ToolCall] = (), results: Sequence[Message] = ()) -> None:
        self.waiting = list(calls)
        self.results: dict[str, str] = {}  # id of a call -> id of its result
        for result in results:
            self.take(result)

    def take(self, result: Message) -> bool:
        """Return True if a result answers a call that waits. One without an id answers the first."""
        for call in self.waiting:
            if result.tool_call_id in (call.id, None):
                self.waiting.remove(call)
                self.results[call.id] = result.id
                return True
        return False


def newest_batch(reader: Reader[Message]) -> Batch:
    """Return the calls that a result appended now can answer; reads back to their message and no further."""
    count = stop = reader.count()
    while stop:
        start = max(0, stop - _SLOTS)
        slots = reader.slots(start, stop)
        for position in range(start + len(slots) - 1, start - 1, -1):
            flags = slots[position - start].flags
            role = flags >> ROLE_SHIFT & 7
            if role == _TOOL:
                continue
            if role and not flags & CALLS:
                return Batch()
            # With calls, or a line that no writer has measured yet.
            for message in reader.read(position, position + 1):
                if message.role != "tool":
                    calls = message.tool_calls if message.role == "assistant" else ()  # a line written by hand
                    return Batch(calls, reader.read(position + 1, count) if calls else ())
        stop = start
    return Batch()


def require_calls(history: History, drafts: Sequence[Message]) -> None:
    """Refuse results that answer no call which waits, in the log or earlier among the drafts.

    A late result, after something else was said, is kept. Drafts with other messages are a transcript. In it, results
    without ids answer calls in their order, and results that come when no call waits are stored: turns leave them out.
    """
    batch: Batch | None = None
    transcript = any(draft.role != "tool" for draft in drafts)
    for index, draft in enumerate(drafts):
        if draft.role != "tool":
            batch = Batch(draft.tool_calls)
            continue
        batch = batch or newest_batch(history.messages.reader)
        if (transcript or draft.tool_call_id is not None) and batch.take(draft):
            continue
        if draft.client_key and history.is_stored(draft):
            continue  # it is sent again
        if draft.tool_call_id not in batch.results and _is_late(history.messages.reader, draft.tool_call_id):
            continue  # something was said while the tool ran: the result happened, so it is kept
        if batch.waiting or not transcript:
            raise _refusal(draft.tool_call_id, batch, f"messages[{index}].tool_call_id" if index else "tool_call_id")


def _is_late(reader: Reader[Message], call_id: str | None) -> bool:
    """Return True if a recent message before the newest batch made this call and has no result of it."""
    if call_id is None:
        return False
    count = reader.count()
    start = max(0, count - _LATE)
    flagged = [start + at for at, slot in enumerate(reader.slots(start, count)) if slot.flags & CALLS]
    for position in reversed(flagged):
        for message in reader.read(position, position + 1):
            if message.role == "assistant" and any(call.id == call_id for call in message.tool_calls):
                return all(later.tool_call_id != call_id for later in reader.read(position + 1, count))
    return False


def _refusal(given: str | None, batch: Batch, place: str) -> BadMessage:
    waiting = batch.waiting
    if given is None:
        problem = "a tool result needs the id of its call"
    elif given in batch.results:
        problem = f"{given!r} has a result already: {batch.results[given] or 'earlier in this list'}"
    else:
        problem = f"no call {given!r} waits for a result"
    if not waiting:
        hint = "append the reply with its tool calls first, as session.accept(reply) does"
        return BadMessage(f"{problem}; no calls are waiting", operation="append", place=place, hint=hint)
    shown = ", ".join(f"{call.id} ({call.name})" for call in waiting[:_SHOWN])
    more = f" and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
    hint = f"tool_call_id={waiting[0].id!r}, on the command line --tool-call-id {waiting[0].id}"
    return BadMessage(f"{problem}; calls waiting: {shown}{more}", operation="append", place=place, hint=hint)
