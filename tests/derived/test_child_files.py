"""The folder of the child channel: artifacts, and a whole child or none of it whatever fails."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected

import daypack
from daypack.derived import children
from daypack.derived.children import ChildUpdate, load_artifacts, put_child, read_children, recorded_files
from daypack.errors import BadInput, BadName, DamageWarning, DaypackError, UnsafePath
from daypack.session import Session


def folder(session: Session, *names: str) -> Path:
    return session.path.joinpath("context", "child", *names)


def artifacts_of(session: Session, name: str) -> dict[str, bytes]:
    (child,) = (one for one in read_children(session.history) if one.name == name)
    return {path.removeprefix(f"context/child/{name}/"): (session.path / path).read_bytes() for path in child.artifacts}


def test_artifacts_are_kept_whole_and_come_back(session: Session) -> None:
    picture = bytes(range(256)) * 40
    put_child(session.history, "a", ChildUpdate(result="drawn", artifacts={"chart.png": picture, "d/é.txt": b""}))
    put_child(session.history, "a", ChildUpdate(artifacts={"notes.md": b"old"}))
    put_child(session.history, "a", ChildUpdate(artifacts={"notes.md": b"new"}))
    expected = {"artifact/chart.png": picture, "artifact/d/é.txt": b"", "artifact/notes.md": b"new"}
    assert artifacts_of(session, "a") == expected
    before = read_children(session.history)
    shutil.rmtree(session.path / "context")
    assert read_children(session.history) == before
    assert artifacts_of(session, "a") == expected
    recorded = recorded_files(session.history, session.events())["a"]
    assert {path: read() for path, read in recorded.items() if "/" in path} == expected


def test_an_artifact_whose_bytes_are_lost_is_warned_of_and_the_rest_comes_back(session: Session) -> None:
    put_child(session.history, "a", ChildUpdate(result="drawn", artifacts={"gone": b"1" * 9, "hurt": b"2", "ok": b"3"}))
    kept = {one["name"]: session.path / "blob" / one["blob"] for one in session.events()[0].data["artifacts"]}
    kept["gone"].unlink()
    kept["hurt"].write_bytes(b"!")
    shutil.rmtree(session.path / "context")
    with pytest.warns(DamageWarning) as warned:
        read_children(session.history)
    assert any("artifact gone cannot be had again" in str(one.message) for one in warned)
    assert any("bytes do not match the name" in str(one.message) for one in warned)
    assert artifacts_of(session, "a") == {"artifact/ok": b"3"}


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "/etc/passwd", "a//b", ".hidden", "a/.git", "a\nb", "a/" * 8 + "b", "messages.jsonl"]
)
def test_an_artifact_is_a_file_of_the_child_and_no_log(session: Session, name: str) -> None:
    with pytest.raises(BadName):
        put_child(session.history, "a", ChildUpdate(artifacts={name: b"x"}))
    assert read_children(session.history) == ()
    assert not (session.path / "blob").exists()


def test_an_artifact_that_is_too_large_is_refused(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert children.MAX_ARTIFACT_BYTES == 16 * 1024 * 1024
    monkeypatch.setattr(children, "MAX_ARTIFACT_BYTES", 10)
    (tmp_path / "fits").write_bytes(b"x" * 10)
    (tmp_path / "large").write_bytes(b"x" * 11)
    assert load_artifacts([tmp_path / "fits"]) == {"fits": b"x" * 10}
    with pytest.raises(BadInput, match="more than 10 bytes"):
        load_artifacts([tmp_path / "large"])
    with pytest.raises(BadInput, match="more than 10 bytes"):
        put_child(session.history, "a", ChildUpdate(artifacts={"large": b"x" * 11}))


def test_files_that_cannot_be_artifacts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for place in (tmp_path / "same", tmp_path / "a" / "same"):
        place.write_bytes(b"x")
    with pytest.raises(BadInput, match="two artifacts have this name"):
        load_artifacts([tmp_path / "same", tmp_path / "a" / "same"])
    with pytest.raises(BadInput, match="No such file"):
        load_artifacts([tmp_path / "none"])
    with pytest.raises(BadInput, match="Is a directory"):
        load_artifacts([tmp_path / "a"])


def test_no_artifact_goes_through_a_link(session: Session, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    put_child(session.history, "a", handoff="ask")
    folder(session, "a", "artifact").symlink_to(tmp_path / "outside")
    with pytest.raises(UnsafePath):
        put_child(session.history, "a", ChildUpdate(artifacts={"x": b"x"}))
    assert list((tmp_path / "outside").iterdir()) == []
    assert len(session.events()) == 1


# Faults


def update_of(number: int) -> ChildUpdate:
    word = ("old", "new")[number]
    return ChildUpdate(
        handoff=f"{word} ask", result=word * 2000, artifacts={"d/a.bin": word.encode() * 9}, agent=word, status="active"
    )


def state_of(session: Session) -> tuple[object, ...]:
    (child,) = read_children(session.history)
    return child.handoff, child.result, child.agent, *artifacts_of(session, "a").values()


def test_an_error_at_any_call_leaves_a_whole_child_with_its_artifacts(tmp_path: Path, campaign: Campaign) -> None:
    states: list[tuple[object, ...]] = []
    calls: list[str] = []
    for number in (0, 1):
        with daypack.open_session("work", home=tmp_path / "all", durability="os") as session:
            calls = calls_of(lambda number=number: put_child(session.history, "a", update_of(number)))
            states.append(state_of(session))
        if number == 0:
            shutil.copytree(tmp_path / "all", tmp_path / "template")
    assert len(calls) > 60
    hits = 0
    for at in campaign.calls("faults", calls):
        shutil.copytree(tmp_path / "template", tmp_path / str(at))
        faults = Faults(at)
        with daypack.open_session("work", home=tmp_path / str(at), durability="os") as session:
            with injected(faults), suppress(DaypackError):
                put_child(session.history, "a", update_of(1))
            assert state_of(session) in states, at
            assert len(session.events()) == 1 + states.index(state_of(session)), at
        hits += faults.hit
        shutil.rmtree(tmp_path / str(at))
    assert hits > 5


def test_a_kill_at_any_call_loses_nothing_that_was_acknowledged(tmp_path: Path, campaign: Campaign) -> None:
    with daypack.open_session("work", home=tmp_path / "template", durability="os") as session:
        put_child(session.history, "a", update_of(0))
    shutil.copytree(tmp_path / "template", tmp_path / "counting")
    with daypack.open_session("work", home=tmp_path / "counting", durability="os") as session:
        calls = calls_of(lambda: put_child(session.history, "a", update_of(1)))
    assert len(calls) > 60
    kills = 0
    for at in [*campaign.calls("kills", calls), len(calls) + 1]:
        home = tmp_path / str(at)
        shutil.copytree(tmp_path / "template", home)
        forked = os.fork()
        if forked == 0:
            session = daypack.open_session("work", home=home, durability="os")
            with injected(Faults(at, "kill")):
                put_child(session.history, "a", update_of(1))
            os._exit(0)
        killed = os.WIFSIGNALED(status := os.waitpid(forked, 0)[1])
        kills += killed
        assert not killed or os.WTERMSIG(status) == signal.SIGKILL
        with daypack.open_session("work", home=home, durability="os") as session:
            recorded = len(session.events())
            assert killed or recorded == 2
            assert read_children(session.history)[0].handoff in ("old ask", "new ask")
            shutil.rmtree(session.path / "context")
            assert read_children(session.history)[0].handoff == ("old ask", "new ask")[recorded - 1]
            put_child(session.history, "a", update_of(1))
            assert state_of(session)[0] == "new ask"
            assert session.damage == []
        shutil.rmtree(home)
    assert kills > 5
