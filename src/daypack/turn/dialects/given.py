"""The input of a dialect: texts and messages of a turn, in the order they are sent."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from daypack.types.history import Message


class Given(Struct, frozen=True):
    """One turn in its final form: the dialects choose, cut and move nothing.

    `prefix` is the system prompt. `quoted` is the rest of the frozen prefix: what may not instruct the model, in a user
    message of its own before the conversation. The first message is a user message, and a message with tool calls is
    directly followed by one result for each of its calls. What is in `volatile` follows the last message and may be
    different in the next turn.
    """

    prefix: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    volatile: tuple[str, ...] = ()
    # The volatile text is only the time: it ends the last message, the user's or a tool's. Unset, so that the digests
    # of turns without it do not depend on it.
    attached: Literal[True] | UnsetType = UNSET
    quoted: tuple[str, ...] = ()
