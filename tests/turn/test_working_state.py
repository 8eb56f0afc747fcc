"""The working state: the fold of the events, brought up to date when asked, and files that are brought in line."""

import errno
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from faults import refused_writing
from turn.compacting import BUDGET, check_files, context_tree, document_of, folded_of, scene, step
from turn.scenes import logs, stage

from daypack.derived.documents import made_from
from daypack.derived.records import COMPACTED, UNDONE
from daypack.errors import StorageFailed
from daypack.session import Session
from daypack.turn.surface import info_of
from daypack.types.compaction import Compaction
from daypack.upkeep.rebuild import rebuild


@pytest.fixture
def compacted(home: str) -> Session:
    session = scene(home)
    session.prepare(budget=BUDGET)
    session.compact(keep_tokens=400)
    return session


def test_the_fold_is_brought_up_to_date_by_what_others_recorded(compacted: Session, home: str) -> None:
    with stage(home) as other:
        step(other, 20)
        other.append("user", "And?")
        other.compact(keep_tokens=50)
        other.undo()
        step(other, 21)
        other.append("user", "And?")
        other.compact(keep_tokens=50)
        expected = other.turns.compactions.read()
    assert compacted.turns.compactions.read() == expected == folded_of(compacted)


def test_a_brief_says_what_turns_repeat(compacted: Session) -> None:
    [done] = compacted.compactions
    brief = info_of(done)
    assert (brief.id, brief.through, brief.model) == (done.id, done.through, "none")
    assert brief.swap in folded_of(compacted).swapped
    assert compacted.turns.inputs.working_state.info() == brief
    assert len(brief.losses) <= 5


def test_files_that_are_of_another_compaction_or_gone_are_made_again_by_the_next_turn(compacted: Session) -> None:
    good = context_tree(compacted)
    for change in (
        lambda: shutil.rmtree(compacted.path / "context"),
        lambda: Path(compacted.history.layout.derived("compaction")).unlink(),
        lambda: Path(compacted.history.layout.derived("compaction")).write_text('{"compaction": "ev-1"}'),
    ):
        change()
        compacted.prepare(budget=BUDGET, dry_run=True)
        check_files(compacted)
        after = context_tree(compacted)
        assert {n: d for n, d in after.items() if not n.startswith("pack")} == {
            n: d for n, d in good.items() if not n.startswith("pack")
        }


def test_where_context_md_was_deleted_by_hand_a_turn_has_the_records_and_a_rebuild_the_file(compacted: Session) -> None:
    good = document_of(compacted)
    Path(compacted.history.layout.derived("context_doc")).unlink()
    turn = compacted.prepare(budget=BUDGET)
    shown = {item.kind for item in turn.parts.epoch.prefix}
    assert "context_doc" not in shown
    assert {"summary", "decisions"} <= shown
    rebuild(compacted.history, compacted.turns)
    assert document_of(compacted) == good


def test_where_nothing_can_be_written_the_event_stands_and_the_next_who_can_writes_the_files(home: str) -> None:
    session = scene(home)
    session.prepare(budget=BUDGET)
    context = session.history.layout.context
    real = os.open

    def guarded(path: str, flags: int, *args: int, **kwargs: int) -> int:
        if str(path).startswith(context) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real(path, flags, *args, **kwargs)

    os.open = guarded  # type: ignore[assignment]
    try:
        done = session.compact(keep_tokens=300)
    finally:
        os.open = real
    assert done.changed
    assert made_from(session.history) is None
    turn = session.prepare(budget=BUDGET)
    check_files(session)
    assert document_of(session).strip() in turn.quoted


def test_a_full_disk_refuses_the_compaction_and_nothing_changes(compacted: Session) -> None:
    step(compacted, 30)
    compacted.append("user", "And?")
    before, raw = context_tree(compacted), logs(compacted)
    with refused_writing(errno.ENOSPC), pytest.raises(StorageFailed):
        compacted.compact(keep_tokens=50)
    with refused_writing(errno.ENOSPC), pytest.raises(StorageFailed):
        compacted.undo()
    assert (context_tree(compacted), logs(compacted)) == (before, raw)
    assert compacted.compact(keep_tokens=50).changed
    check_files(compacted)


def test_one_that_was_begun_on_top_of_another_is_not_recorded(compacted: Session) -> None:
    [done] = compacted.compactions
    before = logs(compacted)
    working = compacted.turns.inputs.working_state
    assert working.commit(msgspec.structs.replace(done, id="", at=""), working.newest_seq - 1) is None
    assert working.commit(msgspec.structs.replace(done, id="", at=""), 0) is None
    assert logs(compacted) == before


def test_events_of_others_that_only_share_the_name_are_passed_over(compacted: Session) -> None:
    standing = compacted.compactions
    foreign: list[dict[str, Any]] = [{}, {"source": 1}, {"records": []}, {"bulk": {"blob": "sha256-0"}}]
    for data in (*foreign, {"compaction": "ev-1"}):
        compacted.append_event(COMPACTED, data)
    compacted.append_event(UNDONE, {})
    compacted.append_event(UNDONE, {"compaction": ["x"]})
    assert compacted.compactions == standing
    turn = compacted.prepare(budget=BUDGET)
    assert turn.event_id
    check_files(compacted)


def test_many_threads_compact_undo_and_prepare_and_the_fold_is_that_of_the_events(home: str) -> None:
    session = scene(home, steps=20)
    session.set_budget(BUDGET)
    session.prepare()
    problems: list[BaseException] = []

    def work(kind: int) -> None:
        try:
            for number in range(6):
                if kind == 0:
                    session.compact(model="none", keep_tokens=900 - 100 * number)
                elif kind == 1:
                    step(session, 100 + number, lines=10)
                    session.append("user", "And?")
                    session.prepare()
                else:
                    assert isinstance(session.compactions, tuple)
                    session.search_history("lamp")
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(kind,)) for kind in (0, 0, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    accepted: list[Compaction] = folded_of(session).accepted
    assert list(session.compactions) == accepted
    assert [one.through for one in accepted] == sorted({one.through for one in accepted})
    session.prepare()
    check_files(session)
