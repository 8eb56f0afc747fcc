"""Whatever file call of a collection fails or is its last: the next run is clean, and nothing is lost that counts."""

import errno
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import faults as faulty
import pytest
from faults import Faults, injected
from turn.scenes import close_all, logs, outputs, stage, turn_events
from upkeep.gc.remains import (
    NOW,
    collect,
    furnish,
    layout_path,
    leave_behind,
    look,
    refer,
    store_blob,
    swap_out,
)

from daypack.errors import DaypackError
from daypack.session import Session
from daypack.upkeep.doctor import examine_session
from daypack.upkeep.gc.gc import APPLIED, apply, plan
from daypack.upkeep.gc.policy import Policy, read_policy

WRITES = ("write", "pwrite", "fsync", "fdatasync", "ftruncate", "replace", "link", "unlink", "mkdir", "rename", "rmdir")


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


def prepared(home: str) -> Session:
    """A session in which something of every kind goes, and something of every kind stays."""
    session = furnish(home)
    swap_out(session, 1, 5)
    refer(session, f"context/swap/chunk/{swap_out(session, 1, 4).name}")
    store_blob(session, "nobody knows me", ())
    store_blob(session, "nor me", ())
    leave_behind(session.path / "blob")
    leave_behind(session.path / "context" / "child.tmp-4711.140" / "deep")
    session.put_child("rev-2", handoff="Look at the bay.", result="It is wide.")
    (session.path / "context" / "gc.policy").write_text("swap_ttl=2w\n")
    return session


def run(session: Session) -> None:
    history = session.history
    apply(history, plan(history, read_policy(history), NOW, children=True))


def what_counts(session: Session) -> dict[str, bytes]:
    """The files that no collection may touch."""
    top = session.path
    names = ("messages.jsonl", "blob/sha256-*", "context/pinned/*", "context/budget", "context/gc.policy")
    kept = [path for name in names for path in top.glob(name)]
    kept += [path for path in (top / "context/child/rev-1").rglob("*") if path.is_file()]
    return {str(path.relative_to(top)): path.read_bytes() for path in kept}


def check(home: str, before: dict[str, bytes], events: bytes, turns: dict[str, object]) -> None:
    """Run again as the next process would."""
    session = stage(home)
    assert {name: data for name, data in what_counts(session).items() if name in before} == before
    assert look(session).missing == ()
    run(session)
    after = look(session, read_policy(session.history), children=True)
    # What a killed run was just removing is a leftover of today: it goes tomorrow.
    assert {one.kind for one in after.going} <= {"temporary"}
    assert {one.kind for one in after.staying} >= {"swap", "dedup", "child", "kept"}
    index = layout_path(session, "dedup", "index.jsonl").read_text()
    assert sorted(path.name for path in layout_path(session, "dedup", "blob").glob("sha256-*")) == sorted(
        line.split('"')[3] for line in index.splitlines()
    )
    assert logs(session)[1].startswith(events)
    for event in session.events():
        assert event.type != APPLIED or not [path for path in event.data["paths"] if (session.path / path).exists()]
    assert [event.data["text"] for event in session.events() if event.type == "gc.policy"] == ["swap_ttl=2w\n"]
    assert {event.id: outputs(session.replay(event.id)) for event in turn_events(session)} == turns
    assert [one for one in examine_session(session.history.layout) if one.severity == "damage"] == []
    session.close()


def copies(home: str, folder: Path) -> tuple[dict[str, bytes], bytes, dict[str, object], int]:
    """Facts of the session before, and the number of calls of a collection."""
    session = prepared(home)
    facts = what_counts(session), logs(session)[1]
    turns: dict[str, object] = {event.id: outputs(session.replay(event.id)) for event in turn_events(session)}
    session.close()
    shutil.copytree(home, folder / "counting")
    session = stage(str(folder / "counting"))
    with injected(Faults()) as counted:
        run(session)
    session.close()
    return *facts, turns, counted.count


@pytest.mark.requirement("S4-GC0")
def test_a_kill_at_any_write_leaves_a_state_that_the_next_run_finishes(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faulty, "CALLS", WRITES)
    before, events, turns, total = copies(home, tmp_path)
    assert total > 20
    killed = 0
    for at in range(1, total + 1):
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        child = os.fork()
        if child == 0:
            session = stage(copy)
            with injected(Faults(at, "kill")):
                run(session)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -signal.SIGKILL)
        killed += code != 0
        check(copy, before, events, turns)
        shutil.rmtree(copy)
    assert killed == total


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
@pytest.mark.parametrize(("code", "persistent"), [(errno.EIO, False), (errno.ENOSPC, True)])
@pytest.mark.parametrize(("calls", "step"), [(WRITES, 1), ((*faulty.CALLS, "lstat", "listdir"), 41)])
def test_an_error_at_any_call_is_told_and_the_next_run_finishes(
    home: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: tuple[str, ...],
    step: int,
    code: int,
    *,
    persistent: bool,
) -> None:
    monkeypatch.setattr(faulty, "CALLS", calls)
    before, events, turns, total = copies(home, tmp_path)
    failed = 0
    for at in range(1, total + 1, step):
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        session = stage(copy)
        with injected(Faults(at, code=code, persistent=persistent)):
            try:
                run(session)
            except DaypackError as error:
                failed += 1
                told = bool(error.operation and error.place and error.hint)
            else:
                told = True
        assert told, at
        session.close()
        check(copy, before, events, turns)
        shutil.rmtree(copy)
    assert failed > 3


def test_what_went_before_a_failure_is_recorded(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
