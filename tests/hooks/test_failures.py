"""Failures of hooks: one line each, and the user is told once."""

import os
from pathlib import Path

import pytest

from daypack.errors import StorageFailed
from daypack.history.home import find_home
from daypack.hooks import failures
from daypack.hooks.failures import Place

PLACE = Place("claude", "Stop", "s-1")


@pytest.fixture(autouse=True)
def folder(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DAYPACK_HOME", home)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return find_home(home).folder


def lines(folder: str) -> list[str]:
    return Path(folder, failures.LOG).read_text(encoding="utf-8").splitlines()


def test_a_failure_is_one_line_with_its_place(folder: str) -> None:
    failures.record(PLACE, StorageFailed("disk\nfull", operation="append", place="/a b"))
    (line,) = lines(folder)
    assert line.split(" ", 4)[1:] == ["claude", "Stop", "s-1", "StorageFailed: append: /a b: disk full"]
    assert os.stat(Path(folder, failures.LOG)).st_mode & 0o077 == 0


def test_what_a_host_sent_cannot_forge_a_line(folder: str) -> None:
    failures.record(Place("claude", "Stop\n2026-01-01T00:00:00Z - reported - 9", "a b" * 500), ValueError("\x1b[2J"))
    (line,) = lines(folder)
    assert len(line) < 1_000
    assert "\x1b" not in line
    assert failures.read_unreported(folder) is not None


def test_secrets_are_not_logged(folder: str) -> None:
    failures.record(PLACE, ValueError("refused: api_key=sk-proj-Zx81kQpL0vRt5Yw2Nc7Hb3Mf9Ds6Ga4Je"))
    assert "Zx81kQpL0vRt5Yw2" not in lines(folder)[0]


def test_the_user_is_reported_of_each_failure_once(folder: str) -> None:
    assert failures.read_unreported(folder) is None
    for _ in range(3):
        failures.record(PLACE, ValueError("a"))
    unreported = failures.read_unreported(folder)
    assert unreported
    assert unreported.number == 3
    assert "3 hook failures since 20" in failures.notice(unreported)
    failures.mark_reported(folder, unreported)
    assert failures.read_unreported(folder) is None
    failures.record(PLACE, ValueError("the next"))
    unreported = failures.read_unreported(folder)
    assert unreported
    assert (unreported.number, unreported.newest.endswith("the next")) == (1, True)


def test_recent_failures_can_be_read_after_the_user_was_told(folder: str) -> None:
    failures.record(PLACE, ValueError("a"))
    failures.mark_reported(folder, failures.Failures(1, "", ""))
    log = Path(folder, failures.LOG)
    log.write_text("2020-01-01T00:00:00Z claude Stop s-1 ValueError: old\n" + log.read_text())
    recent = failures.read_recent(str(log))
    assert recent
    assert recent.number == 1


def test_a_long_log_is_moved_aside_and_no_line_is_lost_in_between(folder: str) -> None:
    failures.record(PLACE, ValueError("first"))
    log = Path(folder, failures.LOG)
    log.write_text("x" * 1_000_001 + "\n")
    failures.record(PLACE, ValueError("second"))
    assert [line.rpartition(" ")[2] for line in lines(folder)] == ["second"]
    assert Path(folder, "hook.log.1").stat().st_size > 1_000_000


def test_without_a_home_the_line_is_in_the_temporary_folder(home: str, tmp_path: Path) -> None:
    Path(home).write_text("not a folder")
    failures.record(PLACE, ValueError("a"))
    assert Path(failures.fallback_log()).read_text(encoding="utf-8").endswith(" claude Stop s-1 ValueError: a\n")


def test_a_link_in_the_temporary_folder_is_not_followed(home: str, tmp_path: Path) -> None:
    Path(home).write_text("not a folder")
    target = tmp_path / "target"
    target.write_text("mine")
    os.symlink(target, failures.fallback_log())
    failures.record(PLACE, ValueError("a"))
    assert target.read_text() == "mine"


def test_an_error_that_cannot_be_described_is_named(folder: str) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    failures.record(PLACE, Odd())
    assert lines(folder)[0].endswith(" Odd")
