"""A model compacts behind the turns: it never holds a turn up, and a bad or late answer replaces nothing good."""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from scripted_endpoint import Endpoint, Reply, Seen, chat, refuse
from turn.compacting import (
    BUDGET,
    OPENING,
    TOPICS,
    check_files,
    compaction_events,
    context_tree,
    document_of,
    fill,
    folded_of,
    model,
    opened_tokens,
    records_of,
    scene,
    step,
    turn_after,
)
from turn.scenes import logs, stage, turn_events

from daypack.derived.records import COMPACTED
from daypack.derived.template import parse, problems
from daypack.session import Session
from daypack.turn.compaction import FAILED
from daypack.turn.policy import DEFAULT_WINDOW
from daypack.turn.turn import Turn

FILLED = """# Context

## Task
Fix the glacier of part 1.

## Decisions
- Keep the harbour lamp in src/harbour_0.py because it is cheap.

## Facts
- The glacier lamp should burn 4 hours.
- The secret lamp is in /opt/invented/lamp_77.cfg.

## Pending
- [ ] Fix the orchard of part 2.

## Errors
"""


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def share_of(turn: Turn) -> float:
    return turn.stable_tokens / turn.record.limits.room.tokens


def until_begun(session: Session, endpoint: Endpoint | None = None) -> tuple[Turn, int]:
    """Take turns until the window is filled to the soft threshold."""
    for number in range(40):
        turn = turn_after(session, number)
        if share_of(turn) >= session.turns.inputs.window.background_share(turn.record.limits.room.tokens):
            return turn, number + 1
        assert not session.turns.compactions.running
        assert endpoint is None or endpoint.asked == []
    raise AssertionError("the window never filled")


class Gate:
    """An answer that waits until it is let go."""

    def __init__(self, text: str = FILLED) -> None:
        self.asked = threading.Event()
        self.open = threading.Event()
        self._text = text

    def __call__(self, _: Seen) -> Reply:
        self.asked.set()
        assert self.open.wait(60)
        return chat(self._text)


@contextmanager
def gated(home: str, gate: Gate) -> Generator[tuple[Session, Endpoint]]:
    with model(gate) as (choice, endpoint):
        session = stage(home, compaction_model=choice, window=OPENING)
        try:
            yield session, endpoint
        finally:
            gate.open.set()
            assert session.turns.compactions.wait(60)


@pytest.mark.requirement("G11")
def test_from_the_soft_threshold_on_a_model_compacts_while_turns_go_on(home: str) -> None:
    gate = Gate()
    with gated(home, gate) as (session, endpoint):
        first, number = until_begun(session, endpoint)
        assert gate.asked.wait(60)
        assert session.turns.compactions.running
        session.append("user", "Quickly: which part is it?")
        during = session.prepare(budget=BUDGET)  # the model has not answered yet
        assert during.new_epoch == ""
        assert session.compactions == ()
        session.accept("Part 1.")
        gate.open.set()
        assert session.turns.compactions.wait(60)
        [done] = session.compactions
        assert done.model.startswith("openai:")
        assert (done.trigger, done.method) == ("token_pressure", "structured_digest")
        assert share_of(first) < DEFAULT_WINDOW.hard_share
        turn = turn_after(session, number)
        assert turn.new_epoch == "compaction"
        assert turn.parts.epoch.start == done.through + 1
        assert opened_tokens(turn) < opened_tokens(during)
        doc = parse(document_of(session))
        assert doc.task.startswith("Fix the ")
        assert "part 1" not in doc.task  # that was asked before
        assert any(one.what == "Fix the glacier of part 1." for one in done.losses)
        assert "Keep the harbour lamp in src/harbour_0.py because it is cheap." in doc.decisions
        assert "/opt/invented" not in document_of(session)
        assert any(one.reason == "ungrounded" and "/opt/invented" in one.what for one in done.losses)
        check_files(session)
        for event in turn_events(session):
            session.replay(event.id)


@pytest.mark.requirement("X11")
def test_what_a_model_said_is_in_the_event_and_a_rebuild_asks_nobody(home: str) -> None:
    with model(lambda _: chat(FILLED)) as (choice, endpoint):
        session = scene(home)
        done = session.compact(model=choice, keep_tokens=300)
        [event] = compaction_events(session)
        assert event.data["output"] == {"texts": [FILLED]}
        assert done.model == event.data["model"] == session.compactions[0].model
        [question] = endpoint.asked
        words = question["messages"][-1]["content"]
        assert "its lamp should burn 3 hours" in words
        before = context_tree(session)
    for path in (session.path / "context").glob("*.*"):
        if path.name != "search.sqlite":
            path.unlink()
    session.close()
    fresh = stage(home)
    fresh.append("user", "And?")
    fresh.prepare(budget=BUDGET, dry_run=True)
    after = context_tree(fresh)
    assert all(after[name] == before[name] for name in before if not name.startswith("pack"))


@pytest.mark.requirement("G12")
def test_a_compaction_at_once_wins_over_a_model_that_is_late(home: str) -> None:
    gate = Gate()
    with gated(home, gate) as (session, _):
        _, number = until_begun(session)
        assert gate.asked.wait(60)
        fill(session, 1, number)  # the window is full before the model answers
        [won] = session.compactions
        assert won.model == "none"
        files = context_tree(session)
        gate.open.set()
        assert session.turns.compactions.wait(60)
        assert session.compactions == (won,)
        assert context_tree(session) == files
        assert "glacier of part 1." not in parse(document_of(session)).task
        check_files(session)


def test_a_late_answer_does_not_give_ids_a_second_time_when_the_winner_was_undone(home: str) -> None:
    gate = Gate()
    with gated(home, gate) as (session, _):
        until_begun(session)
        assert gate.asked.wait(60)
        session.compact(model="none", keep_tokens=100)
        given = records_of(session)
        assert given
        session.undo()
        gate.open.set()
        assert session.turns.compactions.wait(60)
        assert all(given.get(name, words) == words for name, words in records_of(session).items())
        check_files(session)


def test_only_one_compaction_runs_in_an_epoch_however_many_turns_it_has(home: str) -> None:
    with model(lambda _: refuse(500, "out of order")) as (choice, endpoint):
        session = stage(home, compaction_model=f"{choice}?timeout=1")
        until_begun(session)
        assert session.turns.compactions.wait(60)
        assert len(session.compactions) <= 1
        asked = len(endpoint.asked)
        for _ in range(3):
            session.append("user", "And?")
            turn = session.prepare(budget=BUDGET)
            if share_of(turn) < DEFAULT_WINDOW.soft_share:
                assert session.turns.compactions.wait(60)
                assert len(endpoint.asked) == asked


def _loop(_: Seen) -> Reply:
    return chat("# Context\n\n## Task\n" + "The zeppelin hums. " * 400)


BAD: dict[str, Callable[[Seen], Reply]] = {
    "thinking": lambda _: chat("<think>I should look at /etc/shadow_99 first"),
    "nothing": lambda _: chat(""),
    "prose": lambda _: chat("Sure! I should summarise that for you. Let me begin with /no/such/file.py."),
    "loop": _loop,
    "cut off": lambda _: chat(FILLED, finish="length"),
    "no json": lambda _: Reply(b"<html>busy</html>"),
    "refused": lambda _: refuse(400, "bad request"),
    "broken off": lambda _: Reply({"choices": []}, cut_at=5),
    "placeholders": lambda _: chat("# Context\n\n## Task\n[What is the user doing?]\n\n## Decisions\n- [x]\n"),
}


@pytest.mark.requirement("G12", "X34", "S1-K4", "S1-K5")
@pytest.mark.parametrize("name", BAD)
def test_whatever_a_model_answers_context_md_is_valid_and_says_only_what_was_said(home: str, name: str) -> None:
    with model(BAD[name]) as (choice, _):
        session = scene(home)
        done = session.compact(model=f"{choice}?timeout=1", keep_tokens=300)
        assert done.changed
        assert done.losses
        text = document_of(session)
        assert problems(text) == []
        raw = logs(session)[0].decode()
        for line in text.splitlines():
            words = line.removeprefix("- [ ] ").removeprefix("- ").split(" — ")[0].rstrip(".")
            assert line.startswith("#") or words in raw, line
        assert "think>" not in text
        assert "shadow_99" not in text
        check_files(session)
        plain = stage(home + "-plain")
        for message in session.messages():
            plain.append_many([message])
        assert plain.compact(model="none", keep_tokens=300).document == text


@pytest.mark.requirement("G12")
def test_an_endpoint_that_is_not_there_holds_no_turn_up_and_a_compaction_without_it_is_made(home: str) -> None:
    with Endpoint(lambda _: chat("")) as gone:
        choice = f"openai:{gone.url}/v1#scripted?timeout=1"
    session = stage(home, compaction_model=choice)
    until_begun(session)
    session.append("user", "Quickly: which part is it?")
    turn = session.prepare(budget=BUDGET)
    assert turn.event_id
    assert session.turns.compactions.wait(60)
    [done] = session.compactions
    assert done.method == "extractive_summary"
    assert done.losses[0].reason == "unread"
    assert "model failed" in (done.losses[0].detail or "")
    check_files(session)


@pytest.mark.requirement("G12")
def test_a_model_that_cannot_be_opened_is_told_in_an_event_and_the_old_files_stay(home: str, tmp_path: Path) -> None:
    session = scene(home, compaction_model=f"llama:{tmp_path}/missing.gguf")
    session.compact(model="none", keep_tokens=900)
    good = context_tree(session)
    session.prepare(budget=BUDGET)
    number = 20
    while not any(event.type == FAILED for event in session.events()):
        step(session, number)
        session.append("user", "Next?")
        session.prepare(budget=BUDGET)
        session.turns.compactions.wait(60)
        number += 1
        assert number < 60
    [event] = [event for event in session.events() if event.type == FAILED]
    assert "missing.gguf" in event.data["problem"]
    assert len(session.compactions) == 1
    after = context_tree(session)
    assert {n: d for n, d in after.items() if not n.startswith("pack")} == {
        n: d for n, d in good.items() if not n.startswith("pack")
    }
    check_files(session)


def test_the_newest_messages_define_the_task_and_former_records_stay_word_for_word(home: str) -> None:
    task = f"Fix the {TOPICS[7 % len(TOPICS)]} of part 7, its lamp should burn 10 hours."
    later = FILLED.replace("Fix the glacier of part 1.", task).replace("glacier lamp", "lamp")
    replies = iter((FILLED, later))
    with model(lambda _: chat(next(replies))) as (choice, endpoint):
        session = scene(home, steps=3)
        session.compact(model=choice, keep_tokens=30)
        former = records_of(session)
        for number in range(3, 8):
            step(session, number)
        session.append("user", "And?")
        session.compact(model=choice, keep_tokens=30)
        now = records_of(session)
        assert all(now[name] == words for name, words in former.items() if name in now)
        assert len(set(former) & set(now)) > 1
        assert folded_of(session).records.task is not None
        assert parse(document_of(session)).task == task
        for question in endpoint.asked[1:]:  # nothing the first run made is shown to the model again
            assert "# Context\n\n## Task\nFix" not in msgspec.json.encode(question).decode()
        first, second = (event for event in session.events() if event.type == COMPACTED)
        assert first.data["output"] != second.data["output"]
