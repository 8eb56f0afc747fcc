"""What a turn gives to a dialect: texts and messages, in the order they are to be sent."""

from collections.abc import Iterable

from msgspec import Struct

from daypack.types.history import Message


class Given(Struct, frozen=True):
    """One turn, settled: nothing is chosen, cut or moved any more.

    The messages begin with one of the user's, and a message with tool calls is directly followed by one result for
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
