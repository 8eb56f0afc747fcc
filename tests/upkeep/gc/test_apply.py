"""A plan only reads; applying it removes exactly the planned files, under the lock, and records one event."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from turn.scenes import close_all, converse, logs, outputs, stage, turn_events
from upkeep.gc.collectable import (
    collect,
    full_session,
    layout_path,
    make_plan,
    reason_for,
    refer,
    removal_names,
    set_age,
    store_blob,
    store_chunk,
    swap_out,
    tree,
    write_temporary_file,
)

from daypack.derived.children import read_children
from daypack.errors import Damaged, DamageWarning, UnsafePath
from daypack.files import blobs
from daypack.session import Session
from daypack.types.records import Ref, SwapRecord
from daypack.upkeep.gc.apply import APPLIED, apply
from daypack.upkeep.gc.policy import Policy

YES_NO = (False, True)


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def session(home: str) -> Session:
    return full_session(home)


# Plan, apply, record


@pytest.mark.requirement("S4-GC0")
def test_a_plan_only_reads(session: Session) -> None:
    swap_out(session, 1, 5)
    write_temporary_file(session.path)
    before = tree(session)
    planned = make_plan(session)
    assert tree(session) == before
    assert {removal.kind for removal in planned.removals} == {"pack", "swap", "temporary"}
    assert planned.bytes == sum(os.lstat(session.path / removal.path).st_size for removal in planned.removals)


def test_one_event_lists_what_was_removed(session: Session) -> None:
    chunk = swap_out(session, 1, 5)
    before = len(session.events())
    applied = collect(session)
    [event] = session.events(before + 1)
    assert (event.id, event.type) == (applied.event, APPLIED)
    assert event.data["removed"] == {"pack": 2, "swap": 1}
    assert event.data["bytes"] == applied.bytes > 0
    assert sorted(event.data["paths"]) == ["context/pack.json", "context/pack.md", f"context/swap/chunk/{chunk.name}"]


def test_a_long_list_of_paths_is_captured_as_a_blob(session: Session) -> None:
    for number in range(80):
        write_temporary_file(session.path / "context", f"a-long-name-of-a-file-{number}" * 2)
    applied = collect(session)
    event = list(session.events())[-1]
    assert msgspec.json.decode(session.history.captured(event.data["captured_paths"])) == [
        removal.path for removal in applied.removed
    ]


def test_applying_again_does_nothing_and_records_nothing(session: Session) -> None:
    swap_out(session, 1, 5)
    planned = make_plan(session)
    assert apply(session.history, planned).event
    after = tree(session)
    again = apply(session.history, planned)
    assert (again.removed, again.event, again.bytes) == ((), None, 0)
    assert tree(session) == after
    assert make_plan(session).removals == ()


def test_a_file_that_came_into_use_after_the_plan_is_kept(session: Session) -> None:
    chunk, blob = swap_out(session, 1, 5), store_blob(session, "fresh", ())
    temporary = write_temporary_file(session.path)
    planned = make_plan(session)
    assert {chunk.name, blob.name, temporary.name, "pack.json"} <= removal_names(planned)
    refer(session, f"context/swap/chunk/{chunk.name}")
    session.pin("where", f"The plan is in {blob.name}")
    set_age(layout_path(session, "pack"), temporary)
    applied = apply(session.history, planned)
    assert [removal.path for removal in applied.removed] == ["context/pack.md"]
    assert len(applied.skipped) == 4
    assert all(path.exists() for path in (chunk, blob, temporary))


def test_a_file_that_is_not_in_the_plan_is_kept(session: Session) -> None:
    planned = make_plan(session)
    chunk = swap_out(session, 1, 5)
    apply(session.history, planned)
    assert chunk.exists()


@pytest.mark.requirement("S4-GC0", "S4-GC4", "S4-GC5")
@pytest.mark.parametrize("keep", YES_NO)
def test_history_and_captured_text_are_kept_whatever_the_policy(session: Session, *, keep: bool) -> None:
    session.pin("big", "word " * 2000)
    session.path.joinpath("context", "gc.policy").write_text("keep_messages=0\nkeep_events=0\n")
    before, written = tree(session), logs(session)
    turns = {event.id: outputs(session.replay(event.id)) for event in turn_events(session)}
    policy = Policy(0, 0, 10**6, keep_messages=keep, keep_events=keep)
    collect(session, policy, children=True)
    after, (messages, events) = tree(session), logs(session)
    assert messages == written[0]
    assert events.startswith(written[1])
    removed = {name for name in before if name not in after}
    derived = ("context/pack.", "context/dedup/blob/", "context/swap/chunk/", "context/child/")
    assert removed
    assert all(name.startswith(derived) for name in removed)
    changed = {name for name in after if name in before and before[name] != after[name]}
    assert changed <= {"events.jsonl", "updated_at", "context/dedup/index.jsonl", "context/ledger.json", "meta.json"}
    assert {event: outputs(session.replay(event)) for event in turns} == turns


# Children


Case = Callable[[Session], None]


def no_result(session: Session) -> None:
    (session.path / "context/child/rev-1/result.md").unlink()


def still_active(session: Session) -> None:
    (session.path / "context/child/rev-1/status").write_text("active\n")


def recent_files(session: Session) -> None:
    set_age(session.path / "context/child/rev-1/result.md")


def edited_by_hand(session: Session) -> None:
    (session.path / "context/child/rev-1/result.md").write_text("It is shallow.")


def more_files(session: Session) -> None:
    (session.path / "context/child/rev-1/artifact").mkdir()
    (session.path / "context/child/rev-1/artifact/chart.txt").write_text("x")


def linked(session: Session) -> None:
    (session.path / "context/child/rev-1/elsewhere").symlink_to(session.path)


def named_by_refs(session: Session) -> None:
    refer(session, "context/child/rev-1/result.md")


def named_by_a_turn(session: Session) -> None:
    session.append("user", "And the harbour?")
    session.prepare()


def named_by_a_child(session: Session) -> None:
    session.put_child("rev-2", result="As context/child/rev-1/result.md says.")


def unchanged(session: Session) -> None:
    del session


@pytest.fixture
def with_child(home: str) -> Session:
    """A session whose child no turn has shown."""
    session = stage(home)
    converse(session, 2)
    session.put_child("rev-1", handoff="Look at the harbour.", result="It is deep.", refs=[Ref("r1", "a", "file", "b")])
    return session


@pytest.mark.requirement("T8", "S4-GC6")
@pytest.mark.parametrize(
    ("case", "kept_because"),
    [
        (unchanged, ""),
        (no_result, "not done"),
        (still_active, "not done"),
        (recent_files, "younger than 30d"),
        (edited_by_hand, "result.md is not recorded in events.jsonl"),
        (more_files, "artifact/chart.txt is not recorded in events.jsonl"),
        (linked, "contains something other than regular files"),
        (named_by_refs, "referenced by refs.jsonl"),
        (named_by_a_turn, "referenced by"),
        (named_by_a_child, "referenced by child rev-2"),
    ],
)
def test_a_child_is_removed_when_requested_done_old_unreferenced_and_recorded(
    with_child: Session, case: Case, kept_because: str
) -> None:
    case(with_child)
    path = with_child.path / "context/child/rev-1"
    policy = Policy(pack_ttl_seconds=10**9)
    assert reason_for(make_plan(with_child, policy), path) == "children are kept unless --children is given"
    assert kept_because in reason_for(make_plan(with_child, policy, children=True), path)
    applied = collect(with_child, policy, children=True)
    assert path.exists() is bool(kept_because)
    assert ("context/child/rev-1" in [removal.path for removal in applied.removed]) is not bool(kept_because)


@pytest.mark.requirement("S4-GC6")
def test_a_result_is_kept_while_the_parent_shows_it(with_child: Session) -> None:
    turn = with_child.prepare()
    collect(with_child, children=True)
    assert (with_child.path / "context/child/rev-1/result.md").read_text() == "It is deep."
    assert outputs(with_child.replay(turn.event_id or "")) == outputs(turn)


def test_a_removed_child_is_restored_when_the_folder_is_rebuilt(with_child: Session) -> None:
    before = read_children(with_child.history)
    collect(with_child, children=True)
    assert read_children(with_child.history) == ()
    shutil.rmtree(with_child.path / "context/child")
    assert read_children(with_child.history) == before


# Compactions


def test_the_chunk_of_the_current_compaction_is_kept_even_without_its_records(home: str) -> None:
    session = stage(home)
    for _ in range(2):
        converse(session, 30)
        assert session.compact(model="none", keep_tokens=200).changed
    previous, current = session.compactions
    [chunk] = layout_path(session, "swap", "chunk").iterdir()
    assert chunk.name == current.swapped[0].id != previous.swapped[0].id
    layout_path(session, "refs").unlink()
    planned = make_plan(session, Policy(0, 0, 1))
    assert planned.missing == ()  # the chunk of the previous compaction has no file, but can be reproduced
    assert reason_for(planned, chunk) == f"referenced by the compaction {current.id}"
    collect(session, Policy(0, 0, 1))
    assert chunk.exists()


def test_an_unreadable_compaction_keeps_everything_it_may_refer_to(home: str) -> None:
    session = stage(home)
    converse(session, 30)
    chunk = swap_out(session, 1, 20)
    assert reason_for(make_plan(session), chunk).startswith("unreferenced")
    session.append_event("context.compaction.completed", {"source": "another program"})
    assert "cannot be determined" in reason_for(make_plan(session), chunk)


# Missing files


def lose_a_pin(session: Session) -> str:
    session.pin("big", "word " * 2000)
    [name] = [event.data["blob"] for event in session.events() if event.data.get("name") == "big.md"]
    (session.path / "blob" / name).unlink()
    return f"blob/{name}"


def lose_what_a_turn_showed(session: Session) -> str:
    name = blobs.name_of(b"Wind: five knots.")
    (session.path / "blob" / name).unlink()
    return f"blob/{name}"


def lose_a_blob(session: Session) -> str:
    path = store_blob(session, "only the index knows", ("messages:1",))
    path.unlink()
    return f"context/dedup/blob/{path.name}"


def lose_a_chunk(session: Session) -> str:
    record = SwapRecord(
        id=blobs.name_of(b"x"), kind="message_range", source="messages.jsonl", range="1-2", summary="", tokens=1
    )
    path = store_chunk(session, record, b"x")
    path.unlink()
    return f"context/swap/chunk/{path.name}"


def lose_a_chunk_of_refs(session: Session) -> str:
    path = f"context/swap/chunk/{blobs.name_of(b'y')}"
    refer(session, path, source="messages:1-2")
    return path


@pytest.mark.requirement("S4-GC0")
@pytest.mark.parametrize("lose", [lose_a_pin, lose_what_a_turn_showed, lose_a_blob, lose_a_chunk, lose_a_chunk_of_refs])
def test_a_missing_referenced_file_stops_the_collection(session: Session, lose: Callable[[Session], str]) -> None:
    swap_out(session, 1, 5)
    planned = make_plan(session)
    assert planned.missing == ()
    lost = lose(session)
    assert [missing.path for missing in make_plan(session).missing] == [lost]
    before = tree(session)
    with pytest.raises(Damaged, match="missing") as caught:
        apply(session.history, planned)
    assert caught.value.place == str(session.path / lost)
    assert "nothing was removed" in caught.value.hint
    assert tree(session) == before


def test_derived_files_that_can_be_reproduced_are_not_missing(session: Session) -> None:
    swap_out(session, 1, 5).unlink()
    refer(session, f"context/swap/chunk/{swap_out(session, 1, 4).name}", source="messages:1-4")
    shutil.rmtree(layout_path(session, "swap"))
    for path in layout_path(session, "dedup", "blob").iterdir():
        path.unlink()
    assert make_plan(session).missing == ()
    assert collect(session).event


def test_damaged_events_keep_everything_they_may_refer_to(home: str) -> None:
    session = full_session(home)
    chunk, blob = swap_out(session, 1, 5), store_blob(session, "unreferenced text", ())
    session.append_event("note", {"text": "to be damaged"})
    session.close()
    path = session.path / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b"to be damaged", b"to be DAMAGED"))
    session = stage(home)
    with pytest.warns(DamageWarning):
        applied = collect(session)
    assert chunk.exists()
    assert blob.exists()
    assert {removal.kind for removal in applied.removed} == {"pack"}


@pytest.mark.parametrize("place", ["swap", "swap/chunk", "dedup", "dedup/blob", "child"])
def test_a_link_in_place_of_a_folder_is_refused(session: Session, tmp_path: Path, place: str) -> None:
    swap_out(session, 1, 5)
    path = session.path / "context" / place
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    with pytest.raises(UnsafePath):
        make_plan(session)
    assert sorted((tmp_path / "moved").rglob("*"))


def test_a_link_among_chunks_is_not_touched(session: Session, tmp_path: Path) -> None:
    chunk = swap_out(session, 1, 5)
    chunk.rename(tmp_path / "chunk")
    chunk.symlink_to(tmp_path / "chunk")
    collect(session)
    assert chunk.is_symlink()
    assert (tmp_path / "chunk").exists()


def test_an_empty_session_has_nothing_to_collect(home: str) -> None:
    planned = make_plan(stage(home))
    assert planned.removals == ()
    assert planned.missing == ()
    assert {retained.path for retained in planned.retained} == {"messages.jsonl", "events.jsonl"}
