"""Events of messages: a message with tool calls, a tool result and a reply that broke off each have one.

    {"type":"tool.called","data":{"message":"msg-3","calls":[{"id":"c1","name":"run","arguments":"sha256:…"}]}}

The message is written and synced first, its event follows without a sync of its own. Events of messages are in the
order of the messages: all of them after the newest event are missing, because a crash came between. The next append of
a process writes them, so that each exists once.
"""

from collections.abc import Callable, Iterator, Sequence

from daypack.files.offsets import UNCOUNTED
from daypack.history.logs.lines import BROKEN, CALLS, ROLE_SHIFT
from daypack.history.logs.log import Log
from daypack.history.logs.reader import Reader
from daypack.types.history import Event, Message
from daypack.types.kinds import ROLES

CALLED = "tool.called"
RETURNED = "tool.returned"
PROVIDER_ERROR = "provider.error"
TYPES = (CALLED, RETURNED, PROVIDER_ERROR)  # in the order in which the events of one message are written
OF_MESSAGE = 1 << ROLE_SHIFT  # flag of an event's slot; its tokens are the number of the message

# Returns the events of messages, in their order; the messages before them are in the log.
Describe = Callable[[Sequence[Message], Reader[Message]], list[Event]]

_TOOL = ROLES.index("tool") + 1
_LOOK_BACK = 64  # messages that the first append of a process looks at
_BATCH = 1000
_ALL = 1 << 40
# A reply that the caller stopped reading, or whose process was interrupted, is no error of the provider.
_OF_THE_CALLER = ("abandoned", "KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError")


def has_event(message: Message) -> bool:
    """Return True if a message is one that gets an event."""
    return bool(message.tool_calls) or message.role == "tool" or is_provider_error(message.incomplete)


def is_provider_error(reason: str | None) -> bool:
    """Return True if a reply broke off for this reason, and not because of its caller."""
    return reason is not None and reason not in _OF_THE_CALLER


class MessageEvents:
    """Writes the events of one session's messages, each once."""

    def __init__(self, messages: Log[Message], events: Log[Event], describe: Describe | None) -> None:
        self._messages = messages
        self._events = events
        self._describe = describe  # None: another process writes them, as for a read-only use
        self.forget()

    def forget(self) -> None:
        """Look at the logs anew; in a forked child, because another thread may have been looking."""
        self.checked = False  # nothing is missing, as far as this process can tell
        self._through = 0  # the events of all messages up to this one exist
        self._scanned = (0, 0)  # event lines looked at, and the running crc of the last
        self._newest = (0, "")  # message and type of the newest event of a message among them

    def due(self, appended: Sequence[Message]) -> bool:
        """Return True if an event may be missing: of what was appended, or of an append that a crash cut short."""
        if self._describe is None:
            return False
        for message in appended:  # almost always one, without any of these
            if message.tool_calls or message.meta or message.role == "tool":
                break
        else:
            if self.checked:
                return False
        if any(map(has_event, appended)):
            self.checked = False
        elif not self.checked:
            self.checked = not self._seen_lately()
        return not self.checked

    def complete(self, appended: Sequence[Message], now: float) -> None:
        """Write the events that are missing; the caller holds the lock. `appended` saves reading those messages."""
        if self._describe is None:
            return
        reader = self._messages.reader
        newest = reader.newest().seq
        self._scan_events(newest)
        seq, kind = self._newest
        written = TYPES.index(kind) if kind else -1
        for batch in self._after(max(seq, self._through + 1), newest, appended):
            described = self._describe(batch, reader)
            events = [event for event in described if message_of(event) > seq or TYPES.index(event.type) > written]
            if events:
                self._events.append(events, now, durable=False)
                writer = self._events.writer
                self._newest = (message_of(events[-1]), events[-1].type)
                self._scanned = (writer.lines, writer.crc)
        self._through, self.checked = newest, True

    def _after(self, first: int, newest: int, appended: Sequence[Message]) -> Iterator[Sequence[Message]]:
        """Return the messages from a number on that get events, in batches."""
        whole = appended and appended[-1].seq - appended[0].seq + 1 == len(appended)
        if whole and appended[0].seq <= first and appended[-1].seq == newest:
            yield [message for message in appended if message.seq >= first and has_event(message)]
            return
        reader = self._messages.reader
        at, stop = reader.position(first), reader.count()
        while at < stop:
            slots = reader.slots(at, min(at + _BATCH, stop))
            chosen = [at + number for number, slot in enumerate(slots) if _may_have_event(slot.flags)]
            if chosen:
                messages = reader.read(chosen[0], chosen[-1] + 1)
                yield [message for message in messages if has_event(message)]
            at += _BATCH

    def _seen_lately(self) -> bool:
        reader = self._messages.reader
        count = reader.count()
        return any(_may_have_event(slot.flags) for slot in reader.slots(max(0, count - _LOOK_BACK), count))

    def _scan_events(self, newest: int) -> None:
        """Find the newest event of a message, looking only at the lines since the last time."""
        reader, (scanned, crc) = self._events.reader, self._scanned
        slots = reader.slots(scanned - 1, _ALL) if scanned else []
        if scanned and (not slots or slots[0].crc != crc):
            scanned, self._newest, self._through = 0, (0, ""), 0  # events that were not synced are lost
        if len(slots) == 1 and scanned:
            return
        stop = reader.count()
        self._scanned = (stop, reader.newest().crc)
        while stop > scanned:
            start = max(scanned, stop - _BATCH)
            slots = reader.slots(start, stop)
            for at in range(len(slots) - 1, -1, -1):
                if slots[at].flags & OF_MESSAGE or slots[at].tokens == UNCOUNTED:
                    for event in reader.read(start + at, start + at + 1):
                        # One about a message that does not exist is another program's.
                        if 0 < (seq := message_of(event)) <= newest:
                            self._newest = (seq, event.type)
                            return
            stop = start


def _may_have_event(flags: int) -> bool:
    """Return True for the slot of a message with an event, or of a line that no writer has measured."""
    role = flags >> ROLE_SHIFT & 7
    return role in (0, _TOOL) or bool(flags & (CALLS | BROKEN))


def message_of(event: Event) -> int:
    """Return the number of the message that an event is about; 0 for any other event."""
    if event.type not in TYPES:
        return 0
    number = str(event.data.get("message", "")).removeprefix("msg-")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0
