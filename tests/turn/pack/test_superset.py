"""Windows of several sizes: a larger one shows what a smaller one shows, and no message takes the space of the rest."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from turn.scenes import in_tail
from turn.windows import answer, call, check_left, check_window, open_work, say, user

from daypack.derived.swap import LARGE_TOKENS
from daypack.text.injected import SWAPPED
from daypack.turn.budget import Limits
from daypack.turn.items import Cost, Entry
from daypack.turn.pack.new_tail import Space, Tail, begin_tail
from daypack.turn.policy import DEFAULT_WINDOW, MAX_VERBATIM_PART, USER_START_SHARE
from daypack.turn.surface import Surface, Window
from daypack.types.history import Message, ToolCall

STUB_TOKENS = 60
sizes = st.one_of(st.integers(5, 300), st.integers(5, 3000))
batches = st.lists(st.one_of(st.integers(5, 350), st.integers(450, 9000)), min_size=1, max_size=4)
turns = st.tuples(sizes, st.lists(st.one_of(sizes, batches), max_size=12))  # a reply, or calls with their results
short, large = st.integers(5, 60), st.lists(st.integers(450, 9000), min_size=1, max_size=2)
Turns = list[tuple[int, list[Any]]]


def entries_of(shape: Turns) -> list[Entry]:
    """Messages of users, replies, and loops of calls with their results; the sizes are tokens."""
    entries: list[Entry] = []

    def add(role: Any, tokens: int, **fields: Any) -> None:
        seq = len(entries) + 1
        message = Message(seq=seq, id=f"msg-{seq}", role=role, content=f"{role} {seq}", **fields)
        entries.append(Entry(message, Cost(tokens, 4 * tokens, 1), ()))

    for number, (size, steps) in enumerate(shape):
        add("user", size)
        for at, step in enumerate(steps):
            if isinstance(step, int):
                add("assistant", step)
                continue
            ids = [f"c{number}-{at}-{index}" for index in range(len(step))]
            add("assistant", 30, tool_calls=tuple(ToolCall(id=name, name="look", arguments="{}") for name in ids))
            for name, tokens in zip(ids, step, strict=True):
                add("tool", tokens, tool_call_id=name)
    return entries


def surface_of(entries: Sequence[Entry], limits: Limits) -> Surface:
    stubs = {
        entry.message.seq: Entry(entry.message, Cost(STUB_TOKENS, 4 * STUB_TOKENS, 1), ())
        for entry in entries
        if entry.message.role == "tool" and entry.cost.tokens > LARGE_TOKENS
    }
    return Surface(
        target="model",
        now="2026-11-15T12:00:00.000Z",
        limits=limits,
        tokenizer="o200k_base",
        last=len(entries),
        user=next(entry for entry in reversed(entries) if entry.message.role == "user"),
        window=Window(entries=tuple(entries), stubs=stubs),
    )


def open_tail(entries: Sequence[Entry], limits: Limits, **given: Any) -> Tail:
    """The tail of an epoch that begins with these messages; it fits, and its cost is that of its messages."""
    surface = surface_of(entries, limits)
    tail = begin_tail(surface, Space(prefix=Cost(), **given))
    costs = {entry.message.seq: entry.cost for entry in entries}
    window = surface.window or Window()
    costs |= {seq: window.stubs[seq].cost for seq in tail.stubbed}
    assert sum(costs[message.seq].tokens for message in tail.messages) == tail.cost.tokens
    assert tail.cost.fits(limits.room) or len(tail.messages) == 1
    return tail


def shown(tail: Tail) -> list[int]:
    return [message.seq for message in tail.messages]


def batch_before(entries: Sequence[Entry]) -> int:
    """The seq of the last message before the newest batch."""
    at = next(at for at in range(len(entries) - 1, -1, -1) if entries[at].message.role != "tool")
    return entries[at].message.seq - 1


limits = st.one_of(
    st.builds(Limits, st.integers(200, 60_000)),
    st.builds(Limits, st.none(), st.integers(500, 200_000)),
    st.builds(Limits, st.none(), st.none(), st.integers(2, 120)),
)


@settings(max_examples=400, deadline=None)
@given(
    shape=st.lists(turns, min_size=1, max_size=10),
    budgets=st.lists(st.integers(200, 60_000), min_size=2, max_size=4),
    nearby=st.integers(1, 400),
    demand=st.integers(0, 2000),
)
@example(  # a newest reply that just fails to fit beside the space for large outputs
    shape=[(20, [[600]] * 20), (5, [1250])], budgets=[5000, 4600, 4800], nearby=100, demand=0
)
def test_of_two_epochs_opened_at_the_same_message_the_larger_shows_all_that_the_smaller_shows(
    shape: Turns, budgets: list[int], nearby: int, demand: int
) -> None:
    entries = entries_of(shape)
    newest_user = surface_of(entries, Limits()).user
    assert newest_user is not None
    tails = [
        open_tail(entries, Limits(budget), demand=Cost(demand, 4 * demand, 1))
        for budget in sorted({*budgets, *(budget + nearby for budget in budgets)})
        if newest_user.cost.fits(Limits(budget).room)
    ]
    for smaller, larger in pairwise(tails):
        assert set(shown(smaller)) <= set(shown(larger))


@settings(max_examples=200, deadline=None)
@given(shape=st.lists(turns, min_size=1, max_size=10), spare=st.integers(0, 4000))
def test_all_messages_are_verbatim_where_they_fit(shape: Turns, spare: int) -> None:
    entries = entries_of(shape)
    needed = sum(entry.cost.tokens for entry in entries)
    least = next(budget for budget in range(needed, 2 * needed + 99) if Limits(budget).room.tokens >= needed)
    tail = open_tail(entries, Limits(least + spare))
    assert tail.messages == tuple(entry.message for entry in entries)
    assert tail.stubbed == frozenset()
    if len(entries) > 1:
        short = open_tail(entries, Limits(least - 1))
        assert short.stubbed or len(short.messages) < len(entries)


@settings(max_examples=300, deadline=None)
@given(
    shape=st.lists(st.tuples(short, st.lists(st.one_of(short, large), max_size=30)), min_size=2, max_size=10),
    newest=st.one_of(st.integers(5, 40_000), st.lists(st.integers(5, 40_000), min_size=1, max_size=20)),
    budget=st.integers(2000, 40_000),
)
@example(shape=[(9, [[900, 900]] * 60), (9, [])], newest=[390] * 12, budget=12_000)  # none of it is worth a stub
def test_a_large_newest_result_never_starves_the_rest(shape: Turns, newest: Any, budget: int) -> None:
    """The messages before the newest batch have a share of their own, or all that the batch leaves."""
    (size, steps), limits = shape[-1], Limits(budget)
    entries = entries_of([*shape[:-1], (size, [*steps, newest])])
    stubs = (surface_of(entries, limits).window or Window()).stubs
    least = {entry.message.seq: stubs.get(entry.message.seq, entry).cost.tokens for entry in entries}
    last = batch_before(entries)
    batch = sum(tokens for seq, tokens in least.items() if seq > last)
    room = limits.room.tokens
    tail = open_tail(entries, limits)
    if batch + 100 > room:
        return  # the batch fills the window, and nothing of it can be a stub
    assert set(range(last + 1, len(entries) + 1)) <= set(shown(tail))
    before = sum(least[seq] for seq in shown(tail) if seq <= last)
    everything = sum(tokens for seq, tokens in least.items() if seq <= last)
    step = 2 * STUB_TOKENS + 200  # a tail starts with a whole step
    share = DEFAULT_WINDOW.opening_share(room) * (1 - MAX_VERBATIM_PART) * room
    whole = batch + min(share, room - batch)  # a little of it is given up to start with a user message
    assert before >= min(everything, USER_START_SHARE * whole - batch - step)


@settings(max_examples=200, deadline=None)
@given(shape=st.lists(turns, min_size=1, max_size=10), limits=limits)
def test_before_the_border_large_outputs_are_stubs_and_behind_it_everything_is_verbatim(
    shape: Turns, limits: Limits
) -> None:
    entries = entries_of(shape)
    user_entry = surface_of(entries, limits).user
    if user_entry is None or not user_entry.cost.fits(limits.room):
        return
    tail = open_tail(entries, limits)
    large = set((surface_of(entries, limits).window or Window()).stubs)
    assert tail.stubbed == {seq for seq in large if tail.start <= seq < tail.border}


# In a session


@pytest.mark.parametrize("words", [500, 5000, 50_000])
def test_a_newest_result_is_verbatim_if_it_fits_beside_the_rest_and_else_a_stub(home: str, words: int) -> None:
    steps = [one for n in range(30) for one in (call(f"c{n}", text=f"Step {n}."), answer(f"c{n}", f"ok {n} " * 20))]
    with open_work(home, [user("Go."), *steps, call("z"), answer("z", "word " * words)]) as session:
        turn = session.prepare(budget=12_000)
        check_window(turn, Limits(12_000), next(iter(session.messages(1, 1))))
        check_left(turn)
    assert len(in_tail(turn)) >= 40
    assert turn.parts.messages[-1].text.startswith(SWAPPED) == (words > 5000)


def test_the_tail_grows_with_the_budget_until_it_is_the_whole_history(home: str) -> None:
    talk = [one for n in range(20) for one in (user(f"Question {n}? " * 9), say(f"Answer {n}. " * 20))]
    work = [one for n in range(20) for one in (call(f"c{n}"), answer(f"c{n}", f"line {n} " * (300 if n % 2 else 9)))]
    with open_work(home, [*talk, user("Go."), *work]) as session:
        turn = session.prepare(budget=900, dry_run=True)
        for budget in range(1000, 22_000, 700):
            smaller, turn = turn, session.prepare(budget=budget, dry_run=True)
            check_left(turn)
            assert set(in_tail(smaller)) <= set(in_tail(turn))
        assert [message.content for message in turn.parts.messages] == [one.content for one in session.messages()]
