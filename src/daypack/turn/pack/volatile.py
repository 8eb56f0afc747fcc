"""Volatile items: what follows the tail and differs from turn to turn; chosen best first while there is space."""

from collections.abc import Collection, Sequence
from typing import Literal

from daypack.turn.items import CHANGED, Cost, Excerpt, Item, Omission, total
from daypack.turn.policy import EXCERPT_SHARE, FREE_ITEMS, FREE_SHARE, WindowPolicy
from daypack.types.shapes import Shortage

_UNITS: tuple[Literal["tokens", "bytes", "items"], ...] = ("tokens", "bytes", "items")

TOGETHER = "with"  # metadata key: the id of an item without which this one is not shown
# Upper bounds over all counters.
EXCERPTS_WRAPPER = Cost(100, 260, 0)  # the text around all excerpts
DAY_LINE = Cost(13, 12, 0)  # the date line before the excerpts of one day


def free_space(room: Cost, policy: WindowPolicy) -> Cost:
    """Return the space kept for excerpts once messages have left the window."""
    free = room.part(FREE_SHARE)
    return Cost(min(free.tokens, policy.excerpt_tokens), free.bytes, min(free.items, FREE_ITEMS))


def volatile_cost(items: Sequence[Item]) -> Cost:
    """Return the cost of chosen items, with the text around excerpts."""
    cost = Cost()
    days: set[str] = set()
    for item in items:
        cost = cost.plus(item.cost)
        if isinstance(item, Excerpt):
            days.add(item.title)
    return cost.plus(EXCERPTS_WRAPPER).plus(total(DAY_LINE for _ in days)) if days else cost


class AlreadyShown:
    """The texts and messages that the pack contains so far."""

    def __init__(self, prefix: Sequence[Item], added: Sequence[Item], seqs: set[int]) -> None:
        self._ids: dict[str, str] = {}
        self._seqs = seqs.union(item.seq for item in added if isinstance(item, Excerpt))
        for item in (*prefix, *added):
            self._ids[item.digest] = item.id

    def same_as(self, item: Item) -> str | None:
        """Return the id of a shown item with the same text. Notes are never duplicates: they say which text counts."""
        if isinstance(item, Excerpt):
            return item.id if item.seq in self._seqs else None
        return None if item.id.endswith(CHANGED) else self._ids.get(item.digest)

    def stands(self, item: Item) -> bool:
        """Return True if an item of the tail was added to it before, with the same text.

        A note is new, even if its text is old: it is about what changed since the newest one.
        """
        known = self._ids.get(item.digest) == item.id
        return known and item.placement == "tail" and not item.id.endswith(CHANGED)

    def add(self, item: Item) -> None:
        """Record that an item was chosen."""
        if isinstance(item, Excerpt):
            self._seqs.add(item.seq)
        else:
            self._ids.setdefault(item.digest, item.id)


def choose_volatile(
    offered: Sequence[Item], room: Cost, space: Cost, shown: AlreadyShown, excerpt_tokens: int
) -> tuple[tuple[Item, ...], list[Omission]]:
    """Choose from items offered best first and return them in order; `space`: what is free of the room."""
    chosen: list[Item] = []
    omitted: list[Omission] = []
    used = excerpts = Cost()
    most_excerpts = room.part(EXCERPT_SHARE).at_most(Cost(excerpt_tokens, room.bytes, room.items))
    paired = False
    days: set[tuple[bool, str]] = set()  # what was found for the user and with a step are two texts
    unused = 0
    for item in offered:
        other = shown.same_as(item)
        if not isinstance(item, Excerpt):
            if other:
                note = f"same text as {other}"
                omitted.append(Omission(item=item.id, reason="duplicate", tokens=item.tokens, note=note))
            elif used.plus(excerpts).plus(item.cost).fits(space):
                used = used.plus(item.cost)
                chosen.append(item)
                shown.add(item)
                paired = paired or TOGETHER in item.metadata
            else:
                free = space.less(used.plus(excerpts))
                omitted.append(over_budget(item, free, space, room, high_impact=item.kind == "system"))
            continue
        if other:
            continue  # its message is in the pack
        cost = excerpts.plus(item.cost).plus(_text_around(item, days))
        if cost.fits(most_excerpts) and used.plus(cost).fits(space):
            excerpts = cost
            days.add((item.step, item.title))
            chosen.append(item)
            shown.add(item)
        else:
            unused += 1
    if unused:
        excerpts = "1 excerpt" if unused == 1 else f"{unused} excerpts"
        reason, note = ("low_relevance", f"{unused} ranked lower") if days else ("budget_limit", excerpts)
        omitted.append(Omission(item="excerpts", reason=reason, note=note))
    if paired:
        chosen, alone = _without_incomplete_pairs(chosen)
        note = "shown only together with an item that did not fit"
        omitted += [Omission(item=item.id, reason="custom", tokens=item.tokens, note=note) for item in alone]
    if len(chosen) > 1:
        chosen.sort(key=volatile_order)
    return tuple(chosen), omitted


def _text_around(item: Excerpt, days: Collection[tuple[bool, str]]) -> Cost:
    """Return the cost of the wrapper and the date line that an excerpt is the first to need."""
    line = Cost() if (item.step, item.title) in days else DAY_LINE
    return line if any(step == item.step for step, _ in days) else line.plus(EXCERPTS_WRAPPER)


def volatile_order(item: Item) -> tuple[int, str, int]:
    """Sort notes first, then excerpts day by day, the time last."""
    return (item.order, item.title, item.seq) if isinstance(item, Excerpt) else (item.order, "", 0)


def over_budget(item: Item, free: Cost, limit: Cost, room: Cost, *, high_impact: bool) -> Omission:
    """Return the record of an item that does not fit into what is free of a limit, its share of the room.

    It is too large if even the empty room could not hold it; then the room is the limit.
    """
    reason, limit = ("budget_limit", limit) if item.cost.fits(room) else ("too_large", room)
    shortage = None
    for unit in _UNITS:
        # Too large in one unit and without room in another: the first is the reason.
        needed, most = getattr(item.cost, unit), getattr(limit, unit)
        if needed > getattr(free, unit) and (reason == "budget_limit" or needed > most):
            shortage = Shortage(unit=unit, needed=needed, free=getattr(free, unit), limit=most)
            break
    return Omission(item=item.id, reason=reason, tokens=item.tokens, high_impact=high_impact, shortage=shortage)


def _without_incomplete_pairs(chosen: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Separate the items whose partner was not chosen."""
    ids = {item.id for item in chosen}
    alone = [item for item in chosen if item.metadata.get(TOGETHER, item.id) not in ids]
    return [item for item in chosen if item not in alone], alone
