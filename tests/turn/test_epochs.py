"""Epochs begin and continue with the right messages, also when something is damaged, withdrawn or full."""

from pathlib import Path
from typing import Any

import pytest
from turn.scenes import close_all, excerpts_in, in_tail, reasons, stage

from daypack.session import Session
from daypack.text.injected import SAME

OUTPUT = "\n".join(f"line {number} of output" for number in range(150))


def call(session: Session, name: str, output: str = OUTPUT) -> None:
    session.append("assistant", "", tool_calls=[{"id": name, "name": "run", "arguments": "{}"}])
    session.append("tool", output, tool_call_id=name)


def outputs_of(session: Session, **arguments: Any) -> list[str]:
    """The tool outputs of a turn that replays."""
    turn = session.prepare(**arguments)
    assert session.replay(turn.event_id or "").messages() == turn.messages()
    return [message["content"] for message in turn.messages() if message["role"] == "tool"]


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_a_new_epoch_after_damage_shows_a_repeated_output_once(home: str) -> None:
    session = stage(home)
    session.append("user", "start")
    session.append("assistant", "hello one")
    session.prepare(budget=20_000)
    call(session, "a")
    call(session, "b")
    session.append("user", "more")
    before = outputs_of(session, budget=20_000)
    assert before[0] == OUTPUT
    assert before[1].startswith(SAME)
    close_all()
    log = Path(session.layout.messages)
    log.write_bytes(log.read_bytes().replace(b"hello one", b"hello\x00one"))
    session = stage(home)
    session.append("user", "again")
    assert outputs_of(session, budget=20_000) == before


def test_an_item_that_is_withdrawn_as_a_volatile_one_begins_an_epoch_that_replays(home: str) -> None:
    session = stage(home)
    plan: dict[str, Any] = {"item_id": "x", "context_kind": "developer_instruction", "content": "secret plan"}
    session.append("user", "start")
    session.prepare(budget=30_000, items=[plan])
    call(session, "a")
    call(session, "b")
    session.prepare(budget=30_000, items=[plan])
    hidden = {**plan, "sensitivity": "secret", "metadata": {"placement": "volatile"}}
    turn = session.prepare(budget=30_000, items=[hidden])
    assert turn.new_epoch == "withdrawn"
    assert "secret plan" not in turn.system
    session.replay(turn.event_id or "")


@pytest.mark.parametrize("target", ["reviewer", "ui", "evidence_export"])
def test_the_first_user_message_ends_an_epoch_that_began_before_it(home: str, target: str) -> None:
    session = stage(home)
    session.append("system", "be nice")
    session.append("assistant", "hi")
    session.prepare(budget=5000, target=target)
    session.append("user", "question")
    turn = session.prepare(budget=5000, target=target)
    assert turn.new_epoch == "overflow"
    assert in_tail(turn) == [3]
    assert not {f"messages:{seq}" for seq in in_tail(turn)} & set(reasons(turn))


def test_a_question_that_does_not_fit_is_never_compacted(home: str) -> None:
    session = stage(home)
    for number in range(30):
        session.append("user", f"question {number} " + "word " * 60)
        session.append("assistant", "answer " * 60)
    session.prepare(budget=3000)
    session.append("user", "huge " * 6000)
    done = session.compact(model="none")
    assert not done.changed
    assert "the newest user message" in done.problem


def test_another_tokenizer_expects_nothing_from_the_cached_tail(home: str) -> None:
    session = stage(home)
    for number in range(20):
        session.append("user", f"question {number} " + "word " * 60)
        session.append("assistant", "answer " * 60)
    session.prepare(budget=30_000, model="claude-sonnet-4-5")
    turn = session.prepare(budget=30_000, model="gpt-4o")
    assert turn.new_epoch == "tokenizer_changed"
    assert turn.expected_cached_tokens <= turn.stable_tokens


def test_a_continuing_epoch_keeps_its_excerpts_while_the_window_fills(home: str) -> None:
    session = stage(home)
    for number in range(8):
        session.append("user", f"The harbour lantern {number} hangs at the eastern pier.")
        session.append("assistant", "Noted. " + "rope and tide " * 150)
    for number in range(60):
        session.append("user", f"Where does harbour lantern hang? {number}")
        turn = session.prepare(budget=8000)
        if turn.parts.epoch.start > 8:
            assert excerpts_in(turn), number
        session.append("assistant", "It hangs there. " + "gulls and nets " * 40)
