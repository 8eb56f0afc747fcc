"""Notes in the tail: the newest one counts, whatever was said before it, and none comes between calls and results."""

import pytest
from turn.scenes import stage

from daypack.turn.dialects import NAMES, dialect


def notes_in(turn_messages: list[dict[str, object]], port: int) -> bool:
    newest = [str(message["content"]) for message in turn_messages if "Use port" in str(message["content"])][-1]
    return f"Use port {port}." in newest


@pytest.mark.requirement("X43")
def test_an_instruction_that_changes_back_and_forth_is_noted_each_time(home: str) -> None:
    session = stage(home)
    session.pin("ports.md", "Use port 1.")
    for port in (1, 2, 1, 2, 3, 2):
        session.pin("ports.md", f"Use port {port}.")
        session.append("user", "Go on.")
        turn = session.prepare()
        assert notes_in(turn.messages(), port)
        session.accept("Done.")
        session.replay(str(turn.event_id))


def test_a_withdrawn_instruction_that_returns_and_goes_is_withdrawn_again(home: str) -> None:
    session = stage(home)
    session.append("user", "Go.")
    session.prepare()
    for _ in range(2):
        session.pin("ports.md", "Use port 1.")
        session.append("user", "Go on.")
        assert "Use port 1." in str(session.prepare().messages()[-1])
        session.unpin("ports.md")
        session.append("user", "Go on.")
        assert "withdrawn" in str(session.prepare().messages()[-1])


def test_a_note_follows_the_results_of_a_batch_even_if_one_is_missing(home: str) -> None:
    session = stage(home)
    session.append("user", "Go.")
    session.prepare()
    calls = [{"id": name, "name": "look", "arguments": "{}"} for name in "ab"]
    session.append("assistant", "Both.", tool_calls=calls)
    session.append("tool", "The second.", tool_call_id="b")
    session.append("assistant", "")
    session.pin("ports.md", "Use port 2.")
    turn = session.prepare()
    assert "Use port 2." in str(turn.messages()[-1])
    assert all(dialect(name).validate(turn.request(name)) == [] for name in NAMES)


def test_a_long_instruction_that_did_not_fit_is_not_left_to_an_earlier_short_one(home: str) -> None:
    session = stage(home)
    long = "Use port 1. " + "This instruction is long. " * 400
    for text in (long, "Use port 2.", long):
        session.pin("ports.md", text)
        session.append("user", "Go on.")
        turn = session.prepare(budget=2000)
    assert "Use port 2." not in str(turn.messages())
    assert [omission.item for omission in turn.omitted if omission.high_impact] == ["pin:ports.md"]
