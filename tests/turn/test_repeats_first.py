"""Large contents that occur more than once are sent once, also by the first turn of a session."""

import json
import random
from typing import Any

import pytest
from turn.scenes import close_all, outputs, sent, stage

from daypack.derived.dedup import REREAD_CONTENTS, read_index
from daypack.history.layout import Home
from daypack.session import Session
from daypack.turn.dialects import NAMES
from daypack.turn.evidence.replay import read_turn, replay_parts
from daypack.turn.turn import Turn
from daypack.upkeep.rebuild import verify

LOG = "\n".join(f"test_{number} passed in {number * 7 % 13} ms" for number in range(200))
FILE = "\n".join(f"def function_{number}(): return {number}" for number in range(150))
NUMBERED = "\n".join(f"{number:6}→{line}" for number, line in enumerate(FILE.split("\n"), 1))


def call(session: Session, name: str, arguments: dict[str, Any], output: str) -> None:
    """A call of a tool and its result."""
    key = f"call-{len(session.tail(10_000))}"
    calls = [{"id": key, "name": name, "arguments": json.dumps(arguments)}]
    session.append("assistant", "", tool_calls=calls)
    session.append("tool", output, tool_call_id=key)


def shown(turn: Turn) -> str:
    """The texts of the messages that are sent."""
    return "\n".join(message.text for message in turn.parts.messages)


def repeating(home: str, copies: int = 4) -> Session:
    session = stage(home)
    session.append("user", "Run the tests.")
    for _ in range(copies):
        call(session, "run", {"command": "pytest"}, LOG)
    return session


@pytest.mark.requirement("S4-DD4")
@pytest.mark.parametrize("dry_run", [False, True])
def test_the_first_turn_sends_a_repeated_output_once(home: str, dry_run: bool) -> None:
    turn = repeating(home).prepare(budget=32_000, dry_run=dry_run)
    assert shown(turn).count(LOG) == 1
    assert shown(turn).count("[the same text as in msg-3 above") == 3
    assert [(one.item, one.reason) for one in turn.omitted] == [
        (f"tool:call-{number}", "duplicate") for number in (3, 5, 7)
    ]


@pytest.mark.requirement("S4-DD5")
def test_the_first_turn_sends_a_file_once_that_was_written_and_then_read(home: str) -> None:
    session = stage(home)
    session.append("user", "Write it.")
    call(session, "Write", {"path": "a.py", "content": FILE}, "written")
    call(session, "Read", {"path": "a.py"}, NUMBERED)
    turn = session.prepare(budget=32_000)
    assert sent(turn).count("function_77()") == len(NAMES)
    assert "[the same text as in msg-2 above" in shown(turn)


def test_repeats_let_a_conversation_fit_that_would_not_fit_with_every_copy(home: str) -> None:
    session = repeating(home, copies=30)
    turn = session.prepare(budget=16_000)
    assert turn.tokens <= 16_000
    assert not turn.parts.epoch.stubbed
    assert turn.parts.messages[0].seq == 1
    assert shown(turn).count(LOG) == 1


def test_the_turns_of_an_epoch_begin_with_the_same_bytes_and_replay(home: str) -> None:
    session = repeating(home)
    turns = [session.prepare(budget=32_000)]
    session.append("assistant", "They pass.")
    for _ in range(3):
        session.append("user", "Again.")
        call(session, "run", {"command": "pytest"}, LOG)
        turns.append(session.prepare(budget=32_000))
        messages = [turn.messages("openai") for turn in turns[-2:]]
        assert messages[1][: len(messages[0])] == messages[0]
        assert not turns[-1].new_epoch
    other = stage(home)
    for turn in turns:
        assert outputs(other.replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.parametrize("seed", range(6))
def test_any_mix_of_repeats_is_sent_once_within_the_budget_and_replays(home: str, seed: int) -> None:
    chance = random.Random(seed)
    contents = [f"{name}: {LOG[: 2100 + 900 * at]}" for at, name in enumerate("abcde")]
    session = stage(home)
    for number in range(12):
        session.append("user", f"Question {number}")
        for _ in range(chance.randrange(3)):
            call(session, "run", {"n": number}, chance.choice(contents))
        budget = chance.choice([6000, 12_000, 40_000])
        turn = session.prepare(budget=budget, dry_run=chance.random() < 0.3)
        assert turn.tokens <= budget
        for content in contents:
            assert sum(message.text == content for message in turn.parts.messages) <= 1
        if turn.event_id:
            assert outputs(stage(home).replay(turn.event_id)) == outputs(turn)
        session.append("assistant", "Good.")


def test_a_turn_that_an_older_version_recorded_replays_with_every_copy(home: str) -> None:
    session = repeating(home)
    turn = session.prepare(budget=32_000)
    [event] = [event for event in session.events() if event.id == turn.event_id]
    del event.data["opening"]["refers"]  # the older version did not write it
    older = session.append_event("context.turn", event.data)
    record = read_turn(session.history, older.id)
    meter = session.turns.inputs.meter(None)
    parts = replay_parts(session.history, record, older.id, meter, session="work", agent="default")
    assert [message.text for message in parts.messages].count(LOG) == 4


def test_a_repeat_after_a_compaction_leaves_the_index_as_a_rebuild_makes_it(home: str) -> None:
    session = repeating(home)
    session.append("assistant", "They pass.")
    session.append("user", "And now?")
    session.compact(keep_tokens=10)
    for writer in (session, stage(home), session):
        call(writer, "run", {"command": "pytest"}, LOG)
        [record] = read_index(session.history)
        assert len([ref for ref in record.refs if ref.startswith("swap:")]) == 4
        place = Home(str(session.path.parents[5]), session.path.parts[-5])
        assert verify(place, session.agent, session.name, session.history.config) == ()


def test_a_process_for_each_output_does_not_read_all_of_them_each_time(home: str) -> None:
    for number in range(80):
        session = stage(home)
        call(session, "run", {"n": number}, f"{number}: {LOG}")
        close_all()
    session = stage(home)
    noted = json.loads((session.path / "context" / "offsets" / "dedup.idx").read_bytes())
    assert noted["messages"] >= 2 * (80 - REREAD_CONTENTS)
    assert not (session.path / "context" / "dedup").exists()
    call(session, "run", {"n": 80}, f"7: {LOG}")
    [record] = read_index(session.history)
    assert len(record.refs) == 2
