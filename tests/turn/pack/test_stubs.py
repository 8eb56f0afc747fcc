"""Large outputs of the past stand in the tail as one line; which ones is decided when an epoch begins, and stays so."""

from itertools import pairwise

import pytest
from turn.compacting import context_tree
from turn.scenes import MARKER, SECRET, in_tail, outputs, release, stage, turn_events
from turn.windows import check_calls, check_left, check_window, stable_of

from daypack.derived.swap import LARGE_TOKENS, SHORT_ID, id_of
from daypack.session import Session
from daypack.text.injected import SWAPPED
from daypack.turn.budget import Limits
from daypack.turn.items import Entry, TokenMeter
from daypack.turn.pack.additions import addition_cost
from daypack.turn.pack.stubs import is_large
from daypack.turn.policy import DEFAULT_WINDOW, compaction_reserve
from daypack.turn.survey.message_cost import message_cost
from daypack.turn.survey.stubs import Stubs
from daypack.turn.turn import Turn
from daypack.types.history import Message

BUDGET = 16_000


def look(session: Session, number: int, lines: int, text: str = "") -> int:
    """Append a call and its output; return the number of the output."""
    call = {"id": f"n{number}", "name": "read_file", "arguments": f'{{"path": "{number}.py"}}'}
    session.append("assistant", f"Step {number}.", tool_calls=[call])
    return session.append("tool", text or f"line of {number}\n" * lines, tool_call_id=call["id"]).seq


def loop(session: Session, turns: int, lines: int = 110) -> list[Turn]:
    """One question and many steps with large outputs, a turn after each."""
    session.append("user", "Read all of it.")
    made: list[Turn] = []
    for number in range(turns):
        look(session, number, lines)
        made.append(session.prepare(budget=BUDGET))
    return made


def shown(turn: Turn) -> dict[int, str]:
    """The outputs of a tail: number -> text."""
    return {message.seq: message.text for message in turn.parts.messages if message.role == "tool"}


def masked_in(turn: Turn) -> set[int]:
    return {seq for seq, text in shown(turn).items() if text.startswith(SWAPPED)}


@pytest.mark.requirement("S4-SW1")
def test_large_outputs_before_a_border_become_a_line_and_those_behind_it_stay_whole(home: str) -> None:
    session = stage(home)
    turns = loop(session, 60)
    begun = [turn for turn in turns if turn.new_epoch and masked_in(turn)]
    assert begun
    assert all(min(masked_in(later)) >= min(masked_in(turn)) for turn, later in pairwise(begun))
    assert all(max(masked_in(later)) > max(masked_in(turn)) for turn, later in pairwise(begun))
    [whole_tokens] = {stage_counter().count("line of 10\n" * 110)}
    for turn in begun:
        outputs_shown = sorted(shown(turn))
        border = max(masked_in(turn))
        assert masked_in(turn) == {seq for seq in outputs_shown if seq <= border} == turn.parts.epoch.stubbed
        assert border < outputs_shown[-1], "the newest is whole"
        room = turn.record.limits.room.tokens
        most = room * DEFAULT_WINDOW.opening_share(room)
        taken = turn.stable_tokens - addition_cost(turn.parts.additions).tokens
        assert most - compaction_reserve(room) - 2 * whole_tokens < taken <= most
        for seq in masked_in(turn):
            line = shown(turn)[seq]
            [raw] = session.messages(seq, seq)
            assert "\n" not in line
            assert id_of(raw)[:SHORT_ID] in line
            assert f"{len(raw.text):,} characters, 111 lines" in line
            assert 'It begins "line of' in line
            assert session.recall(id_of(raw)[:SHORT_ID]).text == raw.text
        check_window(turn, Limits(BUDGET), next(iter(session.messages(1, 1))))
        check_left(turn)


def test_what_an_epoch_masks_stays_the_same_until_the_next_one_and_turns_only_append(home: str) -> None:
    session = stage(home)
    turns = loop(session, 45)
    for before, after in pairwise(turns):
        if not after.new_epoch:
            assert masked_in(before) == masked_in(after)
            former, now = stable_of(before), stable_of(after)
            assert all(now[name][: len(former[name])] == former[name] for name in former)


def test_masks_alone_are_told_as_what_a_cache_cannot_have(home: str) -> None:
    session = stage(home)
    turns = loop(session, 45)
    seen = 0
    for before, after in pairwise(turns):
        if after.new_epoch and masked_in(after) - masked_in(before) and in_tail(before)[0] == in_tail(after)[0]:
            seen += 1
            assert after.record.stable.expected_cached_tokens < before.stable_tokens
    assert seen


def test_a_new_epoch_is_not_begun_every_few_turns(home: str) -> None:
    session = stage(home)
    session.append("user", "Read all of it.")
    begun = 0
    for number in range(60):
        look(session, number, 600 if number % 3 == 0 else 10)
        begun += bool(session.prepare(budget=BUDGET).new_epoch)
    assert begun <= 10


def test_every_turn_with_masks_replays_byte_for_byte_also_without_context(home: str) -> None:
    session = stage(home)
    turns = loop(session, 60)
    assert any(masked_in(turn) for turn in turns)
    release(session)
    with stage(home) as fresh:
        for turn in turns:
            assert outputs(fresh.replay(turn.event_id or "")) == outputs(turn)
    assert len(turn_events(session)) == 60


def test_a_newest_output_that_is_larger_than_the_window_is_masked_too(home: str) -> None:
    session = stage(home)
    session.append("user", "Read it.")
    session.prepare(budget=BUDGET)
    seq = look(session, 1, 0, "a very long line of a log\n" * 20_000)
    turn = session.prepare(budget=BUDGET)
    assert masked_in(turn) == {seq}
    assert in_tail(turn)[-1] == seq
    check_calls(turn.assembly.given.messages)
    check_window(turn, Limits(BUDGET), next(iter(session.messages(1, 1))))
    session.append("assistant", "It is long.")
    session.append("user", "And?")
    after = session.prepare(budget=BUDGET)
    assert not after.new_epoch
    assert masked_in(after) == {seq}
    session.replay(after.event_id or "")


def test_small_outputs_and_words_of_people_are_never_masked(home: str) -> None:
    session = stage(home)
    session.append("user", "A long question. " * 900)
    for number in range(40):
        look(session, number, 40)
        turn = session.prepare(budget=BUDGET)
        assert not turn.parts.epoch.stubbed
        assert not any(message.text.startswith(SWAPPED) for message in turn.parts.messages)


def test_secrets_are_out_of_a_stub_and_its_id_is_that_of_the_words_in_history(home: str) -> None:
    session = stage(home)
    session.append("user", "Read it.")
    session.prepare(budget=BUDGET)
    seq = look(session, 1, 0, f"token {SECRET}\n" * 9000)
    turn = session.prepare(budget=BUDGET)
    line = shown(turn)[seq]
    [raw] = session.messages(seq, seq)
    assert SECRET not in line
    assert MARKER in line
    assert id_of(raw)[:SHORT_ID] in line
    back = session.recall(id_of(raw)[:SHORT_ID])
    assert SECRET not in back
    assert MARKER in back


def entries_of(sizes: list[int]) -> tuple[list[Entry], TokenMeter]:
    scales = TokenMeter(stage_counter())
    made: list[Entry] = []
    for seq, size in enumerate(sizes, 1):
        message = Message(seq=seq, id=f"msg-{seq}", role="tool", content="word " * size, tool_call_id=f"c{seq}")
        made.append(Entry(message, message_cost(message, scales.counter), ()))
    return made, scales


def stage_counter():
    from daypack.text.tokens import counter_for

    return counter_for("gpt-4o")


def test_each_large_output_has_a_stub_and_nothing_else_has(home: str) -> None:
    session = stage(home)
    entries, scales = entries_of([1000, 10, 1000, 300, 5000])
    stubs = Stubs(session.history, scales)
    made = stubs.stubs_for(entries)
    assert sorted(made) == [1, 3, 5]
    assert [is_large(entry) for entry in entries] == [True, False, True, False, True]
    assert all(stub.cost.tokens < LARGE_TOKENS / 2 for stub in made.values())
    cost_of = stubs.least_costs()
    costs = {entry.message.seq: cost_of(entry) for entry in reversed(entries)}
    assert {seq: costs[seq] for seq in (2, 3, 4, 5)} == {
        entry.message.seq: made.get(entry.message.seq, entry).cost for entry in entries[1:]
    }
    assert costs[1] == stubs.refer(entries[0], 1).cost  # the newer output is the same
    said = Entry(Message(seq=6, id="msg-6", role="assistant", content="word " * 1000), entries[0].cost, ())
    assert stubs.stubs_for([said]) == {}


def test_masking_writes_nothing(home: str) -> None:
    session = stage(home)
    turns = loop(session, 60)
    assert any(masked_in(turn) for turn in turns)
    swapped = [name for name in context_tree(session) if name.startswith("swap/chunk/")]
    assert len(swapped) <= 1
