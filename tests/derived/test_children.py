"""Children of a session: put, read, deleted and had again."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from faults import Faults, injected
from turn.scenes import given_out, release

import daypack
from daypack.derived.children import (
    Child,
    ChildUpdate,
    merged,
    notes_of,
    put_child,
    read_children,
    restore_children,
)
from daypack.errors import BadInput, BadMessage, BadName, DamageWarning, DaypackError, UnsafePath
from daypack.files import atomic
from daypack.session import Session
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


def test_an_error_at_any_call_leaves_all_of_a_child_or_none(tmp_path: Path, campaign: Campaign) -> None:
    template = tmp_path / "template"
    with daypack.open_session("work", home=template, durability="os") as session:
        put_child(session.history, "a", handoff="old ask", result="old")

    def put_with(faults: Faults, name: str) -> Session:
        shutil.copytree(template, tmp_path / name)
        session = daypack.open_session("work", home=tmp_path / name)
        with injected(faults), suppress(DaypackError):
            put_child(session.history, "a", handoff="new ask", result="n" * 5000)
        release(session)
        return session

    counting = Faults()
    put_with(counting, "counting")
    seen: set[bool] = set()
    for at in [*campaign.calls("faults", counting.calls), counting.count + 1]:
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


# The channel: who, where, how it stands


def test_a_child_that_is_started_is_known_by_agent_session_and_status(session: Session) -> None:
    update = ChildUpdate(handoff="Chart it.", agent="pilot", session="work--rev", status="active")
    put_child(session.history, "rev", update)
    (child,) = read_children(session.history)
    assert (child.agent, child.session, child.status) == ("pilot", "work--rev", "active")
    texts = {path.name: path.read_text() for path in folder(session, "rev").iterdir()}
    assert texts == {
        "agent": "pilot\n",
        "session": "work--rev\n",
        "status": "active\n",
        "handoff.md": "Chart it.",
    }
    shutil.rmtree(session.path / "context")
    assert read_children(session.history) == (child,)
    assert {path.name: path.read_text() for path in folder(session, "rev").iterdir()} == texts


@pytest.mark.parametrize(
    ("updates", "status"),
    [
        ([{"handoff": "ask"}], "pending"),
        ([{"refs": [REF]}], "pending"),
        ([{"result": "answer"}], "done"),
        ([{"handoff": "ask"}, {"result": "answer"}], "done"),
        ([{"handoff": "ask", "status": "active"}, {"refs": [REF]}], "active"),
        ([{"handoff": "ask", "status": "active"}, {"handoff": "ask better"}], "active"),
        ([{"handoff": "ask", "status": "active"}, {"result": "answer"}], "done"),
        ([{"status": "error"}, {"result": "answer"}], "done"),
        ([{"result": "half of it", "status": "error"}], "error"),
        ([{"handoff": "ask", "status": "cancelled"}, {"result": "late"}], "cancelled"),
        ([{"handoff": "ask", "status": "cancelled"}, {"result": "late", "status": "done"}], "done"),
        ([{"result": "answer"}, {"handoff": "and now this"}], "pending"),
    ],
)
def test_the_status_follows_from_what_is_recorded(session: Session, updates: list[Any], status: str) -> None:
    for update in updates:
        put_child(session.history, "a", ChildUpdate(**update))
    assert [child.status for child in read_children(session.history)] == [status]
    shutil.rmtree(session.path / "context")
    assert [child.status for child in read_children(session.history)] == [status]


@pytest.mark.parametrize(("result", "status"), [(None, "pending"), ("it is done", "done")])
def test_a_folder_without_a_status_is_read_by_what_is_in_it(session: Session, result: str | None, status: str) -> None:
    place = folder(session, "made")
    place.mkdir(parents=True)
    (place / "handoff.md").write_text("ask")
    if result:
        (place / "result.md").write_text(result)
    assert [child.status for child in read_children(session.history)] == [status]


def test_a_status_that_is_none_is_warned_of(session: Session) -> None:
    put_child(session.history, "a", handoff="ask")
    folder(session, "a", "status").write_text("asleep\n")
    with pytest.warns(DamageWarning, match="'asleep' is not a status"):
        assert [child.status for child in read_children(session.history)] == ["pending"]
    with pytest.raises(BadInput, match="'asleep' is not a status"):
        put_child(session.history, "a", ChildUpdate(status="asleep"))  # type: ignore[arg-type]


def test_a_result_that_nobody_waits_for_is_accepted_and_told(session: Session) -> None:
    asked = put_child(session.history, "a", handoff="ask")
    assert notes_of(asked) == notes_of(put_child(session.history, "a", result="fine")) == ()
    put_child(session.history, "a", ChildUpdate(status="cancelled"))
    late = put_child(session.history, "a", result="late")
    unknown = put_child(session.history, "b", result="hello")
    assert notes_of(late) == ("the child had been cancelled before it answered",)
    assert notes_of(unknown) == ("the child is not known to have been asked anything",)
    assert [child.result for child in read_children(session.history)] == ["late", "hello"]


@pytest.mark.parametrize("field", ["agent", "session"])
def test_an_agent_and_a_session_have_names_like_all_others(session: Session, field: str) -> None:
    given: dict[str, Any] = {field: "../other"}
    with pytest.raises(BadName):
        put_child(session.history, "a", ChildUpdate(**given))
    assert read_children(session.history) == ()


# What the parent gets


@pytest.mark.requirement("S4-DD6")
def test_a_child_is_merged_as_a_reference_a_summary_and_its_artifacts(session: Session) -> None:
    answer = "## Findings\n\nThe reef is " + "very " * 60 + "long.\n"
    put_child(session.history, "rev", ChildUpdate(handoff="ask", result=answer, artifacts={"chart.svg": b"<svg/>"}))
    (child,) = read_children(session.history)
    result, artifact = merged(child)
    assert (result.path, result.kind) == ("context/child/rev/result.md", "child_result")
    assert result.summary == "result of child rev (done): Findings"
    assert (artifact.path, artifact.kind) == ("context/child/rev/artifact/chart.svg", "artifact")
    for ref in (result, artifact):
        assert (session.path / ref.path).is_file()
    put_child(session.history, "rev", result=answer.split("\n", 2)[2])
    (child,) = read_children(session.history)
    longer = merged(child)[0]
    assert longer.hash != result.hash
    assert longer.summary.removeprefix("result of child rev (done): ") in answer
    assert len(longer.summary) < 200
    put_child(session.history, "asked", handoff="ask")
    assert merged(read_children(session.history)[0]) == ()


@pytest.mark.requirement("T12", "X31", "S4-DD6")
def test_a_child_is_given_the_handoff_and_the_parent_its_result_and_nothing_else_passes(home: str) -> None:
    settings: dict[str, Any] = {"durability": "os", "workspace": ""}
    with daypack.open_session("work", home=home, **settings) as parent:
        parent.append("user", "The password of the harbour is marmalade.")
        put_child(parent.history, "rev", ChildUpdate(handoff="Chart the reef.", session="work--rev", status="active"))
        (known,) = read_children(parent.history)
        with daypack.open_session(known.session or "", home=home, **settings) as child:
            child.append("user", known.handoff)
            started = given_out(child.prepare())
            assert "Chart the reef." in started
            assert "marmalade" not in started
            child.append("assistant", "I secretly think of cheese.")
            logs = [child.path / name for name in ("messages.jsonl", "events.jsonl")]
            chart = {"chart.svg": b"<svg>inner lines</svg>"}
            put_child(parent.history, "rev", ChildUpdate(result="The reef is charted.", artifacts=chart))
            for log in logs:
                shutil.copy(log, folder(parent, "rev"))
        turn = parent.prepare()
        told = given_out(turn)
    assert "The reef is charted." in told
    assert "context/child/rev/artifact/chart.svg" in told
    for inner in ("cheese", "inner lines"):
        assert inner not in told
    assert [one.source for one in turn.items if "child" in one.source] == [
        "context/child/rev/result.md",
        "context/child/rev/refs.jsonl",
    ]


def test_parts_given_beside_an_update_are_recorded_with_it(session: Session) -> None:
    session.put_child("a", ChildUpdate(agent="scout", handoff="look"), handoff="look around", result="all is well")
    (child,) = session.children
    assert (child.agent, child.handoff, child.result, child.status) == ("scout", "look around", "all is well", "done")
