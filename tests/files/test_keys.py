"""The table of client keys: grows, survives, and never says a key is absent that is there."""

import os
from pathlib import Path

import pytest

from daypack import system
from daypack.files import keys
from daypack.files.keys import Keys


def opened(path: Path) -> Keys:
    table = Keys(str(path))
    table.open()
    return table


def test_keys_are_found_across_all_levels(tmp_path: Path) -> None:
    table = opened(tmp_path / "keys.idx")
    for number in range(1, 9001):
        table.put(f"key {number}", number)
    table.cover(9000, crc=7)
    again = opened(tmp_path / "keys.idx")
    assert (again.covered, again.crc) == (9000, 7)
    assert all(number in list(again.find(f"key {number}")) for number in range(1, 9001))
    assert [list(again.find(f"other {number}")) for number in range(1000)] == [[]] * 1000


def test_keys_that_share_a_hash_are_all_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def same(_: str) -> int:
        return 1023

    monkeypatch.setattr(keys, "_hash", same)
    table = opened(tmp_path / "keys.idx")
    for number in range(1, 21):
        table.put(f"key {number}", number)
    assert sorted(table.find("any")) == list(range(1, 21))


def test_another_process_sees_new_keys_after_a_refresh(tmp_path: Path) -> None:
    one, other = opened(tmp_path / "keys.idx"), opened(tmp_path / "keys.idx")
    one.put("k", 1)
    one.cover(1, crc=7)
    other.refresh()
    assert (other.covered, other.crc) == (1, 7)
    assert list(other.find("k")) == [1]


def test_after_a_reboot_only_a_synced_table_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(tmp_path / "keys.idx")
    table.put("k", 1)
    table.cover(1, crc=7)
    table.sync()
    monkeypatch.setattr(system, "_boot", b"another boot 123")
    assert opened(tmp_path / "keys.idx").covered == 1
    table = opened(tmp_path / "keys.idx")
    table.put("l", 2)
    table.cover(2, crc=8)
    monkeypatch.setattr(system, "_boot", b"yet another 1234")
    assert opened(tmp_path / "keys.idx").covered == 0
    assert os.path.getsize(tmp_path / "keys.idx") == 0


def test_a_damaged_header_or_a_full_level_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "keys.idx"
    table = opened(path)
    table.put("k", 1)
    table.cover(1, crc=7)
    right = path.read_bytes()
    for at in range(52):
        path.write_bytes(right[:at] + bytes([right[at] ^ 0x10]) + right[at + 1 :])
        assert opened(path).covered == 0, at
    path.write_bytes(right[:64] + b"\1" * 16 * 1024)
    with pytest.raises(OSError, match="empty cell"):
        list(opened(path).find("other"))


def test_a_replaced_table_is_opened_anew(tmp_path: Path) -> None:
    table = opened(tmp_path / "keys.idx")
    table.put("k", 1)
    table.cover(1, crc=7)
    os.unlink(tmp_path / "keys.idx")
    table.refresh()
    assert table.covered == 0
    assert list(table.find("k")) == []
