"""Differences between two observed turns: messages, tools, system prompt and parameters."""

from difflib import SequenceMatcher, unified_diff
from typing import Any, Literal

from msgspec import Struct

from daypack.text.tokens import counter_for
from daypack.turn.evidence.observed.links import Links
from daypack.turn.evidence.observed.record import count_common
from daypack.turn.evidence.observed.request import ObservedTurn
from daypack.turn.evidence.observed.shapes import ShapeChange, compare_shapes
from daypack.turn.evidence.observed.sources import SentPart, message_parts


class MessageChange(Struct, frozen=True, omit_defaults=True):
    """A message that only one of two requests has, at this position of it, from 1."""

    change: Literal["added", "removed"]
    position: int
    role: str
    parts: tuple[SentPart, ...] = ()
    known: bool = True  # False: its content is unknown


class ParameterChange(Struct, frozen=True):
    """A parameter of two requests; None where one does not have it."""

    name: str
    before: Any
    after: Any


class ObservedDifference(Struct, frozen=True):
    """The differences from one request to another."""

    kept: int  # messages that both begin with
    common: int  # messages that both have, in this order
    changes: tuple[MessageChange, ...]
    parameters: tuple[ParameterChange, ...]
    tools_added: tuple[str, ...]
    tools_removed: tuple[str, ...]
    tools_changed: tuple[str, ...]
    tools_reordered: bool
    system: tuple[str, ...]  # lines of a unified diff
    shape_known: bool


def compare_observed(before: ObservedTurn, after: ObservedTurn, links: Links) -> ObservedDifference:
    """Return what changed from one request to another."""
    old, new = _digests(before), _digests(after)
    shapes = _shapes(before, after)
    removed, added = _Side("removed", before, links), _Side("added", after, links)
    changes: list[MessageChange] = []
    common = 0
    for kind, start, stop, new_start, new_stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            common += stop - start
            continue
        changes += map(removed.change, range(start, stop))
        changes += map(added.change, range(new_start, new_stop))
    return ObservedDifference(
        kept=count_common(before.sent, after.sent),
        common=common,
        changes=tuple(changes),
        parameters=_parameters(before.record.params, after.record.params),
        tools_added=shapes.added,
        tools_removed=shapes.removed,
        tools_changed=shapes.changed,
        tools_reordered=shapes.reordered,
        system=_system(before, after) if shapes.system else (),
        shape_known=shapes.known,
    )


def _digests(turn: ObservedTurn) -> list[str]:
    """Return what tells the messages of a request apart; one that is unknown is like no other."""
    return [sent.digest or f"{turn.event_id}/{at}" for at, sent in enumerate(turn.sent)]


def _shapes(before: ObservedTurn, after: ObservedTurn) -> ShapeChange:
    if before.record.shape == after.record.shape:
        return ShapeChange()
    return compare_shapes(before.shape, after.shape)


class _Side:
    """One of the two requests, and what its messages are if the other does not have them."""

    def __init__(self, name: Literal["added", "removed"], turn: ObservedTurn, links: Links) -> None:
        self._name: Literal["added", "removed"] = name
        self._turn = turn
        self._links = links
        self._counter = counter_for(turn.record.model)

    def change(self, at: int) -> MessageChange:
        """Return the change of a message by its position, from 0."""
        message = self._turn.messages[at]
        parts = tuple(message_parts(self._turn, at + 1, self._links, self._counter)) if message.known else ()
        return MessageChange(self._name, at + 1, message.role, parts, message.known)


def _parameters(before: dict[str, Any], after: dict[str, Any]) -> tuple[ParameterChange, ...]:
    names = sorted({*before, *after})
    return tuple(
        ParameterChange(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    )


def _system(before: ObservedTurn, after: ObservedTurn) -> tuple[str, ...]:
    lines = unified_diff(_system_lines(before), _system_lines(after), lineterm="", n=1)
    return tuple(list(lines)[2:])


def _system_lines(turn: ObservedTurn) -> list[str]:
    return turn.shape.system_text.splitlines() if turn.shape else []
