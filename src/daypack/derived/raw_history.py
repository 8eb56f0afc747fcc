"""Raw history: the only thing a compactor is given, so that no summary is ever made from a summary."""

from collections.abc import Iterable

from msgspec import Struct

from daypack.history.draft import RESERVED
from daypack.history.session import History
from daypack.text.injected import RECALLED_FLAG
from daypack.text.redact.redact import redact_message
from daypack.types.authority import writer_of
from daypack.types.history import Message
from daypack.types.source import Messages


class Raw(Struct, frozen=True):
    """Messages in their own words, cleared of secrets, without what daypack or another compactor added."""

    messages: tuple[Message, ...]
    start: int
    stop: int  # both ends included

    @property
    def source(self) -> str:
        """The range as a source reference."""
        return str(Messages(self.start, self.stop))


def read_raw(history: History, start: int, stop: int, *, redacting: bool) -> Raw:
    """Return the messages numbered `start` to `stop`, both included."""
    return raw_of(history.messages.records(start, stop), start, stop, redacting=redacting)


def raw_of(messages: Iterable[Message], start: int, stop: int, *, redacting: bool) -> Raw:
    """Return messages that are at hand as raw history."""
    said = (message for message in messages if not repeats_history(message))
    return Raw(tuple(redact_message(sentence)[0] if redacting else sentence for sentence in said), start, stop)


def repeats_history(message: Message) -> bool:
    """Return True if a message repeats earlier ones: recalled text, or the summary of another agent's compaction."""
    return writer_of(message) == "summary" or is_recalled(message)


def is_recalled(message: Message) -> bool:
    """Return True if a message is the answer of a tool that daypack itself provides, as noted when it was appended."""
    own = message.meta.get(RESERVED) if message.meta else None
    return isinstance(own, dict) and RECALLED_FLAG in own
