"""What changed since an epoch began: instructions count at once, as notes behind the tail; the rest waits.

The identity waits as well: it says which documents stand below it, and they do not before the next epoch.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from daypack.turn.items import CHANGED, Item, Omission
from daypack.turn.survey.surface import Epoch
from daypack.turn.survey.tiers import CORE, changed_blocks

# What the user or the application says, and what a child answers.
_AT_ONCE = frozenset({"system", "child_result", "child_refs"})
_IDENTITY = "identity"
_NOTE_PRIORITY = 0.95


def changes(
    epoch: Epoch, items: Sequence[Item], weigh: Callable[[Item], Item]
) -> tuple[tuple[Item, ...], tuple[Omission, ...]]:
    """Return the notes for a turn of this epoch, and what waits for the next one."""
    frozen = {item.id: item for item in epoch.prefix}
    unchanged = [item for item in items if item.id in frozen and frozen[item.id].digest == item.digest]
    said = {(item.digest, item.kind) for item in unchanged}
    notes: list[Item] = []
    waiting: list[Omission] = []
    for item in items:
        before = frozen.pop(item.id, None)
        if before and before.digest == item.digest:
            continue
        if not before and (item.digest, item.kind) in said:
            continue  # a duplicate: the selection tells of it
        name = item.id + CHANGED if before else item.id
        at_once = (item.kind in _AT_ONCE and item.id != _IDENTITY) or item.id == CORE
        if not before and epoch.skipped.get(item.id) == item.digest:
            note, impact = "did not fit the epoch", item.kind == "system"
            waiting.append(
                Omission(item=name, reason="budget_limit", tokens=item.tokens, note=note, high_impact=impact)
            )
        elif before and item.id == CORE:
            notes += _core_note(before, item, weigh)
        elif at_once:
            title = item.title or item.source
            notes.append(weigh(_as_note(item, f"{title} (in place of the text above)" if before else title)))
        else:
            note = "changed; waits for the next epoch" if before else "new; waits for the next epoch"
            waiting.append(Omission(item=name, reason="custom", tokens=item.tokens, note=note))
    for item in frozen.values():
        if item.id == CORE:
            notes += _core_note(item, None, weigh)
        elif item.kind == "system":
            text = f"{item.title or item.source} was withdrawn: it no longer applies."
            notes.append(weigh(replace(_as_note(item, "withdrawn"), text=text, authority="system")))
    return tuple(notes), tuple(waiting)


def _as_note(item: Item, title: str) -> Item:
    return replace(item, id=item.id + CHANGED, placement="volatile", title=title, priority=_NOTE_PRIORITY, order=-1)


def _core_note(before: Item, after: Item | None, weigh: Callable[[Item], Item]) -> list[Item]:
    """Tell what of the core blocks changed; another order alone is nothing to tell."""
    text = changed_blocks(before, after)
    note = replace(before, text=text, metadata={})
    return [weigh(_as_note(note, f"{before.title} (changed since)"))] if text else []
