"""Whatever file call of a turn fails: a clear error or a turn with less in it, whole logs, and the next turn works."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Literal

import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected, refused_writing
from turn.scenes import converse, item, logs, outputs, release, stage, turn_events

from daypack.errors import DaypackError, StorageFailed, WriteFailed
from daypack.session import Session
from daypack.upkeep.doctor import examine_session


def furnish(home: str, **settings: str) -> Session:
    """A small session with something of every kind that a turn reads or writes."""
    workspace = Path(home).parent / "w"
    workspace.mkdir(exist_ok=True)
    (workspace / "AGENTS.md").write_text("Ask before you sail.")
    session = stage(home, workspace=str(workspace), clock=None, **settings)
    session.set_budget(700)
    session.pin("system", "You are a pilot.")
    session.put_child("rev", result="It is charted.")
    session.switch("voice", on=True)
    converse(session, 5, words=4)
    session.append("user", "What of the glacier 1?")
    return session


def check_whole(session: Session, before: tuple[bytes, bytes]) -> None:
    messages, events = logs(session)
    assert messages == before[0]
    assert events.startswith(before[1])
    assert events.endswith(b"\n")
    for line in events[len(before[1]) :].splitlines():
        json.loads(line)


def prepare(session: Session, number: int) -> None:
    session.prepare(items=[item(content=f"Wind {number}")])


def attempt(session: Session, number: int, faults: Faults) -> bool:
    """Prepare while a call fails; say whether that was an error, which must be one of ours and say what and where."""
    refused: DaypackError | None = None
    with injected(faults):
        try:
            prepare(session, number)
        except DaypackError as error:
            refused = error
    assert refused is None or (refused.operation and refused.place), number
    return refused is not None


@pytest.mark.parametrize(("code", "persistent"), [(errno.ENOSPC, True), (errno.EIO, False), (errno.EACCES, False)])
def test_any_call_may_fail_and_the_next_turn_works(
    home: str, campaign: Campaign, code: int, *, persistent: bool
) -> None:
    session = furnish(home)
    prepare(session, 0)
    calls = calls_of(lambda: prepare(session, 0))
    assert len(calls) > 30
    failed = 0
    for number, at in enumerate(campaign.calls("faults", calls)):
        if number % 3 == 0:
            release(session)  # the call that opens a file can fail as well
        if number % 4 == 0:
            Path(session.history.layout.pin("style")).write_text(f"Style {at}")
            session.refresh()
        before = logs(session)
        failed += attempt(session, at, Faults(at, code=code, persistent=persistent))
        check_whole(session, before)
        prepare(session, at)
    assert failed > 3
    for event in turn_events(session):
        session.replay(event.id)


@pytest.mark.parametrize("fault", ["error", "short"])
def test_a_cold_start_may_fail_at_any_call(home: str, fault: Literal["error", "short"], campaign: Campaign) -> None:
    furnish(home).close()
    folder = Path(home).parent
    with stage(home) as session:
        calls = [*calls_of(lambda: prepare(session, 0)), *["later"] * 20]  # there are more of them from cold
    shutil.copytree(home, folder / "copy")
    session = stage(str(folder / "copy"), workspace=str(folder / "w"))
    for number, at in enumerate(campaign.calls("faults", calls)):
        release(session)
        if number % 3 == 0:
            shutil.rmtree(session.history.layout.context, ignore_errors=True)
        session = stage(str(folder / "copy"), workspace=str(folder / "w"))
        before = logs(session)
        attempt(session, at, Faults(at, fault, errno.ENOSPC))
        check_whole(session, before)
    prepare(session, 0)
    for event in turn_events(session):
        session.replay(event.id)
    assert "damage" not in {finding.severity for finding in examine_session(session.history.layout)}


def test_a_full_disk_refuses_the_turn_and_records_nothing(home: str) -> None:
    session = furnish(home)
    before = logs(session)
    with refused_writing(errno.ENOSPC), pytest.raises(StorageFailed, match="No space left"):
        prepare(session, 1)
    assert logs(session) == before
    assert session.prepare().event_id


def test_a_full_disk_does_not_hinder_dry_runs_and_replays(home: str) -> None:
    session = furnish(home)
    turn = session.prepare()
    session.prepare(dry_run=True)
    with refused_writing(errno.ENOSPC):
        assert outputs(session.replay(turn.event_id or "")) == outputs(turn)
        assert session.prepare(dry_run=True).messages() == turn.messages()


def test_a_read_only_context_folder_costs_the_pack_files_and_nothing_else(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = furnish(home)
    session.prepare()
    context = session.history.layout.context
    real_open, real_mkdir = os.open, os.mkdir

    def guarded_open(path: str, flags: int, *args: int, **kwargs: int) -> int:
        if str(path).startswith(context) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real_open(path, flags, *args, **kwargs)

    def guarded_mkdir(path: str, *args: int) -> None:
        if str(path).startswith(context):
            raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), path)
        real_mkdir(path, *args)

    session.close()
    monkeypatch.setattr(os, "open", guarded_open)
    monkeypatch.setattr(os, "mkdir", guarded_mkdir)
    fresh = stage(home)
    written = Path(context, "pack.json").read_bytes()
    fresh.append("user", "And now?")
    turn = fresh.prepare()
    assert "Read-only" in turn.unwritten
    assert Path(context, "pack.json").read_bytes() == written
    assert turn_events(fresh)[-1].id == turn.event_id
    monkeypatch.undo()
    assert outputs(fresh.replay(turn.event_id or "")) == outputs(turn)
    later = fresh.prepare()
    assert later.unwritten == ""
    assert Path(context, "pack.json").read_bytes() == later.pack_json


def test_a_text_that_cannot_be_kept_refuses_the_turn(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the text a replay would not be possible: no event claims that it is."""
    session = furnish(home)
    prepare(session, 0)
    before = logs(session)
    real = os.open

    def guarded(path: str, flags: int, *args: int, **kwargs: int) -> int:
        if "/blob/" in str(path) and flags & os.O_CREAT:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), path)
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", guarded)
    with pytest.raises(WriteFailed):
        prepare(session, 1)
    assert logs(session) == before
    monkeypatch.undo()
    prepare(session, 1)


def test_a_sync_that_fails_is_told_and_the_session_works_when_it_is_opened_again(home: str) -> None:
    furnish(home).close()
    session = stage(home, durability="sync")
    before = logs(session)
    with injected(Faults()) as faults:
        real = faults.call

        def no_sync(name: str, function: object, *args: object, **kwargs: object) -> object:
            if name == "fdatasync":
                raise OSError(errno.EIO, "Input/output error")
            return real(name, function, *args, **kwargs)  # type: ignore[arg-type]

        faults.call = no_sync  # type: ignore[method-assign]
        with pytest.raises(StorageFailed):
            prepare(session, 1)
    check_whole(session, before)
    session.close()
    fresh = stage(home, durability="sync")
    prepare(fresh, 2)
    for event in turn_events(fresh):
        fresh.replay(event.id)
