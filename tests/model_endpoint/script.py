"""What a scripted model does with a request: say something, call tools, fail, or break off."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

# Streams send arguments in pieces of this many characters, so that no piece is valid JSON by itself.
ARGUMENT_CHARS = 7


@dataclass(frozen=True)
class Call:
    """A tool call; without an id it gets one that no other call of the endpoint has.

    `namespace` is sent only by responses, where a group of tools has one; so is `is_freeform`, a call whose arguments
    are a text in a grammar of the tool and no JSON.
    """

    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""
    namespace: str = ""
    is_freeform: bool = False

    @property
    def text(self) -> str:
        """The arguments as the model writes them: a text given here may be broken JSON."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)

    @property
    def pieces(self) -> list[str]:
        return [self.text[start : start + ARGUMENT_CHARS] for start in range(0, len(self.text), ARGUMENT_CHARS)]


@dataclass(frozen=True)
class Say:
    """A reply.

    A stream sends `pieces` one by one: the words of `text`, or `split` when given. Pieces of thinking and of arguments
    count too, in the order in which they are sent. After `cut_after` pieces the connection is closed; after
    `fail_after` pieces an error is sent as an event; after `pause_after` pieces the endpoint waits for its `resume`.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    stop: Literal["end", "length"] = "end"
    input_tokens: int | None = None  # None: estimated from the request
    output_tokens: int = 7
    cached_tokens: int = 0
    split: tuple[str, ...] = ()
    cut_after: int | None = None
    fail_after: int | None = None
    pause_after: int | None = None

    @property
    def pieces(self) -> tuple[str, ...]:
        return self.split or words(self.text)

    @property
    def said(self) -> str:
        return "".join(self.split) or self.text

    def numbered(self, number: int) -> "Say":
        """Return the reply to the request of this number, with an id for every call."""
        calls = (replace(call, id=call.id or f"call_{number}_{index}") for index, call in enumerate(self.calls, 1))
        return replace(self, calls=tuple(calls))


@dataclass(frozen=True)
class Fail:
    """An HTTP error in the provider's shape; clients retry 429 and 5xx after `retry_after_ms`."""

    status: int
    message: str = ""
    code: str = ""
    retry_after_ms: int = 1


TOO_LONG = Fail(400, code="context_length_exceeded")

Step = str | Say | Fail


class Sent(NamedTuple):
    """A server-sent event; `piece` is true when it has a piece of text, thinking or arguments."""

    event: str
    data: Mapping[str, Any]
    piece: bool = False

    @property
    def wire(self) -> bytes:
        name = f"event: {self.event}\n" if self.event else ""
        return f"{name}data: {json.dumps(self.data)}\n\n".encode()


def words(text: str) -> tuple[str, ...]:
    """Return a text in pieces that begin with a word."""
    return tuple(re.findall(r"^\s+|\S+\s*", text))
