"""Replies when the protocol is off, sent again, to another process, after a fault; and how rounds are counted."""

from pathlib import Path
from typing import Any

import pytest
from flow.dialects.library import answer, use
from flow.scenes import logs, stage
from flow.snapshots import BOAT, ask, block, exchange, reply_to, section, taken_in, talking

from daypack.derived.tiers import read_accepted
from daypack.errors import BadConfig, WriteFailed
from daypack.runtime import Session
from daypack.types.digest import file_name_of
from daypack.types.history import Event

WORDS = "  Done ✅\n\n请看 — the *boat*\tis red. \n"


def fail_events(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(event: Event) -> Event:
        raise WriteFailed("no space", operation="append", place="events.jsonl")

    monkeypatch.setattr(session.history, "append_event", fail)


# On and off


def test_without_the_protocol_a_section_is_text(home: str) -> None:
    session = talking(home)
    reply = reply_to(ask(session), core=[block()])
    session.append("user", "Now without.")
    session.prepare(protocol=False)
    message = session.accept(reply)
    assert (message.content, message.meta) == (reply, None)
    assert taken_in(session) == []
    plain = stage(home, "plain")
    ask(plain)
    assert plain.accept(reply).content == reply


def test_the_protocol_for_one_call_takes_its_reply_apart(home: str) -> None:
    session = stage(home)
    session.append("user", "Hello.")
    turn = session.prepare(protocol=True)
    assert session.accept(reply_to(turn, core=[block()])).text == "Yes."
    assert session.tiers.core


def test_a_reply_without_any_turn_is_read_as_the_switch_says(home: str) -> None:
    session = talking(home)
    session.append("user", "Hello.")
    reply = "Yes." + section({"version": 2.3, "runtime": {}}, core=[block()])
    assert session.accept(reply).text == "Yes."
    assert session.tiers.told["S0-R8.2"] == 1
    other = stage(home, "other")
    other.append("user", "Hello.")
    assert other.accept(reply).text == reply


# Again, elsewhere, after a fault


@pytest.mark.parametrize("meta", [{"meta": {}}, {}])
def test_a_reply_sent_twice_is_taken_in_once(home: str, meta: dict[str, Any]) -> None:
    session = talking(home)
    reply = {"role": "assistant", "content": reply_to(ask(session), core=[block()]), "client_key": "k1", **meta}
    first = session.accept(reply)
    before = logs(session)
    assert session.accept(reply) == first
    assert stage(home).accept(reply) == first
    assert logs(session) == before
    assert len(taken_in(session)) == 1


def test_another_process_accepts_what_this_one_prepared(home: str) -> None:
    session = talking(home)
    turn = ask(session)
    other = stage(home)
    assert other.accept(reply_to(turn, core=[block()])).text == "Yes."
    accepted = read_accepted(taken_in(other)[0].data)
    assert (accepted.turn, accepted.round, accepted.told) == (turn.event_id, 1, {})
    assert session.tiers == other.tiers
    assert session.tiers.core


@pytest.mark.parametrize("size", [10, 9000])
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("switched", [True, False])
def test_a_snapshot_that_could_not_be_recorded_is_taken_in_by_the_next_turn(
    home: str, monkeypatch: pytest.MonkeyPatch, size: int, elsewhere: bool, switched: bool
) -> None:
    session = talking(home) if switched else stage(home)
    turn = ask(session, protocol=True)
    fail_events(session, monkeypatch)
    message = session.accept(reply_to(turn, WORDS, core=[block(content="x" * size)]) + "\nAfter.")
    assert message.text == WORDS + "\nAfter."
    assert taken_in(session) == []
    monkeypatch.undo()
    again = stage(home) if elsewhere else session
    ask(again)
    [event] = taken_in(again)
    accepted = read_accepted(event.data)
    assert (accepted.message, accepted.round, accepted.turn) == (message.id, 1, turn.event_id)
    assert accepted.told["S0-R2"] == 1
    assert [one.id for one in again.tiers.core] == ["core-001"]
    ask(again)
    assert len(taken_in(again)) == 1


def test_a_snapshot_that_could_not_be_recorded_is_not_passed_over_for_a_later_one(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = talking(home)
    turn = ask(session)
    fail_events(session, monkeypatch)
    session.accept(reply_to(turn, core=[block()]))
    monkeypatch.undo()
    session.accept(reply_to(turn, core=[block("core-002", BOAT)]))
    ask(session)
    assert sorted(one.id for one in session.tiers.core) == ["core-001", "core-002"]


def test_a_reply_answers_the_newest_turn_also_when_another_process_prepared_it(home: str) -> None:
    session = talking(home)
    exchange(session)
    turn = ask(stage(home))
    session.accept(reply_to(turn, core=[block(round=2)]))
    accepted = read_accepted(taken_in(session)[-1].data)
    assert (accepted.turn, accepted.round, accepted.told) == (turn.event_id, 2, {})


@pytest.mark.parametrize(
    "meta",
    [
        *(5, "x", None, [], {}),
        {"at": 1},
        {"at": "x", "text": "y"},
        {"at": 0, "text": {"a": 1}},
        {"at": 0, "blob": 5},
        {"at": 0, "blob": "../../meta.json"},
        {"at": -9, "text": "y"},
    ],
)
def test_a_message_with_a_note_of_that_name_by_another_hand_stops_no_turn(home: str, meta: Any) -> None:
    session = talking(home)
    session.append("user", "Hello.")
    session.append("assistant", "Yes.", meta={"snapshot": meta})
    turn = ask(session)
    assert turn.event_id
    exchange(session, core=[block(content=BOAT)])
    assert [one.content for one in session.tiers.core] == [BOAT]


def test_a_blob_that_was_lost_stops_no_turn(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = talking(home)
    turn = ask(session)
    fail_events(session, monkeypatch)
    message = session.accept(reply_to(turn, core=[block(content="x" * 9000)]))
    monkeypatch.undo()
    digest = (message.meta or {})["snapshot"]["digest"]
    name = file_name_of(digest)
    [place] = [path for path in Path(session.history.layout.blob).rglob("*") if path.name == name]
    place.unlink()
    assert ask(session).event_id
    assert session.tiers.core == ()


def test_a_bad_setting_does_not_make_a_stored_reply_look_lost(home: str) -> None:
    session = talking(home)
    turn = ask(session)
    with open(session.history.layout.home.config, "w", encoding="utf-8") as file:
        file.write("[tiers.core]\nmax_decay = 7\n")
    reply = reply_to(turn, core=[block()])
    told = ""
    try:
        session.accept(reply)
    except BadConfig as error:
        told = str(error)
    # Refused whole, or taken whole.
    assert [one.text for one in session.messages()] == (["Go on."] if told else ["Go on.", "Yes."])


# Rounds


@pytest.mark.requirement("S0-N2")
def test_rounds_count_the_users_messages_that_were_packed_for_a_model(home: str) -> None:
    session = talking(home)

    def round_of(**how: Any) -> int:
        turn = session.prepare(protocol=True, **how)
        assert turn.expected
        return turn.expected["runtime"]["round"]

    session.append("user", "One.")
    assert [round_of(dry_run=True), round_of(dry_run=True)] == [1, 1]
    session.prepare(target="ui")
    session.prepare(target="reviewer")
    assert session.tiers.round == 0
    assert [round_of(), round_of()] == [1, 1]
    session.accept(answer(use(), stop_reason="tool_use"))
    session.append("tool", "There.", tool_call_id="toolu_1")
    assert round_of() == 1  # the loop of tools is one round
    session.accept("Done.")
    session.append("user", "Two.")
    session.append("user", "And three.")
    assert round_of() == 2  # both in one pack
    session.prepare(protocol=False)
    session.append("user", "Four.")
    session.prepare(protocol=False)
    assert round_of() == 3
    assert stage(home).tiers.round == session.tiers.round == 3
