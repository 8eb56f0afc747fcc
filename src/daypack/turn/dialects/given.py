"""The input of a dialect: texts and messages of a turn, in the order they are sent."""

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
