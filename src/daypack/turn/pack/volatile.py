"""What follows the tail: notes, what a caller hands in, excerpts of the past, the time; best first, while it fits."""

from collections.abc import Sequence

from daypack.turn.items import CHANGED, Cost, Item, Omission, total

TOGETHER = "with"  # in the metadata of an item: the id of the one it stands or falls with
_PAST_SHARE = 0.65
_FREE_SHARE = 0.125
MAX_FOLLOWING_TOKENS = 2048  # more of the past costs more than it tells, and none of it can be cached
# As the least favourable counter weighs them.
PAST_BLOCK = Cost(100, 260, 0)  # the wrapper around everything found in the past
DAY_LINE = Cost(13, 12, 0)  # the line before the excerpts of one day


def _most_past(room: Cost) -> Cost:
    most = room.part(_PAST_SHARE)
    return Cost(min(most.tokens, MAX_FOLLOWING_TOKENS), most.bytes, most.items)


def kept_free(room: Cost) -> Cost:
    """Return what of a room is kept for the past once messages have left the window."""
    free = room.part(_FREE_SHARE)
    return Cost(min(free.tokens, MAX_FOLLOWING_TOKENS), free.bytes, min(free.items, 8))


def following_cost(items: Sequence[Item]) -> Cost:
    """Return what chosen items take together, with what stands around the past."""
    cost = total(item.cost for item in items)
    days = {item.title for item in items if item.span is not None}
    return cost.plus(PAST_BLOCK).plus(total(DAY_LINE for _ in days)) if days else cost


class Said:
    """What stands in the pack already: texts by their digest, messages by their number."""

    def __init__(self, prefix: Sequence[Item], shown: set[int]) -> None:
        self._texts = {item.digest: item.id for item in prefix}
        self._shown = shown | {int(item.id[9:]) for item in prefix if item.id.startswith("messages:")}

    def by(self, item: Item) -> str | None:
        """The id of what says the same. A note is never said: it tells which of two texts counts."""
        if item.span is not None:
            return item.id if _number(item) in self._shown else None
        return None if item.id.endswith(CHANGED) else self._texts.get(item.digest)

    def add(self, item: Item) -> None:
        """Note that an item was chosen."""
        self._texts.setdefault(item.digest, item.id)


def choose_following(
    offered: Sequence[Item], whole: Cost, room: Cost, said: Said
) -> tuple[tuple[Item, ...], list[Omission]]:
    """Choose from what is offered, best first, and put it into its order; `whole`: the room without anything in it."""
    chosen: list[Item] = []
    omitted: list[Omission] = []
    used = past = Cost()
    most = _most_past(whole)
    days: set[str] = set()
    unused = 0
    for item in offered:
        other = said.by(item)
        if item.span is None:
            if other:
                omitted.append(Omission(item=item.id, reason="duplicate", tokens=item.tokens, note=f"said by {other}"))
            elif used.plus(past).plus(item.cost).within(room):
                used = used.plus(item.cost)
                chosen.append(item)
                said.add(item)
            else:
                omitted.append(no_room(item, whole, high_impact=item.kind == "system"))
            continue
        if other:
            continue  # it stands in the pack: it is not left out
        cost = (past if days else PAST_BLOCK).plus(item.cost).plus(Cost() if item.title in days else DAY_LINE)
        if cost.within(most) and used.plus(cost).within(room):
            past = cost
            days.add(item.title)
            chosen.append(item)
        else:
            unused += 1
    if unused:
        reason, note = (
            ("low_relevance", f"{unused} more ranked lower") if days else ("budget_limit", f"{unused} excerpts")
        )
        omitted.append(Omission(item="past", reason=reason, note=note))
    kept, alone = _without_halves(chosen)
    omitted += [no_room(item, whole, high_impact=False) for item in alone]
    return tuple(sorted(kept, key=following_order)), omitted


def _without_halves(chosen: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Part the items from those that mean nothing without one that was not chosen."""
    ids = {item.id for item in chosen}
    alone = [item for item in chosen if item.metadata.get(TOGETHER, item.id) not in ids]
    return [item for item in chosen if item not in alone], alone


def following_order(item: Item) -> tuple[int, str, int]:
    """Notes first, then the past day by day, the time last."""
    return (item.order, item.title, _number(item)) if item.span is not None else (item.order, "", 0)


def _number(item: Item) -> int:
    return int(item.id.rpartition(":")[2]) if item.span is not None else 0


def no_room(item: Item, room: Cost, *, high_impact: bool) -> Omission:
    """Return the record about an item that does not fit; `room`: what there would be for it alone."""
    alone = item.cost.within(room)
    reason = "budget_limit" if alone else "too_large"
    return Omission(item=item.id, reason=reason, tokens=item.tokens, high_impact=high_impact)
