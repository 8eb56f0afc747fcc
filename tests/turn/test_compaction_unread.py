"""What a turn leaves unread after a long import is read after it, in the background and without a model."""

import threading

import pytest
from turn.compacting import OPENING, check_files, document_of, fill, turn_after
from turn.scenes import stage, turn_events

from daypack.session import Session
from daypack.turn.compaction import Compactions
from daypack.types.compaction import Compaction

RULE = "We decided to keep the tide table in data/tides-2031.csv."


def unread(compaction: Compaction) -> list[str]:
    return [loss.what for loss in compaction.losses if loss.reason == "unread"]


@pytest.fixture
def session(home: str, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session whose turns read so little that the beginning stays unread."""
    monkeypatch.setattr("daypack.turn.compaction.MAX_INLINE_COMPACTION_BYTES", 3000)
    session = stage(home, window=OPENING)
    session.append("user", RULE)
    session.append("assistant", "Noted.")
    return session


@pytest.mark.requirement("G11")
def test_the_rest_is_read_in_the_background_and_the_window_stays(session: Session) -> None:
    before, number = fill(session, 1)
    first = session.compactions[0]
    assert session.turns.compactions.wait(60)
    [_, second] = session.compactions
    assert first.source == f"messages:{first.start}-{first.through}"
    assert unread(first) == [f"messages:1-{first.start - 1}"]
    assert (second.source, second.through) == (f"messages:1-{first.through}", first.through)
    assert unread(second) == []
    assert second.model == "none"
    tokens = session.history.messages.reader.slots(0, second.through)
    assert second.before_tokens == sum(slot.tokens for slot in tokens)  # none is counted twice
    assert "data/tides-2031.csv" in document_of(session)
    check_files(session)
    turn = turn_after(session, number)
    assert turn.new_epoch == "compaction"
    assert turn.parts.epoch.start == before.parts.epoch.start
    for event in turn_events(session):
        session.replay(event.id)
    assert not session.turns.compactions.running  # it is not read again
    assert len(session.compactions) == 2


def test_it_is_started_once_and_only_by_the_turn_that_left_something(session: Session) -> None:
    started: list[str] = []
    session.turns.compactions.start = started.append
    _, number = fill(session, 1)
    assert started == ["none"]
    turn_after(session, number)
    assert started == ["none"]
    done = session.turns.compactions.compact_unread()
    assert done.changed
    again = session.turns.compactions.compact_unread()
    assert (again.changed, again.problem) == (False, "every message before the window has been read")


def test_a_turn_that_compacts_meanwhile_wins_and_the_rest_is_read_after_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, reached = threading.Event(), threading.Event()
    run = Compactions._run  # pyright: ignore[reportPrivateUsage]

    def delayed(self: Compactions, task: object, model: str | None) -> object:
        if threading.current_thread().name == "daypack compaction":
            reached.set()
            assert gate.wait(60)
        return run(self, task, model)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Compactions, "_run", delayed)
    _, number = fill(session, 1)
    assert reached.wait(60)
    _, number = fill(session, 1, number)
    gate.set()
    assert session.turns.compactions.wait(60)
    assert not any(compaction.source.startswith("messages:1-") for compaction in session.compactions)
    turn_after(session, number)
    assert session.turns.compactions.wait(60)
    assert session.compactions[-1].source.startswith("messages:1-")
    check_files(session)


def test_the_background_reads_a_bounded_part_and_records_what_it_does_not_read(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.turn.compaction.MAX_BACKGROUND_COMPACTION_BYTES", 6000)
    fill(session, 1)
    assert session.turns.compactions.wait(60)
    [first, second] = session.compactions
    assert 1 < second.start < first.start
    assert unread(second) == [f"messages:1-{second.start - 1}"]
    assert not session.turns.compactions.running
