"""Whatever write of a compaction, an undo or a rebuild fails or kills: the next run is clean, and nothing is lost."""

import errno
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected
from turn.compacting import BUDGET, check_files, context_tree, folded_of, step
from turn.scenes import close_all, logs, stage, turn_events

from daypack.derived.template import problems
from daypack.errors import DaypackError
from daypack.session import Session
from daypack.upkeep.doctor import examine_session
from daypack.upkeep.rebuild import rebuild

WRITES = ("write", "pwrite", "fsync", "fdatasync", "ftruncate", "replace", "link", "unlink", "mkdir")
REPEATED = "a line that many outputs have\n" * 200  # so that dedup has something to keep


class Writes(Faults):
    """Counts, and fails or kills at, the calls that change the file system."""

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if name == "open" and not args[1] & (os.O_CREAT | os.O_TRUNC):
            return real(*args, **kwargs)
        if name not in (*WRITES, "open"):
            return real(*args, **kwargs)
        return super().call(name, real, *args, **kwargs)


def compact(session: Session) -> object:
    return session.compact(model="none", keep_tokens=100)


def undo(session: Session) -> object:
    return session.undo()


def undo_all(session: Session) -> object:
    return [session.undo() for _ in session.compactions]


def turn(session: Session) -> object:
    return session.prepare(budget=BUDGET)


Deed = Callable[[Session], object]
DEEDS: dict[str, Deed] = {"compact": compact, "undo": undo, "turn": turn}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a session that was compacted twice, has grown since, and repeats some outputs."""
    home = tmp_path_factory.mktemp("template")
    session = stage(str(home))
    for number in range(3):
        session.append("assistant", "", tool_calls=[{"id": f"d{number}", "name": "cat", "arguments": "{}"}])
        session.append("tool", REPEATED, tool_call_id=f"d{number}")
    for number in range(4):
        step(session, number)
    session.append("user", "Next?")
    session.prepare(budget=BUDGET)
    session.compact(keep_tokens=100)
    session.append("assistant", "", tool_calls=[{"id": "d9", "name": "cat", "arguments": "{}"}])
    session.append("tool", REPEATED, tool_call_id="d9")
    step(session, 4)
    session.append("user", "Next?")
    session.compact(keep_tokens=100)
    session.prepare(budget=BUDGET)
    for number in range(5, 15):  # more than the window holds: the next turn compacts at once
        step(session, number)
    session.append("user", "And?")
    close_all()
    return home


def files(session: Session) -> dict[str, bytes]:
    """What must be the same whatever happened; how far dedup has read and chunks of older ranges are caches."""
    current = folded_of(session).current
    newest = {one.id for one in current.swapped} if current else set[str]()
    return {
        name: data
        for name, data in context_tree(session).items()
        if not name.startswith(("pack.", "offsets/"))
        and (not name.startswith("swap/chunk/") or os.path.basename(name) in newest)
    }


def expected(template: Path, tmp_path: Path, deed: Deed) -> tuple[dict[int, dict[str, bytes]], list[str]]:
    """Return the files before and after, by the number of compaction events, and the writes of the deed."""
    shutil.copytree(template, tmp_path / "whole")
    session = stage(str(tmp_path / "whole"))
    found = {len(compactions(session)): files(session)}
    writes = calls_of(lambda: deed(session), Writes())
    assert len(writes) > 8
    session.prepare(budget=BUDGET, dry_run=True)
    found[len(compactions(session))] = files(session)
    assert len(found) == 2
    close_all()
    return found, writes


def compactions(session: Session) -> list[str]:
    return [event.id for event in session.events() if event.type.startswith("context.compaction.")]


def check_next_run(home: Path, before: tuple[bytes, bytes], trees: dict[int, dict[str, bytes]], *, told: bool) -> None:
    """What was there is there, what was acknowledged is recorded, and one turn brings all files in line."""
    session = stage(str(home))
    assert logs(session)[0] == before[0]
    document = Path(session.history.layout.derived("context_doc"))
    assert not document.exists() or problems(document.read_text()) == []
    session.prepare(budget=BUDGET, dry_run=True)
    assert logs(session)[1].startswith(before[1])
    recorded = len(compactions(session))
    assert not told or recorded == max(trees)
    check_files(session, exact=False)
    now = files(session)
    assert sorted(now) == sorted(trees[recorded])
    assert now == trees[recorded]
    assert list(session.compactions) == folded_of(session).accepted
    close_all()


@pytest.mark.requirement("G12")
@pytest.mark.parametrize(
    ("name", "fault"), [("compact", "error"), ("compact", "short"), ("undo", "error"), ("turn", "error")]
)
def test_any_write_may_fail_and_the_next_run_is_clean(
    template: Path, tmp_path: Path, name: str, fault: Any, campaign: Campaign
) -> None:
    deed = DEEDS[name]
    trees, writes = expected(template, tmp_path, deed)
    for at in [*campaign.calls("faults", writes), len(writes) + 1]:
        home = tmp_path / str(at)
        shutil.copytree(template, home)
        session = stage(str(home))
        before = logs(session)
        told = False
        with injected(Writes(at, fault, errno.ENOSPC)) as faults, suppress(DaypackError):
            deed(session)
            told = True
        assert faults.hit or at > len(writes) // 2
        close_all()
        check_next_run(home, before, trees, told=told)
        shutil.rmtree(home)


@pytest.mark.parametrize("name", DEEDS)
def test_after_a_kill_at_any_write_the_next_run_continues(
    template: Path, tmp_path: Path, name: str, campaign: Campaign
) -> None:
    deed = DEEDS[name]
    trees, writes = expected(template, tmp_path, deed)
    for at in [*campaign.calls("kills", writes), len(writes) + 1]:
        home = tmp_path / str(at)
        shutil.copytree(template, home)
        session = stage(str(home))
        before = logs(session)
        close_all()
        killed = kill_at(at, lambda home=home: deed(stage(str(home))))
        assert killed or at > len(writes) // 2
        check_next_run(home, before, trees, told=not killed)
        shutil.rmtree(home)


def kill_at(at: int, do: Callable[[], object]) -> bool:
    """Do something in a process that dies at its n-th write; say whether it did."""
    forked = os.fork()
    if forked == 0:
        with injected(Writes(at, "kill")):
            do()
        os._exit(0)
    status = os.waitpid(forked, 0)[1]
    assert os.WIFSIGNALED(status) == (os.waitstatus_to_exitcode(status) == -signal.SIGKILL)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("gone", [True, False])
def test_a_rebuild_that_is_killed_at_any_write_is_finished_by_the_next(
    template: Path, tmp_path: Path, campaign: Campaign, *, gone: bool
) -> None:
    def copy(name: str) -> Path:
        shutil.copytree(template, tmp_path / name)
        if gone:
            shutil.rmtree(next((tmp_path / name).glob("**/messages.jsonl")).parent / "context")
        return tmp_path / name

    def run(home: Path) -> None:
        session = stage(str(home))
        rebuild(session.history, session.turns)

    whole = copy("whole")
    writes = calls_of(lambda: run(whole), Writes())
    session = stage(str(whole))
    trees = {len(compactions(session)): files(session)}
    before = logs(session)
    close_all()
    for at in [*campaign.calls("kills", writes), len(writes) + 1]:
        home = copy(str(at))
        assert kill_at(at, lambda home=home: run(home)) or at > len(writes) // 2
        session = stage(str(home))
        rebuild(session.history, session.turns)
        assert logs(session) == before
        check_files(session, exact=False)
        assert files(session) == trees[max(trees)]
        close_all()
        shutil.rmtree(home)


def test_undoing_everything_may_fail_at_any_write(template: Path, tmp_path: Path, campaign: Campaign) -> None:
    shutil.copytree(template, tmp_path / "whole")
    writes = calls_of(lambda: undo_all(stage(str(tmp_path / "whole"))), Writes())
    assert len(writes) > 8
    for at in campaign.calls("faults", writes):
        home = tmp_path / str(at)
        shutil.copytree(template, home)
        session = stage(str(home))
        with injected(Writes(at, "error", errno.EIO)) as faults, suppress(DaypackError):
            undo_all(session)
        assert faults.hit or at > len(writes) // 2
        close_all()
        session = stage(str(home))
        session.prepare(budget=BUDGET, dry_run=True)
        check_files(session, exact=False)
        close_all()
        shutil.rmtree(home)


def test_after_all_faults_every_turn_replays_and_the_doctor_finds_no_damage(template: Path, tmp_path: Path) -> None:
    shutil.copytree(template, tmp_path / "h")
    session = stage(str(tmp_path / "h"))
    for at in range(1, 60, 4):
        with injected(Faults(at, "error", errno.EIO)), suppress(DaypackError):
            compact(session)
        with injected(Faults(at + 2, "short", errno.ENOSPC)), suppress(DaypackError):
            turn(session)
        step(session, 100 + at)
        session.append("user", "And?")
    session.prepare(budget=BUDGET)
    check_files(session, exact=False)
    for event in turn_events(session):
        session.replay(event.id)
    assert "damage" not in {finding.severity for finding in examine_session(session.history.layout)}
