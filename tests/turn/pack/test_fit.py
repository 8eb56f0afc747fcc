"""The budget: every window is kept, the question is in it, and what is left out is left out whole and told."""

from pathlib import Path
from typing import Any

import pytest
from turn.histories import Drafts
from turn.windows import (
    HISTORIES,
    LOOP,
    Memory,
    answer,
    bytes_of,
    call,
    check_left,
    check_window,
    furnish,
    open_work,
    say,
    user,
)

from daypack.errors import BudgetTooSmall
from daypack.session import Session
from daypack.turn.budget import Limits
from daypack.turn.dialects import NAMES
from daypack.turn.items import Excerpt
from daypack.turn.turn import Turn
from daypack.types.history import Message
from daypack.types.kinds import is_known


def newest_user(session: Session) -> Message:
    return [message for message in session.messages() if message.role == "user"][-1]


def reasons(turn: Turn) -> dict[str, str]:
    return {one.item: one.reason for one in turn.omitted}


def seqs(turn: Turn) -> list[int]:
    return [message.seq for message in turn.parts.messages]


@pytest.mark.requirement("T2", "S4-PK13", "G9", "G10")
@pytest.mark.parametrize("name", HISTORIES)
def test_no_budget_from_0_to_1500_is_exceeded_and_each_has_the_question_or_fails(
    home: str, tmp_path: Path, name: str
) -> None:
    with open_work(home, HISTORIES[name], workspace=str(tmp_path / "workspace")) as session:
        items = furnish(session, tmp_path / "workspace") if name == "talk" else []
        newest = newest_user(session)
        fitting, last = 0, None
        for budget in range(1501):
            try:
                turn = session.prepare(budget=budget, items=items, dry_run=True)
            except BudgetTooSmall:
                assert fitting == 0, "a larger window fails and a smaller one does not"
                continue
            fitting += 1
            if turn.assembly.given == last:
                continue  # it fitted into less
            last = turn.assembly.given
            check_window(turn, Limits(budget), newest)
            check_left(turn)
            assert all(is_known("omission_reason", one.reason) for one in turn.omitted)
    assert fitting > 1400


@pytest.mark.requirement("S3-O6", "X32")
@pytest.mark.parametrize("name", HISTORIES)
def test_limits_of_bytes_and_items_are_kept_as_those_of_tokens_are(home: str, name: str) -> None:
    with open_work(home, HISTORIES[name]) as session:
        session.pin("system.md", "You pack bags.")
        newest, fitting = newest_user(session), 0
        given = [Limits(bytes=size) for size in range(1, 4000, 23)] + [Limits(items=count) for count in range(1, 60)]
        given += [Limits(600, size, items) for size in (100, 500, 2000) for items in (1, 3, 12)]
        for limits in given:
            try:
                turn = session.prepare(budget=limits, dry_run=True)
            except BudgetTooSmall:
                continue
            fitting += 1
            check_window(turn, limits, newest)
            check_left(turn)
    assert fitting > len(given) - 20


def test_a_question_that_fills_the_window_stands_alone(home: str) -> None:
    with open_work(home, [user("Once?"), say("Once."), user("word " * 200)]) as session:
        session.pin("system.md", "Be kind.")
        fitting = next(budget for budget in range(200, 400) if _fits(session, budget))
        turn = session.prepare(budget=fitting)
        with pytest.raises(BudgetTooSmall) as failure:
            session.prepare(budget=fitting - 1)
    assert seqs(turn) == [3]
    assert turn.parts.epoch.prefix == ()
    assert reasons(turn)["pin:system.md"] == "budget_limit"
    assert "msg-3" in failure.value.problem
    assert failure.value.place == "budget"


def _fits(session: Session, budget: int) -> bool:
    try:
        return bool(session.prepare(budget=budget, dry_run=True))
    except BudgetTooSmall:
        return False


@pytest.mark.parametrize("target", ["ui", "user", "reviewer", "peer_agent", "evidence_export"])
def test_whoever_looks_on_gets_no_more_than_fits_either(home: str, target: str) -> None:
    with open_work(home, [user("word " * 200)]) as session:
        with pytest.raises(BudgetTooSmall):
            session.prepare(budget=100, target=target)
        assert seqs(session.prepare(budget=400, target=target)) == [1]


def test_what_follows_is_counted_together_with_the_past_it_stands_beside(home: str) -> None:
    """An item ranked below the past does not get the room that the past has taken."""
    topic = ["harbour"] * 2 + ["violin"] * 70
    drafts = [one for n in range(72) for one in (user(f"The {topic[n]} of {n}."), say(f"Noted, {n}."))]
    with open_work(home, [*drafts, user("Which harbour?")]) as session:
        beside = 0
        for size in range(20, 400, 5):
            items = [{"context_kind": "manual_note", "content": "boat " * size, "priority": 0.1}]
            turn = session.prepare(budget=900, items=items, dry_run=True)
            check_window(turn, Limits(900), newest_user(session))
            beside += {isinstance(item, Excerpt) for item in turn.inserted} == {True, False}
    assert beside


@pytest.mark.parametrize("model", ["claude-opus-4-7", "llama-2-7b", "gemini-2.5-pro", "a-model-nobody-knows"])
def test_the_wrapper_of_the_past_is_within_its_weight_for_every_counter(home: str, model: str) -> None:
    drafts = [one for n in range(60) for one in (user(f"Harbour {n} has {n} boats."), say(f"Noted, {n} boats."))]
    with open_work(home, [*drafts, user("How many boats has harbour 7?")]) as session:
        shown = 0
        for budget in range(300, 900, 20):
            turn = session.prepare(budget=budget, model=model, dry_run=True)
            check_window(turn, Limits(budget), newest_user(session))
            shown += any(isinstance(item, Excerpt) for item in turn.inserted)
    assert shown > 10


# Who gives way


@pytest.mark.requirement("S1-I4.1")
def test_instructions_that_do_not_fit_are_left_out_whole_and_told(home: str, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Test everything. " * 400)
    (tmp_path / "SOUL.md").write_text("Be brief.")
    with open_work(home, [user("Hello?")], workspace=str(tmp_path)) as session:
        session.pin("law.md", "Never lie. " * 600)
        session.pin("system.md", "You are honest.")
        turn = session.prepare(budget=1000)
    left = {one.item: one for one in turn.omitted}
    assert (left["file:AGENTS.md"].reason, left["file:AGENTS.md"].high_impact) == ("too_large", True)
    assert (left["pin:law.md"].reason, left["pin:law.md"].high_impact) == ("too_large", True)
    assert "Test everything" not in turn.system
    assert "Never lie" not in turn.system
    assert "Be brief." in turn.system
    assert turn.system.startswith("You run on") or "You are honest." in turn.system


@pytest.mark.requirement("G8")
def test_recent_messages_keep_their_share_when_derived_files_are_huge(home: str, tmp_path: Path) -> None:
    drafts = [one for n in range(200) for one in (user(f"Question {n}, please?"), say(f"Answer {n}, certainly."))]
    with open_work(home, [*drafts, user("And now?")], workspace=str(tmp_path)) as session:
        context = session.path / "context"
        context.mkdir(exist_ok=True)
        for size in (100, 300, 700, 2000):
            (context / "CONTEXT.md").write_text("## Task\n" + "- Something was done.\n" * size)
            (tmp_path / "MEMORY.md").write_text("Remember this. " * size)
            session.memory = Memory("The user likes boats. " * size)
            turn = session.prepare(budget=4000, dry_run=True)
            room = turn.record.limits.room.tokens
            assert turn.record.stable.prefix_tokens <= room // 2
            assert turn.stable_tokens - turn.record.stable.prefix_tokens >= room // 4 - 40
            huge = [one.item for one in turn.omitted if one.item in ("context_doc", "memory", "file:MEMORY.md")]
            assert huge or size < 200


def test_a_short_question_after_a_long_task_keeps_the_end_of_the_task(home: str) -> None:
    steps = [one for n in range(150) for one in (call(f"c{n}", text=f"Step {n}."), answer(f"c{n}", "ok " * 10))]
    with open_work(home, [user("Do it all."), *steps, say("Done."), user("What came last?")]) as session:
        turn = session.prepare(budget=3000)
    assert seqs(turn)[0] == 1, "the question of the task stands before its end"
    assert seqs(turn)[-1] == 303
    assert len(seqs(turn)) > 20
    assert reasons(turn)[f"messages:2-{seqs(turn)[1] - 1}"] == "budget_limit"
    check_window(turn, Limits(3000), turn.parts.messages[-1])


def test_the_newest_result_is_shown_even_when_it_is_larger_than_the_share_of_the_tail(home: str) -> None:
    before = [one for n in range(50) for one in (user(f"Question {n}?"), say("Yes. " * 20))]
    with open_work(home, [*before, user("Read it."), call("a"), answer("a", "line " * 1800)]) as session:
        turn = session.prepare(budget=3000)
    assert seqs(turn)[-3:] == [101, 102, 103]


def test_a_result_larger_than_the_window_stands_there_as_one_line(home: str) -> None:
    with open_work(home, [user("Hello."), say("Hello."), user("Read it."), call("a")]) as session:
        first = session.prepare(budget=2000)
        session.append("tool", "line " * 9000, tool_call_id="a")
        second = session.prepare(budget=2000)
        check_window(second, Limits(2000), newest_user(session))
        check_left(second)
        [masked] = [one for one in second.omitted if one.reason == "too_large"]
        assert masked.item == "tool:a"
        assert session.recall(masked.swap or "").text == "line " * 9000
        session.append("user", "Go on.")
        third = session.prepare(budget=2000)
    assert seqs(first) == [1, 2, 3]
    assert (second.new_epoch, seqs(second)) == ("overflow", [1, 2, 3, 4, 5])
    assert (third.new_epoch, seqs(third)) == ("", [1, 2, 3, 4, 5, 6])


def test_a_batch_that_is_open_when_an_epoch_begins_is_shown_when_it_is_answered(home: str) -> None:
    drafts = [user("Do both."), call("big"), answer("big", "line " * 1500), call("x", "y"), answer("x", "first")]
    with open_work(home, drafts) as session:
        turn = session.prepare(budget=1000)
        assert seqs(turn) == [1, 2, 3]
        assert [one.id for one in turn.missing] == ["tool:y"]
        session.append("tool", "second", tool_call_id="y")
        again = session.prepare(budget=1000)
        assert (again.new_epoch, seqs(again)) == ("", [1, 2, 3, 4, 5, 6])
        check_left(again)


def test_a_tail_that_begins_in_the_middle_of_a_task_begins_with_its_question(home: str) -> None:
    with open_work(home, LOOP) as session:
        turn = session.prepare(budget=500)
        assert turn.parts.epoch.head == 2
        assert seqs(turn)[0] == 2
        gap = next(one for one in turn.omitted if one.item.startswith("messages:3-"))
        assert (gap.reason, gap.high_impact) == ("budget_limit", True)
        session.append("tool", "the second too", tool_call_id="y")
        again = session.prepare(budget=500)
        assert again.new_epoch == ""
        assert seqs(again)[: len(seqs(turn))] == seqs(turn)
        assert seqs(again)[-3:] == [51, 52, 53]


@pytest.mark.requirement("G9")
def test_what_a_task_began_with_is_told_apart_from_what_did_not_fit(home: str) -> None:
    drafts: Drafts = [say(f"Talking to myself, {n}.") for n in range(12)]
    with open_work(home, [*drafts, user("Hello?")]) as session:
        turn = session.prepare()
    assert seqs(turn) == [13]
    left = {one.item: one for one in turn.omitted}["messages:1-12"]
    assert (left.reason, left.note) == ("custom", "before the first user message")


@pytest.mark.requirement("G9")
def test_messages_before_the_first_question_are_in_the_prefix_or_told(home: str) -> None:
    with open_work(home, [answer("lost"), call("m"), answer("m"), say("Welcome."), user("Hello?")]) as session:
        turn = session.prepare()
    assert "Welcome." in turn.quoted
    check_left(turn)
    assert {one.item: one.reason for one in turn.omitted} == {
        "messages:1": "custom",
        "messages:2": "custom",
        "messages:3": "custom",
    }


def test_words_that_a_dialect_puts_in_are_counted(home: str) -> None:
    """A message that says nothing, a note of the system, a name: each dialect adds words for them."""
    odd: list[dict[str, Any]] = [
        user(""),
        {"role": "system", "content": "Note."},
        {**user("Hi"), "name": "小 明"},
        call("a", "b", name="搜索", arguments='"\\" not an object \\n"' * 8),
        answer("a", " "),
        answer("b", [{"type": "text", "text": "x"}] * 30),
        say([{"type": "text", "text": "y"}] * 30),
        user([{"type": "image", "source": "a.png"}]),
    ]
    with open_work(home, [*odd * 6, user("Now?")]) as session:
        for size in range(40, 4000, 90):
            limits = Limits(bytes=size)
            turn = session.prepare(budget=limits, dry_run=True)
            assert all(bytes_of(name, turn.request(name)) <= size for name in NAMES)
            check_window(turn, limits, newest_user(session))
        for tokens in range(100, 60_000, 1500):
            check_window(session.prepare(budget=tokens, dry_run=True), Limits(tokens), newest_user(session))
