"""Additions to a tail: written once behind a message, and sent by later turns byte for byte."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turn.scenes import FakeMemory, converse, stage
from turn.windows import check_calls, check_left, stable_of

from daypack.text.tokens import counter_named
from daypack.turn.items import Excerpt, Item, TokenMeter
from daypack.turn.pack.additions import added_items, addition_cost, as_message, interleave, place_additions
from daypack.turn.pack.fence import measurer
from daypack.turn.pack.volatile import volatile_cost
from daypack.turn.surface import Addition
from daypack.turn.turn import Turn
from daypack.types.history import Message
from daypack.types.memory import Remembered

counter = counter_named("o200k_base")
weigh = measurer(TokenMeter(counter), redacting=False)


def item(name: str, kind: Any = "system", **fields: Any) -> Item:
    given: dict[str, Any] = {"context_kind": "custom", "source": f"from/{name}", "placement": "tail", **fields}
    return weigh(Item(id=name, kind=kind, text=f"the text of {name}", title=name, **given))


def past(seq: int, *, step: bool = False) -> Excerpt:
    given: dict[str, Any] = {"kind": "memory_entries", "context_kind": "retrieval_result", "source": "messages.jsonl"}
    text = f"[{seq} user] something was said"
    given |= {"placement": "tail", "title": "2026-11-15", "span": (0, 0), "tokens": 14, "bytes": len(text) + 1}
    return Excerpt(id=f"excerpt:{seq}", text=text, seq=seq, step=step, **given)


def message(seq: int, role: Any = "user") -> Message:
    return Message(seq=seq, id=f"msg-{seq}", role=role, content=f"message {seq}")


NOTE, MEMORY, FOUND, STEP = item("law~changed"), item("memory:1", "memory_entries"), past(3), past(4, step=True)


def test_an_addition_is_a_user_message_without_an_id_behind_the_message_it_follows() -> None:
    messages = [message(7), message(8, "assistant"), message(9)]
    woven = interleave(messages, [Addition(7, (FOUND,)), Addition(9, (NOTE,))])
    assert [(one.seq, one.role, bool(one.id)) for one in woven] == [
        (7, "user", True),
        (7, "user", False),
        (8, "assistant", True),
        (9, "user", True),
        (9, "user", False),
    ]
    assert FOUND.text in woven[1].text
    assert NOTE.text in woven[4].text


def test_additions_behind_the_same_message_keep_the_order_they_were_added_in() -> None:
    first, second = Addition(8, (NOTE,)), Addition(8, (item("other~changed"),))
    woven = interleave([message(7), message(8)], [second, Addition(7, (FOUND,)), first])
    assert [one.text for one in woven if not one.id] == [
        as_message(one).text for one in (Addition(7, (FOUND,)), second, first)
    ]


def test_an_addition_behind_a_message_that_is_not_shown_comes_before_the_next_one() -> None:
    woven = interleave([message(2), message(9, "assistant")], [Addition(5, (NOTE,))])
    assert [one.seq for one in woven] == [2, 5, 9]
    assert [one.seq for one in interleave([], [Addition(5, (NOTE,))])] == [5]


def test_all_excerpts_of_an_addition_are_one_text() -> None:
    text = as_message(Addition(7, (NOTE, FOUND, past(5)))).text
    assert text.count("<past ") == 1
    assert text.index(NOTE.text) < text.index(FOUND.text)


def test_what_was_found_for_a_user_message_is_placed_behind_it_and_the_rest_at_the_end() -> None:
    assert place_additions([NOTE, MEMORY, FOUND, STEP], 7, 9) == (
        Addition(7, (MEMORY, FOUND)),
        Addition(9, (NOTE, STEP)),
    )
    assert place_additions([MEMORY, FOUND], 7, 9) == (Addition(7, (MEMORY, FOUND)),)
    assert place_additions([NOTE, STEP], 7, 9) == (Addition(9, (NOTE, STEP)),)


@pytest.mark.parametrize("user", [None, 9])
def test_everything_is_at_the_end_where_no_message_follows_that_of_the_user(user: int | None) -> None:
    assert place_additions([NOTE, MEMORY, FOUND], user, 9) == (Addition(9, (NOTE, MEMORY, FOUND)),)
    assert place_additions([], user, 9) == ()


additions = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.lists(st.sampled_from((NOTE, MEMORY, FOUND, STEP)), min_size=1, max_size=3, unique_by=lambda one: one.id),
    ),
    max_size=6,
)


@given(given=additions, more=additions, last=st.integers(1, 12))
def test_what_is_added_and_said_later_leaves_what_was_sent_before_as_it_is(
    given: list[tuple[int, list[Item]]], more: list[tuple[int, list[Item]]], last: int
) -> None:
    before = [Addition(min(after, last), tuple(items)) for after, items in given]
    later = [Addition(max(after, last), tuple(items)) for after, items in more]
    sent = interleave([message(seq) for seq in range(1, last + 1)], before)
    woven = interleave([message(seq) for seq in range(1, 14)], [*before, *later])
    assert woven[: len(sent)] == sent
    assert len(woven) == 13 + len(before) + len(later)
    assert added_items([*before, *later]) == tuple(one for addition in (*before, *later) for one in addition.items)


@given(given=additions)
def test_additions_take_no_more_than_is_counted(given: list[tuple[int, list[Item]]]) -> None:
    made = [Addition(after, tuple(items)) for after, items in given]
    sent = [as_message(addition).text for addition in made]
    cost = addition_cost(made)
    assert sum(counter.count(text) for text in sent) + 3 * len(sent) <= cost.tokens
    assert sum(len(text.encode()) for text in sent) <= cost.bytes
    assert cost.items == sum(volatile_cost(addition.items).items for addition in made)


# In a session


def added(turn: Turn) -> list[Message]:
    return [one for one in turn.assembly.given.messages if not one.id and one.role == "user"]


def test_what_was_added_in_an_epoch_stays_byte_for_byte_until_the_next(home: str) -> None:
    session = stage(home)
    session.memory = FakeMemory(entries=[Remembered("e1", "The user likes the harbour.", 0.9)])
    session.pin("rules.md", "Write in German.")
    converse(session, 40)
    turns: list[Turn] = []
    for number, topic in enumerate(("harbour 5", "glacier 11", "violin 8", "lantern 9")):
        session.append("user", f"What was said about {topic}?")
        session.pin("rules.md", f"Write in language {number}.")
        turns.append(session.prepare(budget=4000))
        call = {"id": f"c{number}", "name": "look", "arguments": f'{{"at": "{topic}"}}'}
        session.append("assistant", "I look.", tool_calls=[call])
        session.append("tool", f"There is {topic}.", tool_call_id=call["id"])
        turns.append(session.prepare(budget=4000))
        session.append("assistant", "It is there.")
    carried = 0
    for before, after in pairwise(turns):
        check_left(after)
        check_calls(after.assembly.given.messages)
        if after.new_epoch:
            continue
        carried += bool(added(before))
        assert added(after)[: len(added(before))] == added(before)
        assert after.parts.additions[: len(before.parts.additions)] == before.parts.additions
        former, now = stable_of(before), stable_of(after)
        assert all(now[name][: len(former[name])] == former[name] for name in former)
    assert carried >= 3
    for turn in turns:
        assert session.replay(turn.event_id or "").assembly == turn.assembly
