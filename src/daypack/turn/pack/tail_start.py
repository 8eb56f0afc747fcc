"""Where the tail of a new epoch begins: with everything, if that fits, else so that many turns can append to it."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from daypack.turn.items import Cost, Entry, total
from daypack.turn.pack.tail import UNANSWERED, Settled, settle
from daypack.turn.pack.volatile import kept_free
from daypack.turn.survey.surface import Surface
from daypack.types.history import Message

SOFT_SHARE = 0.75  # from here on a compaction is made in the background, where there is a model for it
TARGET_SHARE = 0.4  # what prefix and tail take of the room when an epoch begins
_REST_SHARE = 0.5  # the same in a full window, when that is all no compaction has summed up: better than a gap
RECENT_SHARE = 0.25
WANTED_SHARE = 0.5
_TAIL_SHARE = 0.6  # of what a prefix leaves; the rest is for turns that append
_FILLED = Cost(13, len(UNANSWERED), 1)  # as the least favourable counter weighs it


class Tail(Struct, frozen=True):
    """The messages that are shown, and what they rest on."""

    start: int
    head: Entry | None
    messages: tuple[Message, ...]
    cost: Cost
    settled: Settled
    masked: frozenset[int] = frozenset()  # the outputs among them that stand there as one line


def begin_tail(surface: Surface, settled: Settled, costs: Sequence[Cost], others: tuple[Cost, Cost]) -> Tail:
    """Choose the tail of a new epoch; `others`: what the prefix takes, and what wants to follow."""
    tail = found = None
    if surface.keep_tokens is None:
        tail = _everything(surface, settled, costs, others) or _rest(surface, settled, costs, (others[0], TARGET_SHARE))
    if tail:
        return tail
    full = bool(surface.reserved_tokens)
    share = _REST_SHARE if full else SOFT_SHARE
    for masks in surface.masks or ({},):
        short = replace(surface, entries=tuple(masks.get(one.message.seq, one) for one in surface.entries))
        settled = settle([entry.message for entry in short.entries])
        costs = costs_of(short, settled)
        newest = bool(settled.messages) and settled.messages[-1].seq in masks
        if tail and newest:
            break  # what was just found out is shown, if it fits at all
        whole = _rest(short, settled, costs, (others[0], share)) if surface.keep_tokens is None else None
        found = whole or _cut_tail(short, settled, costs, others)
        found = replace(found, masked=frozenset(seq for seq in masks if seq >= found.start))
        if found.messages[-1:] == settled.messages[-1:]:
            tail = found  # the newest message is there
            if not full or others[0].plus(found.cost).within(surface.limits.room.part(_REST_SHARE)):
                break
    tail = tail or found
    assert tail  # there is at least one step
    return tail


def _start(room: Cost) -> Cost:
    """What prefix and tail take when an epoch begins; of few items, half."""
    return Cost(int(room.tokens * TARGET_SHARE), int(room.bytes * TARGET_SHARE), max(1, room.items // 2))


def costs_of(surface: Surface, settled: Settled) -> list[Cost]:
    """Return what each of the settled messages costs."""
    known = {id(entry.message): entry.cost for entry in surface.entries}
    by_seq = {entry.message.seq: entry.cost for entry in surface.entries}
    return [known.get(id(message)) or (by_seq[message.seq] if message.id else _FILLED) for message in settled.messages]


def _everything(surface: Surface, settled: Settled, costs: Sequence[Cost], others: tuple[Cost, Cost]) -> Tail | None:
    """Return the whole conversation, if it fits as it is."""
    prefix, demand = others
    rest = surface.limits.room.less(prefix)
    messages = settled.messages
    at = _first_user(messages, 0) if surface.complete else None
    if at is None:
        return None
    wanted = demand.at_most(rest.part(WANTED_SHARE))
    start, cost = messages[at].seq, total(costs[at:])
    kept = wanted.at_least(kept_free(rest)) if start > surface.first else wanted
    return Tail(start, None, messages[at:], cost, settled) if cost.plus(kept).within(rest) else None


def _rest(surface: Surface, settled: Settled, costs: Sequence[Cost], most: tuple[Cost, float]) -> Tail | None:
    """Return all that no compaction has summed up, if with the prefix it stays within a share of the room."""
    prefix, share = most
    messages, compaction = settled.messages, surface.compaction
    if not (compaction and messages) or surface.entries[0].message.seq != compaction.through + 1:
        return None
    head = None if messages[0].role == "user" else _user_before(surface, messages[0].seq)
    cost = total(costs).plus(head.cost if head else Cost())
    if (messages[0].role != "user" and head is None) or not cost.plus(prefix).within(surface.limits.room.part(share)):
        return None
    return Tail(messages[0].seq, head, (head.message, *messages) if head else messages, cost, settled)


def _cut_tail(surface: Surface, settled: Settled, costs: Sequence[Cost], others: tuple[Cost, Cost]) -> Tail:
    """Choose where the tail of a new epoch begins."""
    prefix, demand = others
    room = surface.limits.room
    rest = room.less(prefix)
    messages = settled.messages
    suffix = [Cost()]
    for cost in reversed(costs):
        suffix.append(suffix[-1].plus(cost))
    suffix.reverse()
    wanted = demand.at_most(rest.part(WANTED_SHARE))
    kept = wanted.at_least(kept_free(rest))
    least = surface.user.cost if surface.user else Cost()
    free = rest.less(kept)
    share = (
        _start(room)
        .less(prefix)
        .less(Cost(surface.reserved_tokens))
        .at_least(room.part(RECENT_SHARE))
        .at_most(free.part(_TAIL_SHARE))
    )
    if surface.keep_tokens is not None:
        share = Cost(surface.keep_tokens, room.bytes, room.items).at_most(free)
    tail = _cut(surface, settled, suffix, share.at_least(least).at_most(rest))
    for most in (_newest_batch(surface, messages, suffix), free, rest):
        if messages and tail.messages[-1:] != messages[-1:]:
            # The newest message is larger than its share: what was just found out matters more than room for later.
            tail = _cut(surface, settled, suffix, most.at_least(least).at_most(rest))
    return tail


def _newest_batch(surface: Surface, messages: Sequence[Message], suffix: Sequence[Cost]) -> Cost:
    """Return what the newest calls with their results take, and the question they belong to."""
    at = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role != "tool"), 0)
    head = _user_before(surface, messages[at].seq) if messages else None
    return suffix[at].plus(head.cost if head else Cost())


def _cut(surface: Surface, settled: Settled, suffix: Sequence[Cost], most: Cost) -> Tail:
    """Begin with a user message, or, if that leaves out much that fits, behind one that is kept as the tail's head."""
    messages = settled.messages
    cut = next(at for at in range(len(suffix)) if suffix[at].within(most))
    at = _first_user(messages, cut)
    stop = len(messages) if at is None else at
    head = _user_before(surface, messages[cut].seq if cut < len(messages) else surface.last + 1)
    least = most.less(head.cost) if head else most
    fitting = (at for at in range(cut, stop) if messages[at].role != "tool" and suffix[at].within(least))
    behind = next(fitting, stop)
    if at is not None and (head is None or len(messages) - behind <= 2 * (len(messages) - at)):
        return Tail(messages[at].seq, None, messages[at:], suffix[at], settled)
    start = messages[behind].seq if behind < len(messages) else settled.open or surface.last + 1
    if head is None:  # nobody has asked anything yet; those who look on see what there is
        return Tail(start, None, messages[behind:], suffix[behind], settled)
    return Tail(start, head, (head.message, *messages[behind:]), suffix[behind].plus(head.cost), settled)


def _user_before(surface: Surface, seq: int) -> Entry | None:
    known = (surface.user, *reversed(surface.entries), surface.head)
    return next((one for one in known if one and one.message.role == "user" and one.message.seq < seq), None)


def _first_user(messages: Sequence[Message], start: int) -> int | None:
    return next((at for at in range(start, len(messages)) if messages[at].role == "user"), None)
