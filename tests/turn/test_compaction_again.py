"""Compactions one after the other: taken back, made again, replayed and rebuilt, and nothing grows or is forgotten."""

import shutil
import threading
from pathlib import Path

import msgspec
import pytest
from turn.compacting import (
    BUDGET,
    check_bounds,
    check_files,
    compaction_events,
    context_tree,
    derived,
    document_of,
    fill,
    folded_of,
    most_tokens,
    opened_tokens,
    records_of,
    scene,
    step,
    tree,
    turn_after,
)
from turn.scenes import Clock, digest, in_tail, logs, outputs, release, stage, turn_events

from daypack.derived.records import COMPACTED, UNDONE
from daypack.errors import SourceMissing
from daypack.session import Session
from daypack.turn.compaction import first_uncompacted
from daypack.upkeep.rebuild import rebuild


def replay_everything(session: Session) -> None:
    for event in turn_events(session):
        session.replay(event.id)


# Taking back


@pytest.mark.requirement("S4-SR1")
def test_undo_appends_that_it_was_and_files_and_turns_are_as_before(home: str) -> None:
    session = stage(home)
    _, number = fill(session, 2)
    turn_after(session, number)
    files, standing = context_tree(session), session.compactions
    session.append("user", "Go on.")
    control = next_prefix(home)
    raw = logs(session)
    done = session.compact(keep_tokens=100)
    assert context_tree(session) != files
    assert session.undo().id == done.id
    messages, events = logs(session)
    assert messages == raw[0]
    assert events.startswith(raw[1])
    assert compaction_events(session)[-1].type == UNDONE
    assert session.compactions == standing
    after = context_tree(session)
    known = ("swap/index.jsonl", "offsets/dedup.idx")  # what was swapped keeps its id; how far was read is a cache
    assert {n: d for n, d in after.items() if n not in known} == {n: d for n, d in files.items() if n not in known}
    assert after["swap/index.jsonl"].startswith(files["swap/index.jsonl"])
    turn = session.prepare(budget=BUDGET)
    assert turn.new_epoch == "compaction"
    assert in_tail(turn)[0] == standing[-1].through + 1
    assert [item.text for item in turn.parts.epoch.prefix] == control
    check_files(session)
    replay_everything(session)


def next_prefix(home: str) -> list[str]:
    """The prefix that a new epoch would have now."""
    with stage(home) as other:
        other.refresh()
        return [item.text for item in other.prepare(budget=BUDGET, dry_run=True).parts.epoch.prefix]


def test_all_can_be_undone_and_then_there_is_nothing_left_to_undo(home: str) -> None:
    session = stage(home)
    fill(session, 3)
    names = [one.id for one in session.compactions]
    assert [session.undo().id for _ in names] == names[::-1]
    with pytest.raises(SourceMissing, match="no compaction is in effect"):
        session.undo()
    assert session.compactions == ()
    assert document_of(session) == ""
    check_files(session)
    turn = session.prepare(budget=10 * BUDGET)
    assert in_tail(turn)[0] == 1
    assert not [item for item in turn.parts.epoch.prefix if item.kind in ("context_doc", "refs")]
    replay_everything(session)


def test_a_named_compaction_is_undone_with_what_was_built_on_it(home: str) -> None:
    session = stage(home)
    _, number = fill(session, 3)
    first, second, _ = session.compactions
    assert session.undo(second.id).id == second.id
    assert session.compactions == (first,)
    assert first_uncompacted(folded_of(session)) == first.through + 1
    with pytest.raises(SourceMissing, match=f"no compaction {second.id} is in effect"):
        session.undo(second.id)
    check_files(session)
    turn_after(session, number)
    done = session.compact(keep_tokens=200)
    assert done.source.startswith(f"messages:{first.through + 1}-")
    check_files(session)
    replay_everything(session)


def test_ids_of_records_and_compactions_are_never_given_twice(home: str) -> None:
    session = scene(home, steps=30)
    meant: dict[str, str] = {}
    for round_number in range(4):
        session.compact(keep_tokens=1500 - 300 * round_number)
        for name, words in records_of(session).items():
            assert meant.setdefault(name, words) == words
        refs = {one.id: one.path for one in folded_of(session).refs.values()}
        for name, path in refs.items():
            assert meant.setdefault(name, path) == path
        if round_number != 2:
            session.undo()
        step(session, 100 + round_number, text=f"We agreed on the {round_number} doors of the barn, painted green.")
        session.append("user", "Next?")
    names = [event.id for event in compaction_events(session)]
    assert len(set(names)) == len(names)


# Again and again


@pytest.mark.requirement("T4", "X14", "S1-P2.4", "S1-L2.3", "S1-I2", "S1-I2.2", "S1-L2.1")
def test_twenty_compactions_in_a_row_keep_files_and_window_bounded_and_ids_stable(home: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    session = stage(home, workspace=str(workspace))
    session.set_budget(BUDGET)
    counts: list[int] = []
    meant: dict[str, str] = {}
    where: dict[str, str] = {}
    sizes: list[int] = []
    for number in range(20):
        for at in range(3):
            step(session, 3 * number + at)
        session.append("user", f"What is next after round {number}?")
        raw = digest(logs(session)[0])
        assert session.compact(keep_tokens=200).changed
        assert digest(logs(session)[0]) == raw
        counts.append(len([name for name in tree(session) if ".tmp-" not in name]))
        standing = records_of(session)
        for name, words in standing.items():
            assert meant.setdefault(name, words) == words
            assert where.get(words, name) == name
        where = {words: name for name, words in standing.items()}
        check_bounds(session)
        check_files(session)
        sizes.append(session.compactions[-1].after_tokens)
    assert len(session.compactions) == 20
    assert counts[1:] == counts[1:2] * 19
    assert max(sizes) <= 41 * 90
    assert document_of(session).count("## Task") == 1
    assert list(workspace.iterdir()) == []
    turn = session.prepare()
    assert opened_tokens(turn) <= most_tokens(turn)


def test_over_many_full_windows_each_new_epoch_is_as_small_as_the_first(home: str) -> None:
    session = stage(home)
    turn, number = fill(session)
    starts = [opened_tokens(turn)]
    for _ in range(7):
        turn, number = fill(session, 1, number)
        starts.append(opened_tokens(turn))
        check_files(session)
    assert max(starts) <= most_tokens(turn)
    assert max(starts[4:]) <= 1.1 * max(starts[:4])
    assert len(session.compactions) == 8
    assert session.compactions[-1].through == turn.parts.epoch.start - 1
    ranges = [one.source for one in session.compactions]
    assert ranges[0].startswith("messages:1-")
    assert len(set(ranges)) == len(ranges)
    replay_everything(session)


def test_a_window_that_was_just_compacted_takes_the_share_of_a_new_epoch_at_most(home: str) -> None:
    session = stage(home)
    number = 0
    for _ in range(3):
        turn, number = fill(session, 1, number)
        assert opened_tokens(turn) <= most_tokens(turn)


def test_words_that_come_again_after_their_record_gave_way_have_the_id_they_had(home: str) -> None:
    session = stage(home)
    where: dict[str, str] = {}
    for number in range(16):
        for at in range(3):
            step(session, 3 * number + at)
        session.append("user", f"What is next after round {number}?")
        session.compact(keep_tokens=200)
        for name, words in records_of(session).items():
            assert where.setdefault(words, name) == name


@pytest.mark.requirement("X11")
def test_no_summary_and_nothing_that_was_brought_back_is_ever_read_by_a_compaction(home: str) -> None:
    session = scene(home)
    session.compact(keep_tokens=600)
    planted = "We decided that ZEBRAFISH must be deployed to /srv/zebra/9177 at once."
    for name in ("context_doc", "summary", "facts", "decisions", "todo"):
        path = Path(session.history.layout.derived(name))
        path.write_text(path.read_text().replace("We decided", planted + " We decided") + f"\n- {planted}\n")
    session.append("user", "A summary of what was said before.", meta={"foreign_summary": True})
    session.append("user", f"This session is being continued. {planted}", meta={"foreign_summary": True})
    call = {"id": "back", "name": "recall", "arguments": '{"id": "msg-1"}'}
    session.append("assistant", "I bring it back.", tool_calls=[call])
    session.append("tool", session.call("recall", '{"id": "msg-1"}') + f"\n{planted}", tool_call_id="back")
    for number in range(20, 24):
        step(session, number)
    session.append("user", "What now?")
    assert session.compact(keep_tokens=100).changed
    [event] = [event for event in session.events() if event.type == COMPACTED][-1:]
    assert b"ZEBRAFISH" not in msgspec.json.encode(event.data)
    assert b"/srv/zebra" not in msgspec.json.encode(event.data)
    for name in ("context_doc", "summary", "facts", "decisions", "todo", "errors", "refs"):
        assert b"ZEBRAFISH" not in derived(session, name)


# From history alone


@pytest.mark.requirement("S4-SR2")
def test_every_turn_replays_and_every_file_comes_back_without_context(home: str) -> None:
    clock = Clock()
    session = stage(home, clock=clock)
    turn, number = fill(session, 3)
    session.compact(keep_tokens=150)
    turn_after(session, number)
    session.undo()
    session.compact(keep_tokens=400)
    session.append("user", "Once more.")
    turn = session.prepare(budget=BUDGET)
    made, before = outputs(turn), context_tree(session)
    raw = logs(session)
    replay_everything(session)
    release(session)
    with stage(home, clock=clock) as fresh:
        replay_everything(fresh)
    shutil.rmtree(session.history.layout.context)
    with stage(home, clock=clock) as fresh:
        replay_everything(fresh)
        assert outputs(fresh.replay(turn.event_id or "")) == made
        fresh.prepare(budget=BUDGET, dry_run=True)
        check_files(fresh)  # a turn makes again what it needs
    shutil.rmtree(session.history.layout.context)
    with stage(home, clock=clock) as fresh:
        rebuild(fresh.history, fresh.turns)
        check_files(fresh)
        after = context_tree(fresh)
        assert logs(fresh) == raw
    assert sorted(after) == sorted(before)
    assert after == before


def test_a_rebuild_gives_the_same_bytes_while_the_context_folder_stands(home: str) -> None:
    session = stage(home)
    fill(session, 2)
    before, raw = context_tree(session), logs(session)
    rebuild(session.history, session.turns)
    assert context_tree(session) == before
    assert logs(session) == raw


def test_without_a_model_nothing_ever_runs_behind_the_turns(home: str) -> None:
    session = stage(home)
    for number in range(14):
        turn_after(session, number)
        assert not session.turns.compactions.running
        assert not [one for one in threading.enumerate() if one.name == "daypack compaction"]
    assert {one.model for one in session.compactions} == {"none"}


def test_two_sessions_of_one_folder_see_each_others_compactions(home: str) -> None:
    session = scene(home)
    other = stage(home)
    session.prepare(budget=BUDGET)
    other.prepare(budget=BUDGET)
    done = session.compact(keep_tokens=300)
    turn = other.prepare(budget=BUDGET)
    assert turn.new_epoch == "compaction"
    assert [one.id for one in other.compactions] == [done.id]
    other.undo()
    assert session.compactions == ()
    assert session.prepare(budget=BUDGET).new_epoch == "compaction"
    assert not document_of(session)
