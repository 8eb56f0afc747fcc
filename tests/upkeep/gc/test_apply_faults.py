"""After a failure or a kill at any file call, the next run completes and no protected file is lost."""

import errno
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import faults as faulty
import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected
from turn.scenes import close_all, logs, outputs, stage, turn_events
from upkeep.gc.collectable import (
    NOW,
    collect,
    full_session,
    layout_path,
    make_plan,
    refer,
    store_blob,
    swap_out,
    write_temporary_file,
)

from daypack.errors import DaypackError
from daypack.session import Session
from daypack.upkeep.doctor import examine_session
from daypack.upkeep.gc.apply import APPLIED, apply
from daypack.upkeep.gc.plan import plan
from daypack.upkeep.gc.policy import Policy, read_policy

WRITES = ("write", "pwrite", "fsync", "fdatasync", "ftruncate", "replace", "link", "unlink", "mkdir", "rename", "rmdir")


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


def prepared(home: str) -> Session:
    """Return a session with both removable and protected files of every kind."""
    session = full_session(home)
    swap_out(session, 1, 5)
    refer(session, f"context/swap/chunk/{swap_out(session, 1, 4).name}")
    store_blob(session, "unreferenced text", ())
    store_blob(session, "more unreferenced text", ())
    write_temporary_file(session.path / "blob")
    write_temporary_file(session.path / "context" / "child.tmp-4711.140" / "deep")
    session.put_child("rev-2", handoff="Look at the bay.", result="It is wide.")
    (session.path / "context" / "gc.policy").write_text("swap_ttl=2w\n")
    return session


def run(session: Session) -> None:
    history = session.history
    apply(history, plan(history, read_policy(history), NOW, children=True))


def protected_files(session: Session) -> dict[str, bytes]:
    """Return the files that no collection may change."""
    top = session.path
    names = ("messages.jsonl", "blob/sha256-*", "context/pinned/*", "context/budget", "context/gc.policy")
    kept = [path for name in names for path in top.glob(name)]
    kept += [path for path in (top / "context/child/rev-1").rglob("*") if path.is_file()]
    return {str(path.relative_to(top)): path.read_bytes() for path in kept}


def check(home: str, before: dict[str, bytes], events: bytes, turns: dict[str, object]) -> None:
    """Check the session and run the collection again, as the next process would."""
    session = stage(home)
    assert {name: data for name, data in protected_files(session).items() if name in before} == before
    assert make_plan(session).missing == ()
    run(session)
    after = make_plan(session, read_policy(session.history), children=True)
    # A folder that a killed run was removing is a young temporary folder: it is removed a day later.
    assert {removal.kind for removal in after.removals} <= {"temporary"}
    assert {retained.kind for retained in after.retained} >= {"swap", "dedup", "child", "permanent"}
    index = layout_path(session, "dedup", "index.jsonl").read_text()
    assert sorted(path.name for path in layout_path(session, "dedup", "blob").glob("sha256-*")) == sorted(
        line.split('"')[3] for line in index.splitlines()
    )
    assert logs(session)[1].startswith(events)
    for event in session.events():
        assert event.type != APPLIED or not [path for path in event.data["paths"] if (session.path / path).exists()]
    assert [event.data["text"] for event in session.events() if event.type == "gc.policy"] == ["swap_ttl=2w\n"]
    assert {event.id: outputs(session.replay(event.id)) for event in turn_events(session)} == turns
    assert [finding for finding in examine_session(session.history.layout) if finding.severity == "damage"] == []
    session.close()


def prepare_and_record_calls(home: str, folder: Path) -> tuple[dict[str, bytes], bytes, dict[str, object], list[str]]:
    """Return the state of a prepared session and the file calls that a collection makes."""
    session = prepared(home)
    facts = protected_files(session), logs(session)[1]
    turns: dict[str, object] = {event.id: outputs(session.replay(event.id)) for event in turn_events(session)}
    session.close()
    shutil.copytree(home, folder / "counting")
    session = stage(str(folder / "counting"))
    calls = calls_of(lambda: run(session))
    session.close()
    return *facts, turns, calls


@pytest.mark.requirement("S4-GC0")
def test_the_next_run_completes_after_a_kill_at_any_write(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    monkeypatch.setattr(faulty, "CALLS", WRITES)
    before, events, turns, calls = prepare_and_record_calls(home, tmp_path)
    assert len(calls) > 20
    for at in campaign.calls("kills", calls):
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        child = os.fork()
        if child == 0:
            session = stage(copy)
            with injected(Faults(at, "kill")):
                run(session)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        check(copy, before, events, turns)
        shutil.rmtree(copy)


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
@pytest.mark.parametrize(("code", "persistent"), [(errno.EIO, False), (errno.ENOSPC, True)])
@pytest.mark.parametrize(("failing", "every"), [(WRITES, 1), ((*faulty.CALLS, "lstat", "listdir"), 4)])
def test_an_error_at_any_call_is_reported_and_the_next_run_completes(
    home: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    campaign: Campaign,
    failing: tuple[str, ...],
    every: int,
    code: int,
    *,
    persistent: bool,
) -> None:
    monkeypatch.setattr(faulty, "CALLS", failing)
    before, events, turns, calls = prepare_and_record_calls(home, tmp_path)
    failed = 0
    for at in campaign.calls("faults", calls, every):
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        session = stage(copy)
        with injected(Faults(at, code=code, persistent=persistent)):
            try:
                run(session)
            except DaypackError as error:
                failed += 1
                reported = bool(error.operation and error.place and error.hint)
            else:
                reported = True
        assert reported, at
        session.close()
        check(copy, before, events, turns)
        shutil.rmtree(copy)
    assert failed > 3


def test_removals_before_a_failure_are_recorded(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = prepared(home)
    real = os.unlink

    def guarded(path: str, **fields: int) -> None:
        if "/swap/" in str(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        real(path, **fields)

    monkeypatch.setattr(os, "unlink", guarded)
    with pytest.raises(DaypackError, match="Input/output"):
        run(session)
    monkeypatch.undo()
    [event] = [event for event in session.events() if event.type == APPLIED]
    assert event.data["removed"] == {"pack": 2, "temporary": 2}
    assert collect(session, Policy(swap_ttl_seconds=0)).removed
