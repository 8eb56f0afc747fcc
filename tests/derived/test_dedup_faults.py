"""Whatever file call of a refresh fails or kills: what the index names is there, and the next run goes on from it."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from derived.repeating import LOG, files, furnish, run
from faults import Faults, calls_of, injected

import daypack
from daypack.derived.dedup import read_index, refresh
from daypack.errors import DaypackError
from daypack.files import blobs


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A home with a session that was refreshed once and has grown since."""
    home = tmp_path / "template"
    with daypack.open_session("work", home=home, durability="os") as session:
        furnish(session)
        refresh(session.history)
        run(session, "t6", "x" * 3000)
        run(session, "t7", LOG)
    return home


def check(home: Path, expected: dict[str, bytes]) -> None:
    """Whatever the index names can be read; the next run is as if nothing had happened."""
    with daypack.open_session("work", home=home, durability="os") as session:
        for record in read_index(session.history):
            blob = session.path / "context" / "dedup" / "blob" / record.hash
            assert blobs.name_of(blob.read_bytes()) == record.hash
        assert len(session.messages()) == 14
        refresh(session.history)
        assert {name: data for name, data in files(session).items() if "/.tmp-" not in name} == expected


def expected_files(template: Path, tmp_path: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the files after a refresh, and the file calls it makes."""
    shutil.copytree(template, tmp_path / "whole")
    with daypack.open_session("work", home=tmp_path / "whole", durability="os") as session:
        calls = calls_of(lambda: refresh(session.history))
        assert len(calls) > 30
        return files(session), calls


@pytest.mark.parametrize("fault", ["error", "short"])
def test_after_an_error_at_any_call_the_next_run_completes_the_index(
    template: Path, tmp_path: Path, fault: Any, campaign: Campaign
) -> None:
    expected, calls = expected_files(template, tmp_path)
    hits = 0
    for at in campaign.calls("faults", calls):
        home = tmp_path / str(at)
        shutil.copytree(template, home)
        with daypack.open_session("work", home=home, durability="os") as session:
            with injected(Faults(at, fault)) as faults, suppress(DaypackError):
                refresh(session.history)
            hits += faults.hit
        check(home, expected)
        shutil.rmtree(home)
    assert hits > 5


def test_after_a_kill_at_any_call_the_next_run_completes_the_index(
    template: Path, tmp_path: Path, campaign: Campaign
) -> None:
    expected, calls = expected_files(template, tmp_path)
    kills = 0
    for at in [*campaign.calls("kills", calls), len(calls) + 1]:
        home = tmp_path / str(at)
        shutil.copytree(template, home)
        forked = os.fork()
        if forked == 0:
            session = daypack.open_session("work", home=home, durability="os")
            with injected(Faults(at, "kill")):
                refresh(session.history)
            os._exit(0)
        killed = os.WIFSIGNALED(status := os.waitpid(forked, 0)[1])
        kills += killed
        assert not killed or os.WTERMSIG(status) == signal.SIGKILL
        check(home, expected)
        shutil.rmtree(home)
    assert kills > 5
