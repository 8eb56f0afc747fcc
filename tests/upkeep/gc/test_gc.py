"""A plan only reads; applying it removes what it names and nothing else, under the lock, and tells of it once."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from turn.scenes import close_all, converse, logs, outputs, stage, turn_events
from upkeep.gc.remains import (
    collect,
    furnish,
    going,
    layout_path,
    leave_behind,
    look,
    refer,
    store_blob,
    store_chunk,
    swap_out,
    tree,
    why,
    young,
)

from daypack.derived.children import read_children
from daypack.errors import Damaged, DamageWarning, UnsafePath
from daypack.files import blobs
from daypack.session import Session
from daypack.types.records import Ref, SwapRecord
from daypack.upkeep.gc.gc import APPLIED, apply
from daypack.upkeep.gc.policy import Policy

YES_NO = (False, True)


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def session(home: str) -> Session:
    return furnish(home)


# What happens around it


@pytest.mark.requirement("S4-GC0")
def test_a_plan_only_reads(session: Session) -> None:
    swap_out(session, 1, 5)
    leave_behind(session.path)
    before = tree(session)
    planned = look(session)
    assert tree(session) == before
    assert {one.kind for one in planned.going} == {"pack", "swap", "temporary"}
    assert planned.bytes == sum(os.lstat(session.path / one.path).st_size for one in planned.going)


def test_one_event_tells_what_went(session: Session) -> None:
    chunk = swap_out(session, 1, 5)
    before = len(session.events())
    applied = collect(session)
    [event] = session.events(before + 1)
    assert (event.id, event.type) == (applied.event, APPLIED)
    assert event.data["removed"] == {"pack": 2, "swap": 1}
    assert event.data["bytes"] == applied.bytes > 0
    assert sorted(event.data["paths"]) == ["context/pack.json", "context/pack.md", f"context/swap/chunk/{chunk.name}"]


def test_many_names_are_captured_beside_the_event(session: Session) -> None:
    for number in range(80):
        leave_behind(session.path / "context", f"a-long-name-of-a-file-{number}" * 2)
    applied = collect(session)
    event = list(session.events())[-1]
    assert msgspec.json.decode(session.history.captured(event.data["listed"])) == [one.path for one in applied.removed]


def test_applying_again_does_nothing_and_records_nothing(session: Session) -> None:
    swap_out(session, 1, 5)
    planned = look(session)
    assert apply(session.history, planned).event
    after = tree(session)
    again = apply(session.history, planned)
    assert (again.removed, again.event, again.bytes) == ((), None, 0)
    assert tree(session) == after
    assert look(session).going == ()


def test_what_came_into_use_since_the_plan_stays(session: Session) -> None:
    chunk, blob = swap_out(session, 1, 5), store_blob(session, "fresh", ())
    temporary = leave_behind(session.path)
    planned = look(session)
    assert {chunk.name, blob.name, temporary.name, "pack.json"} <= going(planned)
    refer(session, f"context/swap/chunk/{chunk.name}")
    session.pin("where", f"The plan is in {blob.name}")
    young(layout_path(session, "pack"), temporary)
    applied = apply(session.history, planned)
    assert [one.path for one in applied.removed] == ["context/pack.md"]
    assert len(applied.spared) == 4
    assert all(path.exists() for path in (chunk, blob, temporary))


def test_what_the_plan_does_not_name_stays(session: Session) -> None:
    planned = look(session)
    chunk = swap_out(session, 1, 5)
    apply(session.history, planned)
    assert chunk.exists()


@pytest.mark.requirement("S4-GC0", "S4-GC4", "S4-GC5")
@pytest.mark.parametrize("keep", YES_NO)
def test_history_and_what_was_captured_stay_whatever_the_policy(session: Session, *, keep: bool) -> None:
    session.pin("big", "word " * 2000)
    session.path.joinpath("context", "gc.policy").write_text("keep_messages=0\nkeep_events=0\n")
    before, written = tree(session), logs(session)
    turns = {event.id: outputs(session.replay(event.id)) for event in turn_events(session)}
    policy = Policy(0, 0, 10**6, keep_messages=keep, keep_events=keep)
    collect(session, policy, children=True)
    after, (messages, events) = tree(session), logs(session)
    assert messages == written[0]
    assert events.startswith(written[1])
    gone = {name for name in before if name not in after}
    derived = ("context/pack.", "context/dedup/blob/", "context/swap/chunk/", "context/child/")
    assert gone
    assert all(name.startswith(derived) for name in gone)
    changed = {name for name in after if name in before and before[name] != after[name]}
    assert changed <= {"events.jsonl", "updated_at", "context/dedup/index.jsonl", "context/ledger.json", "meta.json"}
    assert {event: outputs(session.replay(event)) for event in turns} == turns


# Children


Case = Callable[[Session], None]


def no_result(session: Session) -> None:
    (session.path / "context/child/rev-1/result.md").unlink()


def still_active(session: Session) -> None:
    (session.path / "context/child/rev-1/status").write_text("active\n")


def young_files(session: Session) -> None:
    young(session.path / "context/child/rev-1/result.md")


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


def nothing_special(session: Session) -> None:
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
    ("case", "stays"),
    [
        (nothing_special, ""),
        (no_result, "it is not done"),
        (still_active, "it is not done"),
        (young_files, "younger than 30d"),
        (edited_by_hand, "the events do not have its result.md"),
        (more_files, "the events do not have its artifact/chart.txt"),
        (linked, "it holds more than plain files"),
        (named_by_refs, "refs.jsonl refers to it"),
        (named_by_a_turn, "refers to it"),
        (named_by_a_child, "child rev-2 refers to it"),
    ],
)
def test_a_child_goes_when_it_is_asked_for_done_old_named_by_nobody_and_comes_back(
    with_child: Session, case: Case, stays: str
) -> None:
    case(with_child)
    path = with_child.path / "context/child/rev-1"
    policy = Policy(pack_ttl_seconds=10**9)
    assert why(look(with_child, policy), path) == "children stay unless they are asked for"
    assert stays in why(look(with_child, policy, children=True), path)
    applied = collect(with_child, policy, children=True)
    assert path.exists() is bool(stays)
    assert ("context/child/rev-1" in [one.path for one in applied.removed]) is not bool(stays)


@pytest.mark.requirement("S4-GC6")
def test_a_result_stays_while_the_parent_shows_it_and_is_there_again_after_it_went(with_child: Session) -> None:
    turn = with_child.prepare()
    collect(with_child, children=True)
    assert (with_child.path / "context/child/rev-1/result.md").read_text() == "It is deep."
    assert outputs(with_child.replay(turn.event_id or "")) == outputs(turn)


def test_a_child_that_went_comes_back_with_the_folder(with_child: Session) -> None:
    before = read_children(with_child.history)
    collect(with_child, children=True)
    assert read_children(with_child.history) == ()
    shutil.rmtree(with_child.path / "context/child")
    assert read_children(with_child.history) == before


# Compactions


def test_what_the_compaction_that_counts_swapped_out_stays_also_without_its_files(home: str) -> None:
    session = stage(home)
    for _ in range(2):
        converse(session, 30)
        assert session.compact(model="none", keep_tokens=200).changed
    former, current = session.compactions
    [chunk] = layout_path(session, "swap", "chunk").iterdir()
    assert chunk.name == current.swapped[0].id != former.swapped[0].id
    layout_path(session, "refs").unlink()
    planned = look(session, Policy(0, 0, 1))
    assert planned.missing == ()  # the chunk of the compaction before is no file, and can be made
    assert why(planned, chunk) == f"the compaction {current.id} refers to it"
    collect(session, Policy(0, 0, 1))
    assert chunk.exists()


def test_a_compaction_that_cannot_be_read_keeps_what_it_may_have_referred_to(home: str) -> None:
    session = stage(home)
    converse(session, 30)
    chunk = swap_out(session, 1, 20)
    assert why(look(session), chunk).startswith("nobody refers to it")
    session.append_event("context.compaction.completed", {"source": "of another writer"})
    assert "not known" in why(look(session), chunk)


# What is missing


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
def test_something_missing_that_is_referred_to_stops_everything(
    session: Session, lose: Callable[[Session], str]
) -> None:
    swap_out(session, 1, 5)
    planned = look(session)
    assert planned.missing == ()
    lost = lose(session)
    assert [one.path for one in look(session).missing] == [lost]
    before = tree(session)
    with pytest.raises(Damaged, match="missing") as caught:
        apply(session.history, planned)
    assert caught.value.place == str(session.path / lost)
    assert "nothing was removed" in caught.value.hint
    assert tree(session) == before


def test_derived_files_that_can_be_made_again_are_not_missing(session: Session) -> None:
    swap_out(session, 1, 5).unlink()
    refer(session, f"context/swap/chunk/{swap_out(session, 1, 4).name}", source="messages:1-4")
    shutil.rmtree(layout_path(session, "swap"))
    for path in layout_path(session, "dedup", "blob").iterdir():
        path.unlink()
    assert look(session).missing == ()
    assert collect(session).event


def test_damaged_events_keep_what_they_may_have_referred_to(home: str) -> None:
    session = furnish(home)
    chunk, blob = swap_out(session, 1, 5), store_blob(session, "nobody knows me", ())
    session.append_event("note", {"text": "to be damaged"})
    session.close()
    path = session.path / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b"to be damaged", b"to be DAMAGED"))
    session = stage(home)
    with pytest.warns(DamageWarning):
        applied = collect(session)
    assert chunk.exists()
    assert blob.exists()
    assert {one.kind for one in applied.removed} == {"pack"}


@pytest.mark.parametrize("place", ["swap", "swap/chunk", "dedup", "dedup/blob", "child"])
def test_a_link_in_the_place_of_a_folder_is_refused(session: Session, tmp_path: Path, place: str) -> None:
    swap_out(session, 1, 5)
    path = session.path / "context" / place
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    with pytest.raises(UnsafePath):
        look(session)
    assert sorted((tmp_path / "moved").rglob("*"))


def test_a_link_among_chunks_is_left_alone(session: Session, tmp_path: Path) -> None:
    chunk = swap_out(session, 1, 5)
    chunk.rename(tmp_path / "chunk")
    chunk.symlink_to(tmp_path / "chunk")
    collect(session)
    assert chunk.is_symlink()
    assert (tmp_path / "chunk").exists()


def test_an_empty_session_has_nothing_to_collect(home: str) -> None:
    planned = look(stage(home))
    assert planned.going == ()
    assert planned.missing == ()
    assert {one.path for one in planned.staying} == {"messages.jsonl", "events.jsonl"}
