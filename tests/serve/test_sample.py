"""The sample that `make serve` shows and the picture in the README is made from."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_requests import observed_turns

import daypack
from daypack.memory.tools import Memories, open_memory
from daypack.serve.sample import SESSION, Sample, make_sample
from daypack.session import Session
from daypack.turn.ledger import OBSERVED

MARK = re.compile(r"\[end of recalled text \w+\]")


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")


def make(home: str) -> Sample:
    with open_memory(home=home) as memories:
        return make_sample(memories, home=home, uid=None, agent="default")


def open_sample(home: str, name: str = SESSION, agent: str = "default") -> Session:
    return daypack.open_session(name, agent=agent, home=home, create=False)


def told(home: str, name: str = SESSION, agent: str = "default") -> list[tuple[str, str, str]]:
    """Return time, role and text of the messages of a session, without the random marks of recalled texts."""
    with open_sample(home, name, agent) as session:
        return [(message.ts, message.role, MARK.sub("", message.text)) for message in session.messages()]


def files(home: str) -> dict[str, bytes]:
    root = Path(home)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.jsonl") if path.is_file()}


def events(session: Session) -> dict[str, int]:
    counts: dict[str, int] = {}
    for event in session.events():
        counts[event.type] = counts.get(event.type, 0) + 1
    return counts


def test_it_has_something_of_everything(home: str) -> None:
    make(home)
    with open_sample(home) as session:
        assert 40 <= events(session)["context.turn"] <= 60
        assert {"system.md", "printer.md"} == set(session.pins)
        assert [rule.text for rule in session.rules()][1].startswith("Always run the tests")
        assert session.memory is not None
        assert len(session.compactions) >= 2
        assert sum(event.type == "context.compaction.undone" for event in session.events()) == 1
        assert sum(message.incomplete is not None for message in session.messages()) == 1
        assert events(session)["provider.error"] >= 1
        [child] = session.children
        assert (child.name, child.status, child.session) == ("proofreader", "done", "sample--proofreader")
        turns = [session.replay(event.id) for event in session.events() if event.type == "context.turn"]
        reasons = {omission.reason for turn in turns for omission in turn.omitted}
        assert {"superseded_by_summary", "too_large", "low_relevance"} <= reasons
        assert any("recall" in [call.name for call in message.tool_calls] for message in session.messages())
    with open_sample(home, "sample--proofreader") as child_session:
        assert events(child_session)["context.turn"] == 4
    with open_sample(home, "sample-print-job") as print_job:
        tiers = print_job.tiers
        assert all((tiers.core, tiers.working, tiers.ephemeral))


@pytest.mark.parametrize("after", [0, 3, 6, 7, 12])
def test_an_interrupted_memory_is_completed(home: str, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    left = after
    add_entry: Callable[..., Any] = Memories.add_entry

    def interrupted(self: Memories, *args: Any, **fields: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return add_entry(self, *args, **fields)

    with monkeypatch.context() as patch:
        patch.setattr(Memories, "add_entry", interrupted)
        try:
            make(home)
        except KeyboardInterrupt:
            assert left < 0
    memory_id = make(home).memory_id
    with open_memory(home=home) as memories:
        [memory] = memories.memories()
        assert (memory.memory_id, memory.stats.entries, memory.stats.documents) == (memory_id, 12, 3)
        assert memories.get_context(memory_id).content.startswith("# Harbour festival")


def test_every_turn_of_it_replays(home: str) -> None:
    make(home)
    for name in (SESSION, "sample-print-job", "sample--proofreader"):
        with open_sample(home, name) as session:
            for event in session.events():
                if event.type == "context.turn":
                    assert session.replay(event.id).event_id == event.id


def test_the_requests_of_the_recorded_session_are_verified(home: str) -> None:
    make(home)
    with open_sample(home, "sample-claude-code", "claude-code") as session:
        assert events(session)[OBSERVED] >= 10
        for turn in observed_turns(session):
            assert turn.verdict.verified


def test_its_texts_and_times_are_the_same_everywhere(home: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    make(home)
    make(other)
    assert told(home) == told(other)
    assert told(home)[0][0].startswith("2026-04-21T")
    with open_sample(home) as session:
        assert (session.path / "created_at").read_text() == "2026-04-21T13:04:00Z\n"
        assert (session.path / "cwd").read_text() == "/home/ada/posters\n"
    assert told(home, "sample-claude-code", "claude-code") == told(other, "sample-claude-code", "claude-code")


def test_it_is_made_once(home: str) -> None:
    first = make(home)
    before = files(home)
    assert make(home) == first
    assert files(home) == before


@pytest.mark.parametrize("after", [0, 1, 20, 41, 75, 110, 120])
def test_an_interrupted_one_is_completed(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    left = after
    append: Callable[..., Any] = Session.append

    def interrupted(self: Session, *args: Any, **fields: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return append(self, *args, **fields)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "append", interrupted)
        try:
            make(home)
        except KeyboardInterrupt:
            assert left < 0
    make(home)
    whole = str(tmp_path / "whole")
    make(whole)
    for name in (SESSION, "sample-print-job"):
        assert [said[1:] for said in told(home, name)] == [said[1:] for said in told(whole, name)]
        with open_sample(home, name) as session, open_sample(whole, name) as other:
            assert session.state == "done"
            assert len(session.compactions) == len(other.compactions)


def test_a_session_of_the_user_with_that_name_is_left_alone(home: str) -> None:
    with daypack.open_session(SESSION, home=home) as session:
        session.append("user", "This one is mine.")
    make(home)
    assert [text for _, _, text in told(home)] == ["This one is mine."]
