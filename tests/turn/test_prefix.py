"""Prefix and tail: what was sent once is sent again, byte for byte, until an epoch begins for a stated reason."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from turn.scenes import append_raw
from turn.windows import Memory, answer, call, check_left, check_window, open_work, say, stable_of, user

from daypack.session import Session
from daypack.turn.budget import Limits
from daypack.turn.dialects import NAMES
from daypack.turn.pack.additions import addition_cost
from daypack.turn.turn import Turn

_THOUGHT = {"type": "thinking", "text": "First the plan.", "signature": "c2ln"}


def steps(count: int) -> Iterator[list[dict[str, Any]]]:
    """What is appended between turns: questions, tool loops, parallel calls, thinking, a few odd things."""
    for number in range(count):
        kind = number % 8
        if kind == 0:
            yield [user(f"Question {number}: 下一步是什么 🚀?")]
        elif kind in (1, 2):
            yield [call(f"a{number}", text=[_THOUGHT]), answer(f"a{number}", f"result {number} " * 4)]
        elif kind == 3:
            ids = [f"p{number}", f"q{number}"]
            yield [call(*ids, text="Both."), answer(ids[1], "second"), answer(ids[0], "first")]
        elif kind == 4:
            yield [call(f"w{number}", f"x{number}"), answer(f"x{number}", "one of two")]  # open until the next step
        elif kind == 5:
            yield [answer(f"w{number - 1}", "the other"), answer(f"w{number - 1}", "again")]
        elif kind == 6:
            yield [{"role": "system", "content": f"It is step {number}."}, say(f"Done with {number}.")]
        else:
            yield [say(""), call(f"z{number}"), user("Stop that.")]  # interrupted


def begins_with(turn: Turn, before: dict[str, list[bytes]]) -> bool:
    stable = stable_of(turn)
    return all(stable[name][: len(before[name])] == before[name] for name in NAMES)


def sent(turn: Turn) -> str:
    """What stands in the tail besides messages, and what follows it."""
    added = [message.text for message in turn.assembly.given.messages if not message.id]
    return "\n".join((*added, *turn.assembly.given.volatile))


def walk(session: Session, count: int, budget: int | None = None) -> list[Turn]:
    """Append and prepare `count` times; each turn goes on from the one before it, or begins an epoch."""
    turns: list[Turn] = []
    before: dict[str, list[bytes]] = {}
    newest = None
    for drafts in steps(count):
        added = append_raw(session, *drafts)
        newest = next((one for one in reversed(added) if one.role == "user"), newest)
        turn = session.prepare(budget=budget)
        assert turn.new_epoch in (("", "overflow") if before else ("first",))
        stable = stable_of(turn)
        if not turn.new_epoch:
            assert all(stable[name][: len(before[name])] == before[name] for name in NAMES)
            assert turn.prefix_sha256 == turns[-1].prefix_sha256
            assert turn.expected_cached_tokens == turns[-1].stable_tokens
        if turn.new_epoch or len(turns) % 5 == 0:
            check_window(turn, turn.record.limits, newest)
            check_left(turn)
        before = stable
        turns.append(turn)
    return turns


@pytest.mark.requirement("X41", "X42")
def test_two_hundred_turns_in_a_large_window_are_one_epoch(home: str) -> None:
    with open_work(home) as session:
        session.pin("system.md", "You are a careful engineer.")
        session.switch("identity", on=True)
        turns = walk(session, 200)
    assert [turn.new_epoch for turn in turns] == ["first"] + [""] * 199
    assert all("Current time" not in turn.system for turn in turns)
    answered = [turn for turn in turns if turn.parts.messages[-1].role in ("user", "tool")]
    assert len(answered) > 100
    assert all("Current time" in sent(turn) for turn in answered)
    assert len(turns[-1].parts.messages) > 250


@pytest.mark.requirement("X41")
@pytest.mark.parametrize(("budget", "count", "least"), [(2000, 120, 2), (8000, 300, 40)])
def test_in_a_small_window_many_turns_pass_between_epochs(home: str, budget: int, count: int, least: int) -> None:
    """What is recalled stays in the tail, so in the smallest windows it takes space of the turns that follow."""
    with open_work(home) as session:
        session.pin("system.md", "You are a careful engineer.")
        turns = walk(session, count, budget=budget)
    begins = [at for at, turn in enumerate(turns) if turn.new_epoch]
    assert 4 <= len(begins) <= 15
    assert min(after - before for before, after in pairwise(begins)) >= least
    for at in begins[1:]:
        room, begun = turns[at].record.limits.room.tokens, turns[at]
        messages = begun.stable_tokens - addition_cost(begun.parts.additions).tokens
        assert room - messages >= room / 4, "a quarter of the room is free to append into"
        assert begun.stable_tokens >= room / 4, "and what was said last is still there"


def test_an_epoch_goes_on_in_another_process(home: str) -> None:
    with open_work(home, [user("One?"), say("One.")]) as session:
        before = stable_of(session.prepare())
    with open_work(home, [user("Two?")]) as session:
        turn = session.prepare()
    assert turn.new_epoch == ""
    assert begins_with(turn, before)


@pytest.mark.requirement("X41")
def test_epochs_begin_for_five_reasons_and_no_others(home: str) -> None:
    def begins(**given: Any) -> str:
        session.append("user", "Go on.")
        return session.prepare(**given).new_epoch

    with open_work(home, [user("Hello.")]) as session:
        assert [begins(), begins()] == ["first", ""]
        assert [begins(budget=5000), begins(budget=5000)] == ["budget_changed", ""]
        assert [begins(budget={"tokens": 5000}), begins(budget=Limits(5000))] == ["", ""]
        assert begins(budget={"tokens": 5000, "items": 90}) == "budget_changed"
        assert begins(budget=5000) == "budget_changed"
        assert begins(budget=5000, model="gpt-4o") == ""  # another name, counted the same
        assert [begins(budget=5000, model="claude-opus-4-7") for _ in range(2)] == ["tokenizer_changed", ""]
        assert [begins(budget=5000), begins(budget=5000)] == ["tokenizer_changed", ""]
        session.refresh()
        assert [begins(budget=5000), begins(budget=5000)] == ["refresh", ""]
        session.append("assistant", "word " * 3700)
        assert [begins(budget=5000), begins(budget=5000)] == ["overflow", ""]


def test_each_target_has_epochs_of_its_own(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        assert session.prepare().new_epoch == "first"
        assert session.prepare(target="reviewer").new_epoch == "first"
        assert session.prepare().new_epoch == ""
        assert session.prepare(target="reviewer").new_epoch == ""


def test_a_dry_run_begins_nothing(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        session.prepare()
        session.refresh()
        assert session.prepare(dry_run=True).new_epoch == "refresh"
        assert session.prepare(budget=900, dry_run=True).new_epoch == "refresh"
        assert session.prepare().new_epoch == "refresh"
        assert session.prepare(budget=900, dry_run=True).new_epoch == "budget_changed"
        assert session.prepare().new_epoch == ""


# What changes while an epoch goes on


@pytest.mark.requirement("X41")
def test_a_changed_pin_arrives_as_a_note_and_is_in_the_prefix_after_a_refresh(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        session.pin("rules.md", "Write in German.")
        session.pin("old.md", "Use tabs.")
        before = stable_of(session.prepare())
        session.pin("rules.md", "Write in French.")
        session.pin("new.md", "Sign every letter.")
        session.unpin("old.md")
        for _ in range(2):
            session.append("user", "Go on.")
            turn = session.prepare()
            assert turn.new_epoch == ""
            assert begins_with(turn, before)
            assert {"Write in German." in turn.system, "Use tabs." in turn.system} == {True}
            note = sent(turn)
            assert 'name="rules.md (in place of the text above)"' in note
            assert "Write in French." in note
            assert "Sign every letter." in note
            assert note.count("old.md was withdrawn: it no longer applies.") == 1, "said once, and kept"
            before = stable_of(turn)
        session.refresh()
        turn = session.prepare()
    assert turn.new_epoch == "refresh"
    assert "Write in French." in turn.system
    assert "Sign every letter." in turn.system
    assert not any(text in turn.system for text in ("German", "tabs"))
    assert not any(text in sent(turn) for text in ("French", "Sign", "withdrawn"))


@pytest.mark.requirement("X41")
def test_a_changed_workspace_file_arrives_as_a_note_and_a_memory_document_waits(home: str, tmp_path: Path) -> None:
    for name in ("AGENTS.md", "MEMORY.md"):
        (tmp_path / name).write_text(f"{name} as it was.")
    with open_work(home, [user("Hello.")], workspace=str(tmp_path)) as session:
        memory = session.memory = Memory("The user hikes.")
        before = stable_of(session.prepare())
        for name in ("AGENTS.md", "MEMORY.md"):
            (tmp_path / name).write_text(f"{name} as it is now.")
        memory.text = "The user sails."
        session.append("user", "Go on.")
        turn = session.prepare()
        assert turn.new_epoch == ""
        assert begins_with(turn, before)
        assert "AGENTS.md as it is now." in sent(turn)
        assert "MEMORY.md as it is now." not in sent(turn)
        assert "sails" not in sent(turn)
        waiting = {one.item: (one.reason, one.note) for one in turn.omitted}
        told = ("custom", "changed; waits for the next epoch")
        assert (waiting["memory~changed"], waiting["file:MEMORY.md~changed"]) == (told, told)
        session.refresh()
        turn = session.prepare()
    for text in ("AGENTS.md as it is now.", "MEMORY.md as it is now.", "The user sails."):
        assert text in turn.system + turn.quoted
    assert "as it was" not in turn.system + turn.quoted
    assert turn.omitted == ()


def test_a_document_that_appears_waits_and_nothing_points_to_it_before_it_is_there(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        session.switch("identity", on=True)
        before = stable_of(session.prepare())
        context = session.path / "context"
        (context / "CONTEXT.md").write_text("## Task\n- Pack.\n")
        session.append("user", "Go on.")
        turn = session.prepare()
        assert begins_with(turn, before)
        assert "CONTEXT.md" not in sent(turn)
        assert {one.item for one in turn.omitted} == {"context_doc", "identity~changed"}
        session.refresh()
        turn = session.prepare()
    assert "- Pack." in turn.quoted
    assert "Working memory: CONTEXT.md below." in turn.system


def test_records_that_stand_in_the_prefix_are_not_left_out_because_a_document_will_replace_them(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        context = session.path / "context"
        context.mkdir(exist_ok=True)
        (context / "facts.jsonl").write_text('{"id": "f1", "text": "It rains.", "source": "messages:1"}\n')
        assert "It rains." in session.prepare().quoted
        (context / "CONTEXT.md").write_text("## Facts\n- It rains.\n")
        turn = session.prepare()
        check_left(turn)
        assert "It rains." in turn.quoted
        assert "facts" not in {one.item for one in turn.omitted}
        session.refresh()
        turn = session.prepare()
    assert {one.item: one.reason for one in turn.omitted} == {"facts": "duplicate"}


def test_a_turn_with_nothing_new_goes_on_whatever_the_window(home: str) -> None:
    """Also where messages before the first question are left out for good, and the rest just fits."""
    drafts = [say(f"Talking to myself, {n}.") for n in range(12)]
    drafts += [one for n in range(12) for one in (user(f"Question {n}, please?"), say(f"Answer {n}, certainly."))]
    with open_work(home, drafts) as session:
        session.pin("law.md", "Be brief. " * 60)
        for budget in range(500, 1100, 5):
            first, second = session.prepare(budget=budget), session.prepare(budget=budget)
            assert (first.new_epoch != "", second.new_epoch) == (True, ""), budget
            assert second.parts.messages == first.parts.messages


def test_the_answer_of_a_child_arrives_at_once(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        before = stable_of(session.prepare())
        session.put_child("scout", result="There is a spring.")
        session.append("user", "Go on.")
        turn = session.prepare()
    assert begins_with(turn, before)
    assert "There is a spring." in sent(turn)


def test_notes_that_do_not_fit_any_more_begin_an_epoch(home: str) -> None:
    with open_work(home, [user("Hello."), say("word " * 900), user("Go on.")]) as session:
        assert session.prepare(budget=2000).new_epoch == "first"
        session.pin("law.md", "Never lie. " * 190)
        turn = session.prepare(budget=2000)
    assert turn.new_epoch == "overflow"
    assert "Never lie." in turn.system


def test_an_instruction_that_did_not_fit_an_epoch_is_told_in_every_turn_of_it(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        session.pin("law.md", "Never lie. " * 600)
        for _ in range(2):
            turn = session.prepare(budget=1000)
            assert [(one.item, one.high_impact) for one in turn.omitted if one.item != "excerpts"] == [
                ("pin:law.md", True)
            ]
            session.append("user", "Go on.")


@pytest.mark.requirement("X41")
def test_instructions_survive_every_epoch(home: str) -> None:
    lead = [{"role": "system", "content": "Never forget the first rule."}, say("Welcome aboard.")]
    with open_work(home, lead) as session:
        session.pin("second.md", "Never forget the second rule.")
        turns = walk(session, 80, budget=1200)
    assert sum(1 for turn in turns if turn.new_epoch) > 5
    for turn in turns:
        assert "Never forget the first rule." in turn.system
        assert "Never forget the second rule." in turn.system
        assert "Welcome aboard." in turn.quoted


def test_with_a_large_prefix_there_is_still_room_to_append_into(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        session.pin("law.md", "Always test what you write. " * 365)
        turns: list[Turn] = []
        for number in range(60):
            session.append("user", f"Question {number}?")
            session.append("assistant", f"Answer {number}, in some more words than the question.")
            turns.append(session.prepare(budget=4000))
    assert all("Always test" in turn.system for turn in turns)
    assert turns[-1].record.stable.prefix_tokens > 0.7 * turns[-1].record.limits.room.tokens
    begins = [number for number, turn in enumerate(turns) if turn.new_epoch]
    assert len(begins) > 2
    assert min(after - before for before, after in pairwise(begins)) >= 5


# What the tail rests on


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
@pytest.mark.parametrize("lost", [1, 3, 41])
def test_a_damaged_message_at_the_beginning_of_the_tail_begins_an_epoch(home: str, lost: int) -> None:
    """The head, the first message of a tail and the newest question are found to be gone: no pack rests on them."""
    loop = [one for n in range(15) for one in (call(f"c{n}", text=f"Step {n}."), answer(f"c{n}", "ok " * 10))]
    with open_work(home, [user("Hello."), say("Hello."), user("Do it all."), *loop]) as session:
        first = session.prepare(budget=700 if lost == 3 else 20_000)
        assert first.parts.epoch.head == (3 if lost == 3 else None)
        assert first.parts.messages[0].seq == (3 if lost == 3 else 1)
        session.append_many([say("Done."), user("And?"), say("Yes."), user("Really?"), say("Really."), user("Go on.")])
        session.append_many([say("So?"), user("Last question.")])
        path = Path(session.history.layout.messages)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[lost - 1] = lines[lost - 1].replace(b'"role"', b'"r\x00le"')
    path.write_bytes(b"".join(lines))
    with open_work(home) as session:
        turn = session.prepare(budget=first.record.limits)
        newest = next(one for one in reversed(session.tail(9)) if one.role == "user")
        check_window(turn, turn.record.limits, newest)
    assert newest.seq == (39 if lost == 41 else 41)
    assert turn.new_epoch == ("" if lost == 41 else "overflow")


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_a_message_that_is_damaged_within_the_tail_begins_an_epoch_once_and_is_missed(home: str) -> None:
    with open_work(home, [user("One."), say("Two."), user("Three."), say("Four."), user("Five.")]) as session:
        first = session.prepare(budget=20_000)
        path = Path(session.history.layout.messages)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"Three", b"Tree!")
    path.write_bytes(b"".join(lines))
    with open_work(home) as session:
        turn = session.prepare(budget=20_000)
        again = session.prepare(budget=20_000)
    assert first.new_epoch == "first"
    assert (turn.new_epoch, again.new_epoch) == ("damaged", "")
    for one in (turn, again):
        assert [left.item for left in one.omitted] == ["messages:3"]
        assert [(lost.id, lost.severity) for lost in one.missing] == [("messages:3", "high")]


def test_a_refresh_is_for_the_next_turn_of_every_target(home: str) -> None:
    with open_work(home, [user("One.")]) as session:
        for target in ("model", "ui"):
            session.prepare(target=target)
        session.refresh()
        assert [session.prepare(target=target).new_epoch for target in ("ui", "model", "ui")] == [
            "refresh",
            "refresh",
            "",
        ]
