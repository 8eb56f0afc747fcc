"""Authority: who a text comes from, and whether it may instruct the model.

A text made from several sources has the lowest of their authorities, so copying, quoting or summarising never raises
one. Where a text is placed follows from its authority: only `system` and `user` may be in the system prompt.
"""

from collections.abc import Iterable
from typing import Literal, get_args

from daypack.types.history import Message

# Highest first.
Authority = Literal["system", "user", "agent", "tool", "web"]
AUTHORITIES: tuple[Authority, ...] = get_args(Authority)
# Of what is made from a conversation or kept across conversations: tools may have spoken in them, and nothing records
# which of its sentences are theirs.
MADE_FROM_HISTORY: Authority = "tool"
QUOTED = "quoted"  # key in `meta` of a system message that is history of another program, not an instruction

INSTRUCTING: frozenset[Authority] = frozenset({"system", "user"})  # they may be in the system prompt
_OF_ROLE: dict[str, Authority] = {"system": "system", "user": "user", "assistant": "agent", "tool": "tool"}


def lowest(authorities: Iterable[Authority]) -> Authority:
    """Return the lowest authority: that of anything made from several sources; without any, the lowest there is."""
    return AUTHORITIES[max(map(AUTHORITIES.index, authorities), default=len(AUTHORITIES) - 1)]


def authority_of(message: Message) -> Authority:
    """Return the authority of a message: that of its role, unless it is only quoted."""
    return MADE_FROM_HISTORY if is_quoted(message) else _OF_ROLE[message.role]


def is_quoted(message: Message) -> bool:
    """Return True for a system message that was imported as history: it is no instruction here."""
    return message.role == "system" and bool(message.meta) and message.meta.get(QUOTED) is True
