"""The budget: how much of what was selected fits, and where the tail of messages begins.

The room of a window is what is left of it behind the reserve for the answer. In it stand, in this order of right:

- the newest user message: it is there, or there is no pack;
- the prefix, which leaves a quarter of the room to recent messages; what is no instruction takes half at most;
- the tail. It begins where its epoch began, so turns only append. When prefix, tail and what must follow take more than
  nine tenths of the room, a new epoch begins: large tool outputs of the past become one line each, and prefix and tail
  take two fifths of the room at most, so that many turns can append again. The newest messages are there even when they
  alone take more. What a compaction has summed up does not come back into the tail;
- what follows the tail, best first, in what is left; an eighth is kept free for it once messages have left the window.
"""

from collections.abc import Sequence

from msgspec import Struct

from daypack.derived.swap import SHORT_ID
from daypack.errors import BudgetTooSmall, NoUserMessage
from daypack.turn.items import Cost, Item, Missing, Omission, total
from daypack.turn.pack.select import Selection
from daypack.turn.pack.tail import Settled, settle
from daypack.turn.pack.tail_start import RECENT_SHARE, SOFT_SHARE, WANTED_SHARE, Tail, begin_tail, costs_of
from daypack.turn.pack.volatile import Said, choose_following, following_cost, kept_free, no_room
from daypack.turn.survey.surface import Brief, Epoch, Surface
from daypack.types.history import Message

HARD_SHARE = 0.9  # from here on it is made at once, without a model
_PREFIX_SHARE = 0.5
_FORBIDDEN = frozenset({"not_visible_to_target", "policy_blocked", "sensitive", "stale"})


class Fitted(Struct, frozen=True, kw_only=True):
    """What goes into the pack, and what happened on the way."""

    reason: str  # why a new epoch begins; empty when one goes on
    start: int
    head: int | None
    prefix: tuple[Item, ...]
    messages: tuple[Message, ...]
    volatile: tuple[Item, ...]
    omitted: tuple[Omission, ...]
    missing: tuple[Missing, ...]
    prefix_cost: Cost
    tail_cost: Cost
    volatile_cost: Cost
    skipped: dict[str, str]  # what did not fit into a new prefix: id -> digest
    redacted: dict[int, tuple[str, ...]]  # message -> the kinds of secrets taken out of it
    masked: frozenset[int] = frozenset()  # the outputs of the tail that stand there as one line

    @property
    def cost(self) -> Cost:
        """All of it."""
        return self.prefix_cost.plus(self.tail_cost).plus(self.volatile_cost)


def fit(surface: Surface, selection: Selection) -> Fitted:
    """Fit what was selected into the limits; the newest user message is in the result, or this fails."""
    room = surface.limits.room
    _require_user(surface, room)
    settled = settle([entry.message for entry in surface.entries])
    costs = costs_of(surface, settled)
    demand = total(item.cost for item in selection.volatile if item.span is None)
    reason = _reason(surface) or _withdrawal(surface, selection)
    going_on = None
    if not reason:
        going_on = _go_on(surface, selection, _going_on(surface, settled, costs), demand)
        if going_on and (surface.last == surface.shown or _stable(going_on).within(room.part(HARD_SHARE))):
            return going_on
        reason = "overflow"
    prefix, prefix_cost, omitted = _choose_prefix(surface, selection, room, settled, costs)
    skipped = {item.id: item.digest for item in selection.prefix if item not in prefix}
    tail = begin_tail(surface, settled, costs, (prefix_cost, demand))
    if going_on and not prefix_cost.plus(tail.cost).within(room.part(SOFT_SHARE)):
        return going_on  # a new epoch would have no room either: what still fits goes on
    omitted = (*selection.omitted, *omitted)
    return _close(surface, tail, (prefix, prefix_cost, skipped), selection.volatile, omitted, reason)


def _stable(fitted: Fitted) -> Cost:
    return fitted.prefix_cost.plus(fitted.tail_cost)


def _go_on(surface: Surface, selection: Selection, tail: Tail, demand: Cost) -> Fitted | None:
    """Return the next turn of an epoch; None when it does not fit any more."""
    prefix = surface.epoch.prefix if surface.epoch else ()
    prefix_cost = total(item.cost for item in prefix)
    rest = surface.limits.room.less(prefix_cost)
    following = demand.at_most(rest.part(WANTED_SHARE)).plus(total(item.cost for item in selection.notes))
    if tail.start > surface.first:
        following = following.at_least(kept_free(rest))
    if not prefix_cost.plus(tail.cost).plus(following).within(surface.limits.room):
        return None
    frozen = {item.id for item in prefix}
    # What a new prefix would leave out is not left out while the old one shows it.
    omitted = [one for one in selection.omitted if one.item not in frozen]
    told = {one.item for one in omitted}
    omitted += [one for one in surface.waiting if one.item not in told]
    return _close(surface, tail, (prefix, prefix_cost, {}), (*selection.notes, *selection.volatile), omitted)


def _require_user(surface: Surface, room: Cost) -> None:
    user = surface.user
    if user is None and surface.target == "model":
        raise NoUserMessage(
            "the session has no user message", operation="prepare", hint="append the user's message before the turn"
        )
    if user and not user.cost.within(room):
        spoken = f"{user.cost.tokens:,} tokens, {user.cost.bytes:,} bytes"
        raise BudgetTooSmall(
            f"the newest user message ({user.message.id}: {spoken}) does not fit into the {room.tokens:,} tokens"
            f" that the budget leaves",
            operation="prepare",
            place="budget",
            hint="give a larger budget; a quarter, at most 4,096 tokens, is kept for the answer, 7 for the request",
        )


def _reason(surface: Surface) -> str:
    """Say why the epoch cannot go on, before anything is weighed."""
    epoch = surface.epoch
    if epoch is None:
        return "first"
    if epoch.limits != surface.limits:
        return "budget_changed"
    if epoch.tokenizer != surface.tokenizer:
        return "tokenizer_changed"
    first = surface.entries[0].message.seq if surface.entries else surface.last + 1
    user = surface.user.message.seq if surface.user else first
    if not _follows(surface, epoch) or (user < first and user != epoch.head):
        return "overflow"  # more was appended than the survey reads, or what the tail rests on cannot be read any more
    return ""


def _follows(surface: Surface, epoch: Epoch) -> bool:
    """Whether the entries are the tail of an epoch: from where it begins, and behind its head.

    When much was appended, they are what a new epoch is cut from instead. That they fit does not tell the two apart:
    what settling leaves out may be the heavy part.
    """
    if (surface.head.message.seq if surface.head else None) != epoch.head:
        return False
    if not surface.entries:
        told = {one.item for one in surface.omitted}  # what is hidden from the target is no part of its tail
        since = range(max(epoch.start, surface.first), surface.last + 1)
        return all(f"messages:{seq}" in told for seq in since)
    return surface.entries[0].message.seq == epoch.start


def _withdrawal(surface: Surface, selection: Selection) -> str:
    """Say that the frozen prefix holds something that may not be shown any more."""
    frozen = {item.id for item in surface.epoch.prefix} if surface.epoch else set[str]()
    now = {one.item for one in selection.omitted if one.reason in _FORBIDDEN}
    return "withdrawn" if frozen & now else ""


def _going_on(surface: Surface, settled: Settled, costs: Sequence[Cost]) -> Tail:
    """The tail from where the epoch began."""
    head = surface.head
    messages, cost = settled.messages, total(costs)
    if head:
        messages, cost = (head.message, *messages), cost.plus(head.cost)
    masked = surface.epoch.masked if surface.epoch else frozenset[int]()
    return Tail(surface.epoch.start if surface.epoch else 0, head, messages, cost, settled, masked)


def _choose_prefix(
    surface: Surface, selection: Selection, room: Cost, settled: Settled, costs: Sequence[Cost]
) -> tuple[tuple[Item, ...], Cost, tuple[Omission, ...]]:
    """Choose what stands before the tail, best first, and put it into its order."""
    recent = total(costs).at_most(room.part(RECENT_SHARE)) if settled.messages else Cost()
    if surface.user:
        recent = recent.at_least(surface.user.cost)
    omitted: list[Omission] = []
    chosen: list[Item] = []
    used = Cost()
    for item in selection.prefix:
        instruction = item.kind == "system"
        most = room.less(recent) if instruction else room.less(recent).at_most(room.part(_PREFIX_SHARE))
        if used.plus(item.cost).within(most):
            used = used.plus(item.cost)
            chosen.append(item)
        else:
            omitted.append(no_room(item, room, high_impact=instruction))
    chosen.sort(key=lambda item: item.order)
    return tuple(chosen), used, tuple(omitted)


def _close(
    surface: Surface,
    tail: Tail,
    prefix: tuple[tuple[Item, ...], Cost, dict[str, str]],
    offered: Sequence[Item],
    omitted: Sequence[Omission],
    reason: str = "",
) -> Fitted:
    """Fill what is left of the window and say what is not in it."""
    items, prefix_cost, skipped = prefix
    room = surface.limits.room.less(prefix_cost).less(tail.cost)
    shown = {message.seq for message in tail.messages}
    told = {one.item for one in omitted}
    gaps = _gaps(surface, tail, told)
    volatile, more = choose_following(offered, surface.limits.room, room, Said(items, shown))
    entries = (*surface.entries, tail.head) if tail.head else surface.entries
    redacted = {entry.message.seq: entry.redacted for entry in entries if entry.redacted}
    return Fitted(
        reason=reason,
        start=tail.start,
        head=tail.head.message.seq if tail.head else None,
        prefix=items,
        messages=tail.messages,
        volatile=volatile,
        omitted=(*omitted, *more, *(one for one in (*_left_behind(surface, tail), *gaps) if one.item not in told)),
        missing=(*surface.missing, *_waiting(tail.settled), *(_unread(one.item) for one in gaps)),
        prefix_cost=prefix_cost,
        tail_cost=tail.cost,
        volatile_cost=following_cost(volatile),
        skipped=skipped,
        redacted={seq: kinds for seq, kinds in redacted.items() if seq in shown},
        masked=tail.masked,
    )


def _left_behind(surface: Surface, tail: Tail) -> list[Omission]:
    """Say which messages are not in the tail; a range is one record."""
    omitted: list[Omission] = []
    stop = tail.start - 1
    head = tail.head.message.seq if tail.head else None
    opens = surface.complete and not any(
        entry.message.role == "user" and entry.message.seq < tail.start for entry in surface.entries
    )
    gone = [(surface.first, stop)] if head is None else [(surface.first, head - 1), (head + 1, stop)]
    compaction = surface.compaction
    if compaction and not opens:
        omitted += _summed_up(compaction, gone)
        gone = [(max(start, compaction.through + 1), end) for start, end in gone]
    for start, end in gone:
        if end >= start:
            own = [entry.cost.tokens for entry in surface.entries if start <= entry.message.seq <= end]
            whole = surface.complete or (surface.entries and surface.entries[0].message.seq <= start)
            omitted.append(
                Omission(
                    item=f"messages:{start}-{end}" if end > start else f"messages:{start}",
                    reason="custom" if opens else "budget_limit",
                    tokens=sum(own) if whole else None,
                    high_impact=head is not None and start > head,
                    note="before the first message of the user" if opens else None,
                )
            )
    omitted += [
        Omission(item=f"messages:{one.seq}", reason=one.reason, note=one.note)
        for one in tail.settled.dropped
        if one.seq >= tail.start
    ]
    return omitted


def _summed_up(compaction: Brief, gone: Sequence[tuple[int, int]]) -> list[Omission]:
    """Say what CONTEXT.md stands for; what left with the newest compaction can be had back by its swap id."""
    told: list[Omission] = []
    for start, end in gone:
        stop = min(end, compaction.through)
        for first, last in ((start, min(stop, compaction.start - 1)), (max(start, compaction.start), stop)):
            if first <= last:
                newest = first >= compaction.start
                told.append(
                    Omission(
                        item=f"messages:{first}-{last}" if last > first else f"messages:{first}",
                        reason="superseded_by_summary",
                        note=f"CONTEXT.md ({compaction.id})",
                        swap=compaction.swap[:SHORT_ID] if newest and compaction.swap else None,
                    )
                )
    return told


def _gaps(surface: Surface, tail: Tail, told: set[str]) -> list[Omission]:
    """Say which messages of the tail cannot be read: their lines are damaged."""
    if not surface.entries:
        return []
    known = {entry.message.seq for entry in surface.entries}
    gone = [seq for seq in range(tail.start, surface.last + 1) if seq not in known and f"messages:{seq}" not in told]
    return [Omission(item=f"messages:{seq}", reason="custom", note="cannot be read", high_impact=True) for seq in gone]


def _unread(item: str) -> Missing:
    return Missing(id=item, question=f"What did {item} say? Its line is damaged.", severity="high", requested=item)


def _waiting(settled: Settled) -> list[Missing]:
    return [
        Missing(
            id=f"tool:{call}",
            question=f"What did the call {call} answer? Its result is not recorded yet.",
            severity="high",
            needed_for="the batch of calls it belongs to",
            requested=f"tool:{call}",
        )
        for call in settled.waiting
    ]
