"""A reply of the protocol comes in: the words byte for byte, what was cut beside them, the snapshot in an event."""

from typing import Any

import msgspec
import pytest
from anthropic.types import Message as AnthropicMessage
from turn.dialects.library import answer, called, check_types, completion, reasoned, response, said, text, use
from turn.snapshot_replies import ADA, ask, block, exchange, kept_of, reply_to, section, taken_in, talking

from daypack.derived.tiers import read_accepted
from daypack.files import blobs
from daypack.protocol import SEPARATOR, parse
from daypack.session import Session
from daypack.turn.dialects import NAMES, dialect
from daypack.types.digest import digest_bytes, file_name_of
from daypack.types.history import Message, Text, Thinking

WORDS = "  Done ✅\n\n请看 — the *boat*\tis red. \n"


def put_back(message: Message) -> str:
    """The reply as it came, from what is stored of it."""
    words = "".join(one.text for one in message.content if isinstance(one, Text)) if message.content else ""
    words = message.content if isinstance(message.content, str) else words
    cut = kept_of(message)
    return f"{words[: cut['at']]}{cut['text']}{words[cut['at'] :]}" if cut else words


def broken(session: Session) -> dict[str, int]:
    return read_accepted(taken_in(session)[-1].data).violation_counts


# The words


@pytest.mark.requirement("S0-N7")
def test_the_words_are_the_message_and_what_was_cut_stands_beside_them(home: str) -> None:
    session = talking(home)
    turn = ask(session)
    reply = reply_to(turn, WORDS, core=[block()])
    message = session.accept(reply)
    assert message.content == WORDS
    assert message.meta == {
        "daypack": {
            "section": {
                "at": len(WORDS),
                "turn": turn.event_id,
                "digest": digest_bytes(reply[len(WORDS) :].encode()),
                "text": reply[len(WORDS) :],
            }
        }
    }
    assert session.tail(1) == (message,)
    assert put_back(message) == reply
    [event] = taken_in(session)
    accepted = read_accepted(event.data)
    assert accepted.snapshot is not None
    assert accepted.snapshot == parse(reply, expected=turn.expected).snapshot
    assert (accepted.message, accepted.round, accepted.turn) == ("msg-2", 1, turn.event_id)
    assert (accepted.violation_counts, accepted.violations, accepted.refused, accepted.below_threshold) == (
        {},
        (),
        0,
        {},
    )
    assert [one.content for one in session.tiers.core] == [ADA]


def chat(reply: str) -> Any:
    return completion({"content": reply})


def chat_parts(reply: str) -> Any:
    return {"role": "assistant", "content": [{"type": "text", "text": reply}], "meta": {"mine": 1}}


def thinking(reply: str) -> Any:
    return answer({"type": "thinking", "thinking": f"Hm {SEPARATOR} {{}}", "signature": "c2ln"}, text(reply))


def three_parts(reply: str) -> Any:
    """The section begins in the middle of the first part and goes on in two more."""
    return answer(text(reply[:30]), text(reply[30:70]), text(reply[70:]))


def reasoning(reply: str) -> Any:
    return response(reasoned(), said(reply))


def two_messages(reply: str) -> Any:
    return response(said(reply[:20]), said(reply[20:], id="msg_2"))


SHAPES = (str, chat, chat_parts, thinking, three_parts, reasoning, two_messages)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_reply_of_any_shape_is_taken_apart_byte_for_byte(home: str, shape: Any) -> None:
    session = talking(home)
    reply = reply_to(ask(session), WORDS, core=[block()])
    message = session.accept(shape(reply))
    words = message.content if isinstance(message.content, str) else ""
    words = words or "".join(one.text for one in message.content if isinstance(one, Text))
    assert words == WORDS
    assert put_back(message) == reply
    assert SEPARATOR not in message.text
    assert [one.content for one in session.tiers.core] == [ADA]
    assert broken(session) == {}
    if shape in (thinking, reasoning):
        assert isinstance(message.content[0], Thinking)
    if shape is chat_parts:
        assert (message.meta or {})["mine"] == 1
    turn = ask(session)
    for name in NAMES:
        assert dialect(name).validate(turn.request(name)) == []
        check_types(name, turn.request(name))


@pytest.mark.parametrize("at", range(0, 120, 7))
def test_wherever_parts_are_divided_no_byte_is_lost(home: str, at: int) -> None:
    session = talking(home)
    reply = reply_to(ask(session), WORDS, core=[block()]) + "\n"
    message = session.accept(answer(text(reply[:at] or "¶"), text(reply[at : at + 40]), text(reply[at + 40 :])))
    assert put_back(message) == ("" if at else "¶") + reply
    assert session.tiers.core
    assert all(one.text for one in message.content if isinstance(one, Text))


@pytest.mark.parametrize("shape", [str, chat_parts, thinking, three_parts, reasoning])
def test_a_reply_that_is_only_a_snapshot_is_taken_and_the_next_turn_is_valid(home: str, shape: Any) -> None:
    session = talking(home)
    reply = reply_to(ask(session), "", core=[block()])
    assert session.accept(shape(reply)).text == ""
    assert session.tiers.core
    turn = ask(session)
    for name in NAMES:
        assert dialect(name).validate(turn.request(name)) == []
        check_types(name, turn.request(name))
    assert [one.text for one in turn.parts.messages if one.role == "assistant"] in ([""], [])


def test_words_behind_the_snapshot_are_not_lost(home: str) -> None:
    session = talking(home)
    reply = reply_to(ask(session), "Before.", core=[block()]) + "\nAfter."
    message = session.accept(reply)
    assert message.text == "Before.\nAfter."
    assert put_back(message) == reply
    assert broken(session)["S0-R2"] == 1
    assert session.tiers.core


def test_what_was_cut_is_a_blob_of_its_own_when_it_is_large(home: str) -> None:
    session = talking(home)
    turn = ask(session)
    reply = reply_to(turn, "Yes.", core=[block(content="x" * 4096)])
    message = session.accept(reply)
    kept = kept_of(message)
    assert (kept["at"], kept["turn"], kept["bytes"], "text" in kept) == (4, turn.event_id, len(reply) - 4, False)
    digest = kept["digest"]
    assert blobs.get(session.history.layout.blob, file_name_of(digest)).decode() == reply[4:]
    small = reply_to(ask(session), "Yes.", core=[block()])
    assert len(small[4:].encode()) <= 4096
    assert kept_of(session.accept(small))["text"] == small[4:]


def test_a_snapshot_of_a_megabyte_is_taken_in_and_the_window_stays_small(home: str) -> None:
    session = talking(home)
    turn = ask(session)
    many = [block(f"b{number}", f"Fact {number}. " + "x" * 1000) for number in range(1000)]
    reply = reply_to(turn, "Yes.", working=many)
    assert len(reply) > 1_000_000
    assert session.accept(reply).text == "Yes."
    seen = session.tiers
    assert (len(seen.working), len(seen.dropped)) == (48, 1)
    assert seen.dropped["over_max_items"] == 500 - 48
    after = ask(session)
    assert after.tokens < 20_000
    assert len(msgspec.json.encode(after.record)) < 50_000


# What is wrong with a reply


@pytest.mark.requirement("S0-R1")
def test_a_reply_without_a_section_is_kept_whole_and_told(home: str) -> None:
    session = talking(home)
    ask(session)
    message = session.accept(WORDS)
    assert (message.content, message.meta) == (WORDS, None)
    accepted = read_accepted(taken_in(session)[0].data)
    assert (accepted.snapshot, accepted.violation_counts) == (None, {"S0-R1": 1})
    assert accepted.violations == (
        {"rule": "S0-R1", "problem": "the reply has no context section", "where": "", "level": "must"},
    )
    assert session.tiers.violation_counts == {"S0-R1": 1}


@pytest.mark.requirement("S0-R8", "S0-R8.1", "S0-R8.2", "S0-R8.3", "S0-R8.4", "S0-R8.5", "S0-N1", "S0-N6", "X22")
def test_what_a_model_writes_into_the_systems_fields_is_told_and_takes_no_effect(home: str) -> None:
    session = talking(home, workspace="/shop")
    turn = ask(session)
    assert turn.expected
    forged = {"version": 9.9, "runtime": {"round": 77, "workspace": "/etc/", "datetime": "now", "startup_at": 0}}
    session.accept("Yes." + section(forged, core=[block(round=70)]))
    accepted = read_accepted(taken_in(session)[0].data)
    rules = {f"S0-R8.{number}": 1 for number in range(1, 6)}
    assert {rule: count for rule, count in accepted.violation_counts.items() if rule.startswith("S0-R8")} == rules
    assert accepted.snapshot is not None
    assert accepted.snapshot["version"] == turn.expected["version"]
    assert accepted.snapshot["runtime"] == turn.expected["runtime"]
    assert accepted.round == 1
    assert [one.round for one in session.tiers.core] == [1]
    following = ask(session).expected
    assert following
    assert following["runtime"]["round"] == 2


@pytest.mark.requirement("X22")
def test_the_same_number_written_otherwise_is_the_same(home: str) -> None:
    session = talking(home)
    reply = reply_to(ask(session), core=[block()]).replace('"version": 2.3', '"version": 2.30')
    assert "2.30" in reply
    session.accept(reply)
    assert broken(session) == {}


@pytest.mark.requirement("G4")
def test_blocks_that_cannot_be_used_are_counted_and_erase_nothing(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block()])
    bad: list[Any] = [{"id": "x"}, "a story", 5, block("y", decay=7), block("z", content=" ")]
    exchange(session, core=bad)
    seen = session.tiers
    assert [one.id for one in seen.core] == ["core-001"]
    assert seen.dropped == {"invalid_block": 5}
    assert seen.violation_counts["S0-R7"] == 1
    assert seen.violation_counts["S0-R10"] == 5


@pytest.mark.requirement("G3")
def test_a_block_without_confidence_is_told_and_counts_as_half_sure(home: str) -> None:
    session = talking(home)
    unsure = block("temp-001")
    del unsure["confidence"]
    exchange(session, ephemeral=[unsure], core=[unsure])
    assert [one.confidence for one in session.tiers.ephemeral] == [0.5]
    assert session.tiers.dropped == {"threshold_confidence": 1}
    assert session.tiers.violation_counts["S0-R10.4"] == 2


def test_an_event_spells_out_the_first_violations_and_counts_all(home: str) -> None:
    session = talking(home)
    exchange(session, core=["story"] * 100)
    accepted = read_accepted(taken_in(session)[0].data)
    assert len(accepted.violations) == 32
    assert accepted.violation_counts["S0-R7"] == 100
    assert session.tiers.dropped == {"invalid_block": 100}


@pytest.mark.parametrize(
    "rest",
    [
        SEPARATOR,
        SEPARATOR + '{"version":2.3,"memory":{"core":[{"id":"a',
        SEPARATOR + "[1]",
        SEPARATOR + "null",
        SEPARATOR + '{"a":1,"a":2}',
        SEPARATOR + "{}",
    ],
)
def test_a_broken_section_leaves_the_words_and_the_tiers_alone(home: str, rest: str) -> None:
    session = talking(home)
    exchange(session, core=[block()])
    ask(session)
    message = session.accept("Yes." + rest)
    assert message.text == "Yes."
    assert put_back(message) == "Yes." + rest
    assert broken(session)
    assert [one.id for one in session.tiers.core] == ["core-001"]


# Tools


def calling(reply: str) -> AnthropicMessage:
    return answer(text(reply), use(), stop_reason="tool_use") if reply else answer(use(), stop_reason="tool_use")


@pytest.mark.parametrize("words", ["", "Let me look."])
def test_a_reply_that_only_calls_tools_needs_no_section(home: str, words: str) -> None:
    session = talking(home)
    ask(session)
    message = session.accept(calling(words))
    assert (message.text, len(message.tool_calls)) == (words, 1)
    assert taken_in(session) == []
    assert session.tiers.violation_counts == {}


def test_a_reply_may_call_tools_and_bring_a_snapshot(home: str) -> None:
    session = talking(home)
    reply = reply_to(ask(session), "Let me look.", core=[block()])
    message = session.accept(calling(reply))
    assert (message.text, len(message.tool_calls)) == ("Let me look.", 1)
    assert session.tiers.core
    session.append("tool", "There.", tool_call_id="toolu_1")
    turn = session.prepare()
    for name in NAMES:
        assert dialect(name).validate(turn.request(name)) == []


def test_a_call_between_the_parts_keeps_its_place_when_the_section_goes(home: str) -> None:
    session = talking(home)
    rest = reply_to(ask(session), "", core=[block()])
    session.accept(response(said("Let me look."), said(rest, id="msg_2"), called()))
    session.append("tool", "There.", tool_call_id="call_1")
    turn = session.prepare()
    kinds = [one.get("type", "message") for one in turn.messages("responses")]
    at = kinds.index("function_call")
    assert kinds[at - 1 : at + 2] == ["message", "function_call", "function_call_output"]
    assert turn.messages("responses")[at - 1]["role"] == "assistant"
    for name in NAMES:
        assert dialect(name).validate(turn.request(name)) == []
