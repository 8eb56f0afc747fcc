"""The shapes of a call on the page: an item that was sent, a text that was left out, and how long texts are shown."""

from msgspec import Struct

from daypack.turn.evidence.calls.parts import Part
from daypack.types.shapes import Shortage

MOST_CHARS = 4_000  # of a text in a list; the whole is asked for by id


class ShownToolCall(Struct, frozen=True):
    """A call of a tool in a message."""

    name: str
    arguments: str


class ShownItem(Struct, frozen=True, kw_only=True):
    """One item of a call; None where a fact is not known. `chars` is the length of the whole text."""

    id: str
    part: str  # prefix, tail or volatile
    category: Part
    kind: str
    context_kind: str | None = None
    source: str
    ref: str | None = None  # messages:12, where history has it
    role: str | None = None
    title: str = ""
    tokens: int | None = None
    why: str
    authority: str | None = None
    visible_to: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    score: float | None = None
    text: str
    chars: int
    calls: tuple[ShownToolCall, ...] = ()
    stub: bool = False


class ShownOmission(Struct, frozen=True, kw_only=True):
    """Something that a call does not contain, why, and the id that the recall view reads it by."""

    item: str
    reason: str
    words: str
    tokens: int | None = None  # as recorded
    swap: str | None = None
    high_impact: bool = False
    note: str | None = None
    shortage: Shortage | None = None
    read: str | None = None
    counted: int | None = None  # of messages whose omission states no tokens: those of the log


class Cache(Struct, frozen=True, kw_only=True, rename={"broken": "break"}):
    """What a prompt cache was expected to hold, and what the provider reported."""

    expected: int | None = None
    input: int | None = None
    cached: int | None = None
    written: int | None = None
    output: int | None = None
    broken: str | None = None
    lost: int | None = None


def cut(text: str, most_chars: int | None) -> str:
    """Return the beginning of a text; None: all of it."""
    return text if most_chars is None else text[:most_chars]
