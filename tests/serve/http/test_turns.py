"""Turns: round robin among callers, and nothing is kept for a caller who has gone."""

import threading

import anyio
import pytest

from daypack.serve.http.turns import CallerGone, Turn, Turns


def test_callers_take_turns_however_many_calls_one_has_queued() -> None:
    order: list[str] = []

    async def call(turns: Turns, caller: str) -> None:
        turn = await turns.take(caller)
        order.append(caller)
        turn.end()

    async def run() -> None:
        turns = Turns(at_once=1, per_caller=1)
        first = await turns.take("ada")
        async with anyio.create_task_group() as group:
            for caller in ["ada"] * 5 + ["eve"] * 2 + ["bob"]:
                group.start_soon(call, turns, caller)
            await anyio.wait_all_tasks_blocked()
            assert turns.queued() == 8
            first.end()
        assert (turns.queued(), turns.running) == (0, 0)

    anyio.run(run)
    assert order == ["ada", "eve", "bob", "ada", "eve", "ada", "ada", "ada"]


def test_a_caller_never_has_every_turn() -> None:
    async def run() -> None:
        turns = Turns(at_once=4, per_caller=3)
        taken = [await turns.take("ada") for _ in range(3)]
        with anyio.move_on_after(0):
            await turns.take("ada")
        assert turns.queued("ada") == 0  # a wait that was cancelled leaves the queue
        other = await turns.take("eve")
        assert turns.running == 4
        for turn in (*taken, other, other):  # a second end does nothing
            turn.end()
        assert turns.running == 0

    anyio.run(run)


def test_a_turn_that_pauses_lets_others_work() -> None:
    turns, gone = Turns(at_once=1, per_caller=1), threading.Event()
    first, worked = turns.take_in_thread("ada", gone), list[str]()

    def work() -> None:
        turn = turns.take_in_thread("eve", gone)
        worked.append("eve")
        turn.end()

    other = threading.Thread(target=work)
    other.start()
    while not turns.queued("eve"):
        pass
    second: Turn = first.pause(0, gone)
    other.join()
    assert worked == ["eve"]
    assert (first.state, second.state, turns.running) == ("ended", "running", 1)


def test_a_pause_ends_when_the_caller_has_gone() -> None:
    turns, gone = Turns(at_once=1, per_caller=1), threading.Event()
    turn = turns.take_in_thread("ada", gone)
    gone.set()
    with pytest.raises(CallerGone):
        turn.pause(600, gone)
    holder = turns.take_in_thread("eve", threading.Event())
    with pytest.raises(CallerGone):
        turns.take_in_thread("ada", gone)
    holder.end()
    assert (turns.running, turns.queued()) == (0, 0)
