"""The input of a dialect: texts and messages of a turn, in the order they are sent."""

from collections.abc import Iterable

from msgspec import Struct

from daypack.types.history import Message


class Given(Struct, frozen=True):
    """One turn in its final form: the dialects choose, cut and move nothing.

    The first message is a user message, and a message with tool calls is directly followed by one result for
    each of its calls. What is in `volatile` follows the last message and may be different in the next turn.
    """

    prefix: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    volatile: tuple[str, ...] = ()


def is_blank(text: str) -> bool:
    """Whether a text says nothing: providers refuse blocks of white space."""
    return not text or text.isspace()


def speaking(texts: Iterable[str]) -> list[str]:
    """Return the texts that say something."""
    return [text for text in texts if text and not text.isspace()]
