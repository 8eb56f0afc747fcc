"""Where the tail of a new epoch begins: never behind the newest message, never before what was summed up."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn.compacting import BUDGET, scene, step, turn_after
from turn.scenes import append_raw, in_tail, stage
from turn.windows import answer, call, check_left, check_window, open_work, say, stable_of, user

from daypack.errors import BudgetTooSmall
from daypack.session import Session
from daypack.text.injected import SAME
from daypack.turn.budget import Limits
from daypack.turn.policy import DEFAULT_WINDOW


def newest_user(session: Session):
    return next(message for message in reversed(session.tail(400)) if message.role == "user")


def test_the_shares_are_in_order() -> None:
    assert DEFAULT_WINDOW.soft_share < DEFAULT_WINDOW.hard_share < 1
    for room in (1, 300, 3000, 12_000, 60_000, 124_000, 1_000_000, 1 << 60):
        opening, background = DEFAULT_WINDOW.opening_share(room), DEFAULT_WINDOW.background_share(room)
        assert 0 < opening < background < DEFAULT_WINDOW.hard_share
        assert DEFAULT_WINDOW.opening_share(2 * room) >= opening


def test_what_was_compacted_on_request_does_not_come_back_while_the_budget_is_the_same(home: str) -> None:
    session = scene(home)
    session.prepare(budget=50_000)
    done = session.compact(keep_tokens=200)
    for budget in (50_000, 20_000):
        turn = session.prepare(budget=budget)
        assert min(one.seq for one in turn.parts.messages if one.seq != turn.parts.epoch.head) == done.kept_from


def test_all_raw_messages_are_sent_once_a_larger_budget_holds_them(home: str) -> None:
    session = scene(home)
    for number in range(12, 20):
        turn_after(session, number)
    assert session.compactions
    session.append("user", "And now?")
    turn = session.prepare(budget=50_000)
    assert [message.content for message in turn.parts.messages] == [one.content for one in session.messages()]
    assert "context_doc" not in [item.id for item in turn.inserted]
    check_window(turn, Limits(50_000), newest_user(session))
    check_left(turn)
    session.append("assistant", "Nothing.")
    session.append("user", "Good.")
    after = session.prepare(budget=50_000)
    assert (after.new_epoch, in_tail(after)) == ("", [message.seq for message in session.messages()])
    session.replay(after.event_id or "")
    back = session.prepare(budget=BUDGET)
    assert (
        min(one.seq for one in back.parts.messages if one.seq != back.parts.epoch.head)
        > session.compactions[-1].through
    )


def test_all_that_no_compaction_has_read_is_in_the_tail_while_it_fits(home: str) -> None:
    session = scene(home)
    session.prepare(budget=BUDGET)
    done = session.compact(keep_tokens=500)
    turn = session.prepare(budget=BUDGET)
    assert [seq for seq in in_tail(turn) if seq != turn.parts.epoch.head] == list(
        range(done.kept_from, len(session.messages()) + 1)
    )


def test_a_tail_that_begins_within_a_turn_has_the_users_message_as_its_head(home: str) -> None:
    session = stage(home)
    session.append("user", "Do all of it.")
    for number in range(30):
        call = {"id": f"c{number}", "name": "look", "arguments": "{}"}
        session.append("assistant", f"Step {number}.", tool_calls=[call])
        session.append("tool", f"It shows {number}. " * 30, tool_call_id=call["id"])
    session.prepare(budget=20_000)
    done = session.compact(keep_tokens=700)
    turn = session.prepare(budget=20_000)
    assert turn.parts.epoch.head == 1
    assert in_tail(turn)[:2] == [1, done.kept_from]
    check_window(turn, Limits(20_000), newest_user(session))
    check_left(turn)


def test_less_than_a_window_goes_on_without_a_new_epoch(home: str) -> None:
    session = stage(home)
    begun: list[str | None] = []
    for number in range(4):
        step(session, number)
        session.append("user", "Next?")
        begun.append(session.prepare(budget=BUDGET).new_epoch)
    assert begun == ["first", "", "", ""]
    assert session.compactions == ()


@pytest.mark.parametrize("budget", [{"tokens": 6000}, {"bytes": 9_000}, {"items": 40}, {"tokens": 9000, "items": 30}])
def test_whatever_limit_fills_up_the_window_holds_it_and_the_newest_is_there(home: str, budget: dict[str, int]) -> None:
    session = stage(home)
    for number in range(14):
        step(session, number)
        session.append("user", f"Next after {number}?")
        turn = session.prepare(budget=budget)
        check_window(turn, Limits(**budget), session.tail(1)[0])
        check_left(turn)
        session.accept("Good.")
    assert session.compactions


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.tuples(st.sampled_from(["user", "tool", "say"]), st.integers(1, 900)), min_size=6, max_size=30),
    budget=st.integers(900, 6000),
    keep=st.one_of(st.none(), st.integers(0, 3000)),
)
def test_any_history_any_window_any_compaction_gives_a_window_that_holds(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[str, int]], budget: int, keep: int | None
) -> None:
    session = stage(str(tmp_path_factory.mktemp("home")))
    session.append("user", "Begin with this.")
    for at, (kind, size) in enumerate(sizes):
        if kind == "tool":
            session.append("assistant", "", tool_calls=[{"id": f"c{at}", "name": "look", "arguments": "{}"}])
            session.append("tool", f"seen {at} " * size, tool_call_id=f"c{at}")
        else:
            session.append("user" if kind == "user" else "assistant", f"word {at} " * min(size, 150))
        if at % 5 == 4:
            session.append("user", f"What of {at}?")
            try:
                turn = session.prepare(budget=budget)
            except BudgetTooSmall:
                continue
            check_window(turn, Limits(budget), newest_user(session))
            check_left(turn)
        if at % 9 == 8:
            session.compact(model="none", keep_tokens=keep)
    session.append("user", "And at last?")
    turn = session.prepare(budget=budget)
    check_window(turn, Limits(budget), newest_user(session))
    check_left(turn)
    session.replay(turn.event_id or "")


def test_after_each_full_window_many_turns_append_before_the_next(home: str) -> None:
    session = stage(home)
    begun: list[int] = []
    for number in range(60):
        step(session, number)
        session.append("user", f"What is next after part {number}?")
        if session.prepare(budget=16_000).new_epoch == "overflow":
            begun.append(number)
        session.accept(f"Part {number + 1} is next.")
    assert len(begun) >= 4
    assert begun[-1] - begun[0] >= 3 * (len(begun) - 1)
    assert session.compactions


HUGE = "seen at last " * 4000
LONG = [one for n in range(8) for one in (user(f"Why {n}? " + "so " * 60), say("Because. " * 30))]
LARGE = [one for n in range(8) for one in (call(f"r{n}"), answer(f"r{n}", f"line {n} " * 150))]
OPENINGS: dict[str, tuple[list[Any], int]] = {
    "a tail that begins with one of many questions": (LONG, 1200),
    "a tail that begins behind what nobody asked for": (
        [*(say(f"Greeting {n}.") for n in range(9)), user("Go.")],
        1200,
    ),
    "a tail behind a head": ([user("Go."), *LARGE], 3000),
    "a tail with masks": ([user("Go."), *LARGE, call("z"), answer("z", HUGE)], 6000),
    "a tail of everything": ([user("Go.")], 1200),
}
HEAVY: dict[str, list[Any]] = {
    "a result beside one that is waited for": [call("x", "y"), answer("x", HUGE)],
    "a result that nobody asked for": [answer("nobody", HUGE)],
}


@pytest.mark.parametrize("heavy", HEAVY.values(), ids=HEAVY)
@pytest.mark.parametrize(("drafts", "budget"), OPENINGS.values(), ids=OPENINGS)
def test_what_is_heavy_and_not_shown_neither_moves_nor_damages_a_tail(
    home: str, drafts: list[Any], budget: int, heavy: list[Any]
) -> None:
    with open_work(home, drafts) as session:
        before = stable_of(session.prepare(budget=budget))
        for more in (heavy, [answer("y")], [user("And now?")]):
            append_raw(session, *more)
            turn = session.prepare(budget=budget)
            check_window(turn, Limits(budget), newest_user(session))
            check_left(turn)
            assert turn.new_epoch in ("", "overflow")
            stable = stable_of(turn)
            if not turn.new_epoch:
                assert all(stable[name][: len(body)] == body for name, body in before.items())
            before = stable
            session.replay(turn.event_id or "")


def test_a_repeat_beside_something_heavy_is_named_or_an_epoch_begins(home: str) -> None:
    text = "".join(f"line {number} of the file\n" for number in range(150))
    with open_work(home, [user("Go."), call("a"), answer("a", text)]) as session:
        session.prepare(budget=3500)
        session.append_many([call("b"), answer("b", text), user("Next.")])
        before = session.prepare(budget=3500)
        assert before.new_epoch == ""
        assert before.parts.messages[4].text.startswith(SAME)
        session.append_many([call("x", "y"), answer("x", HUGE)])
        turn = session.prepare(budget=3500)
        assert turn.new_epoch == "overflow" or turn.parts.messages == before.parts.messages


@pytest.mark.parametrize("target", ["ui", "user", "peer_agent", "reviewer", "evidence_export"])
def test_a_message_larger_than_the_window_of_those_who_look_on_is_told(home: str, target: str) -> None:
    with open_work(home, [say("Hello."), say("Anybody?")]) as session:
        assert in_tail(session.prepare(budget=1200, target=target)) == [1, 2]
        session.append("assistant", HUGE)
        turn = session.prepare(budget=1200, target=target)
        assert turn.new_epoch == "overflow"
        check_left(turn)
        session.append("assistant", "Nobody.")
        turn = session.prepare(budget=1200, target=target)
        assert (turn.new_epoch, in_tail(turn)) == ("", [4])
        check_left(turn)


def test_what_is_hidden_from_those_who_look_on_begins_no_epoch(home: str) -> None:
    with open_work(home, [say(HUGE)]) as session:
        assert session.prepare(budget=1200, target="ui").parts.epoch.start == 2
        session.append("system", "A note.")
        turn = session.prepare(budget=1200, target="ui")
        assert turn.new_epoch == ""
        check_left(turn)
        session.append_many([say(HUGE), {"role": "system", "content": "Another."}])
        turn = session.prepare(budget=1200, target="ui")
        assert turn.new_epoch == "overflow"
        check_left(turn)


@pytest.mark.parametrize("target", ["tool", "runtime"])
def test_for_those_who_see_no_messages_an_epoch_goes_on_as_they_come(home: str, target: str) -> None:
    with open_work(home, [user("Go.")]) as session:
        session.prepare(budget=1200, target=target)
        for text in ("Yes.", HUGE, "Done."):
            session.append("assistant", text)
            turn = session.prepare(budget=1200, target=target)
            assert (turn.new_epoch, in_tail(turn)) == ("", [])
            check_left(turn)


@pytest.mark.parametrize("heavy", HEAVY.values(), ids=HEAVY)
@pytest.mark.parametrize(("drafts", "budget"), OPENINGS.values(), ids=OPENINGS)
def test_an_epoch_goes_on_while_what_is_heavy_is_not_shown(
    home: str, drafts: list[Any], budget: int, heavy: list[Any]
) -> None:
    with open_work(home, drafts) as session:
        before = session.prepare(budget=budget)
        append_raw(session, *heavy)
        for _ in range(2):
            turn = session.prepare(budget=budget)
            assert (turn.new_epoch, turn.parts.messages) == ("", before.parts.messages)
        assert session.compactions == ()
