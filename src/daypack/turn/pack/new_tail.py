"""The tail of a new epoch: the whole conversation if it fits, else as much of it as leaves space for many turns.

A tail has one border: large outputs after it are verbatim, those before it are stubs. Where the tail starts follows
from its length with every large output as a stub, so a larger window never starts later. The newest batch and what is
verbatim count at most as their own share, so however large they are, the messages before them keep theirs. Start and
border only move forward from one epoch to the next, and the start stays as long as it can: what is before the border
stays cached.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from daypack.turn.items import Cost, Entry, total
from daypack.turn.pack.stubs import find_repeats
from daypack.turn.pack.tail import Settled, SettledWindow, settle_window
from daypack.turn.pack.volatile import free_space
from daypack.turn.policy import (
    AFTER_COMPACTION_SHARE,
    KEPT_VERBATIM_SHARE,
    LEAST_PART_OF_REST,
    MAX_VERBATIM_PART,
    USER_START_SHARE,
    VOLATILE_SHARE,
)
from daypack.turn.surface import Surface, Window
from daypack.types.history import Message

_NOTHING = Cost()


class Tail(Struct, frozen=True, kw_only=True):
    """The messages of the window that are sent."""

    start: int
    head: Entry | None = None
    messages: tuple[Message, ...]
    cost: Cost
    settled: Settled
    stubbed: frozenset[int] = frozenset()
    repeats: dict[int, int] = {}  # outputs shown as a reference -> the message with the first copy

    @property
    def border(self) -> int:
        """The first message from which on everything is verbatim."""
        return max(self.stubbed, default=self.start - 1) + 1


class Space(Struct, frozen=True, kw_only=True):
    """What competes with a new tail for the room."""

    prefix: Cost
    demand: Cost = Cost()  # items other than excerpts
    reserved_tokens: int = 0  # for the document of a compaction that follows
    keep_tokens: int | None = None  # the tail's size, if a caller chose it


class _Shares(Struct, frozen=True):
    """What a new tail may take."""

    most: Cost  # with the large outputs that are verbatim
    verbatim: Cost  # of that, kept for large outputs when the start moves
    kept: Cost  # the same as long as the start stays
    rest: Cost  # everything after the prefix
    free: Cost  # of that, without what other items need
    exact: bool = False  # a caller chose the size: the newest batch counts in full


def begin_tail(surface: Surface, space: Space) -> Tail:
    """Choose the tail of a new epoch: its start, then how far back large outputs are verbatim."""
    window = surface.window
    assert window is not None  # the survey reads it wherever an epoch may begin
    if space.keep_tokens is None and (everything := all_messages(surface, space)):
        return everything
    entries = tuple(window.stubs.get(entry.message.seq, entry) for entry in window.entries)
    settled = settle_window(replace(window, entries=entries))
    shares = _shares(surface, space)
    tail = _choose_start(surface, settled, shares)
    stubbed = frozenset(seq for seq in window.stubs if seq >= tail.start)
    return _with_references(window, _restore_newest(surface, replace(tail, stubbed=stubbed), shares))


def all_messages(surface: Surface, space: Space) -> Tail | None:
    """Return the whole conversation verbatim, if it fits."""
    settled = settle_window(surface.window or Window())
    at = _first_user(settled.messages, 0) if settled.window.complete else None
    if at is None:
        return None
    rest = surface.limits.room_beside(surface.tools).less(space.prefix)
    start, cost = settled.messages[at].seq, total(settled.costs[at:])
    free = space.demand.at_most(rest.part(VOLATILE_SHARE))
    if start > surface.first:
        free = free.at_least(free_space(rest, surface.policy))
    everything = Tail(start=start, messages=settled.messages[at:], cost=cost, settled=settled.settled)
    everything = _with_references(settled.window, everything)
    return everything if everything.cost.plus(free).fits(rest) else None


def _with_references(window: Window, tail: Tail) -> Tail:
    """Show each large output once: a later copy refers to the first one."""
    if window.refer is None:
        return tail
    # The same messages as in later turns of the epoch, also those that a valid tail does not have.
    entries = {entry.message.seq: entry for entry in window.entries if entry.message.seq >= tail.start}
    shown = [window.stubs[seq].message if seq in tail.stubbed else entry.message for seq, entry in entries.items()]
    repeats = find_repeats(shown, 0)
    messages, cost = list(tail.messages), tail.cost
    for at, message in enumerate(messages):
        if message.seq in repeats and message.id and message.role == "tool":
            verbatim = entries[message.seq]
            reference = window.refer(verbatim, repeats[message.seq])
            messages[at] = replace(message, content=reference.message.content)
            cost = cost.less(verbatim.cost).plus(reference.cost)
    return replace(tail, messages=tuple(messages), cost=cost, repeats=repeats) if repeats else tail


def _shares(surface: Surface, space: Space) -> _Shares:
    room, policy = surface.limits.room_beside(surface.tools), surface.policy
    rest = room.less(space.prefix)
    demand = space.demand.at_most(rest.part(VOLATILE_SHARE))
    free = rest.less(demand)
    if space.keep_tokens is not None:
        most = Cost(space.keep_tokens, room.bytes, room.items).at_most(free)
    else:
        most = room.part(policy.opening_share(room.tokens)).less(space.prefix).less(Cost(space.reserved_tokens))
        part = max(policy.opening_share(room.tokens), LEAST_PART_OF_REST)
        recent = room.part(policy.recent_share).at_most(rest.part(part))
        most = most.at_least(recent).at_most(free)
    verbatim = room.part(policy.verbatim_share).at_most(most.part(MAX_VERBATIM_PART))
    kept = room.part(KEPT_VERBATIM_SHARE).at_most(verbatim)
    exact = space.keep_tokens is not None
    return _Shares(most, verbatim._replace(items=room.items), kept._replace(items=0), rest, free, exact)


class _Lengths:
    """The length of each tail of a window, by the index of its first message."""

    def __init__(self, settled: SettledWindow, verbatim: dict[int, Cost], shares: _Shares) -> None:
        messages = settled.messages
        hidden = [verbatim.get(message.seq, Cost()) if message.id else Cost() for message in messages]
        self.stubbed = _sums(settled.costs)  # with large outputs as stubs
        self.hidden = _sums(hidden)  # what verbatim outputs would add to that
        self.newest_at = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role != "tool"), 0)
        self._shares = shares

    def fits(self, at: int, head: Cost = _NOTHING) -> bool:
        """Return True if a tail from `at` leaves the newest batch and verbatim outputs their share."""
        shares, newest = self._shares, self.stubbed[max(at, self.newest_at)].plus(head)
        share = newest.plus(self.hidden[at]).at_most(shares.verbatim)
        if shares.exact:
            share = share.at_least(newest)
        older = self.stubbed[at].plus(head).less(newest)
        return older.plus(share).fits(shares.most) and self.stubbed[at].plus(head).fits(shares.free)

    def is_newest(self, at: int, head: Cost = _NOTHING) -> bool:
        """Return True if a tail from `at` is no more than the newest batch, and fits at all."""
        return at >= self.newest_at and self.stubbed[at].plus(head).fits(self._shares.rest)


def _sums(costs: Sequence[Cost]) -> list[Cost]:
    """Return the sum from each index on."""
    return [Cost(), *accumulate(reversed(costs), Cost.plus)][::-1]


def _choose_start(surface: Surface, settled: SettledWindow, shares: _Shares) -> Tail:
    """Choose the first message of a tail whose large outputs are stubs; the newest message matters most."""
    window = surface.window or Window()
    verbatim = {
        entry.message.seq: entry.cost.less(window.stubs[entry.message.seq].cost)
        for entry in window.entries
        if entry.message.seq in window.stubs
    }
    lengths = _Lengths(settled, verbatim, shares)
    tail = _keep_start(surface, settled, lengths, shares) or _cut_to(surface, settled, lengths, lengths.fits)
    if settled.messages and tail.start > settled.messages[-1].seq:  # it may be no more than the newest, as a head
        tail = _cut_to(surface, settled, lengths, lengths.is_newest)
    return tail


def _keep_start(surface: Surface, settled: SettledWindow, lengths: _Lengths, shares: _Shares) -> Tail | None:
    """Return the tail that starts where the last epoch did, or after the newest compaction, if it still fits."""
    messages, former, compaction = settled.messages, surface.former, surface.compaction
    if compaction and not compaction.holds(surface.limits.room.tokens):
        compaction = None
    start = compaction.through + 1 if compaction else 0
    if former:
        start = max(start, former.start)
    at = _index_of(messages, start)
    if not start or at == len(messages) or settled.window.entries[0].message.seq > start:
        return None
    head = None if messages[at].role == "user" else _user_before(surface, settled.window, messages[at].seq)
    if messages[at].role == "tool" or (messages[at].role != "user" and head is None):
        return None
    tail = _tail_from(settled, lengths, at, head)
    if compaction and compaction.through + 1 == start and (former is None or former.start < start):
        # Compacted for this epoch: what stays was chosen for it, and a gap would be neither shown nor recorded.
        return tail if tail.cost.fits(shares.free.part(AFTER_COMPACTION_SHARE)) else None
    return tail if tail.cost.plus(lengths.hidden[at].at_most(shares.kept)).fits(shares.most) else None


def _cut_to(surface: Surface, settled: SettledWindow, lengths: _Lengths, fits: Callable[..., bool]) -> Tail:
    """Start in the middle of a turn, with its user message as head; or with a user message, if that drops little.

    A tail never starts with a tool result, and never before that of the last epoch.
    """
    messages, former, stubbed = settled.messages, surface.former, lengths.stubbed
    cut = bisect_left(range(len(messages)), True, key=fits)  # noqa: FBT003 — what to search for
    if former:
        cut = max(cut, _index_of(messages, former.start))
    user_at = _first_user(messages, cut)
    stop = len(messages) if user_at is None else user_at
    head = _user_before(surface, settled.window, messages[cut].seq if cut < len(messages) else surface.last + 1)
    with_head = head.cost if head else Cost()
    starts = (at for at in range(cut, stop) if messages[at].role != "tool" and fits(at, with_head))
    middle = next(starts, stop)
    newest = stubbed[lengths.newest_at].tokens
    older = [max(0, stubbed[at].tokens - newest) for at in (user_at or 0, middle)]
    if user_at is not None and (head is None or older[0] >= USER_START_SHARE * older[1]):
        return _tail_from(settled, lengths, user_at, None)
    tail = _tail_from(settled, lengths, middle, head)
    return tail if middle < len(messages) else replace(tail, start=settled.settled.open or surface.last + 1)


def _tail_from(settled: SettledWindow, lengths: _Lengths, at: int, head: Entry | None) -> Tail:
    sent, cost = settled.messages[at:], lengths.stubbed[at]
    start = sent[0].seq if sent else 0
    if head:  # None: it starts with a user message, or there is none yet and observers see what there is
        sent, cost = (head.message, *sent), cost.plus(head.cost)
    return Tail(start=start, head=head, messages=sent, cost=cost, settled=settled.settled)


def _restore_newest(surface: Surface, tail: Tail, shares: _Shares) -> Tail:
    """Show large outputs verbatim, whole batches, newest first, as far back as they fit.

    The newest batch may take all that is free; if it is even larger, its newest outputs that fit may.
    """
    window, former = surface.window or Window(), surface.former
    verbatim = {entry.message.seq: entry for entry in window.entries if entry.message.seq in tail.stubbed}
    border = max(former.stubbed, default=0) if former else 0
    restored: list[int] = []
    cost = tail.cost
    newest = tail.messages[-1].seq if tail.messages else 0
    for batch in _batches(tail.messages[1 if tail.head else 0 :]):
        large = [seq for seq in batch if seq in verbatim]
        if large and large[0] <= border:
            break
        more = total(verbatim[seq].cost.less(window.stubs[seq].cost) for seq in large)._replace(items=0)
        fitting = cost.plus(more).fits(shares.free if newest in batch else shares.most)
        if not fitting and newest in batch:
            large = _newest_that_fit(large, {seq: verbatim[seq].cost for seq in large}, shares.free.less(cost))
            more = total(verbatim[seq].cost.less(window.stubs[seq].cost) for seq in large)._replace(items=0)
        elif not fitting:
            break
        restored += large
        cost = cost.plus(more)
        if not fitting:
            break
    messages = tuple(
        verbatim[message.seq].message if message.seq in restored and message.id else message
        for message in tail.messages
    )
    return replace(tail, messages=messages, cost=cost, stubbed=tail.stubbed.difference(restored))


def _newest_that_fit(seqs: Sequence[int], costs: dict[int, Cost], space: Cost) -> list[int]:
    fitting: list[int] = []
    used = Cost()
    for seq in reversed(seqs):
        used = used.plus(costs[seq]._replace(items=0))
        if not used.fits(space):
            break
        fitting.append(seq)
    return fitting


def _batches(messages: Sequence[Message]) -> Iterator[list[int]]:
    """Return the seqs of messages, newest first: calls with their results, any other message alone."""
    batch: list[int] = []
    for message in reversed(messages):
        batch.insert(0, message.seq)
        if message.role != "tool":
            yield batch
            batch = []
    if batch:
        yield batch


def _user_before(surface: Surface, window: Window, seq: int) -> Entry | None:
    for entry in (surface.user, *reversed(window.entries), window.head):
        if entry and entry.message.role == "user" and entry.message.seq < seq:
            return entry
    return None


def _first_user(messages: Sequence[Message], start: int) -> int | None:
    return next((at for at in range(start, len(messages)) if messages[at].role == "user"), None)


def _index_of(messages: Sequence[Message], seq: int) -> int:
    return next((at for at, message in enumerate(messages) if message.seq >= seq), len(messages))
