"""References to a place in a session, in one grammar.

    messages:12        one message            messages:12-18     a range, both ends included
    messages:tail:40   the newest forty       events:ev-9        one event
    swap:<id>          a swapped chunk        tool:<call id>     the result of a tool call

`1-120` and `tail:40` are read as message references too. `user:latest` is read, and written as the number of the
message.
"""

import re

from msgspec import Struct

from daypack.errors import BadSource

_MESSAGES = re.compile(
    r"(?:messages:)?(?:(?P<start>[1-9]\d{0,17})(?:-(?P<stop>[1-9]\d{0,17}))?|tail:(?P<tail>[1-9]\d{0,17}))"
)
_NAMED = re.compile(r"(events|swap|tool):([\x21-\x7e][\x20-\x7e]{0,254})")

_OWN = re.compile(r"(?:messages|events|swap|tool):")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s]\S{0,4095}|(?:events|swap|tool):[\x21-\x7e][\x20-\x7e]{0,254}")
_PATH = re.compile(r"(?=.*[/\\]|[^\s.]+(?:\.[^\s.]+)+$)[^\x00-\x1f]{1,4096}")


class Messages(Struct, frozen=True):
    """A range of messages by sequence number, both ends included."""

    start: int
    stop: int

    def __str__(self) -> str:
        return f"messages:{self.start}" if self.start == self.stop else f"messages:{self.start}-{self.stop}"


class Tail(Struct, frozen=True):
    """The newest messages."""

    count: int

    def __str__(self) -> str:
        return f"messages:tail:{self.count}"


class EventRef(Struct, frozen=True):
    """One event."""

    id: str

    def __str__(self) -> str:
        return f"events:{self.id}"


class SwapRef(Struct, frozen=True):
    """Something that was swapped out of the window."""

    id: str

    def __str__(self) -> str:
        return f"swap:{self.id}"


class ToolRef(Struct, frozen=True):
    """The result of a tool call."""

    call_id: str

    def __str__(self) -> str:
        return f"tool:{self.call_id}"


class UserLatest(Struct, frozen=True):
    """The newest user message at the time the reference is resolved."""

    def __str__(self) -> str:
        return "user:latest"


Source = Messages | Tail | EventRef | SwapRef | ToolRef | UserLatest


def parse_source(text: str) -> Source:
    """Read a reference; anything outside the grammar is refused."""
    if text == "user:latest":
        return UserLatest()
    if match := _MESSAGES.fullmatch(text):
        if match["tail"]:
            return Tail(int(match["tail"]))
        start = int(match["start"])
        stop = int(match["stop"] or start)
        if stop < start:
            raise _bad(text, "ends before it begins")
        return Messages(start, stop)
    if match := _NAMED.fullmatch(text):
        kind, name = match[1], match[2]
        return EventRef(name) if kind == "events" else SwapRef(name) if kind == "swap" else ToolRef(name)
    raise _bad(text, "is not a source reference")


def own_source(ref: object) -> Source | None:
    """Return a reference in this grammar; None for anything else."""
    try:
        return parse_source(ref) if isinstance(ref, str) else None
    except BadSource:
        return None


def is_source_ref(text: str) -> bool:
    """Return True for a reference in this grammar, a URI or a path; a bare word names no place."""
    if _OWN.match(text):  # messages:0 is no URI of another system
        return own_source(text) is not None
    return bool(_MESSAGES.fullmatch(text) or _URI.fullmatch(text) or _PATH.fullmatch(text))


def _bad(text: str, problem: str) -> BadSource:
    return BadSource(
        f"{text!r} {problem}",
        operation="parse source",
        hint="write messages:12, messages:12-18, messages:tail:40, events:ev-9, swap:<id> or tool:<call id>",
    )
