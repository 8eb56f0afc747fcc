"""Differences between two turns: which items and messages changed, and whether prefix, tail and epoch are the same."""

from difflib import SequenceMatcher

from msgspec import Struct

from daypack.turn.evidence.view import TurnView
from daypack.turn.items import Item


class Difference(Struct, frozen=True, omit_defaults=True):
    """The differences from one turn to another; items by id, messages as ranges of numbers."""

    added: tuple[str, ...]
    dropped: tuple[str, ...]
    changed: tuple[str, ...]
    moved: tuple[str, ...]
    messages_added: str | None
    messages_dropped: str | None
    tokens: tuple[int, int]
    prefix_kept: bool
    tail_kept: bool  # the tail of the second turn starts with the tail of the first
    epoch_kept: bool


def compare(before: TurnView, after: TurnView) -> Difference:
    """Return what changed from one turn to another."""
    old = {item.id: item for item in before.inserted}
    new = {item.id: item for item in after.inserted}
    old_tail, new_tail = before.parts.messages, after.parts.messages
    old_seqs, new_seqs = {message.seq for message in old_tail}, {message.seq for message in new_tail}
    return Difference(
        added=tuple(name for name in new if name not in old),
        dropped=tuple(name for name in old if name not in new),
        changed=tuple(name for name in old if name in new and _content(old[name]) != _content(new[name])),
        moved=_moved(old, new),
        messages_added=ranges(sorted(new_seqs - old_seqs)),
        messages_dropped=ranges(sorted(old_seqs - new_seqs)),
        tokens=(before.tokens, after.tokens),
        prefix_kept=before.prefix_sha256 == after.prefix_sha256,
        tail_kept=new_tail[: len(old_tail)] == old_tail,
        epoch_kept=before.parts.epoch.event == after.parts.epoch.event,
    )


def _moved(old: dict[str, Item], new: dict[str, Item]) -> tuple[str, ...]:
    """Return the items at another place; items that only shifted because of a move do not count."""
    old_order = [name for name in old if name in new]
    new_order = [name for name in new if name in old]
    unmoved = {
        name
        for block in SequenceMatcher(None, old_order, new_order, autojunk=False).get_matching_blocks()
        for name in old_order[block.a : block.a + block.size]
    }
    return tuple(name for name in old_order if name not in unmoved or old[name].placement != new[name].placement)


def _content(item: Item) -> str:
    return item.digest or item.text


def ranges(numbers: list[int]) -> str | None:
    """Write sorted numbers as ranges, for instance "3-7, 9"; None if there are none."""
    parts: list[tuple[int, int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ", ".join(f"{start}-{stop}" if stop > start else f"{start}" for start, stop in parts) or None
