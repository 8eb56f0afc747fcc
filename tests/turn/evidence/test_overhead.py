"""Nothing unasked is in a prompt, and what daypack adds is listed with its tokens."""

import json
from typing import Any

import pytest
from turn.scenes import Clock, FakeMemory, item, stage, turn_events

from daypack.session import Session
from daypack.turn.dialects import NAMES, dialect
from daypack.turn.evidence.overhead import overhead
from daypack.turn.items import Item
from daypack.turn.pack.assemble import assemble
from daypack.turn.turn import Turn
from daypack.types.history import Message

TIME = "Current time: "
CALL = {"id": "c1", "name": "look", "arguments": "{}"}


def talk(session: Session) -> None:
    """A short conversation with a system prompt and a tool call."""
    session.append("system", "You answer hikers.")
    session.append("user", "Where is the hut?")
    session.append("assistant", "Let me look.", tool_calls=[CALL])
    session.append("tool", "Above the lake.", tool_call_id="c1")
    session.append("assistant", "Above the lake.")
    session.append("user", "Is it open?")


def texts(body: Any) -> list[str]:
    """The text of each message of a request with the role user or without a role."""
    found: list[str] = []
    for message in body.get("messages") or body["input"]:
        content = message.get("content", message.get("output"))
        if message.get("role", "user") != "user" or content is None:
            continue
        found.append(content if isinstance(content, str) else json.dumps(content))
    return found


def assert_the_time_ends_a_message(turn: Turn) -> None:
    for name in NAMES:
        body = turn.request(name)
        assert dialect(name).validate(body) == []
        assert json.dumps(body).count(TIME) == 1
        (last,) = [text for text in texts(body) if TIME in text] or [body["messages"][-1]["content"]]
        assert last.index(TIME) > 20, "something else of the message is before it"


@pytest.mark.requirement("S1-D1", "S1-D1.2", "S1-I4")
def test_the_pack_of_a_short_session_is_exactly_its_messages(home: str) -> None:
    session = stage(home, model="claude-opus-4-1")
    talk(session)
    turn = session.prepare()
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert turn.request("openai") == {
        "messages": [
            {"role": "system", "content": "You answer hikers."},
            {"role": "user", "content": "Where is the hut?"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "Above the lake."},
            {"role": "assistant", "content": "Above the lake."},
            {"role": "user", "content": "Is it open?"},
        ]
    }
    assert overhead(turn) == ()
    assert "added by daypack: nothing" in turn.explain().splitlines()
    assert turn.parts.volatile == ()


@pytest.mark.requirement("S1-D1.2", "X42")
def test_the_time_ends_the_last_message_and_is_no_message_of_its_own(home: str) -> None:
    session = stage(home, clock=Clock())
    session.switch("identity", on=True)
    session.append("user", "Where is the hut, and is it open today?")
    session.append(
        "user", [{"type": "text", "text": "A picture of it:"}, {"type": "image", "source": "https://a.b/c.png"}]
    )
    assert_the_time_ends_a_message(session.prepare())
    session.append("assistant", "Let me look.", tool_calls=[CALL])
    session.append("tool", "It is above the lake, and open from June on.", tool_call_id="c1")
    in_a_loop = session.prepare()
    assert_the_time_ends_a_message(in_a_loop)
    assert in_a_loop.messages()[-1]["role"] == "tool"
    for event in turn_events(session):
        session.replay(event.id)


@pytest.mark.requirement("X42")
def test_the_time_follows_the_other_volatile_text(home: str) -> None:
    session = stage(home, clock=Clock())
    session.switch("identity", on=True)
    session.append("user", "Where is the hut?")
    turn = session.prepare(items=[item(content="The caller says that the lake is frozen.")])
    assert [one.id for one in turn.parts.volatile][-1] == "clock"
    assert_the_time_ends_a_message(turn)
    assert [message["role"] for message in turn.messages()] == ["system", "user", "user"]


@pytest.mark.requirement("X42")
def test_after_a_reply_there_is_no_message_for_the_time_to_end(home: str) -> None:
    session = stage(home, clock=Clock())
    session.switch("identity", on=True)
    session.append("user", "Where is the hut?")
    session.append("assistant", "Above the lake.")
    turn = session.prepare()
    assert all(TIME not in json.dumps(turn.request(name)) for name in NAMES)
    assert turn.parts.volatile == ()
    session.replay(turn.event_id or "")


@pytest.mark.requirement("S1-D1.2")
def test_a_turn_recorded_with_the_time_as_a_message_replays_as_it_was_sent() -> None:
    former = Item(
        id="runtime", kind="runtime_block", context_kind="runtime_state", source="daypack:runtime", text=f"{TIME}noon"
    )
    given = assemble("model", (), (Message(seq=1, role="user", content="Hi"),), (), (former,)).given
    assert given.attached is not True


@pytest.mark.requirement("G9")
def test_everything_that_is_added_is_listed_with_its_tokens_and_its_cause(home: str) -> None:
    session = stage(home)
    session.memory = FakeMemory("The hut has a stove.")
    session.switch("identity", on=True)
    session.switch("voice", on=True)
    session.pin("rules", "Be kind.")
    for number in range(40):
        session.append("user", f"Where is hut {number}? " + "path " * 30)
        session.append("assistant", "", tool_calls=[{**CALL, "id": f"c{number}"}])
        session.append("tool", f"Hut {number} is above lake {number}. " * 120, tool_call_id=f"c{number}")
        session.append("assistant", f"Hut {number} is above lake {number}. " * 4)
    session.append("user", "Where was hut 7, above which lake?")
    turn = session.prepare(budget=9000, items=[item(content="A note of the caller.")])
    found = overhead(turn)
    causes = {part.why for part in found}
    assert {"switched on", "pinned", "bound memory", "passed by the caller", "compaction"} <= causes
    assert "recalled" in causes
    verbatim = turn.tokens - sum(part.tokens for part in found)
    assert 0 < verbatim < turn.stable_tokens
    line = next(line for line in turn.explain().splitlines() if line.startswith("added by daypack: "))
    passed = sum(part.tokens for part in found if part.why == "passed by the caller")
    assert line.startswith(f"added by daypack: {turn.tokens - verbatim - passed:,} tokens (switched on ")
    assert line.endswith(f"; passed by the caller: {passed:,} tokens")


@pytest.mark.requirement("G9")
def test_stubs_count_as_added(home: str) -> None:
    session = stage(home)
    for number in range(16):  # the newest outputs are small
        session.append("user", f"Where is hut {number}?")
        session.append("assistant", "", tool_calls=[{**CALL, "id": f"c{number}"}])
        session.append(
            "tool", f"Hut {number} is above lake {number}. " * (200 if number < 8 else 2), tool_call_id=f"c{number}"
        )
    session.append("user", "And hut 16?")
    turn = session.prepare(budget=9000, dry_run=True)
    shown = {f"messages:{message.seq}" for message in turn.parts.messages if message.seq in turn.parts.epoch.stubbed}
    assert shown
    assert {part.item for part in overhead(turn) if part.why == "stub"} == shown
