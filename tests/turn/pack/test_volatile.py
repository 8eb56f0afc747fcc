"""What follows the tail: best first, never more than there is room for, in an order of its own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.tokens import counter_for
from daypack.turn.budget import Limits
from daypack.turn.items import Cost, Excerpt, Item, TokenMeter
from daypack.turn.pack.assemble import assemble
from daypack.turn.pack.fence import measurer
from daypack.turn.pack.tail import UNANSWERED
from daypack.turn.pack.volatile import (
    DAY_LINE,
    EXCERPTS_WRAPPER,
    AlreadyShown,
    choose_volatile,
    free_space,
    over_budget,
    volatile_cost,
)
from daypack.turn.policy import DEFAULT_WINDOW

weigh = measurer(TokenMeter(counter_for("gpt-4o")), redacting=False)
WIDE = Cost(10_000, 100_000, 100)
MODELS = ("gpt-4o", "gpt-4", "claude-3-opus", "claude-opus-4-7", "llama-2-7b", "gemini-2.5-pro", "gemma-3", "nobody")


def item(name: str, text: str = "", **fields: Any) -> Item:
    given: dict[str, Any] = {"kind": "custom", "context_kind": "custom", "source": f"from/{name}", **fields}
    return weigh(Item(id=name, text=text or f"the text of {name}", **given))


def past(seq: int, day: str = "2026-11-15", text: str = "", *, step: bool = False) -> Item:
    line = text or f"[{seq} user] something was said"
    given: dict[str, Any] = {"kind": "memory_entries", "context_kind": "retrieval_result", "source": "messages.jsonl"}
    given |= {"title": day, "seq": seq, "span": (0, 5), "order": 50, "tokens": 12, "bytes": len(line) + 1}
    return Excerpt(id=f"excerpt:{seq}", text=line, placement="tail", step=step, **given)


def choose(
    *offered: Item, room: Cost = WIDE, whole: Cost = WIDE, shown: AlreadyShown | None = None
) -> tuple[list[str], Any]:
    chosen, left = choose_volatile(
        offered, whole, room, shown or AlreadyShown((), (), set()), DEFAULT_WINDOW.excerpt_tokens
    )
    return [one.id for one in chosen], {(one.item, one.reason) for one in left}


def test_notes_come_first_then_the_past_day_by_day_and_the_time_last() -> None:
    offered = [
        item("runtime", order=90),
        past(7, "2026-11-15"),
        past(9, "2026-11-14"),
        past(2, "2026-11-15"),
        item("note~changed", order=-1),
        item("a", order=30),
    ]
    assert choose(*offered) == (["note~changed", "a", "excerpt:9", "excerpt:2", "excerpt:7", "runtime"], set())


def test_what_does_not_fit_is_told_and_what_comes_after_it_may_still_fit() -> None:
    large, small = item("large", "word " * 500), item("small", "word")
    assert choose(large, small, room=Cost(100, 9999, 9)) == (["small"], {("large", "budget_limit")})
    assert choose(large, small, room=Cost(100, 9999, 9), whole=Cost(200, 9999, 9))[1] == {("large", "too_large")}
    assert over_budget(large, Cost(), WIDE, WIDE, high_impact=True).high_impact


def test_a_note_that_does_not_fit_may_change_the_answer() -> None:
    _, (left,) = choose_volatile(
        [item("rule", kind="system")], WIDE, Cost(1, 1, 1), AlreadyShown((), (), set()), DEFAULT_WINDOW.excerpt_tokens
    )
    assert left.high_impact


def test_what_stands_in_the_pack_is_not_said_again() -> None:
    shown = AlreadyShown((item("pin", "Be kind."), item("messages:2", "Welcome.")), (), {2, 5, 6})
    chosen, left = choose(
        item("a", "Be kind."),
        item("b", "Rain."),
        item("c", "Rain."),
        past(2),
        past(5),
        past(4),
        shown=shown,
    )
    assert chosen == ["b", "excerpt:4"]
    assert left == {("a", "duplicate"), ("c", "duplicate")}


def test_a_note_is_shown_although_its_words_stand_in_the_pack() -> None:
    shown = AlreadyShown((item("pin", "Be kind."),), (), set())
    assert choose(item("other~changed", "Be kind."), shown=shown) == (["other~changed"], set())


def test_what_was_added_to_the_tail_before_is_neither_added_again_nor_omitted() -> None:
    memory = item("memory:e1", "The user hikes.", kind="memory_entries", placement="tail")
    shown = AlreadyShown((), (memory, past(4)), {7})
    assert shown.stands(memory)
    assert choose(past(4), past(7), past(5), shown=shown) == (["excerpt:5"], set())
    changed = item("memory:e1", "The user sails.", kind="memory_entries", placement="tail")
    assert not shown.stands(changed)
    assert choose(changed, shown=shown) == (["memory:e1"], set())


def test_a_message_found_for_the_user_and_with_a_step_is_quoted_once() -> None:
    assert choose(past(4), past(4, step=True), past(5, step=True)) == (["excerpt:4", "excerpt:5"], set())


def test_excerpts_for_the_user_and_of_a_step_are_counted_as_two_texts() -> None:
    offered = [past(1), past(2, step=True)]
    apart = volatile_cost(offered[:1]).plus(volatile_cost(offered[1:]))
    assert choose(*offered, room=apart) == (["excerpt:1", "excerpt:2"], set())
    for short in (Cost(1), Cost(0, 1), Cost(0, 0, 1)):
        assert choose(*offered, room=apart.less(short)) == (["excerpt:1"], {("excerpts", "low_relevance")})


def test_a_text_is_no_duplicate_of_one_that_did_not_fit() -> None:
    titled, bare = item("titled", "word " * 50, title="long title " * 20), item("bare", "word " * 50, title="x")
    assert choose(titled, bare, room=Cost(90, 9999, 9)) == (["bare"], {("titled", "budget_limit")})


def test_the_past_takes_its_share_and_no_more() -> None:
    offered = [past(seq) for seq in range(1, 100)]
    chosen, left = choose(*offered, room=Cost(1000, 100_000, 100), whole=Cost(1000, 100_000, 100))
    assert (
        EXCERPTS_WRAPPER.tokens + DAY_LINE.tokens + 12 * len(chosen)
        <= 650
        < EXCERPTS_WRAPPER.tokens + 12 * len(chosen) + 24
    )
    assert left == {("excerpts", "low_relevance")}
    assert len(choose(*offered, room=Cost(120, 9999, 99))[0]) == 0
    assert len(choose(*[past(seq) for seq in range(1, 900)], room=WIDE, whole=Limits().room)[0]) < 2048 / 12


@given(
    tokens=st.integers(0, 900),
    items=st.integers(0, 12),
    kinds=st.lists(st.tuples(st.booleans(), st.integers(1, 60), st.integers(1, 4)), max_size=12),
    steps=st.integers(0, 12),
)
def test_what_is_chosen_fits_and_nothing_is_forgotten(
    tokens: int, items: int, kinds: list[tuple[bool, int, int]], steps: int
) -> None:
    room = Cost(tokens, 100_000, items)
    offered = [
        past(number, f"2026-11-0{day}", step=number > steps)
        if old
        else item(f"i{number}", f"{number} " + "word " * size)
        for number, (old, size, day) in enumerate(kinds, 1)
    ]
    chosen, left = choose_volatile(offered, WIDE, room, AlreadyShown((), (), set()), DEFAULT_WINDOW.excerpt_tokens)
    of_user, of_steps = ([one for one in chosen if one.answers_user is found] for found in (True, False))
    assert not chosen or volatile_cost(of_user).plus(volatile_cost(of_steps)).fits(room)
    present = {one.id for one in chosen}
    told = {one.item for one in left}
    for one in offered:
        assert one.id in present or (one.id if not isinstance(one, Excerpt) else "excerpts") in told


@pytest.mark.parametrize("model", MODELS)
def test_wrapper_day_line_and_stand_in_weigh_no_more_than_is_reckoned(model: str) -> None:
    counter = counter_for(model)
    for seed in range(40):
        offered = [past(seq, f"2026-1{seq % 3}-0{seq}", f"[{seq} user] {seed} word") for seq in range(1, 6)]
        offered.sort(key=lambda one: one.title)
        shown = assemble("model", (), (), (), offered).given.volatile[0]
        bare = sum(counter.count(one.text) + 1 for one in offered)
        assert counter.count(shown) - bare <= EXCERPTS_WRAPPER.tokens + DAY_LINE.tokens * len(
            {one.title for one in offered}
        )
        size = sum(len(one.text) + 1 for one in offered)
        assert len(shown.encode()) - size <= EXCERPTS_WRAPPER.bytes + DAY_LINE.bytes * len(offered)
    assert counter.count(UNANSWERED) <= 9
    assert max(counter.count(f"{day}:\n") for day in ("2026-11-15", "1999-12-31", "2030-08-08")) <= DAY_LINE.tokens


def test_an_eighth_is_free_space_and_not_more_than_the_past_may_take() -> None:
    assert free_space(Cost(800, 1600, 40), DEFAULT_WINDOW) == Cost(100, 200, 5)
    assert free_space(Cost(1_000_000, 8_000_000, 10_000), DEFAULT_WINDOW) == Cost(2048, 1_000_000, 8)


# The arithmetic of costs


def test_costs_are_added_compared_and_shared_one_by_one() -> None:
    one, two = Cost(10, 20, 3), Cost(4, 30, 1)
    assert one.plus(two) == Cost(14, 50, 4)
    assert one.less(two) == Cost(6, 0, 2)
    assert one.at_most(two) == Cost(4, 20, 1)
    assert one.at_least(two) == Cost(10, 30, 3)
    assert one.part(0.25) == Cost(2, 5, 1)
    assert one.fits(Cost(10, 20, 3))
    assert not any(one.fits(room) for room in (Cost(9, 20, 3), Cost(10, 19, 3), Cost(10, 20, 2)))
