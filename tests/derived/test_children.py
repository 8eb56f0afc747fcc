"""Children of a session: put, read, deleted and had again."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from faults import Faults, injected

import daypack
from daypack.derived.children import Child, put_child, read_children, restore_children
from daypack.errors import BadMessage, BadName, DamageWarning, DaypackError, UnsafePath
from daypack.files import atomic
from daypack.runtime import Session
from daypack.types.records import Ref

REF = Ref(id="r1", path="src/a.py", kind="file", summary="where it happens")


def folder(session: Session, *names: str) -> Path:
    return session.path.joinpath("context", "child", *names)


def test_a_child_is_read_as_it_was_put(session: Session) -> None:
    event = put_child(session.history, "rev-1", handoff="Review a.py", result="Two bugs.\n", refs=[REF])
    assert event.type == "child.updated"
    assert read_children(session.history) == (Child("rev-1", "Review a.py", "Two bugs.\n", (REF,)),)
    assert folder(session, "rev-1", "result.md").read_text() == "Two bugs.\n"


def test_what_is_left_out_stays_as_it_was(session: Session) -> None:
    put_child(session.history, "a", handoff="Ask")
    put_child(session.history, "a", result="Answer")
    put_child(session.history, "a", result="Better answer")
    assert read_children(session.history) == (Child("a", "Ask", "Better answer"),)


@pytest.mark.requirement("S4-F2")
def test_a_deleted_folder_comes_back_from_the_events(session: Session) -> None:
    put_child(session.history, "b", handoff="x" * 10_000, refs=[REF])
    put_child(session.history, "a", result="one")
    put_child(session.history, "a", result="two")
    before = read_children(session.history)
    shutil.rmtree(session.path / "context")
    assert read_children(session.history) == before
    assert [child.name for child in before] == ["a", "b"]
    assert folder(session, "a", "result.md").read_text() == "two"
    assert len(session.events()) == 3


def test_a_child_that_is_put_into_a_deleted_folder_brings_the_others_back(session: Session) -> None:
    put_child(session.history, "a", result="one")
    shutil.rmtree(folder(session))
    put_child(session.history, "b", result="two")
    assert [(child.name, child.result) for child in read_children(session.history)] == [("a", "one"), ("b", "two")]


def test_a_folder_made_by_hand_counts_at_once(session: Session) -> None:
    place = folder(session, "helping")
    (place / "artifact" / "deep").mkdir(parents=True)
    (place / "result.md").write_bytes(b"done \xff")
    (place / "artifact" / "deep" / "b.txt").write_text("b")
    (place / "artifact" / "a.txt").write_text("a")
    (place / "artifact" / ".hidden").write_text("no")
    (child,) = read_children(session.history)
    assert (child.handoff, child.result) == (None, "done �")
    top = "context/child/helping/artifact"
    assert child.artifacts == (f"{top}/a.txt", f"{top}/deep/b.txt")


def test_a_childs_messages_are_not_read(session: Session) -> None:
    put_child(session.history, "a", result="short")
    folder(session, "a", "messages.jsonl").write_text('{"role":"user","content":"secret"}\n')
    assert "secret" not in repr(read_children(session.history))


def test_no_link_is_followed(session: Session, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "result.md").write_text("not yours")
    put_child(session.history, "a", handoff="ask")
    (folder(session, "a") / "result.md").symlink_to(outside / "result.md")
    (folder(session, "a") / "artifact").symlink_to(outside)
    folder(session, "linked").symlink_to(outside)
    assert read_children(session.history) == (Child("a", "ask"),)
    for name in ("a", "linked"):
        with pytest.raises(UnsafePath):
            put_child(session.history, name, result="into the trap")
    assert (outside / "result.md").read_text() == "not yours"
    shutil.rmtree(folder(session))
    folder(session).symlink_to(outside)
    with pytest.raises(UnsafePath):
        read_children(session.history)


@pytest.mark.parametrize("name", ["..", "a/b", ".hidden", "", "a\nb"])
def test_a_name_that_is_no_path_component_is_refused(session: Session, name: str) -> None:
    with pytest.raises(BadName):
        put_child(session.history, name, result="x")
    assert len(session.events()) == 0


def test_text_that_cannot_be_spelled_is_refused_whole(session: Session) -> None:
    with pytest.raises(BadMessage, match="result"):
        put_child(session.history, "a", handoff="fine", result="\ud800")
    assert read_children(session.history) == ()


def test_a_line_that_is_no_ref_is_warned_of_and_the_others_are_read(session: Session) -> None:
    put_child(session.history, "a", refs=[REF])
    with open(folder(session, "a", "refs.jsonl"), "a") as file:
        file.write('{"id": 7}\nnot json\n')
    with pytest.warns(DamageWarning) as warned:
        (child,) = read_children(session.history)
    assert child.refs == (REF,)
    assert [f"line {number} is no ref" in str(one.message) for number, one in enumerate(warned, 2)] == [True, True]


def test_an_event_that_cannot_be_had_again_is_warned_of(session: Session) -> None:
    put_child(session.history, "big", result="y" * 5000)
    put_child(session.history, "small", result="z")
    shutil.rmtree(session.path / "context")
    shutil.rmtree(session.path / "blob")
    with pytest.warns(DamageWarning, match="ev-1"):
        assert [child.name for child in read_children(session.history)] == ["small"]


def test_events_need_not_be_read_when_the_caller_knows_that_there_is_no_child(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.history.events, "records", None)
    assert read_children(session.history, recorded=False) == ()
    assert not folder(session).exists()


def test_events_are_read_once_when_there_is_no_child(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.append_event("other", {})
    assert read_children(session.history) == ()
    monkeypatch.setattr(session.history.events, "records", None)
    assert read_children(session.history) == ()


def test_children_are_restored_from_the_events_that_are_given(session: Session) -> None:
    put_child(session.history, "a", result="one")
    put_child(session.history, "a", result="two")
    shutil.rmtree(folder(session))
    assert restore_children(session.history, session.events(1, 1)) == (Child("a", None, "one"),)


def test_what_cannot_be_written_down_is_still_told(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    put_child(session.history, "a", result="one")
    shutil.rmtree(session.path / "context")

    def refuse(path: str, **_: object) -> None:
        raise UnsafePath("no", place=path)

    monkeypatch.setattr(atomic, "make_folders", refuse)
    assert read_children(session.history) == (Child("a", None, "one"),)


def test_an_error_at_any_call_leaves_all_of_a_child_or_none(tmp_path: Path) -> None:
    template = tmp_path / "template"
    with daypack.open_session("work", home=template, durability="os") as session:
        put_child(session.history, "a", handoff="old ask", result="old")

    def put_with(faults: Faults, name: str) -> Session:
        shutil.copytree(template, tmp_path / name)
        session = daypack.open_session("work", home=tmp_path / name)
        with injected(faults), suppress(DaypackError):
            put_child(session.history, "a", handoff="new ask", result="n" * 5000)
        session.close()
        return session

    counting = Faults()
    put_with(counting, "counting")
    seen: set[bool] = set()
    for at in range(1, counting.count + 1):
        session = put_with(Faults(at), str(at))
        (child,) = read_children(session.history)
        assert (child.handoff, child.result) in (("old ask", "old"), ("new ask", "n" * 5000)), at
        shutil.rmtree(session.path / "context")
        assert read_children(session.history) == (child,), at
        seen.add(child.result == "old")
    assert seen == {True, False}


def test_a_child_that_could_not_be_recorded_leaves_no_folder(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise UnsafePath("no", operation="append", place="events", hint="none")

    monkeypatch.setattr(session.history, "append_event", fail)
    with pytest.raises(UnsafePath):
        put_child(session.history, "a", result="lost")
    assert os.listdir(folder(session)) == []
