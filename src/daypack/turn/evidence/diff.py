"""Differences between two turns: which items and messages changed, and whether prefix, tail and epoch are the same."""

from difflib import SequenceMatcher

from msgspec import Struct

from daypack.turn.evidence.view import TurnView
from daypack.turn.items import Item


class Difference(Struct, frozen=True, omit_defaults=True):
    """What differs between two turns."""

    added: tuple[str, ...]
    dropped: tuple[str, ...]
    changed: tuple[str, ...]
    moved: tuple[str, ...]
    messages_added: str | None
    messages_dropped: str | None
    tokens: tuple[int, int]
    prefix_kept: bool
    tail_kept: bool  # the messages of the first are the beginning of the second's
    epoch_kept: bool


def compare(one: TurnView, other: TurnView) -> Difference:
    """Return what changed from one turn to another."""
    before = {item.id: item for item in one.inserted}
    after = {item.id: item for item in other.inserted}
    both = [name for name in before if name in after]
    order = [name for name in after if name in before]
    tail, later = one.parts.messages, other.parts.messages
    seqs, later_seqs = [m.seq for m in tail], [m.seq for m in later]
    return Difference(
        added=tuple(name for name in after if name not in before),
        dropped=tuple(name for name in before if name not in after),
        changed=tuple(name for name in both if _content(before[name]) != _content(after[name])),
        moved=_moved(both, order, before, after),
        messages_added=ranges(sorted(set(later_seqs) - set(seqs))),
        messages_dropped=ranges(sorted(set(seqs) - set(later_seqs))),
        tokens=(one.tokens, other.tokens),
        prefix_kept=one.prefix_sha256 == other.prefix_sha256,
        tail_kept=later[: len(tail)] == tail,
        epoch_kept=one.parts.epoch.event == other.parts.epoch.event,
    )


def _moved(both: list[str], order: list[str], before: dict[str, Item], after: dict[str, Item]) -> tuple[str, ...]:
    """Return what stands elsewhere; what was only pushed along by that does not count."""
    same = {
        name
        for block in SequenceMatcher(None, both, order, autojunk=False).get_matching_blocks()
        for name in both[block.a : block.a + block.size]
    }
    return tuple(name for name in both if name not in same or before[name].placement != after[name].placement)


def _content(item: Item) -> str:
    return item.digest or item.text


def ranges(numbers: list[int]) -> str | None:
    """Spell sorted numbers as ranges: 3-7, 9."""
    parts: list[tuple[int, int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ", ".join(f"{start}-{stop}" if stop > start else f"{start}" for start, stop in parts) or None
