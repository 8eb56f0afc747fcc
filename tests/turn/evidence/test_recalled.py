"""What a turn adds to the tail: written once, sent again byte for byte, recorded by the turn that added it."""

from itertools import pairwise

import msgspec
import pytest
from turn.scenes import FakeMemory, converse, outputs, sent, stage, turn_events

from daypack.session import Session
from daypack.turn.evidence.export import export
from daypack.turn.evidence.record import TurnRecord, expand
from daypack.turn.items import Excerpt
from daypack.turn.pack.additions import added_items
from daypack.turn.turn import Turn
from daypack.types.memory import Remembered

BUDGET = 3000


@pytest.fixture
def working(home: str) -> Session:
    """A session in which the agent works on a question about something that left the window."""
    session = stage(home)
    session.append("user", "My cat is called Bartholomew.")
    converse(session, 40)
    session.append("user", "What is my cat called?")
    return session


def step(session: Session, number: int) -> None:
    session.append("assistant", "", tool_calls=[{"id": f"c{number}", "name": "look", "arguments": "{}"}])
    session.append("tool", f"Nothing there, {number}.", tool_call_id=f"c{number}")


def work(session: Session, steps: int = 3) -> list[Turn]:
    """Take a turn for the question and one after each step."""
    turns = [session.prepare(budget=BUDGET)]
    for number in range(steps):
        step(session, number)
        turns.append(session.prepare(budget=BUDGET))
    return turns


def test_what_was_found_follows_the_question_and_is_sent_once(working: Session) -> None:
    turns = work(working)
    assert [bool(turn.new_epoch) for turn in turns] == [True, False, False, False]
    for turn in turns:
        contents = [message["content"] for message in turn.messages("openai")]
        at = contents.index("What is my cat called?")
        assert "Bartholomew" in contents[at + 1]
        assert sum("Bartholomew" in str(content) for content in contents) == 1


def test_each_turn_of_an_epoch_begins_with_all_of_the_turn_before(working: Session) -> None:
    turns = work(working)
    for before, after in pairwise(turns):
        former = before.messages("openai")
        assert after.messages("openai")[: len(former)] == former
        assert after.expected_cached_tokens == before.stable_tokens


def test_an_event_records_what_its_own_turn_added_and_where_the_rest_is(working: Session) -> None:
    turns = work(working)
    first, *later = [event.data for event in turn_events(working)]
    [added] = first["added"]
    assert added["after"] == 82
    assert 1 in {excerpt[0] for excerpt in added["excerpts"]}
    assert "carries" not in first
    assert [data.get("carries") for data in later] == [turns[0].event_id] * len(later)
    assert all("excerpts" not in str(data) for data in later)


def test_every_turn_is_replayed_with_what_earlier_turns_added(working: Session, home: str) -> None:
    turns = work(working)
    working.pin("style", "Answer in one sentence.")
    step(working, 9)
    turns.append(working.prepare(budget=BUDGET))
    working.append("user", "And who is called Bartholomew, the cat or the harbour?")
    turns.append(working.prepare(budget=BUDGET))
    assert "Answer in one sentence." in sent(turns[-1])
    assert {item.id for item in added_items(turns[-1].parts.additions)} >= {"excerpt:1", "pin:style.md~changed"}
    other = stage(home)
    for turn in turns:
        again = other.replay(turn.event_id or "")
        assert (outputs(again), sent(again)) == (outputs(turn), sent(turn))


def test_another_process_continues_the_tail_with_its_additions(working: Session, home: str) -> None:
    before = work(working)[-1]
    working.close()
    with stage(home) as other:
        step(other, 9)
        turn = other.prepare(budget=BUDGET)
    former = before.messages("openai")
    assert turn.messages("openai")[: len(former)] == former


def test_a_new_epoch_carries_nothing_of_the_one_before(working: Session) -> None:
    work(working)
    working.refresh()
    step(working, 9)
    turn = working.prepare(budget=BUDGET)
    assert turn.new_epoch
    assert turn.record.carries is None
    assert "Bartholomew" in sent(turn)  # found again, for the same question


def test_a_memory_entry_is_added_once(home: str) -> None:
    session = stage(home)
    session.memory = FakeMemory(None, [Remembered("e1", "The boat was bought in May.", 0.5)])
    session.append("user", "When did I buy the boat?")
    turns = work(session, 2)
    for turn in turns:
        assert sum("bought in May" in str(message["content"]) for message in turn.messages("openai")) == 1
    assert ["added" in event.data for event in turn_events(session)] == [True, False, False]


def test_the_stored_form_of_an_event_reads_back_as_the_record(working: Session) -> None:
    turn = work(working)[0]
    [stored] = [event.data for event in turn_events(working) if event.id == turn.event_id]
    assert msgspec.convert(expand(stored), TurnRecord).added == turn.record.added
    old = {name: value for name, value in stored.items() if name not in ("added", "carries")}
    assert msgspec.convert(expand(old), TurnRecord).added == ()


def test_an_export_shows_a_target_only_the_additions_it_may_see(working: Session) -> None:
    turn = work(working)[-1]
    quoted = [item for item in turn.inserted if isinstance(item, Excerpt)]
    assert quoted
    seen = export(working.turns, "turn", target="peer_agent")
    shown = {item.item_id for surface in seen.surfaces for item in surface.items}
    assert not shown & {item.id for item in quoted}
    assert "Bartholomew" not in msgspec.json.encode(seen).decode()


def test_a_new_epoch_expects_a_cache_hit_only_for_what_was_sent_the_same(home: str) -> None:
    session = stage(home)
    session.append("user", "My cat is called Bartholomew.")
    converse(session, 40)
    session.compact(model="none", keep_tokens=300)  # both tails start after it
    session.append("user", "What is my cat called?")
    before = session.prepare(budget=8000)
    session.append("assistant", "Bartholomew.")
    session.append("user", "Thanks.")
    session.refresh()
    after = session.prepare(budget=8000)
    former = before.messages("openai")
    assert added_items(before.parts.additions)
    assert after.new_epoch == "refresh"
    assert (after.parts.epoch.start, after.prefix_sha256) == (before.parts.epoch.start, before.prefix_sha256)
    assert after.messages("openai")[: len(former)] != former
    assert after.expected_cached_tokens == before.record.stable.prefix_tokens
