"""Additions: items written once into the tail, after a message, and kept there for the rest of the epoch.

    messages 1-40, what was found for message 40, messages 41-44, a note about a changed instruction, messages 45-…

So a turn sends what was found before exactly as the turn before sent it, and only appends what is new.
"""

from collections.abc import Iterable, Sequence

from daypack.turn.items import Cost, Item, total
from daypack.turn.pack.fence import SEPARATOR, show_all
from daypack.turn.pack.volatile import volatile_cost
from daypack.turn.surface import Addition
from daypack.types.history import Message

_MESSAGE = Cost(4, 0, 0)  # what a provider adds around a message
MESSAGES_AROUND = Cost(8, 0, 0)  # the same for all that one turn adds


def addition_cost(additions: Iterable[Addition]) -> Cost:
    """Return what additions take from a window."""
    return total(volatile_cost(addition.items).plus(_MESSAGE) for addition in additions)


def added_items(additions: Iterable[Addition]) -> tuple[Item, ...]:
    """Return the items of additions, in order."""
    return tuple(item for addition in additions for item in addition.items)


def interleave(messages: Sequence[Message], additions: Sequence[Addition]) -> tuple[Message, ...]:
    """Return the messages of a tail with each addition, as a user message, after the message it follows."""
    woven: list[Message] = []
    waiting = sorted(additions, key=lambda addition: addition.after)  # stable: in the order they were added
    for message in messages:
        while waiting and waiting[0].after < message.seq:
            woven.append(as_message(waiting.pop(0)))
        woven.append(message)
    return (*woven, *map(as_message, waiting))


def as_message(addition: Addition) -> Message:
    """Return an addition as it is sent."""
    text = SEPARATOR.join(text for _, text in show_all(addition.items))
    return Message(seq=addition.after, role="user", content=text)


def place_additions(items: Sequence[Item], user: int | None, last: int) -> tuple[Addition, ...]:
    """Return the additions for new items: what was found for a user message right after it, the others at the end."""
    found = tuple(item for item in items if item.answers_user)
    others = tuple(item for item in items if not item.answers_user)
    if user is None or user >= last or not found:
        return (Addition(last, tuple(items)),) if items else ()
    return (Addition(user, found), *((Addition(last, others),) if others else ()))
