"""Reading, verifying and cutting the audit log."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from daypack.errors import BadInput, Damaged, WriteFailed
from daypack.memory.audit_log.cut import apply_cut, plan_cut
from daypack.memory.audit_log.log import AuditLog
from daypack.memory.audit_log.reading import Selection, select, verify
from daypack.memory.audit_log.record import Deed

ONE, TWO = "1" * 32, "2" * 32


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AuditLog:
    """A log with one line per hour of a day."""
    log = AuditLog(str(tmp_path / "audit"))
    start = 1_767_225_600  # 2026-01-01
    for hour in range(24):
        monkeypatch.setattr(time, "time", lambda hour=hour: start + hour * 3600.0)
        memory = ONE if hour % 2 else TWO
        listed = (ONE, TWO) if hour == 10 else ()
        action = "erase" if hour == 23 else "read"
        log.record(Deed(action=action, user=f"u{hour % 3}", memory="" if listed else memory, memories=listed))
    monkeypatch.undo()
    return log


def hours(log: AuditLog, **wanted: Any) -> list[int]:
    return [record.seq - 1 for record in select(log.lines(), Selection(**wanted))]


def test_a_selection_names_user_memory_action_and_time(log: AuditLog) -> None:
    assert len(hours(log)) == 24
    assert hours(log, user="u1") == list(range(1, 24, 3))
    assert hours(log, memory=ONE) == sorted([*range(1, 24, 2), 10])
    assert hours(log, action="erase") == [23]
    assert hours(log, since="2026-01-01T20:00", user="u2") == [20, 23]
    assert hours(log, until="2026-01-01T01:30Z") == [0, 1]
    assert len(hours(log, until="2026-01-01")) == 24


@pytest.mark.parametrize("wanted", [{"since": "yesterday"}, {"until": "x"}, {"action": "look"}])
def test_a_selection_that_means_nothing_is_refused(log: AuditLog, wanted: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        list(select(log.lines(), Selection(**wanted)))


def test_no_log_is_an_empty_log(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path / "none"))
    assert list(select(log.lines(), Selection())) == []
    assert verify(log.path) == []
    assert plan_cut(log, "2026-01-01").lines == 0
    assert not Path(log.path).exists()


def test_every_flipped_byte_is_found_and_hides_one_line_only(log: AuditLog) -> None:
    path = Path(log.path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 61):
        if whole[at : at + 1] == b"\n":
            continue
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        assert verify(log.path), at
        assert len(hours(log)) >= 23 - 1


def test_a_removed_line_is_found(log: AuditLog) -> None:
    path = Path(log.path)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:5] + whole[6:]))
    assert [(found.line, found.problem) for found in verify(log.path)] == [(6, "number 7, expected 6")]
    path.write_bytes(b"".join(whole[3:]))
    assert [found.problem for found in verify(log.path)] == ["the first line has number 4, and no cut is recorded"]


def test_a_cut_is_planned_then_applied_and_recorded(log: AuditLog, tmp_path: Path) -> None:
    path, archive = Path(log.path), tmp_path / "older.jsonl"
    whole = path.read_bytes()
    planned = plan_cut(log, "2026-01-01T12:00")
    assert (planned.lines, planned.first, planned.last, planned.kept) == (12, 1, 12, 12)
    assert path.read_bytes() == whole
    other = AuditLog(str(path.parent))  # another process has it open
    other.record(Deed(action="read"))
    assert apply_cut(log, "2026-01-01T12:00", str(archive))._replace(kept=12) == planned
    assert archive.read_bytes() == whole[: planned.bytes]
    assert verify(log.path) == []
    assert verify(str(archive)) == []
    other.record(Deed(action="read"))
    told = list(select(log.lines(), Selection()))
    assert [record.seq for record in told] == list(range(13, 28))
    assert (told[-2].action, told[-2].seqs) == ("audit.cut", (1, 12))
    again = tmp_path / "newer.jsonl"
    assert apply_cut(log, "2026-01-01T18:00", str(again)).lines == 6
    assert verify(log.path) == []
    assert apply_cut(log, "2026-01-01", str(tmp_path / "none")).lines == 0
    assert not (tmp_path / "none").exists()


def test_a_cut_loses_nothing_if_it_fails(log: AuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(log.path)
    whole = path.read_bytes()
    (tmp_path / "taken").write_text("x")
    with pytest.raises(BadInput, match="exists"):
        apply_cut(log, "2026-01-01T12:00", str(tmp_path / "taken"))
    with pytest.raises(WriteFailed):
        apply_cut(log, "2026-01-01T12:00", str(tmp_path / "no folder" / "file"))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(WriteFailed):
        apply_cut(log, "2026-01-01T12:00", str(tmp_path / "archive"))
    monkeypatch.undo()
    assert path.read_bytes() == whole
    assert sorted(found.name for found in path.parent.iterdir()) == ["audit.jsonl"]


def test_a_damaged_log_is_not_cut(log: AuditLog, tmp_path: Path) -> None:
    path = Path(log.path)
    path.write_bytes(path.read_bytes().replace(b"u1", b"u9", 1))
    with pytest.raises(Damaged, match="damaged"):
        plan_cut(log, "2026-01-02")
