"""Fit: what of the selection fits the limits, and whether the epoch continues or a new one begins.

Space is allocated in priority order (`policy` has the numbers):

- the newest user message is in the pack, or there is no pack;
- the prefix, which leaves a share to recent messages;
- the tail. It starts where its epoch started, so that turns only append. When prefix and tail exceed the hard share of
  the room, a new epoch begins with a shorter tail, in which large outputs may be stubs. Messages that a compaction
  covers do not return to the tail;
- volatile items, best first, in the remaining space; a part of it is kept for excerpts once messages have left.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import BudgetTooSmall, NoUserMessage
from daypack.turn.budget import budget_for
from daypack.turn.items import (
    AROUND_QUOTED,
    CLOCK,
    SHOWN,
    Cost,
    Item,
    Missing,
    Omission,
    cost_of,
    message_range,
    prefix_cost,
    total,
)
from daypack.turn.pack.additions import MESSAGES_AROUND, added_items, addition_cost, place_additions
from daypack.turn.pack.assemble import ANSWERED
from daypack.turn.pack.new_tail import Space, Tail, begin_tail
from daypack.turn.pack.omissions import open_calls, outside_tail, question_of, unreadable, within_tail
from daypack.turn.pack.select import Selection, objection
from daypack.turn.pack.tail import settle_window
from daypack.turn.pack.volatile import (
    AlreadyShown,
    choose_volatile,
    free_space,
    over_budget,
    volatile_cost,
)
from daypack.turn.policy import (
    COMPACTION_MIN_ROOM_TOKENS,
    LEAST_FREED_SHARE,
    LONG_TAIL_PARTS,
    ROOM_PART_OF_EXCERPTS,
    VOLATILE_SHARE,
    WORKING_PART_OF_EXCERPTS,
    compaction_reserve,
)
from daypack.turn.surface import Addition, Epoch, Surface, Window
from daypack.types.history import Message
from daypack.types.kinds import EpochReason

_FORBIDDEN = frozenset({"not_visible_to_target", "policy_blocked", "sensitive", "stale"})


class Fitted(Struct, frozen=True, kw_only=True):
    """The contents of the pack, and a record of everything else."""

    reason: EpochReason | None  # why a new epoch begins; None: the epoch continues
    start: int
    head: int | None
    prefix: tuple[Item, ...]
    messages: tuple[Message, ...]
    additions: tuple[Addition, ...]  # all in the tail
    added: tuple[Addition, ...]  # those of this turn
    volatile: tuple[Item, ...]
    omitted: tuple[Omission, ...]
    missing: tuple[Missing, ...]
    prefix_cost: Cost
    tail_cost: Cost
    volatile_cost: Cost
    skipped: dict[str, str] = {}  # id -> digest of items that did not fit into a new prefix
    redacted: dict[int, tuple[str, ...]] = {}  # seq -> kinds of secrets removed from the message
    stubbed: frozenset[int] = frozenset()
    repeats: dict[int, int] = {}
    drops_messages: bool = False  # messages are outside the tail because of the budget

    @property
    def stable_cost(self) -> Cost:
        """The cost of prefix and tail: what a prompt cache can reuse."""
        return self.prefix_cost.plus(self.tail_cost)

    @property
    def carried_cost(self) -> Cost:
        """The cost of prefix and tail without what this turn adds to the tail."""
        return self.stable_cost.less(addition_cost(self.added)) if self.added else self.stable_cost

    @property
    def cost(self) -> Cost:
        """The cost of the whole pack."""
        return self.stable_cost.plus(self.volatile_cost)


class _Prefix(Struct, frozen=True):
    items: tuple[Item, ...]
    cost: Cost
    skipped: dict[str, str] = {}


def fit(surface: Surface, selection: Selection, *, compacting: bool = False) -> Fitted:
    """Fit the selection into the limits; the result contains the newest user message, or this fails.

    `compacting`: a compaction follows if messages leave the window, so space is reserved for its document.
    """
    room = surface.limits.room_beside(surface.tools)
    require_user(surface, room)
    reason = surface.reason
    if reason is None and selection.omitted:
        reason = _withdrawn(surface.epoch, selection)
    continued = None
    if reason is None:
        continued = _continue_epoch(surface, selection)
        if continued and not extends(continued.messages, surface.last_tail):
            continued, reason = None, "damaged"  # a message of the tail was lost since the last turn
        elif continued and (
            surface.last == surface.seen or continued.carried_cost.fits(room.part(surface.policy.hard_share))
        ):
            return continued
        reason = reason or "overflow"
    reserved = compaction_reserve(room.tokens) if compacting and reason == "overflow" else 0
    begun = begin_epoch(surface, selection, reason, reserved_tokens=reserved)
    least = continued.stable_cost.tokens - int(room.tokens * LEAST_FREED_SHARE) if continued else 0
    if continued and begun.stable_cost.tokens > least:
        return continued  # a new epoch would be as full
    return begun


def begin_epoch(
    surface: Surface,
    selection: Selection,
    reason: EpochReason,
    *,
    reserved_tokens: int = 0,
    keep_tokens: int | None = None,
) -> Fitted:
    """Fit the selection into a new epoch; `keep_tokens`: the size of its tail, instead of the policy's."""
    room = surface.limits.room_beside(surface.tools)
    prefix, omitted = _choose_prefix(surface, selection, room)
    demand = cost_of(selection.volatile)  # excerpts take what remains
    if surface.compaction:
        reserved_tokens //= 4  # its document replaces the one that is in the prefix
    space = Space(prefix=prefix.cost, demand=demand, reserved_tokens=reserved_tokens, keep_tokens=keep_tokens)
    tail = begin_tail(surface, space)
    offered = _by_priority(selection.volatile, selection.window_excerpts)
    return _close(surface, prefix, tail, offered, (*selection.omitted, *omitted), reason)


def leaving(surface: Surface, fitted: Fitted) -> tuple[int, int] | None:
    """Return the first and last message that leave the window with a new epoch and are in no compaction yet."""
    first = surface.compaction.through + 1 if surface.compaction else 1
    last = fitted.start - 1
    if fitted.reason is None or last < max(first, surface.first):
        return None
    return (first, last) if fitted.drops_messages else None


def may_begin_epoch(surface: Surface) -> bool:
    """Return False if the epoch is sure to continue, whatever is selected: then nothing is read for a new one."""
    epoch = surface.epoch
    if surface.tail is None or epoch is None:
        return True
    frozen = {item.id for item in epoch.prefix}
    for item in (*surface.prefix, *surface.volatile):
        if item.id in frozen and objection(item, surface)[0]:
            return True
    tail = _epoch_tail(surface, epoch, surface.tail)
    room, prefix = surface.limits.room_beside(surface.tools), prefix_cost(epoch.prefix)
    following = cost_of((*surface.volatile, *surface.notes))
    if surface.notes:
        following = following.plus(MESSAGES_AROUND)
    hides = epoch.start > surface.first or epoch.stubbed
    if hides and surface.user and surface.user.message.seq > surface.searched:
        following = following.at_least(free_space(room, surface.policy))
    stable = prefix.plus(tail.cost)
    fits = stable.plus(following).fits(room) and stable.fits(room.part(surface.policy.hard_share))
    return not fits or not extends(tail.messages, surface.last_tail)


def require_user(surface: Surface, room: Cost) -> None:
    """Raise if the newest user message is missing or cannot fit."""
    user = surface.user
    if user is None and surface.target == "model":
        raise NoUserMessage(
            "the session has no user message", operation="prepare", hint="append the user's message first"
        )
    if user and not user.cost.fits(room):
        hint = f"raise the budget to at least {budget_for(user.cost.tokens + surface.tools.tokens):,} tokens"
        needs, leaves = f"{user.cost.tokens:,} tokens", f"{room.tokens:,}"
        if surface.tools.tokens:
            leaves += f" beside {surface.tools.tokens:,} tokens of tools"
        if user.cost.tokens <= room.tokens:
            needs, leaves = f"{user.cost.bytes:,} bytes", f"{room.bytes:,} bytes and {room.items:,} items"
            hint = "raise the limit of bytes or items"
        raise BudgetTooSmall(
            f"the newest user message ({user.message.id}) needs {needs}, the budget leaves {leaves}",
            operation="prepare",
            place="budget",
            hint=hint,
        )


def _withdrawn(epoch: Epoch | None, selection: Selection) -> EpochReason | None:
    """Return the reason for a new epoch if the frozen prefix contains an item that may no longer be shown."""
    for omission in selection.omitted:
        if epoch and omission.reason in _FORBIDDEN and any(item.id == omission.item for item in epoch.prefix):
            return "withdrawn"
    return None


def _continue_epoch(surface: Surface, selection: Selection) -> Fitted | None:
    """Return the next turn of the epoch, or None if it does not fit."""
    epoch, window = surface.epoch, surface.tail
    assert epoch is not None
    assert window is not None
    room = surface.limits.room_beside(surface.tools)
    prefix = _Prefix(epoch.prefix, prefix_cost(epoch.prefix))
    rest = room.less(prefix.cost)
    tail = _epoch_tail(surface, epoch, window)
    following = cost_of(selection.volatile).at_most(rest.part(VOLATILE_SHARE)).plus(cost_of(selection.notes))
    if selection.notes:
        following = following.plus(MESSAGES_AROUND)  # a note that did not fit would be lost: a new epoch has room
    if any(excerpt.answers_user for excerpt in selection.excerpts):
        following = following.at_least(free_space(rest, surface.policy))
    if not prefix.cost.plus(tail.cost).plus(following).fits(room):
        return None
    omitted: Sequence[Omission] = ()
    if selection.omitted or surface.waiting:
        # The frozen prefix still shows some of what a new one would omit.
        frozen = {item.id for item in epoch.prefix}
        by_item = {omission.item: omission for omission in surface.waiting}
        by_item |= {omission.item: omission for omission in selection.omitted if omission.item not in frozen}
        omitted = tuple(by_item.values())
    offered = selection.volatile
    if selection.excerpts:
        offered = _by_priority(offered, selection.excerpts)
    offered = (*selection.notes, *offered)
    return _close(surface, prefix, tail, offered, omitted, None)


def _epoch_tail(surface: Surface, epoch: Epoch, window: Window) -> Tail:
    """Return the tail of an epoch that continues, with the cost of what was added to it."""
    settled = settle_window(window)
    messages, cost = settled.settled.messages, total(settled.costs)
    if surface.additions:
        cost = cost.plus(addition_cost(surface.additions))
    if window.head:
        messages, cost = (window.head.message, *messages), cost.plus(window.head.cost)
    return Tail(
        start=epoch.start,
        head=window.head,
        messages=messages,
        cost=cost,
        settled=settled.settled,
        stubbed=epoch.stubbed,
        repeats=window.repeats,
    )


def _by_priority(items: Sequence[Item], excerpts: Sequence[Item]) -> Sequence[Item]:
    return sorted((*items, *excerpts), key=lambda item: -item.priority)


def extends(messages: Sequence[Message], last_tail: tuple[int, int]) -> bool:
    """Return True if a tail starts with that of the last turn, given as its length and its last seq."""
    count, last = last_tail
    return not count or (len(messages) >= count and messages[count - 1].seq == last)


def _choose_prefix(surface: Surface, selection: Selection, room: Cost) -> tuple[_Prefix, list[Omission]]:
    """Choose the prefix of a new epoch, best first, and put it in order."""
    recent = Cost()
    if surface.window and surface.window.entries:
        recent = total(entry.cost for entry in surface.window.entries).at_most(room.part(surface.policy.recent_share))
    if surface.user:
        recent = recent.at_least(surface.user.cost)
    omitted: list[Omission] = []
    chosen: list[Item] = []
    used = Cost()
    around = AROUND_QUOTED  # of the first item that is quoted
    for item in selection.prefix:
        instruction = item.kind == "system"
        most = room.less(recent)
        if not instruction:
            most = most.at_most(room.part(surface.policy.prefix_share))
        first_quoted = Cost() if item.instructs else around
        used = used.plus(first_quoted)
        forms = (item, *surface.shorter.get(item.id, ()))
        form = next((form for form in forms if used.plus(form.cost).fits(most)), None)
        if form is None and item.kind == "child_result":  # its line is never left out for other documents
            form = next((line for line in forms[1:] if used.plus(line.cost).fits(room.less(recent))), None)
        before = used
        if form:
            used = used.plus(form.cost)
            chosen.append(form)
            around = around if item.instructs else Cost()
        else:
            used = used.less(first_quoted)
        if form is not item:
            omission = over_budget(item, most.less(before), most, room, high_impact=instruction)
            omitted.append(replace(omission, note=f"shown: {form.metadata[SHOWN]}") if form else omission)
    skipped = {item.id: item.digest for item in selection.prefix if item not in chosen}
    chosen.sort(key=lambda item: item.order)
    return _Prefix(tuple(chosen), used, skipped), omitted


def _close(
    surface: Surface,
    prefix: _Prefix,
    tail: Tail,
    offered: Sequence[Item],
    omitted: Sequence[Omission],
    reason: EpochReason | None,
) -> Fitted:
    """Fill the remaining space with volatile items, and record what is not in the pack."""
    room = surface.limits.room_beside(surface.tools)
    window = (surface.window if reason else surface.tail) or Window()
    seqs = {message.seq for message in tail.messages}
    if surface.first > 1:
        seqs |= _in_prefix(surface, prefix)
    if surface.target == "model" and tail.messages and tail.messages[-1].role not in ANSWERED:
        offered = [item for item in offered if item.id != CLOCK]  # it would be a message of its own
    standing = () if reason else surface.additions
    shown = AlreadyShown(prefix.items, added_items(standing) if standing else (), seqs - tail.stubbed)
    if standing:
        offered = [item for item in offered if not shown.stands(item)]
    space = room.less(prefix.cost).less(tail.cost)
    if any(item.placement == "tail" for item in offered):
        space = space.less(MESSAGES_AROUND)
    chosen, more = choose_volatile(offered, room, space, shown, _excerpt_tokens(surface, tail))
    new = [item for item in chosen if item.placement == "tail"]
    volatile = tuple(item for item in chosen if item.placement != "tail")
    added: tuple[Addition, ...] = ()
    tail_cost = tail.cost
    if new:
        added = _additions(surface, tail, new, begins=bool(reason))
        tail_cost = tail_cost.plus(addition_cost(added))
    outside: list[Omission] = []
    gaps: list[Omission] = []
    drops_messages = False
    entries = window.entries
    readable = not entries or len(entries) == surface.last - entries[0].message.seq + 1
    if not readable or tail.start > surface.first or tail.settled.dropped or window.hidden:
        outside, gaps = _outside(surface, window, tail, omitted)
        drops_messages = any(omission.reason == "budget_limit" for omission in outside)
    of_parts = [message for message in tail.messages if message.content.__class__ is not str]
    within = within_tail(tail, of_parts) if of_parts or tail.settled.shortened else ()
    calls = open_calls(tail.settled) if tail.settled.waiting else ()
    redacted: dict[int, tuple[str, ...]] = {}
    for entry in (*window.entries, tail.head) if tail.head else window.entries:
        if entry.redacted and entry.message.seq in seqs:
            redacted[entry.message.seq] = entry.redacted
    return Fitted(
        reason=reason,
        start=tail.start,
        head=tail.head.message.seq if tail.head else None,
        prefix=prefix.items,
        messages=tail.messages,
        additions=(*standing, *added),
        added=added,
        volatile=volatile,
        omitted=(*omitted, *more, *outside, *gaps, *within),
        missing=(*surface.missing, *surface.working_missing, *calls, *map(question_of, gaps)),
        prefix_cost=prefix.cost,
        tail_cost=tail_cost,
        volatile_cost=volatile_cost(volatile),
        skipped=prefix.skipped,
        redacted=redacted,
        stubbed=tail.stubbed,
        repeats=tail.repeats,
        drops_messages=drops_messages,
    )


def _excerpt_tokens(surface: Surface, tail: Tail) -> int:
    """Return the most that new excerpts take: less for a message that the agent already works on, or in a long tail."""
    most, room_tokens = surface.policy.excerpt_tokens, surface.limits.room_beside(surface.tools).tokens
    if room_tokens >= COMPACTION_MIN_ROOM_TOKENS:
        most = min(most, room_tokens // ROOM_PART_OF_EXCERPTS)
    if surface.user and surface.user.message.seq < surface.last:
        return most // WORKING_PART_OF_EXCERPTS
    return most // 2 if tail.cost.tokens > LONG_TAIL_PARTS * surface.policy.excerpt_tokens else most


def _additions(surface: Surface, tail: Tail, items: Sequence[Item], *, begins: bool) -> tuple[Addition, ...]:
    """Return the new additions to a tail: those for a user message right after it, where no turn has sent more yet."""
    # The last message may stand for a missing result, with the number of its call.
    last = max((message.seq for message in tail.messages), default=surface.last)
    user = surface.user.message.seq if surface.user else None
    if user is not None and not begins and user <= surface.seen:
        user = None
    return place_additions(items, user, last)


def _outside(
    surface: Surface, window: Window, tail: Tail, omitted: Sequence[Omission]
) -> tuple[list[Omission], list[Omission]]:
    """Return records of the messages before the tail or dropped from it, and of those that cannot be read."""
    hidden = [
        Omission(item=message_range(seq, seq), reason="not_visible_to_target")
        for seq in window.hidden
        if seq >= tail.start
    ]
    recorded = {omission.item for omission in (*omitted, *hidden)}
    outside = [omission for omission in outside_tail(surface, window, tail) if omission.item not in recorded]
    return [*hidden, *outside], unreadable(surface, window, tail, recorded)


def _in_prefix(surface: Surface, prefix: _Prefix) -> set[int]:
    """Return the seqs of leading messages that the prefix contains."""
    ids = {item.id for item in prefix.items}
    return {seq for seq in range(1, surface.first) if message_range(seq, seq) in ids}
