"""Changes since an epoch began: instructions count at once, as notes in the tail; the rest waits.

The identity waits too: it names the documents of the prefix, and those do not change before the next epoch.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from daypack.turn.items import CHANGED, CORE_BLOCKS, Item, Omission
from daypack.turn.pack.fence import Measure
from daypack.turn.surface import Addition, Epoch
from daypack.types.authority import Authority
from daypack.types.names import one_line

# Instructions of the user or the application, and answers of children.
_AT_ONCE = frozenset({"system", "child_result", "child_refs"})
_IDENTITY = "identity"
_NOTE_PRIORITY = 0.95
_WITHDRAWN = "withdrawn"
_NOTHING = Item(id="", kind="custom", context_kind="custom", source="")


def changes(
    epoch: Epoch, additions: Sequence[Addition], items: Sequence[Item], measure: Measure
) -> tuple[tuple[Item, ...], tuple[Omission, ...]]:
    """Return notes about changes for a turn of this epoch, and records of changes that wait for the next one.

    A note that is in the tail counts: the next one says what changed since.
    """
    noted = {
        item.id.removesuffix(CHANGED): item
        for addition in additions
        for item in addition.items
        if item.id.endswith(CHANGED)
    }
    frozen = {item.id: item for item in epoch.prefix}
    unchanged = {
        (item.digest, item.kind) for item in items if item.id in frozen and frozen[item.id].digest == item.digest
    }
    notes: list[Item] = []
    waiting: list[Omission] = []
    for item in items:
        before, note = frozen.pop(item.id, None), noted.pop(item.id, None)
        at_once = (item.kind in _AT_ONCE and item.id != _IDENTITY) or item.id == CORE_BLOCKS
        name = item.id + CHANGED if before else item.id
        if before and item.id == CORE_BLOCKS:
            notes += _core_note(before, item, note, measure)
        elif item.digest == (note or before or _NOTHING).digest:
            continue
        elif not before and (item.digest, item.kind) in unchanged:
            continue  # a duplicate: the selection records it
        elif not before and not note and epoch.skipped.get(item.id) == item.digest:
            waiting.append(_skipped(epoch, item))
        elif at_once:
            title = item.title or item.source
            notes.append(measure(_as_note(item, f"{title} (in place of the text above)" if before or note else title)))
        else:
            why = "changed; waits for the next epoch" if before else "new; waits for the next epoch"
            waiting.append(Omission(item=name, reason="custom", tokens=item.tokens, note=why))
    for name, item in {**noted, **frozen}.items():
        if item.id == CORE_BLOCKS:
            notes += _core_note(item, None, noted.get(name), measure)
        elif item.kind == "system":
            notes += _withdrawal(replace(item, id=name), noted.get(name), measure)
    return tuple(notes), tuple(waiting)


def _skipped(epoch: Epoch, item: Item) -> Omission:
    """Return what the first turn of an epoch recorded about an item that did not fit: its prefix is frozen since."""
    recorded = (omission for omission in epoch.omitted if omission.item == item.id)
    unknown = Omission(item=item.id, reason="budget_limit", tokens=item.tokens, high_impact=item.kind == "system")
    return next(recorded, unknown)


def _withdrawal(item: Item, noted: Item | None, measure: Measure) -> list[Item]:
    """Return the note that an instruction no longer applies, unless the tail says so already."""
    text = f"{one_line(item.title or item.source)} was withdrawn: it no longer applies."
    if noted and noted.title == _WITHDRAWN:
        return []
    authority: Authority = "system" if item.instructs else item.authority  # daypack's words about an instruction
    item = replace(item, text=text, authority=authority, reference=None, stated={})
    return [measure(_as_note(item, _WITHDRAWN))]


def changed_blocks(before: Item, after: Item | None) -> str:
    """Return the lines of new and changed core blocks, and a line with the ids of removed ones."""
    frozen, current = before.text.split("\n"), after.text.split("\n") if after else []
    shown: list[str] = after.metadata["ids"] if after else []
    without_space: list[str] = after.metadata.get("without_space", []) if after else []
    removed = [block for block in before.metadata["ids"] if block not in shown and block not in without_space]
    new = [line for line in current if line not in frozen]
    return "\n".join([*new, *([f"no longer: {', '.join(removed)}"] if removed else [])])


def _as_note(item: Item, title: str) -> Item:
    return replace(item, id=item.id + CHANGED, placement="tail", title=title, priority=_NOTE_PRIORITY, order=-1)


def _core_note(before: Item, after: Item | None, noted: Item | None, measure: Measure) -> list[Item]:
    """Return a note about changed core blocks, unless the tail has it; a different order alone is no change."""
    text = changed_blocks(before, after) or ("all of them again as in the first list" if noted else "")
    if not text:
        return []
    note = measure(_as_note(replace(before, text=text, metadata={}), f"{before.title} (changed since)"))
    return [] if noted and noted.digest == note.digest else [note]
