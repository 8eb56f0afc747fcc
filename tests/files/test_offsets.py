"""The sidecar: believed only as far as it can be, and never needed."""

import os
from pathlib import Path

import pytest

from daypack import system
from daypack.files.offsets import HEADER, SLOT, Offsets, Slot


def slot(number: int) -> Slot:
    return Slot(number * 10, 10, number, number + 1, number * 7, 0)


def filled(path: Path, count: int) -> Offsets:
    table = Offsets(str(path), "o200k_base")
    table.make_writable()
    table.add([slot(number) for number in range(count)])
    return table


def reader(path: Path, method: str = "o200k_base") -> Offsets:
    table = Offsets(str(path), method)
    table.refresh()
    return table


def test_slots_are_read_back_by_position(tmp_path: Path) -> None:
    filled(tmp_path / "deep" / "a.idx", 100)
    table = reader(tmp_path / "deep" / "a.idx")
    assert len(table) == 100
    assert table.read(40, 43) == [slot(40), slot(41), slot(42)]
    assert table.last() == slot(99)


def test_slots_of_an_earlier_boot_count_only_as_far_as_they_were_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(tmp_path / "a.idx", 60)
    table.sync()
    table.add([slot(number) for number in range(60, 100)])
    assert len(reader(tmp_path / "a.idx")) == 100
    monkeypatch.setattr(system, "_boot", b"another boot 123")
    assert len(reader(tmp_path / "a.idx")) == 60
    again = Offsets(str(tmp_path / "a.idx"), "o200k_base")
    again.make_writable()
    assert len(again) == 60
    assert os.path.getsize(tmp_path / "a.idx") == HEADER.size + 60 * SLOT.size
    again.add([slot(60)])
    assert len(reader(tmp_path / "a.idx")) == 61


def test_counts_of_another_method_are_not_used(tmp_path: Path) -> None:
    filled(tmp_path / "a.idx", 10)
    other = reader(tmp_path / "a.idx", "cl100k_base")
    assert (len(other), other.refresh(), other.refresh()) == (0, 0, 0)
    assert len(reader(tmp_path / "a.idx")) == 10


def test_a_part_of_a_slot_at_the_end_is_cut_off(tmp_path: Path) -> None:
    filled(tmp_path / "a.idx", 10)
    with (tmp_path / "a.idx").open("ab") as file:
        file.write(b"half a slot")
    table = Offsets(str(tmp_path / "a.idx"), "o200k_base")
    table.make_writable()
    table.add([slot(10)])
    assert reader(tmp_path / "a.idx").last() == slot(10)
    assert os.path.getsize(tmp_path / "a.idx") == HEADER.size + 11 * SLOT.size


def test_slots_that_cannot_be_written_are_kept_and_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(tmp_path / "a.idx", 5)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    table.add([slot(5)])
    table.add([slot(6)])
    assert table.read(4, 7) == [slot(4), slot(5), slot(6)]
    assert len(reader(tmp_path / "a.idx")) == 5
    monkeypatch.undo()
    table.add([slot(7)])
    assert reader(tmp_path / "a.idx").read(4, 8) == [slot(4), slot(5), slot(6), slot(7)]


def test_a_reader_sees_what_a_writer_adds(tmp_path: Path) -> None:
    table = filled(tmp_path / "a.idx", 5)
    watching = reader(tmp_path / "a.idx")
    watching.add([slot(5)])  # read off the log before the writer entered it
    assert len(watching) == 6
    table.add([slot(5), slot(6)])
    assert watching.refresh() == 7
    assert watching.last() == slot(6)


def test_truncating_forgets_slots_in_the_file_and_in_memory(tmp_path: Path) -> None:
    table = filled(tmp_path / "a.idx", 5)
    table.truncate(3)
    assert len(reader(tmp_path / "a.idx")) == 3
    plain = Offsets(str(tmp_path / "none.idx"), "x")
    plain.add([slot(0), slot(1), slot(2)])
    plain.truncate(1)
    assert plain.read(0, 1) == [slot(0)]
    assert len(plain) == 1
