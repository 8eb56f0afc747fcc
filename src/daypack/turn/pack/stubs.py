"""Stubs: one line in place of a large tool output, or of an output that repeats an earlier one.

Which outputs become stubs is decided when an epoch begins and does not change while it lasts. An output that repeats
one of the tail is replaced by a reference to it, whether it was there when the epoch began or arrived later. So a tail
only grows.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from daypack.derived.repeated_content import same_as
from daypack.derived.swap import LARGE_TOKENS, stub
from daypack.text.injected import SAME
from daypack.turn.items import Entry
from daypack.turn.pack.tail import settle
from daypack.types.history import Message


def find_repeats(messages: Sequence[Message], after: int) -> dict[int, int]:
    """Return the outputs after a seq that repeat one of the tail: seq -> seq of the first copy."""
    repeats = {seq: first for seq, first in same_as(messages).items() if seq > after}
    if not repeats:
        return repeats
    shown = {message.seq for message in settle(messages).messages}
    return {seq: first for seq, first in repeats.items() if first in shown}


def as_repeat(message: Message, repeats: Mapping[int, int]) -> Message:
    """Return an output as a line that refers to the first copy of the same text."""
    if message.seq not in repeats:
        return message
    return replace(message, content=f"{SAME}{repeats[message.seq]} above: {len(message.text):,} characters]")


def as_stub(raw: Message, redacted: Message) -> Message:
    """Return an output as a stub that names the swap id of the raw content."""
    return replace(redacted, content=stub(raw, redacted.text))


def is_large(entry: Entry) -> bool:
    """Return True for a tool output that is worth a stub."""
    return entry.message.role == "tool" and entry.cost.tokens > LARGE_TOKENS
