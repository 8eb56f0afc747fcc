"""The tail of a new epoch: the whole conversation if it fits, else a cut that leaves space for many turns."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from daypack.turn.items import Cost, Entry, total
from daypack.turn.pack.tail import Settled, SettledWindow, settle_window
from daypack.turn.pack.volatile import free_space
from daypack.turn.policy import TAIL_SHARE, UNCOMPACTED_SHARE, VOLATILE_SHARE
from daypack.turn.surface import Surface, Window
from daypack.types.history import Message


class Tail(Struct, frozen=True, kw_only=True):
    """The messages of the window that are sent."""

    start: int
    head: Entry | None = None
    messages: tuple[Message, ...]
    cost: Cost
    settled: Settled
    stubbed: frozenset[int] = frozenset()


class Space(Struct, frozen=True, kw_only=True):
    """What competes with a new tail for the room."""

    prefix: Cost
    demand: Cost = Cost()  # volatile items other than excerpts
    reserved_tokens: int = 0  # for the document of a compaction that follows
    keep_tokens: int | None = None  # the tail's size, if a caller chose it


def begin_tail(surface: Surface, space: Space) -> Tail:
    """Choose the tail of a new epoch.

    Large outputs become stubs only when the messages do not fit verbatim, first those before the newest few. The
    newest message stays verbatim whenever it fits at all.
    """
    window, policy = surface.window, surface.policy
    assert window is not None  # the survey reads it wherever an epoch may begin
    if space.keep_tokens is None:
        settled = settle_window(window)
        tail = _everything(surface, settled, space) or _uncompacted(surface, settled, space.prefix, policy.epoch_share)
        if tail:
            return tail
    compacting = space.reserved_tokens > 0
    share = UNCOMPACTED_SHARE if compacting else policy.soft_share
    best = candidate = None
    for stubs in window.stubs or ({},):
        entries = tuple(stubs.get(entry.message.seq, entry) for entry in window.entries)
        settled = settle_window(replace(window, entries=entries))
        if best and settled.messages and settled.messages[-1].seq in stubs:
            break  # it fits without a stub for the newest message
        candidate = _uncompacted(surface, settled, space.prefix, share) if space.keep_tokens is None else None
        candidate = candidate or _cut(surface, settled, space)
        candidate = replace(candidate, stubbed=frozenset(seq for seq in stubs if seq >= candidate.start))
        if candidate.messages[-1:] == settled.messages[-1:]:
            best = candidate  # it ends with the newest message
            if not compacting or space.prefix.plus(best.cost).fits(surface.limits.room.part(UNCOMPACTED_SHARE)):
                break
    tail = best or candidate
    assert tail is not None  # there is at least one step
    return tail


def _everything(surface: Surface, settled: SettledWindow, space: Space) -> Tail | None:
    """Return the whole conversation verbatim, if it fits."""
    at = _first_user(settled.messages, 0) if settled.window.complete else None
    if at is None:
        return None
    rest = surface.limits.room.less(space.prefix)
    start, cost = settled.messages[at].seq, total(settled.costs[at:])
    free = space.demand.at_most(rest.part(VOLATILE_SHARE))
    if start > surface.first:
        free = free.at_least(free_space(rest, surface.policy))
    if not cost.plus(free).fits(rest):
        return None
    return Tail(start=start, messages=settled.messages[at:], cost=cost, settled=settled.settled)


def _uncompacted(surface: Surface, settled: SettledWindow, prefix: Cost, share: float) -> Tail | None:
    """Return all messages after the newest compaction, if with the prefix they fit a share of the room."""
    messages, compaction = settled.messages, surface.compaction
    if not (compaction and messages) or settled.window.entries[0].message.seq != compaction.through + 1:
        return None
    head = None if messages[0].role == "user" else _user_before(surface, settled.window, messages[0].seq)
    cost = total(settled.costs).plus(head.cost if head else Cost())
    if (messages[0].role != "user" and head is None) or not cost.plus(prefix).fits(surface.limits.room.part(share)):
        return None
    sent = (head.message, *messages) if head else messages
    return Tail(start=messages[0].seq, head=head, messages=sent, cost=cost, settled=settled.settled)


def _cut(surface: Surface, settled: SettledWindow, space: Space) -> Tail:
    """Choose the first message of the tail by the share that a new epoch has for it."""
    room, messages, policy = surface.limits.room, settled.messages, surface.policy
    rest = room.less(space.prefix)
    free = rest.less(space.demand.at_most(rest.part(VOLATILE_SHARE)).at_least(free_space(rest, surface.policy)))
    suffix = _suffix_costs(settled.costs)
    least = surface.user.cost if surface.user else Cost()
    if space.keep_tokens is not None:
        share = Cost(space.keep_tokens, room.bytes, room.items).at_most(free)
    else:
        tokens, size = int(room.tokens * policy.epoch_share), int(room.bytes * policy.epoch_share)
        start = Cost(tokens, size, max(1, room.items // 2))
        share = start.less(space.prefix).less(Cost(space.reserved_tokens))
        share = share.at_least(room.part(policy.recent_share)).at_most(free.part(TAIL_SHARE))
    tail = _cut_to(surface, settled, suffix, share.at_least(least).at_most(rest))
    for most in (_newest_batch(surface, settled, suffix), free, rest):
        if messages and tail.messages[-1:] != messages[-1:]:
            # The newest message exceeds its share: it matters more than space for later turns.
            tail = _cut_to(surface, settled, suffix, most.at_least(least).at_most(rest))
    return tail


def _suffix_costs(costs: Sequence[Cost]) -> list[Cost]:
    """Return for each position the cost of all messages from there on."""
    suffix = [Cost()]
    for cost in reversed(costs):
        suffix.append(suffix[-1].plus(cost))
    return suffix[::-1]


def _newest_batch(surface: Surface, settled: SettledWindow, suffix: Sequence[Cost]) -> Cost:
    """Return the cost of the newest calls, their results and the user message before them."""
    messages = settled.messages
    at = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role != "tool"), 0)
    head = _user_before(surface, settled.window, messages[at].seq) if messages else None
    return suffix[at].plus(head.cost if head else Cost())


def _cut_to(surface: Surface, settled: SettledWindow, suffix: Sequence[Cost], most: Cost) -> Tail:
    """Start at a user message; or, if that drops much that fits, in the middle of a turn with its user message as head.

    A tail never starts with a tool result.
    """
    messages = settled.messages
    cut = next(at for at in range(len(suffix)) if suffix[at].fits(most))
    user_at = _first_user(messages, cut)
    stop = len(messages) if user_at is None else user_at
    head = _user_before(surface, settled.window, messages[cut].seq if cut < len(messages) else surface.last + 1)
    with_head = most.less(head.cost) if head else most
    starts = (at for at in range(cut, stop) if messages[at].role != "tool" and suffix[at].fits(with_head))
    middle = next(starts, stop)
    if user_at is not None and (head is None or len(messages) - middle <= 2 * (len(messages) - user_at)):
        start = messages[user_at].seq
        return Tail(start=start, messages=messages[user_at:], cost=suffix[user_at], settled=settled.settled)
    start = messages[middle].seq if middle < len(messages) else settled.settled.open or surface.last + 1
    sent, cost = messages[middle:], suffix[middle]
    if head:  # None: no user message yet; observers see what there is
        sent, cost = (head.message, *sent), cost.plus(head.cost)
    return Tail(start=start, head=head, messages=sent, cost=cost, settled=settled.settled)


def _user_before(surface: Surface, window: Window, seq: int) -> Entry | None:
    for entry in (surface.user, *reversed(window.entries), window.head):
        if entry and entry.message.role == "user" and entry.message.seq < seq:
            return entry
    return None


def _first_user(messages: Sequence[Message], start: int) -> int | None:
    return next((at for at in range(start, len(messages)) if messages[at].role == "user"), None)
