"""Replies when the protocol is off, sent again, to another process, after a fault; and how rounds are counted."""

from pathlib import Path
from typing import Any

import pytest
from turn.dialects.library import answer, use
from turn.scenes import logs, stage
from turn.snapshot_replies import BOAT, ask, block, exchange, kept_of, reply_to, section, taken_in, talking

from daypack.derived.tiers import read_accepted
from daypack.errors import WriteFailed
from daypack.session import Session
from daypack.types.digest import file_name_of
from daypack.types.history import Event

WORDS = "  Done ✅\n\n请看 — the *boat*\tis red. \n"


def fail_events(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(event: Event) -> Event:
        raise WriteFailed("no space", operation="append", place="events.jsonl")

    monkeypatch.setattr(session.history, "append_event", fail)


# On and off


def test_in_a_session_that_never_had_the_protocol_a_section_is_text(home: str) -> None:
    reply = reply_to(ask(talking(home)), core=[block()])
    plain = stage(home, "plain")
    before = plain.accept(reply)
    ask(plain)
    for message in (before, plain.accept(reply), stage(home, "plain").accept(reply)):
        assert (message.content, message.meta) == (reply, None)
    assert taken_in(plain) == []


def unasked(session: Session, turned: str) -> None:
    """A turn that asks for nothing, in a session in which an earlier one did."""
    session.append("user", "Now without.")
    if turned == "off":
        session.switch("protocol", on=False)
        session.prepare()
    else:
        session.prepare(protocol=False)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("turned", ["off", "once"])
def test_a_section_nobody_asked_for_is_cut_and_does_not_count(home: str, turned: str, elsewhere: bool) -> None:
    session = talking(home)
    reply = reply_to(exchange(session, core=[block()]), WORDS, core=[block("core-002", BOAT)])
    unasked(session, turned)
    session = stage(home) if elsewhere else session
    before, events = session.tiers, len(session.events())
    message = session.accept(reply)
    kept = kept_of(message)
    assert (message.text, kept["at"], kept["text"]) == (WORDS, len(WORDS), reply[len(WORDS) :])
    assert "turn" not in kept
    assert (session.tiers, len(session.events())) == (before, events)
    session.prepare(protocol=False)
    session.switch("protocol", on=True)
    ask(session)
    assert len(taken_in(session)) == 1  # nor later
    assert session.tiers.core == before.core


@pytest.mark.parametrize("turned", ["off", "once"])
def test_words_nobody_asked_a_section_for_are_left_as_they_are(home: str, turned: str) -> None:
    session = talking(home)
    exchange(session, core=[block()])
    unasked(session, turned)
    message = session.accept(WORDS)
    assert (message.content, message.meta, session.tiers.violation_counts) == (WORDS, None, {})


def test_a_session_whose_switch_is_on_cuts_sections_before_any_turn_asked(home: str) -> None:
    session = stage(home)
    ask(session)
    reply = "Yes." + section({"version": 2.3, "runtime": {}}, core=[block()])
    session.switch("protocol", on=True)
    message = session.accept(reply)  # the turn was prepared before
    assert (message.text, "turn" in kept_of(message), taken_in(session)) == ("Yes.", False, [])
    session.switch("protocol", on=False)
    assert session.accept(reply).text == reply


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
    message = session.accept(reply)
    assert (message.text, kept_of(message)["turn"]) == ("Yes.", "")
    assert session.tiers.violation_counts["S0-R8.2"] == 1
    assert [one.id for one in session.tiers.core] == ["core-001"]
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


@pytest.mark.parametrize("protocol", [None, False])
def test_a_reply_sent_again_after_the_next_turn_is_the_same_reply(home: str, protocol: bool | None) -> None:
    session = talking(home)
    reply = {"role": "assistant", "content": reply_to(ask(session), core=[block()]), "client_key": "k1"}
    first = session.accept(reply)
    ask(session, protocol=protocol)
    assert session.accept(reply) == first
    assert len(taken_in(session)) == 1


def test_another_process_accepts_what_this_one_prepared(home: str) -> None:
    session = talking(home)
    turn = ask(session)
    other = stage(home)
    assert other.accept(reply_to(turn, core=[block()])).text == "Yes."
    accepted = read_accepted(taken_in(other)[0].data)
    assert (accepted.turn, accepted.round, accepted.violation_counts) == (turn.event_id, 1, {})
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
    assert accepted.violation_counts["S0-R2"] == 1
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
    assert (accepted.turn, accepted.round, accepted.violation_counts) == (turn.event_id, 2, {})


def test_a_blob_that_was_lost_stops_no_turn(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = talking(home)
    turn = ask(session)
    fail_events(session, monkeypatch)
    message = session.accept(reply_to(turn, core=[block(content="x" * 9000)]))
    monkeypatch.undo()
    name = file_name_of(kept_of(message)["digest"])
    [place] = [path for path in Path(session.history.layout.blob).rglob("*") if path.name == name]
    place.unlink()
    assert ask(session).event_id
    assert session.tiers.core == ()


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
