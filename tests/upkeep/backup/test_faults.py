"""A kill or a failure at any file call of a backup or restore leaves the old or the new, whole; a rerun finishes."""

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import faults as faulty
import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected
from upkeep.backup.homes import UID, furnished, leftovers, remembered, said

import daypack
from daypack.errors import DaypackError
from daypack.history.layout import Home
from daypack.upkeep.backup import exchange
from daypack.upkeep.backup.apply import apply as back_up
from daypack.upkeep.backup.contents import Request as BackupRequest
from daypack.upkeep.backup.restore import apply as restore
from daypack.upkeep.backup.restore_plan import Request
from daypack.upkeep.backup.verify import verify
from daypack.upkeep.doctor import examine_session

WRITES = (
    "open",
    "write",
    "pwrite",
    "fsync",
    "ftruncate",
    "replace",
    "rename",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "utime",
)
ALL = Request(replace=("all",))


def killed(work: Callable[[], object], at: int) -> None:
    """Run the work in a process that is killed at a file call."""
    child = os.fork()
    if child == 0:
        with injected(Faults(at, "kill")):
            work()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.fixture(autouse=True)
def _writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faulty, "CALLS", WRITES)


def test_a_backup_that_is_killed_is_whole_or_not_there(home: str, tmp_path: Path, campaign: Campaign) -> None:
    place = furnished(home)
    folder = tmp_path / "backups"
    folder.mkdir()
    path = str(folder / "b.tar")
    calls = calls_of(lambda: back_up(place, BackupRequest(), str(tmp_path / "first.tar")))
    assert len(calls) > 100
    whole = 0
    for at in campaign.calls("kills", calls):
        killed(lambda: back_up(place, BackupRequest(), path), at)
        if os.path.exists(path):
            verify(path)
            whole += 1
            os.unlink(path)
        back_up(place, BackupRequest(), path)
        assert os.listdir(folder) == ["b.tar"]
        os.unlink(path)
    assert said(home)[0].startswith("Which ferry")
    assert whole < len(calls) / 2


@pytest.mark.parametrize(("code", "persistent"), [(errno.EIO, False), (errno.ENOSPC, True)])
def test_a_backup_that_fails_says_so_and_leaves_nothing(
    home: str, tmp_path: Path, campaign: Campaign, code: int, *, persistent: bool
) -> None:
    place = furnished(home)
    folder = tmp_path / "backups"
    folder.mkdir()
    path = str(folder / "b.tar")
    calls = calls_of(lambda: back_up(place, BackupRequest(), str(tmp_path / "first.tar")))
    failed = 0
    for at in campaign.calls("faults", calls):
        with injected(Faults(at, code=code, persistent=persistent)):
            try:
                back_up(place, BackupRequest(), path)
            except DaypackError as error:
                failed += 1
                reported = bool(error.place and error.hint)
            else:
                reported = True
        assert reported, at
        if os.path.exists(path):
            verify(path)
            os.unlink(path)
        back_up(place, BackupRequest(), path)
        assert os.listdir(folder) == ["b.tar"]
        os.unlink(path)
    assert failed > 3


def changed(home: str) -> None:
    """Change what the backup has, so that a restore replaces it."""
    with daypack.open_session("work", home=home, uid=UID, durability="os") as session:
        session.append("user", "Since the backup.")
    with daypack.open_memory(home=home, uid=UID) as memories:
        memories.add_entry(memories.memories()[0].memory_id, "Since the backup.")
    Path(home, "home", UID, "config.toml").write_text('model = "gpt-4"\n')


def check(home: str, before: list[str], backup: str) -> bool:
    """Check that every part is as before or as in the backup; return True if the session is restored."""
    texts = said(home)
    assert texts in (before, before[:-1])
    layout = Home(home, UID).session("default", "work")
    assert [found for found in examine_session(layout) if found.severity == "damage"] == []
    assert len(remembered(home)) in (1, 2)
    config = Path(home, "home", UID, "config.toml").read_text()
    assert config in ('model = "gpt-4"\n', 'model = "gpt-4o"\n')
    assert said(home, "hers", "bo") == ["Bo's own words."]
    restore(home, backup, ALL)
    assert said(home) == before[:-1]
    assert len(remembered(home)) == 1
    assert leftovers(home) == []
    return texts != before


def test_a_restore_that_is_killed_leaves_each_part_old_or_new(home: str, tmp_path: Path, campaign: Campaign) -> None:
    backup = back_up(furnished(home), BackupRequest(), str(tmp_path / "b.tar")).path
    changed(home)
    before = said(home)
    shutil.copytree(home, tmp_path / "counting")
    calls = calls_of(lambda: restore(str(tmp_path / "counting"), backup, ALL))
    assert len(calls) > 100
    sides: set[bool] = set()
    for at in campaign.calls("kills", calls):
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        killed(lambda copy=copy: restore(copy, backup, ALL), at)
        sides.add(check(copy, before, backup))
        shutil.rmtree(copy)
    assert sides == {False, True}


def test_a_restore_to_a_new_home_that_is_killed_is_finished_by_a_rerun(
    home: str, tmp_path: Path, campaign: Campaign
) -> None:
    backup = back_up(furnished(home), BackupRequest(), str(tmp_path / "b.tar")).path
    calls = calls_of(lambda: restore(str(tmp_path / "counting"), backup, Request()))
    for at in campaign.calls("kills", calls):
        copy = str(tmp_path / f"{at}")
        killed(lambda copy=copy: restore(copy, backup, Request()), at)
        restore(copy, backup, Request())
        assert said(copy) == said(home)
        assert len(remembered(copy)) == 1
        assert leftovers(copy) == []
        shutil.rmtree(copy)


@pytest.mark.parametrize(("code", "persistent"), [(errno.EIO, False), (errno.ENOSPC, True)])
def test_a_restore_that_fails_says_so_and_a_rerun_finishes(
    home: str, tmp_path: Path, campaign: Campaign, code: int, *, persistent: bool
) -> None:
    backup = back_up(furnished(home), BackupRequest(), str(tmp_path / "b.tar")).path
    changed(home)
    before = said(home)
    shutil.copytree(home, tmp_path / "counting")
    calls = calls_of(lambda: restore(str(tmp_path / "counting"), backup, ALL))
    failed = 0
    for at in campaign.calls("faults", calls):
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        with injected(Faults(at, code=code, persistent=persistent)):
            try:
                restore(copy, backup, ALL)
            except DaypackError as error:
                failed += 1
                reported = bool(error.place and error.hint)
            else:
                reported = True
        assert reported, at
        check(copy, before, backup)
        shutil.rmtree(copy)
    assert failed > 3


def test_without_an_exchange_of_names_a_rerun_finishes_too(
    home: str, tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On file systems without it there is a moment without the session; the old one is kept aside until the end."""

    def refuse(_: str, __: str) -> int:
        return errno.EINVAL

    monkeypatch.setattr(exchange, "_swap", lambda: refuse)
    backup = back_up(furnished(home), BackupRequest(), str(tmp_path / "b.tar")).path
    changed(home)
    before = said(home)
    shutil.copytree(home, tmp_path / "counting")
    calls = calls_of(lambda: restore(str(tmp_path / "counting"), backup, ALL))
    renames = [at for at, name in enumerate(calls, 1) if name in ("rename", "replace", "unlink")]
    for at in renames[: campaign.size("kills", len(renames), 12)]:
        copy = str(tmp_path / f"{at}")
        shutil.copytree(home, copy)
        killed(lambda copy=copy: restore(copy, backup, ALL), at)
        restore(copy, backup, ALL)
        assert said(copy) == before[:-1]
        assert leftovers(copy) == []
        shutil.rmtree(copy)
